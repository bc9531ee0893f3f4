/* kernels/cuda/attention/attention-private.h - the two ways to compute attention; for .cu files of
 * this folder only. Arguments as in attention.h.
 */
#pragma once
#include <float.h>
#include <math.h>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/lane.h"

/* From row to row of what has so many heads: dq, or dk and dv (of heads as long as q's). */
static inline size_t kernel_cuda_gradient_stride(const KernelCudaAttention *a, size_t heads) {
    return a->gradient_stride ? a->gradient_stride : heads * a->head_dim;
}

/* Rows of keys; and how far sequences are apart: of queries, of keys. */
static inline size_t kernel_cuda_keys(const KernelCudaAttention *a) {
    return a->keys ? a->keys : a->seq;
}
static inline size_t kernel_cuda_query_rows(const KernelCudaAttention *a) {
    return a->rows ? a->rows : a->seq;
}
static inline size_t kernel_cuda_key_rows(const KernelCudaAttention *a) {
    return a->rows ? a->rows : kernel_cuda_keys(a);
}

KernelCudaFault kernel_cuda_attention_own_forward(KernelCuda *lane, void *o, float *lse,
                                                  const void *q, const void *k, const void *v,
                                                  const void *bias,
                                                  const KernelCudaAttention *shape);
KernelCudaFault kernel_cuda_attention_own_backward(KernelCuda *lane, void *dq, void *dk, void *dv,
                                                   void *d_bias, const void *d_o, const void *q,
                                                   const void *k, const void *v, const void *bias,
                                                   const void *o, const float *lse,
                                                   const KernelCudaAttention *shape);

#ifdef KERNEL_CUDA_CUDNN
/* Bytes at which arrays begin that go to cuDNN. */
static const unsigned KERNEL_CUDA_CUDNN_ALIGNMENT = 16;

/* Heads that its backward takes: of GPUs 8.x, 10.x and later there are conditions, or it depends on
 * the version (NVIDIA/cudnn-frontend, sdpa_support_surface.h, 2026-10). */
static inline size_t kernel_cuda_cudnn_widest_head(size_t version, int major) {
    return major == 9 && version >= 91002 ? 256 : 128;
}

/* What a version of it (9.19.0: 91900) is known to do right:
 * - 9.6 clears its own sums, its frontend says, and that 9.10.0 and 9.10.1 have bugs;
 * - before 9.26 the rows of lse that backward reads must be dense, else others are read (there);
 * - before 9.15.1 backward may touch keys behind the last where their number is no multiple of 128
 *   (its frontend 1.16 says: in replays of CUDA graphs; nobody says that it does not elsewhere);
 * - backward has nothing for sequences of one, of queries or of keys. */
static inline bool kernel_cuda_cudnn_is_right(const KernelCudaAttention *a, size_t version) {
    bool has_bugs = version < 90600 || version == 91000 || version == 91001;
    return !has_bugs && a->seq > 1 && kernel_cuda_keys(a) > 1 &&
           (version >= 92600 || a->lse_stride == a->seq) &&
           (version >= 91501 || kernel_cuda_keys(a) % 128 == 0);
}

/* Whether its backward on Hopper takes rows that are not there, in the last tile, for zeros. The p
 * of such is exp(0 - lse), which is infinite for a logsumexp below -88.7, and its gradients are
 * then no numbers:
 * - of keys, those behind a number that leaves 64 over 128, unless the causal mask hides them
 *   (9.20: pytorch/pytorch issue 196678; NVIDIA/cudnn-frontend pull request 628 has it mended in
 *   9.26);
 * - of queries, where no key is masked (9.25 and 9.26: NVIDIA/cudnn-frontend issue 1072, of one
 *   query to 128 keys).
 * No version is known here to be free of both (2026-11). */
static inline bool kernel_cuda_cudnn_sees_beyond(const KernelCudaAttention *a, int major) {
    size_t keys = kernel_cuda_keys(a);
    bool hides = a->causal && keys >= a->seq;
    return major == 9 && ((keys % 128 == 64 && !hides) || (keys % 128 == 0 && a->seq % 64 != 0));
}

/* Shapes that a version of it is asked for at all, on a GPU of that compute capability. */
static inline bool kernel_cuda_cudnn_fits(const KernelCudaAttention *a, size_t version, int major) {
    return a->type != KERNEL_CUDA_F32 && a->head_dim % 8 == 0 &&
           a->head_dim <= kernel_cuda_cudnn_widest_head(version, major) && a->q_stride % 8 == 0 &&
           a->k_stride % 8 == 0 && a->v_stride % 8 == 0 && a->gradient_stride % 8 == 0 &&
           kernel_cuda_cudnn_is_right(a, version) && !kernel_cuda_cudnn_sees_beyond(a, major);
}

/* What the score of a key that is not seen becomes: versions before 9.10 want the lowest finite
 * number (NVIDIA/cudnn-frontend, utils/attn_score_modifiers.h, 2026-10), where a tile of keys of
 * which a row sees none may leave -inf less -inf. */
static inline float kernel_cuda_cudnn_least(size_t version) {
    return version < 91000 ? -FLT_MAX : -INFINITY;
}

/* Whether cuDNN is there and has a kernel for the shape this way round; asked once, which takes it
 * about a second of the host's time, then known. */
bool kernel_cuda_cudnn_takes(KernelCuda *lane, const KernelCudaAttention *shape, bool backward);
KernelCudaFault kernel_cuda_cudnn_forward(KernelCuda *lane, void *o, float *lse, const void *q,
                                          const void *k, const void *v,
                                          const KernelCudaAttention *shape);
KernelCudaFault kernel_cuda_cudnn_backward(KernelCuda *lane, void *dq, void *dk, void *dv,
                                           const void *d_o, const void *q, const void *k,
                                           const void *v, const void *o, const float *lse,
                                           const KernelCudaAttention *shape);
#endif
