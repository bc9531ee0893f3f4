/* kernels/cuda/attention/attention.h - attention that never holds a seq x seq array.
 *
 * o = softmax(scale q k^T) v, per batch and head. Two ways: cuDNN's fused kernels, where the
 * library is there and takes the shape (16-bit types, head_dim a multiple of 8 and up to 128, on
 * GPUs of compute capability 9.x up to 256, no alibi, no bias, all arrays at 16 bytes; more by its
 * version, attention-private.h); and this room's own blocks, which take all types and any head_dim
 * up to KERNEL_CUDA_WIDEST_HEAD. Both keep the logsumexp of each row (natural logarithm of the
 * scaled scores' exponentials, float) for backward.
 *
 * q is [batch, seq, heads, head_dim] with rows of tokens q_stride apart, k and v [batch, seq,
 * kv_heads, head_dim] with rows k_stride and v_stride apart; o and d_o are dense, and so are dq,
 * dk, dv unless gradient_stride says how far their rows are apart, as in one array of all three.
 * Query head h reads key head h / (heads / kv_heads). Causal: query i sees keys 0 .. i, with a
 * window of w of these the last w. A bias [seq, seq, heads] (NULL: none), the same for every
 * sequence, is added to the scores; its gradient is [batch, heads, seq, keys] (NULL: not wanted).
 * As a mask it is [batch, seq, seq], the same for every head, and has no gradient; or it is scored,
 * [batch, heads, seq, keys], and lies as it likes. -inf hides a key; where it hides all keys of a
 * query, o is 0 and the logsumexp -inf, and nothing flows back. A hop of a ring of ranks attends
 * from `seq` rows of each sequence, where q, o and d_o point, to `keys` of another's; o, lse and dq
 * then have seq rows, dk and dv keys, whatever lies between those of what is read. This room's
 * backward is the same bits in every run; cuDNN's adds dq in any order (its repeatable way holds a
 * seq x seq array). Bound: arithmetic, 4 (forward) and 10 (backward) operations for each seq * seq
 * * head_dim of a head, half of that if causal. Dropout is refused: set attention = math.
 */
#pragma once
#include "kernels/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    KERNEL_CUDA_WIDEST_HEAD = 1024 /* a warp has a row of it */
};

typedef struct {
    size_t batch, heads, kv_heads, seq, head_dim;
    size_t q_stride, k_stride, v_stride;
    size_t lse_stride; /* >= seq; lse is [batch, heads, lse_stride] */
    float scale;
    bool causal;
    KernelCudaType type;
    float alibi;            /* most of kernel_alibi_slope(), ../alibi.h; 0: none */
    size_t gradient_stride; /* rows of dq, dk and dv, elements apart; 0: each is dense */
    bool ordered;           /* sums in one order: by this room's own kernels, which have no other */
    /* By those alone, too: */
    size_t window; /* of causal attention; 0: none */
    bool masked;   /* the bias is a mask */
    bool scored;   /* the bias is of each score: elements from a sequence, head, .. to the next */
    size_t bias_strides[4];
    size_t v_dim;  /* of the heads of v, o, d_o and dv; 0: head_dim */
    size_t v_head; /* elements from a head of v to the next; 0: v_dim */
    /* Of a part of each sequence, or of another one, without a window, `masked` and v_head: */
    size_t keys;  /* rows of k and v, and of dk and dv; 0: seq */
    size_t rows;  /* from a sequence to the next of q, k, v and of what backward reads; 0: seq */
    bool by_head; /* k, v, dk and dv are [batch, kv_heads, rows, head_dim], dense in a head */
} KernelCudaAttention;

typedef enum {
    KERNEL_CUDA_ATTENTION_OWN,
    KERNEL_CUDA_ATTENTION_CUDNN,
} KernelCudaAttentionWay;

/* Which way this shape takes on this machine; for headers of reports. */
KernelCudaAttentionWay kernel_cuda_attention_way(KernelCuda *lane,
                                                 const KernelCudaAttention *shape);
/* How often attention went each of the two ways so far, forward and backward; for headers too. */
uint64_t kernel_cuda_attention_calls(const KernelCuda *lane, KernelCudaAttentionWay way);
/* Why cuDNN did not take a shape that it was asked for, the first of them; NULL: it took all. */
const char *kernel_cuda_attention_refusal(const KernelCuda *lane);
/* From now on only this room's own kernels (to compare them), or both again. */
void kernel_cuda_attention_own_only(KernelCuda *lane, bool own_only);

/* lse entries past seq are left alone; lse may be NULL where no backward comes. */
KernelCudaFault kernel_cuda_attention_forward(KernelCuda *lane, void *o, float *lse, const void *q,
                                              const void *k, const void *v, const void *bias,
                                              const KernelCudaAttention *shape);
/* dk and dv are sums over the group's query heads. */
KernelCudaFault kernel_cuda_attention_backward(KernelCuda *lane, void *dq, void *dk, void *dv,
                                               void *d_bias, const void *d_o, const void *q,
                                               const void *k, const void *v, const void *bias,
                                               const void *o, const float *lse,
                                               const KernelCudaAttention *shape);

#ifdef __cplusplus
}
#endif
