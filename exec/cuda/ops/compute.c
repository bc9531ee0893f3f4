/* exec/cuda/ops/compute.c - ops that are kernels: which file has which. The operands and dims of
 * each are put into the order that its kernel takes there.
 */
#include "exec/cuda/ops/operands.h"
#include "exec/op-groups.h"

KernelCudaFault exec_cuda_compute(const ExecTask *t, KernelCuda *k) {
    switch ((PlanOpKind)t->op->kind) {
    EXEC_ATTENTION_OPS:
        return exec_cuda_attention(t, k);
    EXEC_HEADS_OPS:
        return exec_cuda_heads(t, k);
    EXEC_MASK_OPS:
        return exec_cuda_masks(t, k);
    EXEC_POSITION_OPS:
        return exec_cuda_positions(t, k);
    EXEC_LAYER_OPS:
        return exec_cuda_layers(t, k);
    EXEC_LOSS_OPS:
        return exec_cuda_loss(t, k);
    EXEC_ACTIVATION_OPS:
        return exec_cuda_activation(t, k);
    EXEC_ARITHMETIC_OPS:
        return exec_cuda_arithmetic(t, k);
    EXEC_PIECES_OPS:
        return exec_cuda_pieces(t, k);
    EXEC_EXPERTS_OPS:
        return exec_cuda_experts(t, k);
#define LIST_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_cuda_optimize(t, k);
#define SHARE_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_cuda_share(t, k);
#define LATENT_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_cuda_latent(t, k);
#define RING_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_cuda_ring(t, k);
    case PLAN_OP_PLACE_ROWS:
#define EXCHANGE_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_cuda_exchange(t, k);
#define FLOAT8_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_cuda_float8(t, k);
#define MUON_OP(id, ...) case PLAN_OP_##id:
#include "plan/op/ops.def"
        return exec_cuda_muon(t, k);
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
