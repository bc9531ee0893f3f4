#include "cli/host/cores.h"

#include <sched.h>
#include <stdint.h>
#include <unistd.h>

enum {
    MOST = 16,
    MOST_OF_STAGES = 4
};

static const uint64_t BYTES_OF_STAGES = UINT64_C(4) << 30;

/* GLib's count takes no notice of what taskset, or a cluster's scheduler, has left this process. */
static guint at_hand(void) {
    cpu_set_t set;
    bool is_known = sched_getaffinity(0, sizeof set, &set) == 0;
    return is_known ? (guint)CPU_COUNT(&set) : g_get_num_processors();
}

static guint with_room(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    return (guint)CLAMP(bytes / BYTES_OF_STAGES, 1, MOST_OF_STAGES);
}

guint cli_cores(guint asked, bool has_stages) {
    if (asked > 0) {
        return asked;
    }
    guint cores = MIN(at_hand(), MOST);
    return has_stages ? MIN(cores, with_room()) : cores;
}
