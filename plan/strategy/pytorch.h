/* plan/strategy/pytorch.h - which of the PyTorch versions that a plan knows another is like.
 * Inside plan/ only. */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* The newest first. Each stands for itself and the versions
 * between it and the next; current for 2.13. */
typedef enum {
    PLAN_PYTORCH_2_15,
    PLAN_PYTORCH_2_14,
    PLAN_PYTORCH_CURRENT,
    PLAN_PYTORCH_2_12,
    PLAN_PYTORCH_2_11,
    PLAN_PYTORCH_2_4,
    PLAN_PYTORCH_2_3,
    PLAN_PYTORCH_2_0,
    PLAN_PYTORCH_1_13
} PlanPytorch;

/* Whether what is planned like the one is newer than all that the other stands for. */
static inline bool plan_pytorch_is_after(PlanPytorch like, PlanPytorch version) {
    return like < version;
}

typedef struct {
    PlanPytorch like;
    bool norms_are_kernels; /* RMSNorm has a CUDA kernel */
    bool reshards_root;     /* FSDP2's, where it is asked to */
    bool holds_reduced;     /* FSDP2, of the unit before, while it reduces a unit's gradients */
    bool prefers_cudnn;     /* for attention, where cuDNN has a kernel for the GPU */
} PlanPytorchVersion;

/* Of "current", "2.6" or "2.6.1". Refuses a version older or newer than those recorded. */
bool plan_pytorch_read(const char *text, PlanPytorchVersion *ret, GError **error);
