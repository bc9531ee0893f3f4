#include "cli/output.h"

#include "trace/text.h"

bool cli_output_is_standard(const char *path) {
    return path && g_str_equal(path, "-");
}

FILE *cli_output_beside(const char *path) {
    return cli_output_is_standard(path) ? stderr : stdout;
}

bool cli_output_write(const char *path, const char *bytes, gsize length, GError **error) {
    if (cli_output_is_standard(path)) {
        fwrite(bytes, 1, length, stdout);
        return true;
    }
    return trace_write_bytes(path, bytes, length, error);
}
