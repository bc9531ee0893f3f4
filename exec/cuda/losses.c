#include "exec/cuda/losses.h"

#include "exec/convert.h"
#include "exec/cuda/calls.h"
#include "exec/cuda/pinned.h"

enum {
    LOSS_BYTES = 8 /* room for one */
};

typedef struct {
    int32_t step;
    double share;
    const PlanOp *op;
    uint32_t unit;
    PlanDtype dtype;
    const void *pinned; /* where it arrives */
} Loss;

bool exec_cuda_losses_init(ExecCudaLosses *losses, unsigned n, GError **error) {
    *losses = (ExecCudaLosses){.n = n};
    g_queue_init(&losses->all);
    losses->pinned = exec_cuda_pinned_new((gsize)n * LOSS_BYTES, "the losses", error);
    return losses->pinned != NULL;
}

void exec_cuda_losses_clear(ExecCudaLosses *losses) {
    g_queue_clear_full(&losses->all, g_free);
    exec_cuda_pinned_free(losses->pinned);
}

bool exec_cuda_losses_send(ExecCudaLosses *losses, const PlanPosition *at, const ExecTask *task,
                           double share, cudaStream_t stream, GError **error) {
    Loss *loss = g_new(Loss, 1);
    unsigned i = loss_operand(task);
    PlanDtype dtype = operand_dtype(task, i);
    char *to = losses->pinned + (gsize)(losses->next++ % losses->n) * LOSS_BYTES;
    *loss = (Loss){at->step, share, task->op, at->instr->unit, dtype, to};
    g_queue_push_tail(&losses->all, loss);
    return exec_cuda_ok(cudaMemcpyAsync(to, task->pointers[i], plan_dtype_bytes(dtype),
                                        cudaMemcpyDeviceToHost, stream),
                        "cudaMemcpyAsync", error);
}

bool exec_cuda_losses_read(ExecCudaLosses *losses, ExecPlay *play, GError **error) {
    for (const Loss *head; (head = g_queue_peek_head(&losses->all));) {
        if (!exec_play_step_has_ended(play, (uint32_t)head->step)) {
            return true;
        }
        g_autofree Loss *loss = g_queue_pop_head(&losses->all);
        float number;
        exec_convert(&number, PLAN_FP32, loss->pinned, loss->dtype, 1);
        if (!exec_play_note_loss(play, loss->step, (double)number, loss->share, error)) {
            exec_play_say_where(play, loss->step, loss->op, loss->unit, error);
            return false;
        }
    }
    return true;
}
