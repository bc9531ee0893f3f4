#include "cli/launch/ranks.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cli/host/machine.h"
#include "exec/comm/fork.h"
#include "exec/offload/slot-plan.h"
#include "plan/player.h"
#include "trace/scale.h"

/* As the environment says; beside this program (installed), or where the build tree has it. */
static char *find_exec(void) {
    const char *named = g_getenv("FORESHARD_EXEC");
    if (named) {
        return g_strdup(named);
    }
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
                    "foreshard-exec is neither beside foreshard nor in PATH; build or install it");
    }
    return exec;
}

#ifdef FORESHARD_MPI
#define STARTED_BY_MPI true
#else
#define STARTED_BY_MPI false
#endif

static void add_mpirun(GPtrArray *argv, const char *mpirun, unsigned n) {
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
}

GPtrArray *cli_ranks_command(unsigned n, const char *device, GError **error) {
    bool by_mpi = STARTED_BY_MPI && !cli_ranks_is_cuda(device);
    g_autofree char *mpirun = by_mpi ? g_find_program_in_path("mpirun") : NULL;
    g_autofree char *exec = cli_ranks_program(error);
    if (!exec) {
        return NULL;
    }
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
    if (mpirun) {
        add_mpirun(argv, mpirun, n);
    }
    cli_ranks_add(argv, "%s", exec);
    if (!mpirun) {
        cli_ranks_add(argv, "--local-ranks=%u", n);
    }
    if (device) {
        cli_ranks_add(argv, "--device=%s", device);
    }
    return argv;
}

enum {
    RANKS_A_CORE = 64 /* with 500 ranks a core such a machine answers nobody for minutes */
};

bool cli_ranks_fit_here(unsigned n, GError **error) {
    unsigned cores = g_get_num_processors(), most = MIN(EXEC_FORK_MOST, cores * RANKS_A_CORE);
    if (n > most) {
        g_set_error(error, G_SPAWN_ERROR, G_SPAWN_ERROR_FAILED,
                    "%u processes are too many for this machine, whose %u core%s get%s %u at most; "
                    "predict plays any number, rehearse one of them, and over several machines "
                    "mpirun starts foreshard-exec",
                    n, cores, cores == 1 ? "" : "s", cores == 1 ? "s" : "", most);
    }
    return n <= most;
}

/* At the peak of rank 0. */
static bool find_device_bytes(const Plan *plan, uint64_t limit, double *ret_bytes, GError **error) {
    PlanNullCounts counts = {0};
    g_autoptr(PlanPlayer) player = plan_player_new(plan, 0, 3, &plan_null_device, &counts);
    *ret_bytes = 0;
    if (plan_player_run(player, error) != PLAN_DONE) {
        return false;
    }
    *ret_bytes = (double)(limit ? MIN(limit, counts.peak_bytes) : counts.peak_bytes);
    return true;
}

/* Of the first n ranks together; largest: of one of them. */
static double slot_bytes(const Plan *plan, unsigned n, ExecSlotSizes *ret_largest) {
    g_autofree ExecSlotSizes *sizes = g_new(ExecSlotSizes, plan->n_roles);
    double bytes = 0;
    for (uint32_t i = 0; i < plan->n_roles; i++) {
        sizes[i] = exec_slot_sizes(&plan->roles[i]);
    }
    *ret_largest = (ExecSlotSizes){0};
    for (unsigned rank = 0; rank < n; rank++) {
        const ExecSlotSizes *own = &sizes[plan_role_of_rank(plan, rank)];
        bytes += own->bytes;
        *ret_largest = own->bytes > ret_largest->bytes ? *own : *ret_largest;
    }
    return bytes;
}

/* "2 ranks of 1.20 GiB at the peak and 12.10 GiB offloaded, 96.00 MiB of them in slot 8". Transfer
 * full. */
static char *wanted_text(unsigned n, double device_bytes, const ExecSlotSizes *slots) {
    GString *text = g_string_new(NULL);
    g_string_printf(text, "%u rank%s of ", n, n == 1 ? "" : "s");
    if (device_bytes > 0) {
        g_autofree char *peak = trace_bytes_text(device_bytes);
        g_string_append_printf(text, "%s at the peak%s", peak, slots->bytes > 0 ? " and " : "");
    }
    if (slots->bytes > 0) {
        g_autofree char *all = trace_bytes_text(slots->bytes);
        g_autofree char *largest = trace_bytes_text(slots->largest_bytes);
        g_string_append_printf(text, "%s offloaded, %s of them in slot %u", all, largest,
                               slots->largest);
    }
    return g_string_free(text, FALSE);
}

bool cli_ranks_memory_is_here(const Plan *plan, unsigned n, const char *device, uint64_t limit,
                              GError **error) {
    double each = 0, free_bytes = (double)cli_machine_free_bytes();
    if (!cli_ranks_is_cuda(device) && !find_device_bytes(plan, limit, &each, error)) {
        return false;
    }
    ExecSlotSizes slots;
    double bytes = n * each + slot_bytes(plan, n, &slots);
    if (free_bytes > 0 && bytes > free_bytes) {
        g_autofree char *wanted = wanted_text(n, each, &slots);
        g_autofree char *free_text = trace_bytes_text(free_bytes);
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_VALUE,
                    "%s, and %s are free on this machine; train a smaller network here, and "
                    "predict this one",
                    wanted, free_text);
        return false;
    }
    return true;
}

bool cli_ranks_is_cuda(const char *device) {
    return g_strcmp0(device, "cuda") == 0;
}

bool cli_ranks_know_device(const char *device, GError **error) {
    bool known = !device || g_str_equal(device, "host") || cli_ranks_is_cuda(device);
    if (!known) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "there is no device '%s'; devices are host (the CPU) and cuda", device);
    }
    return known;
}

const char *cli_ranks_own_words(const char *line) {
    static const char name[] = "foreshard-exec: ";
    const char *at = strstr(line, name); /* behind whatever a library wrote without a line's end */
    return at ? at + strlen(name) : NULL;
}

/* Even if this program is killed, mpirun then ends its ranks. */
static void end_with_parent(gpointer unused) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}

GSubprocessLauncher *cli_ranks_launcher(GSubprocessFlags flags) {
    GSubprocessLauncher *launcher = g_subprocess_launcher_new(flags);
    g_subprocess_launcher_set_child_setup(launcher, end_with_parent, NULL, NULL);
    g_subprocess_launcher_setenv(launcher, "OPENBLAS_NUM_THREADS", "1", FALSE);
    return launcher;
}
