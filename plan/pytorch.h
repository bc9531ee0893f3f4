/* plan/pytorch.h - which of the versions of PyTorch that a plan knows another one is like. Inside
 * plan/ only. */
#pragma once

#include <stdbool.h>

#include "plan/strategy.h"

typedef struct {
    PlanPytorch like;
    bool norms_are_kernels; /* RMSNorm has a CUDA kernel */
} PlanPytorchVersion;

/* Of "2.6" or "2.6.1". False where text is no version, or one that was never recorded: before 1.13,
 * and after the newest. */
bool plan_pytorch_of_version(const char *text, PlanPytorchVersion *ret);
