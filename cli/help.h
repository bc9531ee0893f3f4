/* cli/help.h - a command's help as a terminal shows it best.
 *
 * GLib prints one line an option, however long what it says. To a terminal such lines are broken
 * between words, under where what they say begins; to a file or pipe they go as they are.
 */
#pragma once

#include <glib.h>

/* From now on, for what GLib prints. */
void cli_help_fit_terminal(void);
/* Lines no wider than so many columns, as far as words allow it. Transfer full. */
char *cli_help_fit(const char *help, gsize columns);
