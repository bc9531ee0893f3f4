#include "plan/pytorch.h"

#include <stdio.h>
#include <string.h>

/* The first version of each kind. Recorded are 1.13, 2.0, 2.2, 2.4, 2.6 and 2.13, and 2.2 and 2.6
 * found equal to the kind that stands here (tests/oracle/README.md). RMSNorm's kernel came with 2.9
 * (pytorch #153666). */
static const struct {
    unsigned major, minor;
    PlanPytorchVersion kind;
} versions[] = {
    {2, 9, {PLAN_PYTORCH_CURRENT, true}}, {2, 5, {PLAN_PYTORCH_CURRENT, false}},
    {2, 1, {PLAN_PYTORCH_2_4, false}},    {2, 0, {PLAN_PYTORCH_2_0, false}},
    {1, 13, {PLAN_PYTORCH_1_13, false}},
};

enum {
    NEWEST_MAJOR = 2,
    NEWEST_MINOR = 13
};

static bool is_before(unsigned major, unsigned minor, unsigned than_major, unsigned than_minor) {
    return major < than_major || (major == than_major && minor < than_minor);
}

bool plan_pytorch_of_version(const char *text, PlanPytorchVersion *ret) {
    unsigned major, minor;
    int end = 0;
    if (strspn(text, "0123456789.") != strlen(text) ||
        sscanf(text, "%3u.%3u%n", &major, &minor, &end) != 2 || (text[end] && text[end] != '.') ||
        is_before(NEWEST_MAJOR, NEWEST_MINOR, major, minor)) {
        return false;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(versions); i++) {
        if (!is_before(major, minor, versions[i].major, versions[i].minor)) {
            *ret = versions[i].kind;
            return true;
        }
    }
    return false;
}
