/* exec/cuda/pinned.h - memory of the host that a GPU copies from and to by itself.
 *
 * The system keeps it in place, and grants less of it than of other memory. Threads: the host's.
 */
#pragma once

#include <glib.h>

/* what: it is for, as "the losses". NULL with error where there is no more. Of no bytes, too. */
gpointer exec_cuda_pinned_new(gsize bytes, const char *what, GError **error);
/* NULL is fine. When no copy of it is under way: nothing is waited for. */
void exec_cuda_pinned_free(gpointer pinned);
