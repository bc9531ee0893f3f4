/* cli/published/train/recomputed.h - which share of a network's blocks a published run recomputes.
 *
 * Some sources say that "a fraction" of the blocks is checkpointed and not which, but print MFU and
 * HFU. HFU counts a second forward of what is recomputed, MFU does not, and both divide by the same
 * time: their ratio tells the share, whatever the run took.
 *
 * Owns: nothing. Threads: any. Cost: a few operations.
 */
#pragma once

#include <stdbool.h>

typedef struct {
    double layers, width, heads, kv_heads, ffn, vocab, seq;
    bool gate; /* the hidden layer is of three matrices, not two */
} CliTrainShape;

/* 0 to 1; 0 too where a number is missing. `mfu` and `hfu` in one unit. */
double cli_train_recomputed_share(const CliTrainShape *shape, double mfu, double hfu);
