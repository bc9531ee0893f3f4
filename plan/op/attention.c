#include "plan/op/attention.h"

#include "plan/op/names.h"
#include "plan/op/work.h"

/* Attention of whole sequences, with heads of one length. */
static PlanAttention whole(const PlanRole *role, const PlanOp *op) {
    const int64_t *d = plan_op_dims(role, op);
    const double *attrs = plan_op_attrs(role, op);
    size_t seq = (size_t)d[ATTENTION_SEQ], head_dim = (size_t)d[ATTENTION_HEAD_DIM];
    bool masked = plan_op_has_mask(role, op);
    int64_t causal = masked ? 0 : d[ATTENTION_CAUSAL];
    return (PlanAttention){.batch = (size_t)d[ATTENTION_BATCH],
                           .heads = (size_t)d[ATTENTION_HEADS],
                           .kv_heads = (size_t)d[ATTENTION_KV_HEADS],
                           .q_rows = seq,
                           .kv_rows = seq,
                           .head_dim = head_dim,
                           .v_dim = head_dim,
                           .causal = causal != 0,
                           .window = causal > 1 ? (size_t)causal : 0,
                           .masked = masked,
                           .backward = op->kind != PLAN_OP_ATTENTION,
                           .scale = attrs[ATTENTION_SCALE],
                           .alibi = attrs[ATTENTION_ALIBI]};
}

/* Attention of some rows of a sequence to some rows of another rank's part of it. */
static PlanAttention part(const PlanRole *role, const PlanOp *op) {
    const int64_t *d = plan_op_dims(role, op);
    size_t head_dim = (size_t)d[ATTENTION_PART_HEAD_DIM];
    return (PlanAttention){.batch = (size_t)d[ATTENTION_PART_BATCH],
                           .heads = (size_t)d[ATTENTION_PART_HEADS],
                           .kv_heads = (size_t)d[ATTENTION_PART_KV_HEADS],
                           .q_rows = (size_t)d[ATTENTION_PART_Q_ROWS],
                           .kv_rows = (size_t)d[ATTENTION_PART_KV_ROWS],
                           .head_dim = head_dim,
                           .v_dim = head_dim,
                           .causal = d[ATTENTION_PART_CAUSAL] != 0,
                           .backward = op->kind == PLAN_OP_ATTENTION_PART_BACKWARD,
                           .scale = plan_op_attrs(role, op)[ATTENTION_PART_SCALE]};
}

static PlanAttention latent(const PlanRole *role, const PlanOp *op) {
    const int64_t *d = plan_op_dims(role, op);
    size_t seq = (size_t)d[LATENT_ATTENTION_SEQ];
    return (PlanAttention){.batch = (size_t)d[LATENT_ATTENTION_BATCH],
                           .heads = (size_t)d[LATENT_ATTENTION_HEADS],
                           .kv_heads = (size_t)d[LATENT_ATTENTION_KV_HEADS],
                           .q_rows = seq,
                           .kv_rows = seq,
                           .head_dim = (size_t)d[LATENT_ATTENTION_HEAD_DIM],
                           .v_dim = (size_t)d[LATENT_ATTENTION_V_DIM],
                           .causal = d[LATENT_ATTENTION_CAUSAL] != 0,
                           .backward = op->kind == PLAN_OP_LATENT_ATTENTION_BACKWARD,
                           .scale = plan_op_attrs(role, op)[LATENT_ATTENTION_SCALE]};
}

/* Its scale is in its call. */
static PlanAttention traced(const PlanRole *role, const PlanOp *op) {
    const int64_t *d = plan_op_dims(role, op);
    size_t heads = (size_t)d[TRACED_ATTENTION_HEADS],
           head_dim = (size_t)d[TRACED_ATTENTION_HEAD_DIM];
    return (PlanAttention){.batch = (size_t)d[TRACED_ATTENTION_BATCH],
                           .heads = heads,
                           .kv_heads = heads,
                           .q_rows = (size_t)d[TRACED_ATTENTION_SEQ],
                           .kv_rows = (size_t)d[TRACED_ATTENTION_KV_SEQ],
                           .head_dim = head_dim,
                           .v_dim = head_dim,
                           .causal = d[TRACED_ATTENTION_CAUSAL] != 0,
                           .backward = d[TRACED_ATTENTION_BACKWARD] != 0};
}

PlanAttention plan_attention_of(const PlanRole *role, const PlanOp *op) {
    switch (op->kind) {
    case PLAN_OP_ATTENTION:
    case PLAN_OP_ATTENTION_BACKWARD:
    case PLAN_OP_ATTENTION_BACKWARD_ORDERED:
    case PLAN_OP_ATTENTION_BACKWARD_QKV:
        return whole(role, op);
    case PLAN_OP_ATTENTION_PART:
    case PLAN_OP_ATTENTION_PART_BACKWARD:
        return part(role, op);
    case PLAN_OP_LATENT_ATTENTION:
    case PLAN_OP_LATENT_ATTENTION_BACKWARD:
        return latent(role, op);
    case PLAN_OP_TRACED_ATTENTION:
        return traced(role, op);
    default:
        g_assert_not_reached();
    }
}
