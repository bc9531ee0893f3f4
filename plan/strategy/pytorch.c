#include "plan/strategy/pytorch.h"

#include <stdio.h>
#include <string.h>

#include "plan/plan.h"

#define VERSION(major, minor) (1000 * (major) + (minor))

enum {
    CURRENT = VERSION(2, 13),
    NEWEST = VERSION(2, 15),
    OLDEST = VERSION(1, 13)
};

/* The first version of each kind. Recorded are 1.13, 2.0, 2.2, 2.4 to 2.6 and 2.10 to 2.15
 * (tests/oracle/versions.md). */
static const struct {
    unsigned since;
    PlanPytorch like;
} kinds[] = {
    {VERSION(2, 15), PLAN_PYTORCH_2_15},
    {VERSION(2, 14), PLAN_PYTORCH_2_14},
    {VERSION(2, 13), PLAN_PYTORCH_CURRENT},
    {VERSION(2, 12), PLAN_PYTORCH_2_12},
    {VERSION(2, 5), PLAN_PYTORCH_2_11},
    {VERSION(2, 4), PLAN_PYTORCH_2_4},
    {VERSION(2, 1), PLAN_PYTORCH_2_3},
    {VERSION(2, 0), PLAN_PYTORCH_2_0},
    {OLDEST, PLAN_PYTORCH_1_13},
};

const PlanPytorchDefault plan_pytorch_defaults[] = {
    /* The FSDP paper's time: gradients were kept, and stepped over one tensor after the other. */
    {"zero_grad", "keep", OLDEST},
    {"zero_grad", "drop", VERSION(2, 0)},
    {"optimizer_kernel", "loop", OLDEST},
    {"optimizer_kernel", "foreach", VERSION(2, 0)},
    /* The limiter was off, and checkpoints were recomputed to their end (early stop is 2.1's,
     * pytorch #96866). */
    {"limit_all_gathers", "0", OLDEST},
    {"limit_all_gathers", "2", VERSION(2, 1)},
    {"checkpoint_early_stop", "no", OLDEST},
    {"checkpoint_early_stop", "yes", VERSION(2, 1)},
    /* fully_shard's resharding of the root: pytorch #154704, #155319. */
    {"reshard_root", "no", OLDEST},
    {"reshard_root", "yes", VERSION(2, 8)},
    /* RMSNorm's kernel: pytorch #153666. */
    {"rms_norm", "ops", OLDEST},
    {"rms_norm", "kernel", VERSION(2, 9)},
    /* cuDNN's attention goes first where cuDNN is newer than 9.15 (pytorch #162073), which wheels
     * have since 2.11. */
    {"attention_kernel", "flash", OLDEST},
    {"attention_kernel", "cudnn", VERSION(2, 11)},
    /* In 2.12 alone what was reduced last is a loop's variable of FSDPParamGroup.post_backward()
     * (_fsdp_param_group.py) that lives until it returns. */
    {"hold_reduced", "no", OLDEST},
    {"hold_reduced", "yes", VERSION(2, 12)},
    {"hold_reduced", "no", VERSION(2, 13)},
    {NULL, NULL, 0},
};

static bool read_version(const char *text, unsigned *ret_version) {
    int end = 0;
    unsigned major, minor;
    if (strspn(text, "0123456789.") != strlen(text) ||
        sscanf(text, "%3u.%3u%n", &major, &minor, &end) != 2 || (text[end] && text[end] != '.')) {
        return false;
    }
    *ret_version = VERSION(major, minor);
    return true;
}

bool plan_pytorch_read(const char *text, unsigned *ret_version, GError **error) {
    unsigned version = CURRENT;
    bool is_one = g_str_equal(text, "current") || read_version(text, &version);
    if (!is_one || version < OLDEST || version > NEWEST) {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "pytorch must be current or a version from %u.%u to %u.%u, not '%s'",
                    OLDEST / 1000u, OLDEST % 1000u, NEWEST / 1000u, NEWEST % 1000u, text);
        return false;
    }
    *ret_version = version;
    return true;
}

PlanPytorch plan_pytorch_like(unsigned version) {
    unsigned i = 0;
    while (kinds[i].since > version) {
        i++;
    }
    return kinds[i].like;
}
