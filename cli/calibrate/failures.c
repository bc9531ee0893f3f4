/* cli/calibrate/failures.c - what was to be measured and was not, and why. */
#include "cli/calibrate/calibrate.h"

static void clear_failure(gpointer data) {
    CliFailure *failure = data;
    g_free(failure->what);
    g_free(failure->why);
}

GArray *cli_failures_new(void) {
    GArray *failures = g_array_new(FALSE, FALSE, sizeof(CliFailure));
    g_array_set_clear_func(failures, clear_failure);
    return failures;
}

void cli_failures_add(GArray *failures, const char *what, GError *error, FILE *say) {
    CliFailure failure = {g_strdup(what), g_strdelimit(g_strdup(error->message), "\n", ' ')};
    g_array_append_val(failures, failure);
    fprintf(say, "%-11s failed: %s\n", failure.what, failure.why);
    fflush(say);
    g_error_free(error);
}
