/* `foreshard run` on several ranks: the predicted memory at every instruction, weights saved and
 * loaded, what the host waits for. Takes the path of foreshard as its argument.
 */
#include <gio/gio.h>
#include <json-glib/json-glib.h>
#include <math.h>
#include <string.h>

#include "tests/exec/runs.h"
#include "trace/compare/compare.h"
#include "trace/text.h"

#define FLOAT8 "llama-toy --kernels compiled --param-dtype bf16 "

/* Allocated, active and reserved, predicted and measured, at every instruction of every rank. With
 * marks (FSDP1), when a freed block is free again is a matter of time: there, allocated alone. */
static void memory_is_as_predicted(void) {
    static const char *const plans[] = {
        "mlp-toy -n 2",
        "mlp-toy -n 3",
        "gpt-toy -n 2",
        "gpt-toy -n 2 --micro-batch 4 --wrap whole",
        "gpt-toy -n 3",
        "gpt-toy -n 2 --sharding none",
        "gpt-toy -n 1 --sharding none",
        "gpt-toy -n 2 --backward-prefetch none",
        "gpt-toy -n 2 --checkpointing full --micro-batch 3",
        "mlp-toy -n 3 --optimizer momentum --clip 1",
        "mlp-toy -n 2 --sharding none --optimizer adam --clip 1 "
        "--weight-decay 0.1 --optimizer-kernel loop",
        "gpt-toy -n 4 --sharding hybrid --replicate 2 --accumulate 2",
        "gpt-toy -n 4 --reshard-after-forward 2 --zero-grad keep",
        "gpt-toy -n 2 --sharding none --bucket-view yes --accumulate 2",
        "gpt-toy -n 3 --sharding optimizer-only",
        "gpt-toy -n 2 --allocator expandable",
        "gpt-toy -n 2 --offload optimizer",
        "gpt-toy -n 2 --offload params",
        "gpt-toy -n 1 --sharding none --checkpointing full",
        "gpt-toy -n 2 --kernels fused",
        "gpt-toy -n 2 --allocator conf=roundup_power2_divisions:4,max_split_size_mb:21",
        "gpt-toy -n 2 --param-dtype bf16 --reduce-dtype fp32",
        "gpt-toy -n 3 --model-dtype bf16 --sharding none",
        "gpt-toy -n 2 --sharding none --autocast bf16",
        "llama-toy -n 2 --autocast bf16 --checkpointing full",
        "llama-toy -n 2 --sharding none --autocast bf16 --kernels compiled",
        "gpt-toy -n 2 --sharding none --autocast fp16 --loss-scale dynamic --clip 1",
        "llama-toy -n 2 --param-dtype fp16 --loss-scale dynamic",
        "gpt-toy -n 2 --flavour fsdp1 --param-dtype fp16 --loss-scale dynamic",
        "t5-toy -n 1 --sharding none --autocast bf16",
        "llama-toy -n 2 --lora-rank 4 --param-dtype bf16 --checkpointing full",
        "llama-toy -n 2 --lora-rank 4 --lora-on all-linear --param-dtype bf16 --kernels compiled",
        "llama-toy -n 2 --lora-rank 4 --lora-on all-linear --lora-alpha 4 --model-dtype bf16 "
        "--sharding none --kernels compiled --checkpointing full",
        "gpt-toy -n 2 --model-dtype bf16 --sharding none --lora-rank 4 --lora-dtype fp32",
        "llama-toy -n 2 --model-dtype bf16 --sharding none --lora-rank 4 --lora-dtype fp32 "
        "--lora-dropout 0.1",
        "llama-toy -n 2 --flavour fsdp1 --use-orig-params yes --lora-rank 4 --lora-dropout 0.05 "
        "--param-dtype bf16 --checkpointing full",
        "llama-toy -n 2 --sharding none --model-dtype bf16 --lora-rank 4 --lora-base nf4 "
        "--lora-base-storage model",
        "llama-toy -n 2 --sharding none --autocast bf16 --lora-rank 4 --lora-base fp4 "
        "--lora-base-double yes --checkpointing full",
        "llama-toy -n 3 --model-dtype bf16 --lora-rank 4 --lora-base nf4 --lora-base-double yes "
        "--lora-base-storage model --checkpointing full --clip 1",
        "llama-toy -n 2 --flavour fsdp1 --wrap module=.*\\.\\d+|.*lora_[AB] --autocast bf16 "
        "--lora-rank 4 --lora-base fp4 --lora-base-storage model",
        "llama-toy -n 2 --flavour fsdp1 --wrap module=.*\\.\\d+|.*lora_[AB] --model-dtype bf16 "
        "--lora-rank 4 --lora-base nf4 --lora-base-double yes --lora-base-storage model "
        "--offload params --checkpointing full",
        "llama-toy -n 2 --freeze module=embed|layers.0",
        "llama-toy -n 3 --ignored module=embed|SwiGlu --optimizer-kernel loop --accumulate 2",
        "gpt-toy -n 2 --flavour fsdp1 --use-orig-params yes --ignored module=GptMlp "
        "--checkpointing full",
        "gpt-toy -n 2 --sharding none --ignored module=wte|layers.0 --clip 1",
        "moe-toy -n 3 --param-dtype bf16 --checkpointing full",
        "moe-toy -n 2 --sharding none",
        "deepseek-toy -n 3 --param-dtype bf16 --checkpointing full",
        "deepseek-toy --network-key routing=in-turn -n 4 --expert 2 --checkpointing selective-op",
        "moe-toy --network-key routing=in-turn -n 4 --expert 2 --param-dtype bf16 "
        "--checkpointing full",
        "moe-toy --network-key routing=in-turn --network-key experts=4 -n 8 --expert 2",
        "moe-toy --network-key routing=in-turn -n 4 --expert 4 --clip 1 --checkpointing full",
        "moe-toy --network-key routing=in-turn -n 3 --network-key experts=6 --expert 3 "
        "--micro-batch 3 --accumulate 2 --reduce-dtype bf16",
        "moe-toy --network-key routing=in-turn -n 4 --expert 2 --param-dtype bf16 --kernels "
        "compiled --checkpointing full",
        "moe-toy --network-key routing=in-turn -n 4 --expert 2 --param-dtype bf16 "
        "--checkpointing selective-op --sharding hybrid --replicate 2 --clip 1",
        "llama-toy -n 4 --tensor 2 --micro-batch 2 --checkpointing full --clip 1",
        "llama-toy -n 4 --tensor 2 --micro-batch 2 --kernels compiled",
        "llama-toy --network-key loss=kernel --network-key loss_at=loop -n 4 --tensor 2 "
        "--micro-batch 2 --kernels compiled --param-dtype bf16 --clip 1",
        "llama-toy --network-key loss=kernel -n 4 --tensor 2 --accumulate 2",
        "llama-toy -n 8 --tensor 2 --sharding hybrid --replicate 2 --clip 1",
        "llama-toy --network-key layers=6 -n 8 --pipeline 2 --tensor 2 --accumulate 3 --sharding "
        "hybrid --replicate 2 --clip 1",
        "llama-toy -n 2 --tensor 2 --micro-batch 2 --sharding none --clip 1",
        "llama-toy -n 2 --tensor 2 --micro-batch 2 --sharding none --clip 1 --sequence-parallel no "
        "--tensor-plan transformers",
        "llama-toy -n 4 --tensor 2 --micro-batch 2 --checkpointing full --clip 1 "
        "--sequence-parallel no",
        "llama-toy -n 4 --tensor 2 --micro-batch 2 --kernels compiled --param-dtype bf16 "
        "--sequence-parallel no --tensor-plan kempnerforge",
        "llama-toy --network-key layers=6 -n 8 --pipeline 2 --tensor 2 --accumulate 3 --clip 1 "
        "--sequence-parallel no --tensor-plan kempnerforge",
        FLOAT8 "-n 2 --micro-batch 2 --float8 tensorwise",
        FLOAT8 "-n 3 --micro-batch 2 --float8 rowwise --checkpointing full --clip 1",
        FLOAT8 "-n 4 --float8 tensorwise --float8-gather yes --sharding hybrid --replicate 2",
        FLOAT8 "-n 2 --float8 tensorwise --float8-gather precomputed --checkpointing selective-op",
        FLOAT8 "-n 4 --tensor 2 --micro-batch 2 --float8 tensorwise",
        FLOAT8 "-n 4 --tensor 2 --micro-batch 2 --float8 rowwise --checkpointing full",
        FLOAT8 "-n 4 --tensor 2 --micro-batch 2 --async-tensor yes --clip 1",
        FLOAT8 "-n 4 --tensor 2 --micro-batch 3 --async-tensor yes --float8 tensorwise "
               "--checkpointing full",
        FLOAT8 "-n 4 --pipeline 2 --accumulate 2 --float8 tensorwise --checkpointing full",
        FLOAT8 "-n 2 --float8 tensorwise --flavour fsdp1",
        "gpt-toy -n 3 --micro-batch 2 --param-dtype bf16 --float8 delayed --flavour fsdp1 --clip 1",
        "llama-toy -n 3 --context 3 --micro-batch 2 --network-key seq=48 --param-dtype bf16 --clip "
        "1",
        "llama-toy -n 4 --context 2 --network-key seq=64 --param-dtype bf16 --checkpointing full",
        "llama-toy -n 3 --context 3 --network-key seq=48 --param-dtype bf16 --kernels compiled "
        "--network-key kv=repeated --checkpointing full",
        "llama-toy -n 8 --context 2 --tensor 2 --network-key seq=64 --param-dtype bf16 --clip 1",
        "llama-toy -n 8 --pipeline 2 --context 2 --tensor 2 --network-key seq=64 --accumulate 2 "
        "--pipeline-split even --param-dtype bf16 --kernels compiled --checkpointing full",
        TEST_RUN_STAGES
        " -n 4 --pipeline 2 --context 2 --network-key seq=64 --accumulate 2 --param-dtype "
        "bf16" TEST_RUN_INTERLEAVED "2",
        "llama-toy --network-key layers=6 -n 8 --pipeline 4 --accumulate 6 --clip 1",
        "llama-toy -n 2 --pipeline 2 --accumulate 3 --sharding none --checkpointing full",
        "llama-toy -n 4 --pipeline 2 --accumulate 3 --sharding none --bucket-mb 0.1 --clip 1",
        "llama-toy --network-key layers=4 -n 4 --pipeline 2 --tensor 2 --accumulate 2 --sharding "
        "none --pipeline-split even --clip 1" TEST_RUN_INTERLEAVED "2",
        "llama-toy --network-key layers=6 -n 6 --pipeline 2 --accumulate 3 --checkpointing full",
        "llama-toy --network-key layers=3 -n 3 --pipeline 3 --accumulate 3 --param-dtype bf16 "
        "--reduce-dtype fp32 --pipeline-split even",
        "llama-toy --network-key layers=4 -n 6 --pipeline 3 --accumulate 4 --param-dtype bf16 "
        "--reduce-dtype fp32 --pipeline-schedule gpipe --pipeline-split even",
        TEST_RUN_SEVERAL
        " -n 6 --pipeline 3 --accumulate 6 --pipeline-split even --clip 1" TEST_RUN_INTERLEAVED "2",
        TEST_RUN_SEVERAL
        " -n 4 --pipeline 2 --accumulate 3 --pipeline-split even" TEST_RUN_BREADTH_FIRST "2",
        TEST_RUN_SEVERAL " -n 4 --pipeline 2 --accumulate 4 --param-dtype bf16 --reduce-dtype fp32 "
                         "--pipeline-split even" TEST_RUN_INTERLEAVED "3",
        "llama-toy --network-key layers=8 -n 4 --pipeline 4 --accumulate 8 --checkpointing full "
        "--pipeline-split even" TEST_RUN_INTERLEAVED "2",
        TEST_RUN_STAGES
        " -n 4 --pipeline 2 --tensor 2 --micro-batch 2 --accumulate 4" TEST_RUN_INTERLEAVED "2",
        "gpt-toy -n 2 --flavour fsdp1",
        "gpt-toy -n 4 --flavour fsdp1 --sharding hybrid --replicate 2 "
        "--accumulate 2",
        "gpt-toy -n 3 --flavour fsdp1 --use-orig-params yes",
        "gpt-toy -n 2 --clip 1 --host-reads both --optimizer-kernel loop --optimizer-count device"};
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(plans); i++) {
        g_autofree char *plan = g_strconcat(folder, "/x.plan", NULL);
        test_run_ok("plan %s -o %s", plans[i], plan);
        test_run_ok("predict %s/x.plan --cluster this-machine --steps 5 --trace %s/p.trace", folder,
                    folder);
        test_run_bind(plan);
        test_run_ok("run %s/x.plan --steps 5 --trace %s/m.trace", folder, folder);
        test_run_forks = false;
        g_autofree char *p = g_strconcat(folder, "/p.trace", NULL);
        g_autofree char *m = g_strconcat(folder, "/m.trace", NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(Trace) predicted = trace_read_file(p, &error);
        g_assert_no_error(error);
        g_autoptr(Trace) measured = trace_read_file(m, &error);
        g_assert_no_error(error);
        unsigned compared = 0;
        for (guint a = 0, b = 0; a < predicted->memory->len; a++, b++) {
            const TraceMemoryRow *x = trace_memory(predicted, a);
            while (trace_memory(measured, b)->rank != x->rank) {
                b++;
            }
            const TraceMemoryRow *y = trace_memory(measured, b);
            g_assert_cmpint(x->step, ==, y->step);
            g_assert_cmpuint(x->instruction, ==, y->instruction);
            g_assert_cmpuint(x->allocated, ==, y->allocated);
            if (!strstr(plans[i], "fsdp1")) {
                g_assert_cmpuint(x->active, ==, y->active);
                g_assert_cmpuint(x->reserved, ==, y->reserved);
            }
            compared++;
        }
        g_test_message("%s: equal at %u instructions", plans[i], compared);
        g_assert_cmpuint(compared, >, 100);
    }
    test_run_remove_folder(folder);
}

/* One file whichever ranks hold the parameters; after it, training goes on as if never left. */
static void weights_are_saved(void) {
    static const char *const strategies[] = {
        "-n 1 --micro-batch 12 --sharding none",
        "-n 3 --micro-batch 4 --sharding none",
        "-n 3 --micro-batch 4",
        "-n 2 --micro-batch 6 --wrap whole",
        "-n 4 --micro-batch 3 --sharding hybrid --replicate 2",
        "-n 4 --micro-batch 3 --reshard-after-forward 2",
        "-n 3 --micro-batch 4 --sharding optimizer-only",
        "-n 3 --micro-batch 4 --flavour fsdp1",
        "-n 3 --micro-batch 4 --flavour fsdp1 --use-orig-params yes",
        "-n 3 --micro-batch 4 --offload params",
        "-n 1 --micro-batch 12 --flavour fsdp1 --offload params",
        "-n 3 --micro-batch 4 --flavour fsdp1 --use-orig-params yes --offload params",
        "-n 4 --micro-batch 3 --flavour fsdp1 --sharding hybrid --replicate 2",
        "-n 2 --micro-batch 6 --flavour fsdp1 --sharding none",
    };
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    g_autofree float *expected = NULL;
    gsize n_expected = 0;
    for (unsigned i = 0; i < G_N_ELEMENTS(strategies); i++) {
        test_run_forks = i % 3 != 0;
        test_run_ok("run gpt-toy %s --steps 4 --lr 0.01 --optimizer sgd --save %s/w", strategies[i],
                    folder);
        gsize n;
        g_autofree float *got = test_run_read_floats(folder, "w", &n);
        double worst = 0;
        for (gsize e = 0; e < n && i; e++) {
            worst = MAX(worst, fabs((double)got[e] - (double)expected[e]));
        }
        g_test_message("%s: weights differ by at most %.2g", strategies[i], worst);
        g_assert_cmpfloat(worst, <=, 1e-6);
        if (!i) {
            expected = g_steal_pointer(&got);
            n_expected = n;
        }
        g_assert_cmpuint(n, ==, n_expected);
        /* Loaded into every strategy, and saved without training, they are the same bytes: what
         * MPI's ranks have saved is loaded by forked ones, too. */
        test_run_forks = true;
        test_run_ok("run gpt-toy %s --steps 1 --lr 0 --optimizer sgd --load %s/w --save %s/v",
                    strategies[i], folder, folder);
        test_run_forks = false;
        g_autofree float *again = test_run_read_floats(folder, "v", &n);
        g_autofree float *saved = test_run_read_floats(folder, "w", &n);
        g_assert_cmpmem(again, n * sizeof(float), saved, n * sizeof(float));
    }
    test_run_remove_folder(folder);
}

/* Of layers that ranks share each has its part; steps of SGD are sums of gradients, so these are
 * one rank's, too. */
static void shared_weights_are_saved(void) {
    static const char *const strategies[] = {
        "-n 1 --micro-batch 12 --sharding none", "-n 4 --tensor 2 --micro-batch 6",
        "-n 4 --tensor 2 --micro-batch 6 --kernels compiled --tensor-plan kempnerforge",
        "-n 4 --tensor 2 --micro-batch 6 --sequence-parallel no"};
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(strategies); i++) {
        test_run_ok("run llama-toy %s --steps 4 --lr 0.01 --optimizer sgd --save %s/w%u",
                    strategies[i], folder, i);
    }
    gsize n, n_shared;
    g_autofree float *alone = test_run_read_floats(folder, "w0", &n);
    for (unsigned i = 1; i < G_N_ELEMENTS(strategies); i++) {
        g_autofree char *name = g_strdup_printf("w%u", i);
        g_autofree float *shared = test_run_read_floats(folder, name, &n_shared);
        g_assert_cmpuint(n_shared, ==, n);
        double worst = 0;
        for (gsize e = 0; e < n; e++) {
            worst = MAX(worst, fabs((double)shared[e] - (double)alone[e]));
        }
        g_test_message("%s: weights differ by at most %.2g", strategies[i], worst);
        g_assert_cmpfloat(worst, <=, 1e-6);
    }
    test_run_ok("run llama-toy %s --steps 1 --lr 0 --optimizer sgd --load %s/w0 --save %s/v",
                strategies[1], folder, folder);
    g_autofree float *again = test_run_read_floats(folder, "v", &n_shared);
    g_assert_cmpmem(again, n_shared * sizeof(float), alone, n * sizeof(float));
    test_run_remove_folder(folder);
}

/* Experts that ranks share are saved whole, and so are those whose rows they share. */
static void shared_experts_are_saved(void) {
    static const char *const strategies[] = {"-n 1 --micro-batch 8 --sharding none",
                                             "-n 4 --expert 2 --micro-batch 2",
                                             "-n 8 --expert 2 --micro-batch 1"};
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    g_autofree float *alone = NULL;
    for (unsigned i = 0; i < G_N_ELEMENTS(strategies); i++) {
        test_run_ok("run " TEST_RUN_FEW_EXPERTS
                    " %s --steps 2 --lr 0.01 --optimizer sgd --save %s/w",
                    strategies[i], folder);
        test_run_ok("run " TEST_RUN_FEW_EXPERTS " %s --steps 1 --lr 0 --optimizer sgd --load %s/w "
                    "--save %s/v",
                    strategies[i], folder, folder);
        gsize n, n_again;
        g_autofree float *got = test_run_read_floats(folder, "w", &n);
        g_autofree float *again = test_run_read_floats(folder, "v", &n_again);
        g_assert_cmpmem(again, n_again * sizeof(float), got, n * sizeof(float));
        double worst = 0;
        for (gsize e = 0; e < n && i; e++) {
            worst = MAX(worst, fabs((double)got[e] - (double)alone[e]));
        }
        g_test_message("%s: weights differ by at most %.2g", strategies[i], worst);
        g_assert_cmpfloat(worst, <=, 1e-6);
        if (!i) {
            alone = g_steal_pointer(&got);
        }
    }
    test_run_remove_folder(folder);
}

static void expect_floats(const char *folder, const char *name, const float *expected, gsize n) {
    gsize n_got;
    g_autofree float *got = test_run_read_floats(folder, name, &n_got);
    g_assert_cmpmem(got, n_got * sizeof(float), expected, n * sizeof(float));
}

/* Made by the host, or on the device and sent there: the same bytes as on one rank, rounded to the
 * model's dtype also where it trains on. */
static void first_weights_are_the_same_wherever_they_are_made(void) {
    static const char *const dtypes[] = {"fp32", "bf16"};
    static const char *const strategies[] = {
        "-n 3",
        "-n 4 --sharding hybrid --replicate 2",
        "-n 3 --flavour fsdp1",
        "-n 3 --flavour fsdp1 --use-orig-params yes",
        "-n 2 --flavour fsdp1 --sharding none --use-orig-params yes",
    };
    const char *run = "run gpt-toy %s --model-dtype %s --optimizer sgd --seed 7 --micro-batch 2 "
                      "--steps %d --lr %s --save %s/w";
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    for (unsigned d = 0; d < G_N_ELEMENTS(dtypes); d++) {
        gsize n;
        test_run_ok(run, "-n 1 --sharding none", dtypes[d], 1, "0", folder);
        g_autofree float *first = test_run_read_floats(folder, "w", &n);
        for (unsigned i = 0; i < G_N_ELEMENTS(strategies); i++) {
            g_autofree char *by_host = g_strconcat(strategies[i], " --offload params", NULL);
            g_autofree char *on_device = g_strconcat(by_host, " --init whole", NULL);
            test_run_forks = d == 0 || i != 0; /* what a rank makes hangs on its number alone */
            test_run_ok(run, by_host, dtypes[d], 1, "0", folder);
            expect_floats(folder, "w", first, n);
            test_run_ok(run, by_host, dtypes[d], 2, "0.05", folder);
            g_autofree float *trained = test_run_read_floats(folder, "w", &n);
            g_assert_true(memcmp(trained, first, n * sizeof *first));
            test_run_ok(run, on_device, dtypes[d], 2, "0.05", folder);
            expect_floats(folder, "w", trained, n);
            test_run_forks = false;
        }
    }
    test_run_remove_folder(folder);
}

/* A rank that holds nothing of a parameter has no buffer for it, either. */
static void a_row_for_two_ranks_is_saved(void) {
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    g_autofree char *network = g_build_filename(folder, "one-row.ini", NULL);
    g_assert_true(g_file_set_contents(
        network, "[network]\nfamily = gpt\nlayers = 1\nwidth = 8\nheads = 2\nvocab = 9\nseq = 1\n",
        -1, NULL));
    gsize n, m;
    test_run_ok("run %s -n 1 --sharding none --micro-batch 4 --steps 2 --save %s/w", network,
                folder);
    test_run_ok("run %s -n 2 --lr 0 --optimizer sgd --steps 1 --load %s/w --save %s/v", network,
                folder, folder);
    g_autofree float *saved = test_run_read_floats(folder, "w", &n),
                     *again = test_run_read_floats(folder, "v", &m);
    g_assert_cmpmem(again, m * sizeof(float), saved, n * sizeof(float));
    test_run_remove_folder(folder);
}

static bool is_read(const Trace *trace, const TraceOpRow *row) {
    uint32_t role = trace_role_of_rank(trace, row->rank);
    const TraceInstruction *instruction = trace_instruction(trace, role, row->instruction);
    return row->step >= 0 && instruction->what == TRACE_OP &&
           g_str_equal(trace_kind(trace, instruction->kind)->name, "to_host");
}

/* A rank's host issues nothing more until the number that it reads is there: the loss of each of
 * two passes, and the norm. */
static void reads_are_waited_for(void) {
    enum {
        RANKS = 2,
        STEPS = 4,
        READS = 3
    };
    g_autofree char *folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    test_run_ok("run gpt-toy -n %u --accumulate 2 --clip 1 --host-reads both --step-sync no "
                "--steps %u --trace %s/m.trace",
                RANKS, STEPS, folder);
    g_autofree char *path = g_strconcat(folder, "/m.trace", NULL);
    g_autoptr(Trace) trace = test_run_take_trace(path);
    unsigned reads = 0;
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *read = trace_op(trace, i);
        if (!is_read(trace, read)) {
            continue;
        }
        reads++;
        for (guint j = 0; j < trace->ops->len; j++) {
            const TraceOpRow *row = trace_op(trace, j);
            bool is_later = row->rank == read->rank && row->host_issue_ns > read->host_issue_ns;
            g_assert_true(!is_later || row->host_issue_ns >= read->end_ns);
        }
    }
    g_assert_cmpuint(reads, ==, RANKS * STEPS * READS);
    test_run_remove_folder(folder);
}

/* A batch that the loop itself holds stays where it is: this plan could not be built once. */
static void inputs_are_not_offloaded(void) {
    test_run_ok("run mlp-toy -n 2 --checkpointing full --offload activations --steps 2");
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_assert(argc == 2);
    test_run_program = argv[1];
    g_test_add_func("/exec/ranks/memory is as predicted", memory_is_as_predicted);
    g_test_add_func("/exec/ranks/reads are waited for", reads_are_waited_for);
    g_test_add_func("/exec/ranks/weights are saved and loaded", weights_are_saved);
    g_test_add_func("/exec/ranks/shared weights are saved and loaded", shared_weights_are_saved);
    g_test_add_func("/exec/ranks/shared experts are saved and loaded", shared_experts_are_saved);
    g_test_add_func("/exec/ranks/first weights are the same wherever they are made",
                    first_weights_are_the_same_wherever_they_are_made);
    g_test_add_func("/exec/ranks/a row for two ranks is saved", a_row_for_two_ranks_is_saved);
    g_test_add_func("/exec/ranks/inputs are not offloaded", inputs_are_not_offloaded);
    return g_test_run();
}
