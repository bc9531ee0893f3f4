/* plan/text/reader-private.h - a plan's text, line by line and word by word.
 *
 * Shared by read*.c alone. Every function that returns bool has set the reader's error, with file
 * and line, when it returns false, unless it says otherwise.
 */
#pragma once

#include "plan/plan.h"

enum {
    PLAN_READER_MAX_IDS = 1 << 26
};

typedef struct {
    const char *file_name;
    char *rest;   /* what is left of the text */
    char *line;   /* the current line, NUL-terminated in place; NULL at the end */
    char *cursor; /* next word of the line */
    unsigned number;
    bool unended; /* the current line is the last, and has no end */
    Plan *plan;
    PlanRole *role;
    GHashTable *texts; /* of the plan, each held once */
    GHashTable *lanes; /* name -> index + 1 */
    GArray *buffers, *ops, *operands, *parts, *dims, *attrs, *loss_ops;
    GError **error;
} PlanReader;

/* Its file's name, text, plan and error are there. */
void plan_reader_init(PlanReader *r);
void plan_reader_clear(PlanReader *r);

/* Returns false. */
bool plan_reader_fail(PlanReader *r, const char *format, ...) G_GNUC_PRINTF(2, 3);
void plan_reader_next_line(PlanReader *r);
char *plan_reader_word(PlanReader *r);
bool plan_reader_need_line(PlanReader *r, const char *what);
bool plan_reader_end_of_line(PlanReader *r);
bool plan_reader_expect(PlanReader *r, const char *keyword);
bool plan_reader_skip(PlanReader *r, const char *word); /* if it is next; sets no error */
bool plan_reader_number(PlanReader *r, const char *what, uint64_t max, uint64_t *ret);
/* How many rows a table has, which end a line; and the same behind its title. */
bool plan_reader_rows(PlanReader *r, uint64_t most, uint64_t *ret_n);
bool plan_reader_table(PlanReader *r, const char *title, uint64_t most, uint64_t *ret_n);
bool plan_reader_id(PlanReader *r, const char *w, char letter, uint32_t limit, bool may_be_none,
                    uint32_t *ret);
bool plan_reader_row_id(PlanReader *r, char letter, uint32_t id);
const char *plan_reader_keep(PlanReader *r, const char *text);
/* Moves what has been read into the plan, and empties the array. */
gpointer plan_reader_take(PlanReader *r, GArray *array, uint32_t *ret_n);
bool plan_reader_name(PlanReader *r, const char **ret);
bool plan_reader_lane(PlanReader *r, const char *w, uint8_t *ret);
bool plan_reader_dtype(PlanReader *r, uint8_t *ret);

bool plan_reader_tables(PlanReader *r); /* read-tables.c */
bool plan_reader_roles(PlanReader *r);  /* read-role.c */
/* One section's instructions (read-instr.c). */
bool plan_reader_section(PlanReader *r, PlanSection section);
