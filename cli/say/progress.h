/* cli/say/progress.h - how far long work has come, on one line of a terminal.
 *
 * Shown on standard error, ten times a second at most and not before the first half second, and
 * wiped away at the end; silent where standard error is no terminal.
 *
 * Owns: its words. Threads: one.
 */
#pragma once

#include <glib.h>

typedef struct _CliProgress CliProgress;

CliProgress *cli_progress_new(const char *what);
void cli_progress_free(CliProgress *progress); /* wipes the line; NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CliProgress, cli_progress_free)

void cli_progress_show(gpointer progress, double share); /* of 0 to 1 */
void cli_progress_wipe(CliProgress *progress);           /* before something else is printed */
