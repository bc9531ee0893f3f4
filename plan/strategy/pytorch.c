#include "plan/strategy/pytorch.h"

#include <stdio.h>
#include <string.h>

#include "plan/plan.h"

/* The first version of each kind. Recorded are 1.13, 2.0, 2.2, 2.4 to 2.6 and 2.10 to 2.15
 * (tests/oracle/versions.md). RMSNorm's kernel came with 2.9 (pytorch #153666), fully_shard's
 * resharding of the root with 2.8 (pytorch #154704, #155319). In 2.12 alone what was reduced last
 * is a loop's variable of FSDPParamGroup.post_backward() (_fsdp_param_group.py) that lives until
 * it returns. cuDNN's attention goes first where cuDNN is newer than 9.15 (pytorch #162073), which
 * wheels have since 2.11. */
static const struct {
    unsigned major, minor;
    PlanPytorchVersion kind;
} versions[] = {
    {2, 15, {PLAN_PYTORCH_2_15, true, true, false, true}},
    {2, 14, {PLAN_PYTORCH_2_14, true, true, false, true}},
    {2, 13, {PLAN_PYTORCH_CURRENT, true, true, false, true}},
    {2, 12, {PLAN_PYTORCH_2_12, true, true, true, true}},
    {2, 11, {PLAN_PYTORCH_2_11, true, true, false, true}},
    {2, 9, {PLAN_PYTORCH_2_11, true, true, false, false}},
    {2, 8, {PLAN_PYTORCH_2_11, false, true, false, false}},
    {2, 5, {PLAN_PYTORCH_2_11, false, false, false, false}},
    {2, 4, {PLAN_PYTORCH_2_4, false, false, false, false}},
    {2, 1, {PLAN_PYTORCH_2_3, false, false, false, false}},
    {2, 0, {PLAN_PYTORCH_2_0, false, false, false, false}},
    {1, 13, {PLAN_PYTORCH_1_13, false, false, false, false}},
};

enum {
    CURRENT_MAJOR = 2,
    CURRENT_MINOR = 13,
    NEWEST_MAJOR = 2,
    NEWEST_MINOR = 15
};

static bool is_before(unsigned major, unsigned minor, unsigned than_major, unsigned than_minor) {
    return major < than_major || (major == than_major && minor < than_minor);
}

static bool read_version(const char *text, unsigned *ret_major, unsigned *ret_minor) {
    int end = 0;
    return strspn(text, "0123456789.") == strlen(text) &&
           sscanf(text, "%3u.%3u%n", ret_major, ret_minor, &end) == 2 &&
           (!text[end] || text[end] == '.');
}

bool plan_pytorch_read(const char *text, PlanPytorchVersion *ret, GError **error) {
    unsigned major = CURRENT_MAJOR, minor = CURRENT_MINOR;
    bool is_known = (g_str_equal(text, "current") || read_version(text, &major, &minor)) &&
                    !is_before(NEWEST_MAJOR, NEWEST_MINOR, major, minor);
    for (unsigned i = 0; i < G_N_ELEMENTS(versions) && is_known; i++) {
        if (!is_before(major, minor, versions[i].major, versions[i].minor)) {
            *ret = versions[i].kind;
            return true;
        }
    }
    const unsigned oldest = G_N_ELEMENTS(versions) - 1;
    g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                "pytorch must be current or a version from %u.%u to %u.%u, not '%s'",
                versions[oldest].major, versions[oldest].minor, NEWEST_MAJOR, NEWEST_MINOR, text);
    return false;
}
