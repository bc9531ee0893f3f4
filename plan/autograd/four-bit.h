/* plan/autograd/four-bit.h - weights in 4 bits, as bitsandbytes has them (QLoRA).
 *
 * Facts (bitsandbytes 0.50.2: Linear4bit, MatMul4Bit, functional.py, backends/cuda/ops.py, and
 * recordings of them): a weight is quantized when it comes to the device, from a copy there in the
 * dtype that products compute in. A product makes such a copy anew, forward and backward, and keeps
 * neither that nor its input. With double quantization it first makes the magnitudes of the blocks,
 * in fp32: forward in two tensors, which live as long as the copy, backward in one, which goes when
 * the copy is made.
 *
 * Where a batch has few rows, bitsandbytes since 0.50 multiplies by the 4 bits themselves: up to 64
 * of a large layer on an H100, 128 on an A100 (_gemm_4bit_use_custom_cuda). That is not planned.
 *
 * Inside plan/ only.
 */
#pragma once

#include "plan/autograd/backward.h"

/* Makes a parameter and what stands beside it. Returns its buffer. */
uint32_t plan_four_bit_make(PlanRun *run, uint32_t parameter);
void plan_four_bit_forward(PlanRun *run, const PlanGraphOp *op);
void plan_four_bit_backward(const PlanBackward *b);
