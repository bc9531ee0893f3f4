/* plan/autograd/init.h - first values of parameters. Inside plan/ only. */
#pragma once

#include "plan/autograd/run.h"
#include "plan/op/four-bit.h"

/* A PlanFourBitCode; of weights that are not in 4 bits it means nothing. */
static inline int64_t plan_four_bit_code(const PlanRun *run) {
    return run->strategy->lora_base == PLAN_LORA_BASE_NF4 ? PLAN_FOUR_BIT_NF4 : PLAN_FOUR_BIT_FP4;
}
/* Fills a buffer with a parameter's first values, as far as it holds them: element i of the buffer
 * is element rank * rank_stride + i - offset of the parameter, rank being that on the axis. */
void plan_init_parameter(PlanRun *run, uint32_t parameter, uint32_t buffer, PlanAxis axis,
                         uint64_t rank_stride, uint64_t offset);
/* Fills a buffer with all first values of a parameter, before it is quantized to 4 bits. */
void plan_init_numbers(PlanRun *run, uint32_t parameter, uint32_t buffer);
