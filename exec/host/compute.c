/* exec/host/compute.c - ops that are kernels: which file has which. */
#include "exec/host/ops.h"
#include "exec/task.h"

bool exec_host_compute(const ExecTask *t, GError **error) {
    switch (exec_op_group((PlanOpKind)t->op->kind)) {
    case EXEC_GROUP_ATTENTION:
        exec_host_attention(t);
        return true;
    case EXEC_GROUP_ROTATION:
        exec_host_rotation(t);
        return true;
    case EXEC_GROUP_HEADS:
        exec_host_heads(t);
        return true;
    case EXEC_GROUP_MASK:
        return exec_host_masks(t, error);
    case EXEC_GROUP_POSITION:
        exec_host_positions(t);
        return true;
    case EXEC_GROUP_LAYER:
        return exec_host_layers(t, error);
    case EXEC_GROUP_LOSS:
        return exec_host_loss(t, error);
    case EXEC_GROUP_ACTIVATION:
        exec_host_activation(t);
        return true;
    case EXEC_GROUP_ARITHMETIC:
        exec_host_arithmetic(t);
        return true;
    case EXEC_GROUP_ROWS:
        exec_host_rows(t);
        return true;
    case EXEC_GROUP_PIECES:
        exec_host_pieces(t);
        return true;
    case EXEC_GROUP_ROUTING:
        return exec_host_routing(t, error);
    case EXEC_GROUP_EXPERTS:
        return exec_host_experts(t, error);
    case EXEC_GROUP_LIST:
        exec_host_optimize(t);
        return true;
    case EXEC_GROUP_SHARE:
        return exec_host_share(t, error);
    case EXEC_GROUP_LATENT:
        return exec_host_latent(t, error);
    case EXEC_GROUP_RING:
        exec_host_ring(t);
        return true;
    case EXEC_GROUP_EXCHANGE:
        return exec_host_exchange(t, error);
    case EXEC_GROUP_FLOAT8:
        exec_host_float8(t);
        return true;
    case EXEC_GROUP_FOUR_BIT:
        exec_host_four_bit(t);
        return true;
    case EXEC_GROUP_MUON:
        exec_host_muon(t);
        return true;
    case EXEC_GROUP_EIGHT_BIT:
        exec_host_eight_bit(t);
        return true;
    case EXEC_GROUP_LAUNCH: /* launch.c's */
        break;
    }
    g_assert_not_reached();
}
