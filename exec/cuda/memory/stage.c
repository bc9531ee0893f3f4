#include "exec/cuda/memory/stage.h"

#include "exec/cuda/calls.h"
#include "exec/cuda/pinned.h"

enum {
    BLOCKS = 4
};

typedef struct {
    gpointer data;
    gsize bytes;
    cudaEvent_t used; /* the last copy from it; NULL: none yet */
} Block;

struct _ExecCudaStage {
    Block blocks[BLOCKS];
    unsigned now;
};

ExecCudaStage *exec_cuda_stage_new(void) {
    return g_new0(ExecCudaStage, 1);
}

void exec_cuda_stage_free(ExecCudaStage *stage) {
    if (!stage) {
        return;
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        if (stage->blocks[i].used) {
            cudaEventDestroy(stage->blocks[i].used);
        }
        exec_cuda_pinned_free(stage->blocks[i].data);
    }
    g_free(stage);
}

static bool grow(Block *block, gsize bytes, GError **error) {
    if (block->data && block->bytes >= bytes) {
        return true;
    }
    exec_cuda_pinned_free(block->data);
    block->data = exec_cuda_pinned_new(bytes, "data on their way to the GPU", error);
    block->bytes = block->data ? bytes : 0;
    return block->data != NULL;
}

gpointer exec_cuda_stage_get(ExecCudaStage *stage, gsize bytes, GError **error) {
    stage->now = (stage->now + 1) % BLOCKS;
    Block *block = &stage->blocks[stage->now];
    bool ok = block->used
                  ? exec_cuda_ok(cudaEventSynchronize(block->used), "cudaEventSynchronize", error)
                  : exec_cuda_ok(cudaEventCreateWithFlags(&block->used, cudaEventDisableTiming),
                                 "cudaEventCreateWithFlags", error);
    return ok && grow(block, bytes, error) ? block->data : NULL;
}

bool exec_cuda_stage_put(ExecCudaStage *stage, gpointer to, gsize from_byte, gsize n,
                         cudaStream_t stream, GError **error) {
    const Block *block = &stage->blocks[stage->now];
    return exec_cuda_ok(cudaMemcpyAsync(to, (char *)block->data + from_byte, n,
                                        cudaMemcpyHostToDevice, stream),
                        "cudaMemcpyAsync", error) &&
           exec_cuda_ok(cudaEventRecord(block->used, stream), "cudaEventRecord", error);
}
