/* kernels/host/attention/attention.h - attention that never holds a seq x seq array.
 *
 * o = softmax(scale q k^T) v, per batch and head, worked in blocks: a running row maximum and row
 * sum let each block of keys be folded in as it comes, and the logsumexp kept for each row lets the
 * backward pass remake any block of probabilities. Scratch is a few blocks on the stack.
 *
 * q is [batch, seq_q, heads, head_dim]; k and v are [batch, seq_kv, kv_heads, head_dim], all
 * through strided views; or v, and with it o, has heads v_dim long. Query head h reads key head h
 * / (heads / kv_heads); heads must be a multiple of kv_heads. Causal means that query i sees keys
 * 0 .. i (aligned at the start, as PyTorch's is_causal), with a window of w of these the last w.
 * seq_kv is at least 1. alibi adds slopes to the scores (../alibi.h), and so does bias [seq_q,
 * seq_kv, heads], the same for every batch element, or, as a mask, [batch, seq_q, seq_kv], the
 * same for every head (NULL: none; -INFINITY hides a key, not all keys of a query). No dropout.
 * Bound: arithmetic, 4 (forward) and 10 (backward) operations for each seq_q * seq_kv * head_dim
 * of a head, half of that if causal; with a window, for each pair that it leaves, by blocks.
 */
#pragma once
#include "kernels/host/attention/view.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct {
    size_t batch;
    size_t heads;
    size_t kv_heads;
    size_t seq_q;
    size_t seq_kv;
    size_t head_dim;
    float scale; /* usually 1 / sqrt(head_dim) */
    bool causal;
    float alibi;   /* most of kernel_alibi_slope(); 0: none */
    size_t window; /* of causal attention; 0: none */
    bool masked;   /* the bias is a mask, which has no gradient */
    size_t v_dim;  /* of v and o; 0: head_dim */
} KernelAttentionShape;

/* Writes o[batch, seq_q, heads, v_dim or head_dim] contiguous, and logsumexp[batch, heads,
 * lse_stride] of the scaled scores (natural logarithm). lse_stride >= seq_q; entries past seq_q
 * are left alone. */
void kernel_attention_forward_f32(float *o, float *logsumexp, size_t lse_stride, KernelConstView q,
                                  KernelConstView k, KernelConstView v, const float *bias,
                                  const KernelAttentionShape *shape);

/* Writes dq like q, dk and dv like k and v, and d_bias[batch, heads, seq_q, seq_kv] (NULL: not
 * wanted), from what forward was given and left. o and d_o are contiguous. In grouped-query
 * attention dk and dv are sums over the group's query heads. */
void kernel_attention_backward_f32(KernelView dq, KernelView dk, KernelView dv, float *d_bias,
                                   const float *d_o, KernelConstView q, KernelConstView k,
                                   KernelConstView v, const float *bias, const float *o,
                                   const float *logsumexp, size_t lse_stride,
                                   const KernelAttentionShape *shape);
