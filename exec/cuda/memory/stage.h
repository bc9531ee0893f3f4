/* exec/cuda/memory/stage.h - pinned memory through which the host hands data to a stream.
 *
 * A few blocks in turn; a block is given out again when the copy that was last made from it is
 * over, so the host is held only when it is that far ahead.
 *
 * Owns: the blocks. Threads: the host's.
 */
#pragma once

#include <cuda_runtime_api.h>
#include <glib.h>
#include <stdbool.h>

typedef struct _ExecCudaStage ExecCudaStage;

ExecCudaStage *exec_cuda_stage_new(void);
void exec_cuda_stage_free(ExecCudaStage *stage); /* NULL is fine; after the streams are idle */

/* So many bytes to write to; NULL with error. Valid until exec_cuda_stage_put(). */
gpointer exec_cuda_stage_get(ExecCudaStage *stage, gsize bytes, GError **error);
/* Copies n bytes of the block that was got last, from byte from_byte on, to the device. Several
 * parts of a block may be put one after the other. */
bool exec_cuda_stage_put(ExecCudaStage *stage, gpointer to, gsize from_byte, gsize n,
                         cudaStream_t stream, GError **error);
