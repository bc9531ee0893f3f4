/* plan/op/attention.h - the shape of an attention op, read alike from each kind that there is.
 *
 * How its operands lie in memory is left to whoever launches it: that differs from kind to kind.
 */
#pragma once

#include "plan/plan.h"

typedef struct {
    size_t batch, heads, kv_heads;
    size_t q_rows, kv_rows; /* of a sequence: queries; keys and values */
    size_t head_dim, v_dim; /* of a head: of q and k; of v and what is made */
    bool causal;
    size_t window; /* causal: the last keys that a query sees, its own among them; 0: all */
    bool masked;   /* a mask among the operands hides keys, later ones too; then not causal */
    bool backward;
    double scale, alibi; /* the scores' factor, and their slope by distance (0: none) */
} PlanAttention;

PlanAttention plan_attention_of(const PlanRole *role, const PlanOp *op);
