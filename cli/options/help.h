/* cli/options/help.h - a command's help as it is best read.
 *
 * GLib prints one line an option, however long what it says. Such lines are broken between words,
 * under where what they say begins, to fit a terminal or, in a file or pipe (less), CLI_COLUMNS: a
 * line that begins further in than an option does goes on. Of a group of options GLib prints one
 * heading; the strategy's themes (strategy-themes.h) get theirs here.
 */
#pragma once

#include <glib.h>

/* From now on, for what GLib prints. */
void cli_help_begin(void);
