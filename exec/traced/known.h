/* exec/traced/known.h - before training: which calls of a traced network can be run, and why not
 * the others. To add one: a row in calls.def, its function on each device (exec/host/traced.h,
 * exec/cuda/ops/traced.h), and a rule in shapes.c where these lean on sizes.
 */
#pragma once

#include "exec/traced/call.h"

typedef const char *TracedWhy(const TracedCall *call); /* NULL: it is known */
typedef bool TracedFits(const TracedCall *call);

/* What all devices know of a call. takes has a letter for each argument: t a tensor, ? one or none,
 * 2 3 4 one of so many sides, n a number, l a list, . whatever there is. Element by element: x a
 * tensor or a number, by which elements are computed; < and > bounds, which may be missing; n a
 * number and s a text that all share (it may be missing); 1 stands for no argument, and is a number
 * that all share. */
typedef struct {
    const char *name, *takes;
    int which;
    TracedWhy *why;
    TracedFits *fits; /* shapes.c; of a call whose arguments are those that it takes */
} TracedRule;

/* Rows of calls.def. */
extern const TracedRule traced_rules[];
/* transfer none; NULL: there is none. */
const TracedRule *traced_rule_of(const char *name);

/* Whether the op's call is known, and stays inside of its operands. why_of: what a device does not
 * do that CPU ranks do (NULL: nothing). */
bool traced_is_known(const ExecContext *context, const PlanOp *op,
                     const char *(*why_of)(const TracedRule *rule, const TracedCall *call),
                     GError **error);

/* The name in "buffer NAME > OPERAND", a text that asks for a buffer of the weights' file. Transfer
 * full. */
char *traced_buffer_of(const char *text);

/* One function for each name in calls.def: why.c and shapes.c. */
#define CALL(name, run, which, takes, why, fits)                                                   \
    TracedWhy traced_why_##why;                                                                    \
    TracedFits traced_fits_##fits;
#include "exec/traced/calls.def"
