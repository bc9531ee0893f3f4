/* plan/files/stream.h - what can be read only once: a pipe, a socket, a terminal.
 *
 * It is read whole when it is first asked for, and kept until the program ends. So whoever looks at
 * how it begins, to see what it is, does not use it up. "-" is standard input, whatever that is.
 *
 * Owns: what was read. Threads: any.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* What is opened for a path that a user gave: "-" is "/dev/stdin". */
const char *plan_stream_path(const char *path);
/* What messages call it: "-" is "standard input". */
const char *plan_stream_name(const char *path);

bool plan_stream_is(const char *path);
/* A device that gives bytes for ever: /dev/zero and its kin. */
bool plan_stream_never_ends(const char *path);
/* Waits for its end. NULL with GLib's own error: it cannot be read. g_bytes_unref(). */
GBytes *plan_stream_read(const char *path, GError **error);
