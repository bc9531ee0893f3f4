#include "cli/ranks.h"

#include <unistd.h>

/* Beside this program (installed), or where the build tree has it. */
static char *find_exec(void) {
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    if (self) {
        g_autofree char *folder = g_path_get_dirname(self);
        const char *const places[] = {".", "../exec", "../libexec/foreshard"};
        for (unsigned i = 0; i < G_N_ELEMENTS(places); i++) {
            g_autofree char *path = g_build_filename(folder, places[i], "foreshard-exec", NULL);
            if (g_file_test(path, G_FILE_TEST_IS_EXECUTABLE) &&
                g_file_test(path, G_FILE_TEST_IS_REGULAR)) {
                return g_canonicalize_filename(path, NULL);
            }
        }
    }
    return g_find_program_in_path("foreshard-exec");
}

void cli_ranks_add(GPtrArray *argv, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_ptr_array_add(argv, g_strdup_vprintf(format, args));
    va_end(args);
}

char *cli_ranks_program(GError **error) {
    char *exec = find_exec();
    if (!exec) {
        g_set_error(error, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT,
                    "foreshard-exec is not here; it is built and installed with foreshard");
    }
    return exec;
}

GPtrArray *cli_ranks_command(unsigned n, GError **error) {
    g_autofree char *mpirun = g_find_program_in_path("mpirun");
    if (!mpirun) {
        g_set_error(error, G_SPAWN_ERROR, G_SPAWN_ERROR_NOENT,
                    "mpirun is not here; install Open MPI (Debian: openmpi-bin)");
        return NULL;
    }
    g_autofree char *exec = cli_ranks_program(error);
    if (!exec) {
        return NULL;
    }
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
    cli_ranks_add(argv, "%s", mpirun);
    if (geteuid() == 0) {
        cli_ranks_add(argv, "--allow-run-as-root");
    }
    cli_ranks_add(argv, "--oversubscribe");
    cli_ranks_add(argv, "--bind-to");
    cli_ranks_add(argv, "none");
    /* A rank that waits gives its core to the one it waits for. */
    cli_ranks_add(argv, "--mca");
    cli_ranks_add(argv, "mpi_yield_when_idle");
    cli_ranks_add(argv, "1");
    cli_ranks_add(argv, "-n");
    cli_ranks_add(argv, "%u", n);
    cli_ranks_add(argv, "%s", exec);
    return argv;
}

GSubprocessLauncher *cli_ranks_launcher(GSubprocessFlags flags) {
    GSubprocessLauncher *launcher = g_subprocess_launcher_new(flags);
    g_subprocess_launcher_setenv(launcher, "OPENBLAS_NUM_THREADS", "1", FALSE);
    return launcher;
}
