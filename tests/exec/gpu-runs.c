#include "tests/exec/gpu-runs.h"

#include <string.h>

GpuRuns gpu_runs = {.watchdog_s = 60};

/* Toys that models/networks has not. */
static const struct {
    const char *name, *text;
} written[] = {
    {"mpt-toy", "[network]\nfamily=mpt\nlayers=2\nwidth=48\nheads=3\nvocab=96\nseq=32\nbias=no\n"
                "positions=alibi\n"},
    {"t5-kernel", "[network]\nfamily=t5\nlayers=2\nwidth=48\nheads=3\nhead_dim=16\nffn=80\n"
                  "vocab=96\nseq=23\nattention=kernel\n"},
    {"olmo2-toy", "[network]\nfamily=llama\nlayers=2\nwidth=48\nheads=3\nffn=80\nvocab=96\nseq=32\n"
                  "qk_norm=width\nnorm_at=after\n"},
    {"moe-shared", "[network]\nfamily=llama\nlayers=2\nwidth=48\nheads=3\nvocab=96\nseq=32\n"
                   "experts=5\nexperts_per_token=3\nexpert_ffn=40\nshared_ffn=56\n"},
    {"long-toy", "[network]\nfamily=llama\nlayers=1\nwidth=32\nheads=2\nffn=48\nvocab=96\n"
                 "seq=256\n"},
    {"joined-toy", "[network]\nfamily=llama\nlayers=2\nwidth=48\nheads=3\nffn=80\nvocab=96\n"
                   "seq=32\nqkv=joined\nrope=partial\n"},
    {"sliced-toy", "[network]\nfamily=llama\nlayers=2\nwidth=64\nheads=4\nkv_heads=2\nffn=80\n"
                   "vocab=96\nseq=32\nqkv=sliced\nrope=partial\n"},
};

static char *path_of(unsigned i) {
    g_autofree char *file = g_strconcat(written[i].name, ".ini", NULL);
    return g_build_filename(gpu_runs.folder, file, NULL);
}

void gpu_write_networks(void) {
    for (unsigned i = 0; i < G_N_ELEMENTS(written); i++) {
        g_autofree char *path = path_of(i);
        g_assert_true(g_file_set_contents(path, written[i].text, -1, NULL));
    }
}

void gpu_plan(const char *words) {
    g_auto(GStrv) parts = g_strsplit(words, " ", 2);
    g_autofree char *network = g_strdup(parts[0]);
    for (unsigned i = 0; i < G_N_ELEMENTS(written); i++) {
        if (g_str_equal(parts[0], written[i].name)) {
            g_free(network);
            network = path_of(i);
        }
    }
    test_run_program = gpu_runs.foreshard;
    test_run_ok("plan %s %s -o %s/x.plan", network, parts[1], gpu_runs.folder);
}

unsigned gpu_ranks_of(const char *words) {
    return (unsigned)g_ascii_strtoull(strstr(words, "-n ") + 3, NULL, 10);
}

const char *gpu_comm_of(const char *device) {
    const char *comm = g_getenv("FORESHARD_TEST_COMM");
    return comm && g_str_equal(device, "cuda") ? comm : "auto";
}

char *gpu_line_of(const char *words, const char *device, const char *trace) {
    return g_strdup_printf("%s/x.plan --local-ranks %u --device %s --comm %s --steps %d "
                           "--watchdog %u --trace %s/%s",
                           gpu_runs.folder, gpu_ranks_of(words), device, gpu_comm_of(device), STEPS,
                           gpu_runs.watchdog_s, gpu_runs.folder, trace);
}

Trace *gpu_trace_of(const char *name) {
    g_autofree char *path = g_build_filename(gpu_runs.folder, name, NULL);
    return test_run_take_trace(path);
}
