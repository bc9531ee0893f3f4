/* cli/options.h - reading a command line, as every command does.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* As g_option_context_parse(); an option that there is not is answered with those that are near. */
bool cli_options_parse(GOptionContext *context, int *argc, char ***argv, GError **error);
