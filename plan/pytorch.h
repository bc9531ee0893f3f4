/* plan/pytorch.h - which of the versions of PyTorch that a plan knows another one is like. Inside
 * plan/ only. */
#pragma once

#include <stdbool.h>

#include "plan/strategy.h"

typedef struct {
    PlanPytorch like;
    bool norms_are_kernels; /* RMSNorm has a CUDA kernel */
    bool reshards_root;     /* FSDP2's, where it is asked to */
} PlanPytorchVersion;

/* Of "current", "2.6" or "2.6.1". Refuses a version older or newer than those recorded. */
bool plan_pytorch_read(const char *text, PlanPytorchVersion *ret, GError **error);
