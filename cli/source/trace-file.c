#include "cli/source/trace-file.h"

#include "trace/import/file.h"
#include "trace/text.h"

static void refuse_pytorchs(const char *path, GError **error) {
    g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                "%s is of PyTorch's kind: hold it against a prediction (foreshard compare "
                "PREDICTED.trace FILE), or draw it (foreshard plot FILE)",
                path);
}

Trace *cli_trace_read(const char *path, GError **error) {
    if (import_kind_of_file(path) != IMPORT_OTHER) {
        refuse_pytorchs(path, error);
        return NULL;
    }
    return trace_read_file(path, error);
}

bool cli_trace_is_no_snapshot(const char *path, GError **error) {
    ImportKind kind = import_kind_of_file(path);
    bool is_one = kind == IMPORT_SNAPSHOT || kind == IMPORT_GZIP; /* JSON may be a config.json */
    if (is_one) {
        refuse_pytorchs(path, error);
    }
    return !is_one;
}
