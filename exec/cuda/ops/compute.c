/* exec/cuda/ops/compute.c - ops that are kernels: which file has which. The operands and dims of
 * each are put into the order that its kernel takes there.
 */
#include "exec/cuda/ops/operands.h"

KernelCudaFault exec_cuda_compute(const ExecTask *t, KernelCuda *k) {
    switch (exec_op_group((PlanOpKind)t->op->kind)) {
    case EXEC_GROUP_ATTENTION:
        return exec_cuda_attention(t, k);
    case EXEC_GROUP_ROTATION:
        return exec_cuda_rotation(t, k);
    case EXEC_GROUP_HEADS:
        return exec_cuda_heads(t, k);
    case EXEC_GROUP_MASK:
        return exec_cuda_masks(t, k);
    case EXEC_GROUP_POSITION:
        return exec_cuda_positions(t, k);
    case EXEC_GROUP_LAYER:
        return exec_cuda_layers(t, k);
    case EXEC_GROUP_LOSS:
        return exec_cuda_loss(t, k);
    case EXEC_GROUP_ACTIVATION:
        return exec_cuda_activation(t, k);
    case EXEC_GROUP_ARITHMETIC:
        return exec_cuda_arithmetic(t, k);
    case EXEC_GROUP_ROWS:
        return exec_cuda_rows(t, k);
    case EXEC_GROUP_PIECES:
        return exec_cuda_pieces(t, k);
    case EXEC_GROUP_ROUTING:
        return exec_cuda_routing(t, k);
    case EXEC_GROUP_EXPERTS:
        return exec_cuda_experts(t, k);
    case EXEC_GROUP_LIST:
        return exec_cuda_optimize(t, k);
    case EXEC_GROUP_SHARE:
        return exec_cuda_share(t, k);
    case EXEC_GROUP_LATENT:
        return exec_cuda_latent(t, k);
    case EXEC_GROUP_RING:
        return exec_cuda_ring(t, k);
    case EXEC_GROUP_EXCHANGE:
        return exec_cuda_exchange(t, k);
    case EXEC_GROUP_FLOAT8:
        return exec_cuda_float8(t, k);
    case EXEC_GROUP_MUON:
        return exec_cuda_muon(t, k);
    case EXEC_GROUP_EIGHT_BIT:
        return exec_cuda_eight_bit(t, k);
    case EXEC_GROUP_FOUR_BIT:
        return exec_cuda_four_bit(t, k);
    case EXEC_GROUP_LAUNCH: /* launch.c's */
        break;
    }
    g_assert_not_reached();
}
