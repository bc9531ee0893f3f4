/* exec/traced/known.h - before training: which calls of a traced network can be run, and why not
 * the others.
 */
#pragma once

#include "exec/traced/call.h"

/* What a kernel asks of a call. */
typedef struct {
    /* A letter for each argument: t a tensor, ? one or none, 2 3 4 one of so many sides, n a
     * number, l a list, . whatever there is. NULL: it looks after itself. */
    const char *takes;
    /* Why a call is not known, though its name is; NULL: it is. May be missing. */
    const char *(*why_not)(const TracedCall *call);
} TracedRule;

/* False: there is no such kernel. */
typedef bool (*TracedFind)(const char *name, TracedRule *ret_rule);

/* Whether the op's call is known to `who`, and stays inside of its operands. otherwise: what can
 * be done with the network besides predicting it. */
bool traced_is_known(const ExecContext *context, const PlanOp *op, TracedFind find, const char *who,
                     const char *otherwise, GError **error);

/* shapes.c: what kernels lean on. Of a call whose arguments are those that its kernel takes. */
bool traced_shapes_fit(const TracedCall *call);

/* Of "buffer NAME > OPERAND", a text that asks for a buffer of the weights' file, the name;
 * transfer full. */
char *traced_buffer_of(const char *text);

/* Why such calls are not known, as above, whatever computes them. */
const char *traced_mm_why_not(const TracedCall *call);
const char *traced_addmm_why_not(const TracedCall *call);
const char *traced_efficient_why_not(const TracedCall *call);
const char *traced_flash_why_not(const TracedCall *call);
const char *traced_efficient_backward_why_not(const TracedCall *call);
const char *traced_flash_backward_why_not(const TracedCall *call);
const char *traced_nll_why_not(const TracedCall *call);
const char *traced_nll_backward_why_not(const TracedCall *call);
const char *traced_mse_why_not(const TracedCall *call);
const char *traced_embedding_backward_why_not(const TracedCall *call);
const char *traced_convolution_why_not(const TracedCall *call);
const char *traced_convolution_backward_why_not(const TracedCall *call);
const char *traced_pool_why_not(const TracedCall *call);
const char *traced_batch_norm_why_not(const TracedCall *call);
const char *traced_batch_norm_backward_why_not(const TracedCall *call);
