/* What marks leave of "allocated is predicted exactly".
 *
 * What the plan asks for is the same on every machine, and so is the sum of it, rounded as the
 * allocator rounds. But PyTorch counts blocks, and a block of more than 1 MiB serves a request
 * whole where no more than 1 MiB would be left over. Which block serves a request is a matter of
 * time once blocks wait for another lane (marks). So at every instruction
 *
 *     asked for <= allocated <= asked for + 1 MiB a live tensor of more than 1 MiB
 *
 * on any machine, with equality where no tensor is that large. Here two predictions, with quick and
 * with slow collectives, and a run are held against it, for networks whose tensors are that large.
 * Replayed, the run's memory is equal. Arguments: foreshard, and the folder of clusters.
 */
#include <glib/gstdio.h>

#include "memory/rounding.h"
#include "tests/exec/runs.h"

enum {
    LEFTOVER_MOST = 1 << 20, /* bytes of a block that are not split off: kSmallSize */
    SLOW_US = 20000
};

static const char *clusters;

static const char network[] = "[network]\nfamily = gpt\nlayers = 4\nwidth = 384\nheads = 6\n"
                              "vocab = 2048\nseq = 128\n";

static const char *const strategies[] = {
    "--flavour fsdp1",
    "--flavour fsdp1 --limit-all-gathers 0",
    "--flavour fsdp1 --sharding grad-op --micro-batch 2",
    "--flavour fsdp1 --checkpointing full",
};

/* Of rank 0, after each allocation and release. */
typedef struct {
    uint64_t asked, allocated;
} Moment;

/* Asks and answers of one trace, each within the bound. */
static GArray *read_moments(const char *path) {
    g_autoptr(Trace) trace = test_run_take_trace(path);
    GArray *moments = g_array_new(FALSE, FALSE, sizeof(Moment));
    MemoryOptions options;
    uint64_t asked = 0, large = 0;
    memory_options_init(&options);
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        if (row->rank != 0) {
            continue;
        }
        const TraceInstruction *at =
            trace_instruction(trace, trace_role_of_rank(trace, 0), row->instruction);
        uint64_t bytes = memory_round(&options, at->bytes);
        bool is_large = bytes > MEMORY_SMALL_MOST, is_alloc = at->what == TRACE_ALLOC;
        asked += is_alloc ? bytes : -bytes;
        large += is_alloc ? is_large : -(uint64_t)is_large;
        g_assert_cmpuint(row->allocated, >=, asked);
        g_assert_cmpuint(row->allocated, <=, asked + large * LEFTOVER_MOST);
        Moment moment = {asked, row->allocated};
        g_array_append_val(moments, moment);
    }
    return moments;
}

static uint64_t peak_of(const GArray *moments) {
    uint64_t peak = 0;
    for (guint i = 0; i < moments->len; i++) {
        peak = MAX(peak, g_array_index(moments, Moment, i).allocated);
    }
    return peak;
}

/* At how many instructions allocated differs; what was asked for never does. */
static unsigned compare(const char *what, const GArray *a, const GArray *b) {
    unsigned differing = 0;
    uint64_t most = 0;
    g_assert_cmpuint(a->len, ==, b->len);
    for (guint i = 0; i < a->len; i++) {
        const Moment *x = &g_array_index(a, Moment, i), *y = &g_array_index(b, Moment, i);
        uint64_t off = MAX(x->allocated, y->allocated) - MIN(x->allocated, y->allocated);
        g_assert_cmpuint(x->asked, ==, y->asked);
        differing += off != 0;
        most = MAX(most, off);
    }
    double peak = (double)peak_of(b);
    g_test_message("%s: differ at %u of %u instructions, by at most %.2f %% of the peak; the peak "
                   "by %+.3f %%",
                   what, differing, a->len, 100 * (double)most / peak,
                   100 * ((double)peak_of(a) / peak - 1));
    return differing;
}

static void is_bounded(void) {
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    g_autofree char *slow = test_run_slow_cluster(clusters, folder, SLOW_US);
    g_autofree char *ini = g_build_filename(folder, "large.ini", NULL);
    g_autofree char *path = g_build_filename(folder, "x.trace", NULL);
    unsigned differing = 0;
    g_assert_true(g_file_set_contents(ini, network, -1, NULL));
    for (unsigned i = 0; i < G_N_ELEMENTS(strategies); i++) {
        g_autofree char *words = g_strdup_printf("%s -n 2 %s", ini, strategies[i]);
        g_test_message("%s", strategies[i]);
        test_run_ok("predict %s --steps 4 --cluster this-machine --trace %s", words, path);
        g_autoptr(GArray) quick = read_moments(path);
        test_run_ok("predict %s --steps 4 --cluster %s --trace %s", words, slow, path);
        g_autoptr(GArray) late = read_moments(path);
        test_run_ok("run %s --steps 4 --trace %s", words, path);
        test_run_ok("replay %s %s", words, path);
        g_autoptr(GArray) measured = read_moments(path);
        differing += compare("predicted with slow and with quick collectives", late, quick);
        compare("predicted and measured", quick, measured);
    }
    g_assert_cmpuint(differing, >, 0); /* else nothing was tried */
    test_run_remove_folder(folder);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_assert(argc == 3);
    test_run_program = argv[1];
    clusters = argv[2];
    g_test_add_func("/exec/unsplit/allocated is within its bound", is_bounded);
    return g_test_run();
}
