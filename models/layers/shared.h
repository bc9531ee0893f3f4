/* models/layers/shared.h - layers that the ranks of the tensor axis share, as they are walked: what
 * a rank has of them, and where tokens are gathered, scattered or summed (plan/autograd/shared/).
 *
 * Inside models/ only. w walks the inside of layers, where a rank has all tokens. Without such
 * ranks all of these walk what one rank does.
 */
#pragma once

#include "models/layers/layers.h"

/* The walk between layers: this rank's part of the tokens. */
ModelWalk model_walk_between(const ModelWalk *w);
/* Its tokens; those of so many sequences. */
PlanGraphTokens model_tokens_between(const ModelWalk *w);
PlanGraphTokens model_tokens_of(const ModelWalk *w, uint64_t batch);

/* Its weight is one rank's part, and so is its bias; but a bias of what is split by columns all
 * ranks have, and add in parts. */
void model_split(const ModelWalk *w, const ModelLayer *layer, PlanSplit split);
/* A table of tokens or positions: by rows, or whole on each rank if the ends are. */
void model_split_table(const ModelWalk *w, const ModelLayer *table);

/* Of all ranks that share, where there are several: the argument of the module being walked, which
 * its call holds, and lets go before x. */
uint32_t model_gather_tokens(const ModelWalk *w, uint32_t x);
/* What a layer that ranks share by columns reads, where each rank has all tokens. */
uint32_t model_read_by_columns(const ModelWalk *w, uint32_t x);
/* What a further layer reads that reads the same: where each gathers for itself a compiler finds
 * that done, but not what backward scatters of each. */
uint32_t model_gather_again(const ModelWalk *w, uint32_t own, uint32_t gathered);
/* What ranks have each a term of, of so many sequences: its sums, of a rank's tokens or, where each
 * has all, of these. */
uint32_t model_join_ranks(const ModelWalk *w, uint32_t x, uint64_t batch);
/* A layer whose input columns ranks share, if they do. Its call also sums the ranks' results, and
 * holds its input until then. */
uint32_t model_run_by_rows(const ModelWalk *w, const ModelLayer *layer, uint32_t x, uint64_t in);
/* The norm after the blocks, and this rank's logits: the head's call gathers the tokens. */
uint32_t model_run_shared_head(const ModelWalk *w, const ModelHead *head, ModelStream stream,
                               uint32_t targets);
