/* models/traced/traced.h - a network file that models/pytorch/ wrote of any PyTorch module.
 *
 * One line for each thing, words with blanks between; its form stands in README.md. What is read is
 * sound: a plan can be made of it for as many samples as it has a trace of.
 *
 * Owns: its strings and traces. Threads: one makes it, any read it.
 */
#pragma once

#include "models/network.h"
#include "plan/graph/traced.h"

/* The second line of its text in a plan, before the file's path. */
#define MODEL_TRACED_FILE "# file "

typedef struct {
    const char *name, *class_name;
    uint32_t parent; /* PLAN_NONE: the root */
    bool is_block;
} ModelTracedModule;

typedef struct {
    bool is_parameter, is_kept, frozen;
    uint32_t module;
    const char *name;
    uint8_t n_dims, dtype;
    int64_t dims[4];
    PlanTracedCount elements; /* of what is no parameter */
    uint64_t bound;           /* of an input: whole numbers are below it; 0: it is not known */
} ModelTracedTensor;

typedef struct {
    PlanTraced *program;
    GArray *inputs; /* ModelTracedTensor */
} ModelTracedBody;

struct ModelTraced {
    GArray *modules, *tensors, *bodies; /* of the structs above */
    GArray *made; /* uint32_t parameters, of which those that are buffers are not counted */
    char *pytorch;
    PlanDtype dtype;
    bool casts_blocks; /* what blocks are given is cast to it, too */
    uint64_t tokens;   /* of a sample */
    GStringChunk *strings;
};

bool model_traced_is(const char *text, gsize length);
ModelTraced *model_traced_read(const char *text, gsize length, const char *file_name,
                               GError **error);
void model_traced_free(ModelTraced *traced);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ModelTraced, model_traced_free)

/* The trace of a pass of so many samples; NULL with an error. */
const ModelTracedBody *model_traced_body(const ModelTraced *traced, const char *name,
                                         uint64_t samples, GError **error);
/* What of a strategy a trace cannot answer; NULL: nothing. */
bool model_traced_is_known_with(const ModelNetwork *network, const PlanStrategy *strategy,
                                GError **error);

extern const ModelFamily model_traced;
