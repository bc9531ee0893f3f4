/* cli/ranks.h - how foreshard-exec is started on local ranks.
 *
 * This program links no MPI: mpirun is told what a laptop needs (more ranks than cores, root in a
 * container, ranks that yield the core while they wait).
 */
#pragma once

#include <gio/gio.h>

/* The path of foreshard-exec. Transfer full. */
char *cli_ranks_program(GError **error);
/* mpirun with its options and foreshard-exec, whose arguments are to follow, then NULL. Fails when
 * one of the two is not here. */
GPtrArray *cli_ranks_command(unsigned n, GError **error);
void cli_ranks_add(GPtrArray *argv, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* With the environment that the ranks want. Transfer full. */
GSubprocessLauncher *cli_ranks_launcher(GSubprocessFlags flags);
