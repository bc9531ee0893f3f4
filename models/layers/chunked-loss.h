/* models/layers/chunked-loss.h - head and loss in one, so many rows at a time: no pass has all its
 * logits.
 *
 * As PyTorch's torch.nn.functional.linear_cross_entropy does it on a GPU with
 * LinearCrossEntropyOptions() (torch/nn/modules/linear_cross_entropy.py, recorded of 2.13 to 2.15):
 * forward makes the logits of a chunk of rows, their part of the loss, and of both gradients;
 * backward only scales those. Or as Liger's kernels do (read, not recorded, in
 * liger_kernel/ops/fused_linear_cross_entropy.py): the gradient is written over a chunk's logits.
 * Or as torchtitan's loop does (ChunkedLossWrapper of torchtitan/components/loss.py): head
 * and F.cross_entropy of logits.float() on an eighth of each sequence, forward and backward.
 * Inside models/ only.
 */
#pragma once

#include "models/layers/layers.h"

/* The head is called with the targets, too; its result is the loss. */
uint32_t model_run_chunked_loss(const ModelWalk *w, const ModelLayer *head, uint32_t x,
                                uint32_t targets, uint64_t vocab);

/* Rows of a chunk, as PyTorch 2.13 has them or as it does since 2.14. */
uint64_t model_loss_chunk(uint64_t rows, uint64_t width, uint64_t vocab, bool since_2_14);
/* As Liger has them. */
uint64_t model_loss_liger_chunk(uint64_t rows, uint64_t width, uint64_t vocab);

/* Whether this network can compute its loss in chunks under this strategy, and whether the emitted
 * graph can. */
bool model_loss_can_be_chunked(const ModelNetwork *network, const PlanStrategy *strategy,
                               bool known_family, GError **error);
bool model_loss_is_chunked_as_known(const PlanGraph *graph, const char *name, GError **error);
