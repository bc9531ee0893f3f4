/* plan/autograd/fills.c - which tensors deterministic PyTorch fills before their op writes them.
 *
 * torch.use_deterministic_algorithms fills what the functions empty, empty_strided and resize hand
 * out (ATen/native/cuda/TensorFactories.cu, EmptyTensor.h; PyTorch pull request 101849): whatever a
 * program or a kernel asks for by their name, such as copies, casts, zeros, embeddings, norms,
 * dropout and attention. A structured kernel (products, elementwise arithmetic, sums, softmaxes,
 * concatenation, activations and their backward) has its result from at::detail::empty_cuda, which
 * fills nothing; so has a storage that is resized.
 */
#include "plan/autograd/tensor.h"

static const bool filled[PLAN_N_OP_KINDS] = {
    [PLAN_OP_ARANGE] = true,        [PLAN_OP_AS_NUMBER] = true,
    [PLAN_OP_PAD_TARGETS] = true,   [PLAN_OP_DROP_FIRST] = true,
    [PLAN_OP_EMBEDDING] = true,     [PLAN_OP_EMBEDDING_BACKWARD] = true,
    [PLAN_OP_LAYERNORM] = true,     [PLAN_OP_LAYERNORM_BACKWARD] = true,
    [PLAN_OP_RMSNORM] = true,       [PLAN_OP_RMSNORM_BACKWARD] = true,
    [PLAN_OP_ATTENTION] = true,     [PLAN_OP_ATTENTION_BACKWARD_ORDERED] = true,
    [PLAN_OP_DROPOUT] = true,       [PLAN_OP_DROPOUT_BACKWARD] = true,
    [PLAN_OP_CAST] = true,          [PLAN_OP_COPY] = true,
    [PLAN_OP_FILL] = true,          [PLAN_OP_REPEAT_HEADS] = true,
    [PLAN_OP_HEADS_COPY] = true,    [PLAN_OP_PUT_COLUMNS] = true,
    [PLAN_OP_COPY_COLUMNS] = true,  [PLAN_OP_CONJUGATE] = true,
    [PLAN_OP_ONES_MASK] = true,     [PLAN_OP_MASKED_FILL] = true,
    [PLAN_OP_ABSOLUTE] = true,      [PLAN_OP_BIAS] = true,
    [PLAN_OP_BIAS_BACKWARD] = true, [PLAN_OP_NORMS] = true,
    [PLAN_OP_MASK_TO_BIAS] = true,  [PLAN_OP_PICK_COLUMNS_BACKWARD] = true,
    [PLAN_OP_NARROW] = true,        [PLAN_OP_INVERT] = true,
    [PLAN_OP_REPEAT_EACH] = true,   [PLAN_OP_DROP_LAST] = true,
    [PLAN_OP_WHERE_MASK] = true,
};

static void fill_results(PlanBuilder *builder, PlanOp op) {
    const PlanOpInfo *info = plan_op_info((PlanOpKind)op.kind);
    for (uint32_t i = 0; i < op.n_operands; i++) {
        PlanRef ref = builder->operands.items[op.operands + i];
        unsigned slot = plan_op_slot_of(info, op.n_operands, i);
        if (info->slots[slot].flags & PLAN_SLOT_WRITE && ref != PLAN_NONE) {
            plan_builder_fill_empty(builder, plan_builder_operand_of(builder, ref), 0);
        }
    }
}

void plan_run_launch(PlanRun *run) {
    PlanBuilder *builder = &run->builder;
    uint32_t id = builder->ops.len - 1;
    if (builder->fills && filled[builder->ops.items[id].kind]) {
        fill_results(builder, builder->ops.items[id]);
    }
    plan_builder_launch_op(builder, id, 0);
}
