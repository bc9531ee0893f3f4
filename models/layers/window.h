/* models/layers/window.h - the mask of blocks whose attention looks back no further than a window.
 *
 * PyTorch's scaled_dot_product_attention knows no windows: a program hands it a mask. This is the
 * one of transformers 5.23 (src/transformers/masking_utils.py: sdpa_mask, sliding_window_overlay),
 * made once a pass for all such blocks, of true and false [seq, seq]; PyTorch makes numbers of it
 * in each call (aten/src/ATen/native/transformers/attention.cpp, convert_boolean_attn_mask). Inside
 * models/ only.
 */
#pragma once

#include "models/layers/layers.h"

/* The mask, which the module being walked holds. */
uint32_t model_window_mask(const ModelWalk *w, uint64_t window);
/* What attention adds to the scores of each sequence, in the dtype of products: 0, or -infinity. */
uint32_t model_window_bias(const ModelWalk *w, uint32_t mask);
/* What is added to scores in memory, in that dtype: 0, or its least number; of a window, or 0, of
 * all tokens before. The module being walked holds it. */
uint32_t model_eager_mask(const ModelWalk *w, uint64_t window, PlanDtype dtype);
