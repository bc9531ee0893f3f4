/* exec/host/compute.c - ops that are kernels: which file has which. */
#include "exec/error.h"
#include "exec/host/ops.h"
#include "exec/op-groups.h"
#include "exec/task.h"

bool exec_host_in_table(bool inside, const char *what, GError **error) {
    if (!inside) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED, "%s holds a number outside its table",
                    what);
    }
    return inside;
}

bool exec_host_compute(const ExecTask *t, GError **error) {
    switch ((PlanOpKind)t->op->kind) {
    EXEC_ATTENTION_OPS:
        exec_host_attention(t);
        return true;
    EXEC_HEADS_OPS:
        exec_host_heads(t);
        return true;
    EXEC_MASK_OPS:
        return exec_host_masks(t, error);
    EXEC_POSITION_OPS:
        exec_host_positions(t);
        return true;
    EXEC_LAYER_OPS:
        return exec_host_layers(t, error);
    EXEC_LOSS_OPS:
        return exec_host_loss(t, error);
    EXEC_ACTIVATION_OPS:
        exec_host_activation(t);
        return true;
    EXEC_ARITHMETIC_OPS:
        exec_host_arithmetic(t);
        return true;
    EXEC_PIECES_OPS:
        exec_host_pieces(t);
        return true;
    EXEC_EXPERTS_OPS:
        return exec_host_experts(t, error);
#define LIST_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        exec_host_optimize(t);
        return true;
#define SHARE_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_host_share(t, error);
#define LATENT_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_host_latent(t, error);
#define RING_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        exec_host_ring(t);
        return true;
    case PLAN_OP_PLACE_ROWS:
#define EXCHANGE_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_host_exchange(t, error);
#define FLOAT8_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        exec_host_float8(t);
        return true;
#define MUON_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        exec_host_muon(t);
        return true;
    EXEC_LAUNCH_OPS:
#define TRACED_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
#define HOST_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
#define COLLECTIVE(id, ...) case PLAN_OP_##id:
#include "plan/op/collectives.def"
#undef COLLECTIVE
    case PLAN_N_OP_KINDS: /* launch.c's */
        break;
    }
    g_assert_not_reached();
}
