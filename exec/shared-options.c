#include "exec/shared-options.h"

bool exec_option_is_file(const char *option, const char *path, GError **error) {
    if (path && g_str_equal(path, "-")) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "%s -: standard output has what is printed already; give a name (./- is one)",
                    option);
        return false;
    }
    return true;
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
