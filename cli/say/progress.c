#include "cli/say/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

enum {
    FIRST_US = 500000,
    EVERY_US = 100000
};

struct _CliProgress {
    char *what;
    bool terminal, shown;
    gint64 next_us; /* not before */
};

CliProgress *cli_progress_new(const char *what) {
    CliProgress *progress = g_new0(CliProgress, 1);
    progress->what = g_strdup(what);
    progress->terminal = isatty(STDERR_FILENO);
    progress->next_us = g_get_monotonic_time() + FIRST_US;
    return progress;
}

void cli_progress_free(CliProgress *progress) {
    if (progress) {
        cli_progress_wipe(progress);
        g_free(progress->what);
        g_free(progress);
    }
}

void cli_progress_show(gpointer self, double share) {
    CliProgress *progress = self;
    gint64 now = g_get_monotonic_time();
    if (progress->terminal && now >= progress->next_us) {
        fprintf(stderr, "\r%s: %3.0f %%", progress->what, 100 * share);
        fflush(stderr);
        progress->shown = true;
        progress->next_us = now + EVERY_US;
    }
}

void cli_progress_wipe(CliProgress *progress) {
    if (progress->shown) {
        fprintf(stderr, "\r\033[K");
        fflush(stderr);
        progress->shown = false;
    }
}
