/* sim/costs/odd-rows.h - products of matrices whose rows have an odd number of elements.
 *
 * A library's kernels load 16 bytes at a time. Rows of 50257 words in 16 bits begin where only 2
 * divides, and no such load may be made there: since Ampere cuBLAS then takes a kernel written for
 * Turing, which loads element by element (cutlass_75_tensorop_*_s1688gemm_*_align1). It waits for
 * its loads, so newer tensor cores do not help it: it does as many operations a clock on each
 * multiprocessor of any generation, half of what an A6000's aligned product reaches and an eighth
 * of an H200's. A layer's forward, dx and dw all read or write rows as long as its inputs and as
 * its outputs; one of both is enough for all three.
 */
#pragma once

#include "plan/op/op.h"
#include "sim/costs/product.h"

/* How long the product of a linear layer takes, forward or backward (kind). Products of other kinds
 * count as aligned. dtype: of its factors. pads: Inductor made the program, which copies factors to
 * rows that can be loaded where that is quicker. */
double sim_linear_ns(const ModelCluster *cluster, const SimProduct *product, PlanOpKind kind,
                     PlanDtype dtype, bool pads);

/* Whether a layer from k inputs to n outputs has odd rows. */
bool sim_has_odd_rows(int64_t n, int64_t k);
