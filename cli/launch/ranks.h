/* cli/launch/ranks.h - how foreshard-exec is started on local ranks.
 *
 * This program links no MPI: mpirun is told what a laptop needs (more ranks than cores, root in a
 * container, ranks that yield the core while they wait). Where there is no mpirun, and on GPUs,
 * foreshard-exec forks its ranks itself.
 */
#pragma once

#include <gio/gio.h>
#include <stdbool.h>

#include "plan/plan.h"

/* Of the option --memory-limit. */
#define CLI_RANKS_MEMORY_LIMIT_HELP                                                                \
    "bytes of memory of each rank's device (default 0: no limit); running out is reported as on "  \
    "a "                                                                                           \
    "GPU"

/* At most EXEC_FORK_MOST, and so many a core that the machine still answers. */
bool cli_ranks_fit_here(unsigned n, GError **error);
/* Whether the plan's first n ranks find the host's memory free: what they offload, and on CPU ranks
 * their device's, of limit bytes each (0: none). A system that runs out of it ends other programs
 * too. */
bool cli_ranks_memory_is_here(const Plan *plan, unsigned n, const char *device, uint64_t limit,
                              GError **error);
/* The path of foreshard-exec: what FORESHARD_EXEC names, or this build's. Transfer full. */
char *cli_ranks_program(GError **error);
/* What starts n ranks of foreshard-exec on a device (NULL: host); its arguments are to follow, then
 * NULL. Fails when foreshard-exec is not here. */
GPtrArray *cli_ranks_command(unsigned n, const char *device, GError **error);
bool cli_ranks_is_cuda(const char *device);
bool cli_ranks_know_device(const char *device, GError **error); /* host, cuda or NULL */
/* What a rank says of itself in this line, without its name; NULL: the line is another's. */
const char *cli_ranks_own_words(const char *line);
void cli_ranks_add(GPtrArray *argv, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* With the environment that the ranks want. Transfer full. */
GSubprocessLauncher *cli_ranks_launcher(GSubprocessFlags flags);
