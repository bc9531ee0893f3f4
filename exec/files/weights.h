/* exec/files/weights.h - a model's weights in a safetensors file, read and written shard by shard.
 *
 * The file is eight bytes of a length, that many of JSON (name, dtype, shape and place of each
 * tensor), then the tensors, row-major and little-endian. Names are the plan's, which are
 * PyTorch's. Tensors may be F32, BF16 or F16; what is written is in the dtype of the model. No
 * process reads or writes more than its own part, so all must see one file.
 *
 * Owns: the file. Borrows: the plan. Threads: any number may read.
 */
#pragma once

#include "plan/plan.h"

/* In such a file; NULL for what it cannot hold. */
const char *exec_weights_dtype_name(PlanDtype dtype);

typedef struct _ExecWeights ExecWeights;

/* Fails unless the file has exactly the plan's parameters, in their shapes, and of buffers none but
 * the network's. */
ExecWeights *exec_weights_open(const char *path, const Plan *plan, GError **error);
void exec_weights_free(ExecWeights *weights); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExecWeights, exec_weights_free)

/* Elements [first, first + n) of a parameter, as floats. */
void exec_weights_get(const ExecWeights *weights, uint32_t parameter, uint64_t first, uint64_t n,
                      float *to);

/* A traced network's buffers lie in the file, too, as they are stored. */
bool exec_weights_has_buffer(const ExecWeights *weights, const char *name, uint64_t bytes,
                             GError **error);
void exec_weights_get_buffer(const ExecWeights *weights, const char *name, gpointer to);

typedef struct _ExecWeightsFile ExecWeightsFile;

/* Writing: one rank makes the file under another name, which no other run takes, and tells it to
 * the others, who join; all put what they hold; the one gives it its name (plan/files/file.h). */
ExecWeightsFile *exec_weights_make(const char *path, const Plan *plan, GError **error);
const char *exec_weights_aside(const ExecWeightsFile *file); /* the other name */
ExecWeightsFile *exec_weights_join(const char *aside, const Plan *plan, GError **error);
bool exec_weights_put(ExecWeightsFile *file, uint32_t parameter, uint64_t first, uint64_t n,
                      gconstpointer from, PlanDtype dtype, GError **error);
bool exec_weights_name(ExecWeightsFile *file, GError **error); /* after all have put */
void exec_weights_close(ExecWeightsFile *file);                /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExecWeightsFile, exec_weights_close)
