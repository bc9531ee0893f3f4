/* models/traced/read.h - what reading a traced network is made of. Inside models/ only.
 *
 * read.c has the file and its lines, head.c those before any trace, steps.c those of a trace,
 * kinds.c what its ops do, calls.c their kernels, words.c single words, sound.c what is seen of a
 * trace as a whole.
 */
#pragma once

#include "models/traced/traced.h"

/* The sections of the file, in which different lines may stand. */
typedef enum {
    IN_HEAD = 1,     /* modules, parameters, buffers */
    IN_TRACE = 2,    /* inputs, before any kind */
    IN_KIND = 4,     /* what it makes, keeps and launches */
    IN_BACKWARD = 8, /* what its node does */
    IN_GIVEN = 16,   /* behind that */
    IN_FORWARD = 32,
    IN_END = 64, /* behind forward */
    IN_DONE = 128
} TracedSection;

/* What steps know of a value. */
typedef struct {
    uint32_t base;
    bool wants_gradient, is_made, is_gone;
} TracedValue;

typedef struct {
    ModelTraced *traced;
    PlanTraced *program; /* of the trace that is read */
    TracedSection section;
    const char *file_name;
    unsigned line;
    char **words;
    unsigned n;
    GArray *values;  /* TracedValue */
    GArray *inside;  /* uint32_t modules that are entered */
    GArray *freed;   /* bool: of what backward makes, that it is gone; */
    GArray *dropped; /* and of what its node keeps */
    bool returns;    /* the module has returned and is about to be left */
    GError **error;
} TracedReader;

/* Sets the error, which names the line; returns false. */
bool traced_refuse(const TracedReader *r, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* A number below end, of which there are so many things so far. */
bool traced_index(const TracedReader *r, const char *word, uint64_t end, const char *what,
                  uint32_t *ret_index);
bool traced_part(const char *text, gsize length, int64_t *ret_part);
/* "768", "768n", "768n+12" or "768n-12" */
bool traced_count(const TracedReader *r, const char *word, PlanTracedCount *ret_count);
/* The call that the line's words make from one on (calls.c). is_sum: its tensors are x0, x1
 * and y0. */
bool traced_call_from(TracedReader *r, unsigned first_word, bool is_sum, PlanTracedCall *ret_call);
/* A letter and a number, one of those that may stand here (kinds.c). */
bool traced_ref(const TracedReader *r, const char *word, PlanTracedRef *ret_ref);
bool traced_dtype(const TracedReader *r, const char *word, uint8_t *ret_dtype);

/* Lines of the head, by their first words. */
bool traced_read_pytorch(TracedReader *r);
bool traced_read_own_dtype(TracedReader *r);
bool traced_read_tokens(TracedReader *r);
bool traced_read_module(TracedReader *r);
bool traced_read_parameter(TracedReader *r);
bool traced_read_buffer(TracedReader *r);
bool traced_read_made(TracedReader *r);
uint32_t traced_n_parameters(const TracedReader *r); /* so far */

/* Of a trace. */
bool traced_read_trace(TracedReader *r);
bool traced_read_copied(TracedReader *r);
bool traced_read_input(TracedReader *r);
bool traced_read_forward(TracedReader *r);
bool traced_read_op(TracedReader *r);
bool traced_read_enter(TracedReader *r);
bool traced_read_return(TracedReader *r);
bool traced_read_leave(TracedReader *r);
bool traced_read_casts(TracedReader *r);
bool traced_read_let(TracedReader *r);
bool traced_read_end(TracedReader *r);
bool traced_read_sum(TracedReader *r);
bool traced_read_loss(TracedReader *r);

/* Of a kind. */
bool traced_read_kind(TracedReader *r);
bool traced_read_out(TracedReader *r);
bool traced_read_save(TracedReader *r);
bool traced_read_run(TracedReader *r);
bool traced_read_call(TracedReader *r);
bool traced_read_backward(TracedReader *r);
bool traced_read_alloc(TracedReader *r);
bool traced_read_free(TracedReader *r);
bool traced_read_give(TracedReader *r);
/* The kind before a line has as many outputs as its head says; who has edges has a backward. */
bool traced_kind_is_whole(const TracedReader *r);

/* What is wrong with a trace as a whole, whose lines are sound each; NULL: nothing. transfer full
 */
char *model_traced_fault(const ModelTraced *traced, const ModelTracedBody *body);
