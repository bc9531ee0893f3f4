/* Memory, replayed: with the answers that a measured play's allocator was given, allocated, active
 * and reserved are equal at every instruction of every rank; with other answers they are not.
 * Predicted, the peaks of plans with marks carry an error, which is printed. Takes the path of
 * foreshard as its argument.
 */
#include <glib/gstdio.h>
#include <string.h>

#include "tests/exec/runs.h"

static const char *const plans[] = {
    "gpt-toy -n 2 --flavour fsdp1",
    "gpt-toy -n 3 --flavour fsdp1 --micro-batch 2 --limit-all-gathers 0",
    "gpt-toy -n 2 --flavour fsdp1 --checkpointing full --backward-prefetch none",
    "gpt-toy -n 2 --flavour fsdp1 --wrap linear --forward-prefetch yes",
    "gpt-toy -n 4 --flavour fsdp1 --sharding hybrid --replicate 2 --accumulate 2",
    "gpt-toy -n 2 --flavour fsdp1 --sharding grad-op --use-orig-params yes --clip 1",
    "gpt-toy -n 2 --flavour fsdp1 --allocator expandable",
    "gpt-toy -n 2 --flavour fsdp1 --init unit --step-sync no",
    "gpt-toy -n 2 --flavour fsdp2 --init whole --step-sync no",
    "gpt-toy -n 2 --flavour fsdp1 --param-dtype bf16 --zero-grad keep",
    "llama-toy -n 2 --flavour fsdp1 --kernels fused",
    "llama-toy -n 2 --flavour fsdp1 --rms-norm ops --param-dtype bf16",
    "t5-toy -n 2 --flavour fsdp1 --checkpointing full --offload activations",
    "llama-toy -n 2 --checkpointing full --offload activations",
    "gpt-toy -n 2",
    "gpt-toy -n 2 --sharding none",
};

static uint64_t peak_reserved(const char *path) {
    g_autoptr(Trace) trace = test_run_take_trace(path);
    return test_run_most_reserved(trace);
}

static void all_is_equal(void) {
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    g_autofree char *m = g_strconcat(folder, "/m", NULL), *p = g_strconcat(folder, "/p", NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(plans); i++) {
        test_run_ok("run %s --steps 5 --trace %s", plans[i], m);
        test_run_ok("predict %s --cluster this-machine --steps 5 --trace %s", plans[i], p);
        test_run_ok("replay %s %s", plans[i], m);
        double measured = (double)peak_reserved(m), predicted = (double)peak_reserved(p);
        g_test_message("%s: replayed, equal; peak reserved predicted %+.1f %% (of %.1f MB)",
                       plans[i], 100 * (predicted / measured - 1), measured / 1e6);
    }
    g_rmdir(folder);
}

/* Says yes to everything that was asked of rank 0. */
static void spoil(const char *path) {
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    char *answers = strstr(text, "\nanswers.0 ");
    g_assert_nonnull(answers);
    char *from = answers + strlen("\nanswers.0 "), *to = strchr(from, '\n');
    g_auto(GStrv) runs = NULL;
    uint64_t count = 0;
    *to = 0;
    runs = g_strsplit(from, " ", -1);
    for (char **run = runs; *run; run++) {
        count += g_ascii_strtoull(*run, NULL, 10);
    }
    *from = 0;
    g_autofree char *spoiled =
        g_strdup_printf("%s0 %" G_GUINT64_FORMAT "\n%s", text, count, to + 1);
    g_assert_true(g_file_set_contents(path, spoiled, -1, NULL));
}

static void other_answers_show(void) {
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    g_autofree char *m = g_strconcat(folder, "/m", NULL);
    test_run_ok("run gpt-toy -n 2 --flavour fsdp1 --limit-all-gathers 0 --steps 3 --trace %s", m);
    spoil(m);
    g_autofree char *words =
        g_strdup_printf("replay gpt-toy -n 2 --flavour fsdp1 --limit-all-gathers 0 %s", m);
    TestRun run = test_run_finish(test_run_start(words));
    g_test_message("%s%s", run.out, run.err);
    g_assert_cmpint(run.status, ==, 1);
    g_assert_nonnull(strstr(run.out, "rank 0: "));
    g_assert_nonnull(strstr(run.out, "not equal"));
    g_assert_nonnull(strstr(run.out, "measured  step"));
    test_run_clear(&run);
    g_autofree char *other = g_strdup_printf("replay gpt-toy -n 3 %s", m);
    run = test_run_finish(test_run_start(other));
    g_assert_cmpint(run.status, ==, 2);
    g_assert_nonnull(strstr(run.err, "of this plan"));
    test_run_clear(&run);
    g_unlink(m);
    g_rmdir(folder);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_assert(argc == 2);
    test_run_program = argv[1];
    g_test_add_func("/exec/replayed/all memory is equal", all_is_equal);
    g_test_add_func("/exec/replayed/other answers show", other_answers_show);
    return g_test_run();
}
