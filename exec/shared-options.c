#include "exec/shared-options.h"

#include "memory/rounding.h"

bool exec_option_is_file(const char *option, const char *path, GError **error) {
    if (path && g_str_equal(path, "-")) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "%s -: standard output has what is printed already; give a name (./- is one)",
                    option);
        return false;
    }
    return true;
}

bool exec_option_is_limit(int64_t bytes, GError **error) {
    bool is_limit = bytes == 0 || bytes >= (int64_t)MEMORY_SMALL_SEGMENT;
    if (!is_limit) {
        g_set_error(
            error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
            "--memory-limit takes a number of bytes: 0 for none, else at least %" G_GUINT64_FORMAT
            ", the least that the allocator takes of a device",
            (guint64)MEMORY_SMALL_SEGMENT);
    }
    return is_limit;
}

bool exec_options_suit_device(const char *device, const char *comm, bool no_op_times,
                              GError **error) {
    bool chooses = comm && !g_str_equal(comm, "auto");
    bool suits = g_strcmp0(device, "cuda") == 0 || !(chooses || no_op_times);
    if (!suits) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--%s is of GPUs alone; add --device cuda, or leave it out",
                    chooses ? "comm" : "no-op-times");
    }
    return suits;
}
