/* exec/cuda/pinned.h - memory of the host that a GPU copies from and to by itself.
 *
 * The system keeps it in place, and grants less of it than of other memory. Threads: the host's.
 */
#pragma once

#include <glib.h>

/* what: its purpose, for the message, as "the losses". NULL with error where there is no more.
 * 0 bytes are fine. */
gpointer exec_cuda_pinned_new(gsize bytes, const char *what, GError **error);
/* NULL is fine. Waits for nothing: no copy from or to it may be under way. */
void exec_cuda_pinned_free(gpointer pinned);
