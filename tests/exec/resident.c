/* What the system says a rank's process holds, beside what the allocator says it reserved.
 *
 * The difference is what is not of the modeled device: libraries, the plan, MPI, and OpenBLAS's
 * packing buffer, of which the kernels for each kind of CPU touch another share. That it is a
 * constant of the machine is what is tested: a network of one block shows it, and for 50 M
 * parameters, on one rank or two, the process holds so much more than what is reserved, within 3 %
 * of that or 8 MiB. Takes the path of foreshard as its argument.
 */
#include <glib/gstdio.h>

#include "tests/exec/runs.h"
#include "trace/trace.h"

/* Measured with OpenBLAS 0.3.21 and Open MPI 4.1.4 on x86-64, 2026-11: shared libraries 16 MB, heap
 * and MPI's buffers 6, OpenBLAS next to none (its kernels for Zen) to 50 (for Haswell). */
#define MOST_OUTSIDE_BYTES (80 << 20)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* 51.0 M parameters with eight blocks. */
static const char network[] = "[network]\nfamily = gpt\nlayers = %u\nwidth = 512\nheads = 8\n"
                              "vocab = 50257\nseq = 128\ntied = yes\n";

static const char *const runs[] = {
    "-n 1 --sharding none --micro-batch 2",
    "-n 2 --micro-batch 2",
    "-n 2 --sharding none --micro-batch 2",
};

typedef struct {
    double reserved, outside; /* bytes, of the rank that the trace is of */
} Held;

static Held train(const char *folder, unsigned layers, const char *words) {
    g_autofree char *ini = g_build_filename(folder, "gpt.ini", NULL);
    g_autofree char *path = g_build_filename(folder, "m.trace", NULL);
    g_autofree char *text = g_strdup_printf(network, layers);
    g_assert_true(g_file_set_contents(ini, text, -1, NULL));
    test_run_ok("run %s %s --steps 2 --trace %s", ini, words, path);
    g_unlink(ini);
    g_autoptr(Trace) trace = test_run_take_trace(path);
    const char *peak = trace_get(trace, "resident_peak_bytes");
    g_assert_nonnull(peak);
    double reserved = (double)test_run_most_reserved(trace);
    Held held = {reserved, g_ascii_strtod(peak, NULL) - reserved};
    g_test_message("%u blocks, %s: reserved %.1f MB, resident %.1f MB more (1e6 bytes)", layers,
                   words, reserved / 1e6, held.outside / 1e6);
    return held;
}

static void of_50_million(void) {
    if (SANITIZED) {
        g_test_skip("a sanitizer keeps memory of its own");
        return;
    }
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    double constant = train(folder, 1, runs[0]).outside;
    g_assert_cmpfloat(constant, >, 0);
    g_assert_cmpfloat(constant, <=, MOST_OUTSIDE_BYTES);
    for (unsigned i = 0; i < G_N_ELEMENTS(runs); i++) {
        Held held = train(folder, 8, runs[i]);
        g_assert_cmpfloat(ABS(held.outside - constant), <=, MAX(0.03 * held.reserved, 8 << 20));
    }
    g_rmdir(folder);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_assert(argc == 2);
    test_run_program = argv[1];
    g_test_add_func("/exec/resident/of 50 million parameters follows reserved", of_50_million);
    return g_test_run();
}
