/* plan/strategy/pytorch.h - which of the PyTorch versions that a plan knows another is like, and
 * which defaults it has. Inside plan/ only. */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* The newest first. Each stands for itself and the versions between it and the next; current for
 * 2.13. */
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

/* Whether a version that is planned like `like` is newer than all that `version` stands for. */
static inline bool plan_pytorch_is_after(PlanPytorch like, PlanPytorch version) {
    return like < version;
}

/* Of "current", "2.6" or "2.6.1": a number that grows with the version. Refuses one that is older
 * or newer than those recorded. */
bool plan_pytorch_read(const char *text, unsigned *ret_version, GError **error);
PlanPytorch plan_pytorch_like(unsigned version);

/* The value that a key has where it is not given, from a version on, until a row behind it. */
typedef struct {
    const char *key, *value;
    unsigned since;
} PlanPytorchDefault;

extern const PlanPytorchDefault plan_pytorch_defaults[]; /* key NULL at the end */
