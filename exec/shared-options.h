/* exec/shared-options.h - what foreshard and foreshard-exec refuse alike of options that both have.
 * Threads: any. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Where output goes that cannot go to standard output, which has what is printed already: "-" is
 * refused. path NULL: none. */
bool exec_option_is_file(const char *option, const char *path, GError **error);

/* --memory-limit: 0, for none, or what the allocator takes of a device at least. */
bool exec_option_is_limit(int64_t bytes, GError **error);

/* What was asked for of GPUs alone, comm (NULL: nothing) and no_op_times, is only for them. device
 * NULL: the host. */
bool exec_options_suit_device(const char *device, const char *comm, bool no_op_times,
                              GError **error);
