/* tests/memory/script.h - plays a script of allocator calls and says what each did.
 *
 * The script and the output are those of tests/memory/allocator/README.md.
 */
#pragma once

#include <glib.h>

/* What the script's commands did, one text; NULL and an error that names the line when it cannot be
 * read. */
char *script_play(const char *text, GError **error);
