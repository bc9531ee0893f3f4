#include "cli/say/output.h"

#include <errno.h>

#include "plan/files/file.h"
#include "trace/files.h"
#include "trace/json.h"
#include "trace/trace.h"

bool cli_output_is_standard(const char *path) {
    return path && g_str_equal(path, "-");
}

FILE *cli_output_beside(const char *path) {
    return cli_output_is_standard(path) ? stderr : stdout;
}

void cli_output_print_json(JsonBuilder *json) {
    g_autofree char *text = trace_json_text(json);
    printf("%s\n", text);
}

bool cli_output_write(const char *path, const char *bytes, gsize length, GError **error) {
    if (cli_output_is_standard(path)) {
        fwrite(bytes, 1, length, stdout);
        return true;
    }
    return trace_write_bytes(path, bytes, length, error);
}

bool cli_output_can_be_written(const char *path, GError **error) {
    int failed = path && !cli_output_is_standard(path) ? plan_file_may_write(path) : 0;
    if (failed == EISDIR) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_FILE, "%s is a folder; name a file to write",
                    path);
    } else if (failed) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_FILE, "%s: cannot be written: %s", path,
                    g_strerror(failed));
    }
    return !failed;
}
