/* The identical plan on CPU ranks and on a GPU: losses agree within what the dtype allows, memory
 * is equal at every instruction, and equal again when it is replayed. Failures name rank, step and
 * op.
 *
 * Arguments: foreshard, foreshard-exec, and foreshard-exec built against the emulator
 * (tests/emulator), where streams are played as late as they may be and out of step with one
 * another. Where these two are one program, a real GPU is meant, or all is skipped. A number behind
 * them: of the cases alone every so many-th, for an emulator that takes long.
 * FORESHARD_TEST_COMM names what binds ranks (--comm), where NCCL would not have several on a GPU.
 * FORESHARD_TEST_HAS_GPU in the environment: there is a GPU, which need not be asked, as that takes
 * seconds of each program.
 */
#include <gio/gio.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "plan/op/op.h"
#include "tests/exec/gpu-runs.h"

/* Rank 0's rows of memory; all ranks' are in rank order. With marks, when a freed block is free
 * again is a matter of time. */
static void memory_is_equal(const Trace *a, const Trace *b, bool has_marks) {
    g_assert_cmpuint(a->memory->len, ==, b->memory->len);
    for (guint i = 0; i < a->memory->len; i++) {
        const TraceMemoryRow *x = trace_memory(a, i), *y = trace_memory(b, i);
        g_assert_cmpuint(x->rank, ==, y->rank);
        g_assert_cmpint(x->step, ==, y->step);
        g_assert_cmpuint(x->instruction, ==, y->instruction);
        g_assert_cmpuint(x->allocated, ==, y->allocated);
        if (!has_marks) {
            g_assert_cmpuint(x->active, ==, y->active);
            g_assert_cmpuint(x->reserved, ==, y->reserved);
        }
    }
}

static GHashTable *ops_played; /* names, of all cases so far */
static unsigned cases_played;

static void note_ops(const Trace *trace) {
    for (uint32_t role = 0; role < trace->roles->len; role++) {
        for (uint32_t i = 0; i < trace_instructions(trace, role)->len; i++) {
            uint32_t kind = trace_instruction(trace, role, i)->kind;
            if (kind != TRACE_NONE) {
                g_hash_table_add(ops_played, g_strdup(trace_kind(trace, kind)->name));
            }
        }
    }
    cases_played++;
}

/* Each op once, and not before it was issued (to the host's clock within a millisecond). */
static void ops_are_timed(const Trace *a, const Trace *b) {
    g_assert_cmpuint(a->ops->len, ==, b->ops->len);
    for (guint i = 0; i < a->ops->len; i++) {
        const TraceOpRow *x = trace_op(a, i), *y = trace_op(b, i);
        g_assert_cmpuint(x->instruction, ==, y->instruction);
        g_assert_cmpuint(x->lane, ==, y->lane);
        g_assert_cmpint(y->end_ns, >=, y->start_ns);
        g_assert_cmpint(y->start_ns, >=, y->host_issue_ns - 1000000);
    }
}

/* A real GPU adds up in other orders, and its libraries choose theirs. */
static double bound_of(double bound) {
    return gpu_runs.real && bound == FP32 ? 10 * FP32 : bound;
}

/* The emulated GPU becomes a Blackwell; a real one is asked. */
static bool multiplies_mxfp8(const char *gpu_line) {
    g_setenv("FORESHARD_EMULATOR_CAPABILITY", "100", TRUE);
    if (!gpu_runs.real) {
        return true;
    }
    TestRun run = test_run_finish(test_run_start(gpu_line));
    bool is_refused = run.status == 2 && strstr(run.err, "compute capability 10.0 or more");
    test_run_clear(&run);
    return !is_refused;
}

static void plays_alike(gconstpointer data) {
    const GpuCase *c = data;
    double host[STEPS], emulated[STEPS], worst = 0;
    g_autofree char *seed = g_strdup_printf("%u", (unsigned)(c - gpu_cases) % 4);
    test_run_name = "FORESHARD_EMULATOR_SEED";
    test_run_value = seed;
    g_autofree char *host_line = gpu_line_of(c->words, "host", "h.trace");
    g_autofree char *gpu_line = gpu_line_of(c->words, "cuda", "e.trace");
    gpu_plan(c->words);
    test_run_program = gpu_runs.on_host;
    test_run_losses_of(host_line, host, STEPS);
    test_run_program = gpu_runs.on_gpu;
    if (strstr(c->words, "--float8 mxfp8") && !multiplies_mxfp8(gpu_line)) {
        g_test_skip("this GPU does not multiply in MXFP8");
        return;
    }
    test_run_losses_of(gpu_line, emulated, STEPS);
    g_unsetenv("FORESHARD_EMULATOR_CAPABILITY");
    for (unsigned i = 0; i < STEPS; i++) {
        worst = MAX(worst, fabs(emulated[i] / host[i] - 1));
    }
    test_run_name = NULL;
    test_run_program = gpu_runs.foreshard;
    test_run_ok("replay %s/x.plan %s/e.trace", gpu_runs.folder, gpu_runs.folder);
    g_autoptr(Trace) h = gpu_trace_of("h.trace");
    g_autoptr(Trace) e = gpu_trace_of("e.trace");
    memory_is_equal(h, e, strstr(c->words, "fsdp1") != NULL);
    ops_are_timed(h, e);
    note_ops(e);
    g_test_message("%s: losses differ by %.2g relative, memory equal at %u instructions", c->words,
                   worst, h->memory->len);
    g_assert_cmpfloat(worst, <=, bound_of(c->bound));
}

/* Those of traced networks alone are another test's (test-traced-gpu.py), and some are refused. */
static bool has_a_case(PlanOpKind kind) {
    return !plan_op_is_traced(kind) && kind != PLAN_OP_BROADCAST &&
           kind != PLAN_OP_UNEVEN_ALL_TO_ALL;
}

/* Whoever adds an op adds it to a case. */
static void every_op_is_played(void) {
    if (cases_played < gpu_n_cases) {
        g_test_skip("not all cases were played");
        return;
    }
    for (PlanOpKind kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        const char *name = plan_op_info(kind)->name;
        if (has_a_case(kind) && !g_hash_table_contains(ops_played, name)) {
            g_test_message("no case has the op %s", name);
            g_test_fail();
        }
    }
    g_test_message("%u cases play %u ops", cases_played, g_hash_table_size(ops_played));
}

/* Longer: what differs by rounding has time to grow. */
static void losses_of_20_steps(void) {
    enum {
        LONG = 20
    };
    static const GpuCase long_cases[] = {{"gpt-toy -n 2", FP32},
                                         {"llama-toy -n 2 --param-dtype bf16", BF16}};
    for (unsigned c = 0; c < G_N_ELEMENTS(long_cases); c++) {
        double losses[2][LONG], worst = 0;
        gpu_plan(long_cases[c].words);
        for (unsigned gpu = 0; gpu < 2; gpu++) {
            const char *device = gpu ? "cuda" : "host";
            g_autofree char *line =
                g_strdup_printf("%s/x.plan --local-ranks 2 --device %s --comm %s --steps %d",
                                gpu_runs.folder, device, gpu_comm_of(device), LONG);
            test_run_program = gpu ? gpu_runs.on_gpu : gpu_runs.on_host;
            test_run_losses_of(line, losses[gpu], LONG);
        }
        for (unsigned i = 0; i < LONG; i++) {
            worst = MAX(worst, fabs(losses[1][i] / losses[0][i] - 1));
        }
        g_test_message("%s: %d losses differ by at most %.2g relative", long_cases[c].words, LONG,
                       worst);
        g_assert_cmpfloat(worst, <=,
                          gpu_runs.real ? 10 * long_cases[c].bound : long_cases[c].bound);
        g_assert_cmpfloat(losses[1][LONG - 1], <, losses[1][0]); /* it learns */
    }
}

/* Whatever order a device's threads, blocks and streams come in; cuDNN's dq needs to be asked. */
static void losses_repeat(void) {
    static const char *const plans[] = {"gpt-toy -n 2 --param-dtype bf16 --deterministic yes",
                                        "moe-toy -n 2 --param-dtype bf16 --deterministic yes",
                                        "llama-toy -n 4 --tensor 2 --clip 1"};
    for (unsigned i = 0; i < G_N_ELEMENTS(plans); i++) {
        double losses[2][STEPS];
        gpu_plan(plans[i]);
        for (unsigned again = 0; again < 2; again++) {
            g_autofree char *line = gpu_line_of(plans[i], "cuda", "r.trace");
            test_run_program = gpu_runs.on_gpu;
            test_run_name = "FORESHARD_EMULATOR_SEED";
            test_run_value = again ? "3" : "0";
            test_run_losses_of(line, losses[again], STEPS);
            test_run_name = NULL;
        }
        for (unsigned step = 0; step < STEPS; step++) {
            g_assert_cmpfloat(losses[0][step], ==, losses[1][step]);
        }
    }
}

/* One file whoever writes it, and either reads the other's. */
static void weights_go_between(const char *words) {
    unsigned ranks = gpu_ranks_of(words);
    gpu_plan(words);
    static const char *const ways[][2] = {{"host", "cuda"}, {"cuda", "host"}};
    for (unsigned i = 0; i < G_N_ELEMENTS(ways); i++) {
        const char *writer = ways[i][0], *reader = ways[i][1];
        test_run_program = gpu_runs.on_gpu; /* it knows both */
        test_run_ok("%s/x.plan --local-ranks %u --device %s --comm %s --steps 2 --save %s/%s.w",
                    gpu_runs.folder, ranks, writer, gpu_comm_of(writer), gpu_runs.folder, writer);
        double own[1], other[1];
        g_autofree char *from_own = g_strdup_printf(
            "%s/x.plan --local-ranks %u --device %s --comm %s --steps 1 --load "
            "%s/%s.w",
            gpu_runs.folder, ranks, writer, gpu_comm_of(writer), gpu_runs.folder, writer);
        g_autofree char *from_other = g_strdup_printf(
            "%s/x.plan --local-ranks %u --device %s --comm %s --steps 1 --load "
            "%s/%s.w",
            gpu_runs.folder, ranks, reader, gpu_comm_of(reader), gpu_runs.folder, writer);
        test_run_losses_of(from_own, own, 1);
        test_run_losses_of(from_other, other, 1);
        g_assert_cmpfloat(fabs(own[0] / other[0] - 1), <=, bound_of(FP32));
    }
}

static void weights_are_saved_and_loaded(void) {
    weights_go_between("gpt-toy -n 2");
    weights_go_between("llama-toy -n 4 --tensor 2"); /* of whose parameters ranks have columns */
    weights_go_between("gpt-toy -n 4 --tensor 2");   /* or rows of each third */
}

static uint64_t number_of(const Trace *trace, const char *key) {
    const char *text = trace_get(trace, key);
    g_assert_nonnull(text);
    return g_ascii_strtoull(text, NULL, 10);
}

static void header_says_what_ran(void) {
    gpu_plan("gpt-toy -n 2");
    test_run_program = gpu_runs.on_gpu;
    test_run_ok("%s/x.plan --local-ranks 2 --device cuda --comm local --steps 2 --no-op-times "
                "--trace %s/t.trace",
                gpu_runs.folder, gpu_runs.folder);
    g_autoptr(Trace) trace = gpu_trace_of("t.trace");
    g_assert_cmpstr(trace_get(trace, "device"), ==, "cuda");
    g_assert_nonnull(trace_get(trace, "gpu"));
    g_assert_cmpstr(trace_get(trace, "op_times"), ==, "no");
    g_assert_nonnull(trace_get(trace, "gpu_ranks_sharing"));
    g_assert_cmpstr(trace_get(trace, "gpu_attention"), ==, "own kernels"); /* of fp32 */
    g_assert_nonnull(strstr(trace_get(trace, "gpu_comm"), "local"));
    g_assert_nonnull(trace_get(trace, "gpu_used_bytes_end"));
    if (!gpu_runs.real || trace_get(trace, "driver")) { /* with a management library */
        g_assert_cmpuint(number_of(trace, "gpu_busy_samples"), >, 0);
        g_assert_cmpuint(number_of(trace, "gpu_busy_clock_mhz_mean"), >, 100);
        g_assert_cmpuint(number_of(trace, "gpu_busy_clock_mhz_most"), >=,
                         number_of(trace, "gpu_busy_clock_mhz_least"));
        g_assert_cmpuint(number_of(trace, "gpu_busy_power_mw_mean"), >, 10000);
    }
    if (!gpu_runs.real) {
        g_assert_cmpstr(trace_get(trace, "driver"), ==, "580.00");
        g_assert_cmpuint(number_of(trace, "gpu_power_limit_mw"), ==, 700000);
        test_run_ok("%s/x.plan --local-ranks 2 --device cuda --steps 1 --trace %s/a.trace",
                    gpu_runs.folder, gpu_runs.folder); /* what binds ranks is left to it */
        g_autoptr(Trace) left = gpu_trace_of("a.trace");
        g_assert_nonnull(strstr(trace_get(left, "gpu_comm"), "; not NCCL: this was built without"));
    }
}

/* What the driver counts more at the end than at the opening is what the allocator has reserved and
 * the kernels hold, within 1 % and what CUDA takes as it loads kernels (assumed: 256 MiB). */
static void the_driver_counts_alike(void) {
    gpu_plan("gpt-toy -n 1 --sharding none --micro-batch 64");
    test_run_program = gpu_runs.on_gpu;
    test_run_ok("%s/x.plan --device cuda --steps 2 --trace %s/t.trace", gpu_runs.folder,
                gpu_runs.folder);
    g_autoptr(Trace) trace = gpu_trace_of("t.trace");
    double grown = (double)number_of(trace, "gpu_used_bytes_end") -
                   (double)number_of(trace, "gpu_used_bytes_open");
    double held = (double)number_of(trace, "reserved_bytes_end") +
                  (double)number_of(trace, "kernel_scratch_bytes") -
                  (double)number_of(trace, "kernel_scratch_bytes_open");
    g_test_message("the driver counts %.3f MB more, %.3f MB are held (1e6 bytes); an event costs "
                   "%" G_GUINT64_FORMAT " ns",
                   grown / 1e6, held / 1e6, number_of(trace, "op_times_record_ns"));
    g_assert_cmpfloat(held, >, 30e6);
    g_assert_cmpfloat(fabs(grown - held), <=, 0.01 * held + (gpu_runs.real ? 256 << 20 : 0));
    g_assert_cmpuint(number_of(trace, "op_times_record_ns"), >, 0);
}

/* What a small GPU has room for, on two ranks. */
static void a_gpu_is_measured(void) {
    const char *const lines[] = {"gpu ",
                                 "fact sms ",
                                 gpu_runs.real ? "fact compute_capability "
                                               : "fact compute_capability 89\n",
                                 "\nlaunch_us ",
                                 "\nsegment_new_us ",
                                 "\nalloc_us ",
                                 "\nfact copy_gb_per_s ",
                                 "\nproduct bf16 256 256 256 ",
                                 "\nproduct fp32 256 256 256 ",
                                 "\nattention bf16 1 2 2 64 32 1 1 ",
                                 "\nfact outside_bytes ",
                                 "\nall_gather 8192 ",
                                 "\nreduce_scatter 524288 ",
                                 "\nall_reduce 65536 ",
                                 "\ncomm "};
    test_run_program = gpu_runs.on_gpu;
    test_run_name = "FORESHARD_EMULATOR_MIB"; /* means nothing to a real one */
    test_run_value = "80";                    /* of which a lane's library handles take 32 */
    g_setenv("FORESHARD_EMULATOR_CAPABILITY", "89", TRUE);
    g_autofree char *line =
        g_strdup_printf("--costs --device cuda --local-ranks 2 --comm %s", gpu_comm_of("cuda"));
    TestRun run = test_run_finish(test_run_start(line));
    test_run_name = NULL;
    g_unsetenv("FORESHARD_EMULATOR_CAPABILITY");
    g_assert_cmpint(run.status, ==, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(lines); i++) {
        if (!strstr(run.out, lines[i])) {
            g_test_message("no '%s' in: %s", lines[i], run.out);
            g_test_fail();
        }
    }
    test_run_clear(&run);
}

/* One GPU plays rank 3 of 8: the memory that is predicted, and collectives no shorter. */
static void one_rank_of_many_is_rehearsed(void) {
    static const char *const plans[] = {
        "gpt-toy -n 8",
        "gpt-toy -n 8 --sharding hybrid --replicate 2 --accumulate 2",
        "llama-toy -n 8 --param-dtype bf16 --kernels fused --reshard-after-forward 2",
        "llama-toy -n 8 --tensor 2 --param-dtype bf16 --reduce-dtype fp32",
        "gpt-toy --network-key layers=1 -n 8 --optimizer muon",
        "llama-toy -n 8 --kernels compiled --param-dtype bf16 --float8 tensorwise --float8-gather "
        "yes",
        "llama-toy -n 8 --tensor 2 --kernels compiled --param-dtype bf16 --float8 tensorwise",
        "llama-toy -n 8 --tensor 2 --kernels compiled --param-dtype bf16 --async-tensor yes "
        "--micro-batch 2",
        "moe-toy --network-key routing=in-turn -n 8 --expert 2 --micro-batch 3",
        "llama-toy -n 8 --context 4 --network-key seq=64 --param-dtype bf16",
        "llama-toy --network-key layers=6 -n 8 --pipeline 4 --accumulate 6 --param-dtype bf16"};
    for (unsigned i = 0; i < G_N_ELEMENTS(plans); i++) {
        test_run_program = gpu_runs.foreshard;
        test_run_ok("predict %s --cluster dgx-h100 --every-rank --steps %d --trace %s/p.trace",
                    plans[i], STEPS, gpu_runs.folder);
        test_run_name = "FORESHARD_EXEC";
        test_run_value = gpu_runs.on_gpu;
        test_run_ok("rehearse %s --rank 3 --cluster dgx-h100 --device cuda --steps %d --trace "
                    "%s/r.trace",
                    plans[i], STEPS, gpu_runs.folder);
        test_run_name = NULL;
        g_autoptr(Trace) p = gpu_trace_of("p.trace");
        g_autoptr(Trace) r = gpu_trace_of("r.trace");
        uint32_t role = trace_role_of_rank(r, 3);
        guint rows = 0;
        for (guint row = 0; row < p->memory->len; row++) {
            const TraceMemoryRow *x = trace_memory(p, row), *y = trace_memory(r, rows);
            if (x->rank != 3) {
                continue;
            }
            rows++;
            g_assert_cmpuint(x->instruction, ==, y->instruction);
            g_assert_cmpuint(x->allocated, ==, y->allocated);
            g_assert_cmpuint(x->active, ==, y->active);
            g_assert_cmpuint(x->reserved, ==, y->reserved);
        }
        g_assert_cmpuint(rows, ==, r->memory->len);
        g_assert_cmpuint(trace_op(r, 0)->rank, ==, 3);
        unsigned collectives = 0;
        for (guint row = 0; row < r->ops->len; row++) {
            const TraceOpRow *op = trace_op(r, row);
            uint32_t kind = trace_instruction(r, role, op->instruction)->kind;
            if (trace_kind(r, kind)->kind_class == TRACE_KIND_COLLECTIVE) {
                g_assert_cmpint(op->end_ns - op->start_ns, >, 5000); /* NVLink's latency alone */
                collectives++;
            }
        }
        g_test_message("%s: memory equal at %u instructions, %u collectives stood in for", plans[i],
                       rows, collectives);
        g_assert_cmpuint(collectives, >, 10);
    }
}

/* The same by the command that users give. */
static void foreshard_run_plays_it(void) {
    double losses[STEPS], expected[STEPS];
    test_run_program = gpu_runs.foreshard;
    test_run_losses("gpt-toy -n 2", expected, STEPS);
    test_run_name = "FORESHARD_EXEC";
    test_run_value = gpu_runs.on_gpu;
    test_run_losses("gpt-toy -n 2 --device cuda --comm local", losses, STEPS);
    test_run_name = NULL;
    for (unsigned i = 0; i < STEPS; i++) {
        g_assert_cmpfloat(fabs(losses[i] / expected[i] - 1), <=, bound_of(FP32));
    }
}

static void add_cases(unsigned each) {
    for (unsigned i = 0; i < gpu_n_cases; i += each) {
        g_autofree char *name = g_strconcat("/exec/gpu/plays alike: ", gpu_cases[i].words, NULL);
        g_test_add_data_func(name, &gpu_cases[i], plays_alike);
    }
}

static void add_all(void) {
    /* First what stands for most: minutes with a GPU may end before the list does. */
    g_test_add_func("/exec/gpu/losses of 20 steps", losses_of_20_steps);
    gpu_add_first_failures();
    add_cases(1);
    g_test_add_func("/exec/gpu/every op is played", every_op_is_played);
    g_test_add_func("/exec/gpu/losses repeat", losses_repeat);
    g_test_add_func("/exec/gpu/weights are saved and loaded", weights_are_saved_and_loaded);
    g_test_add_func("/exec/gpu/header says what ran", header_says_what_ran);
    g_test_add_func("/exec/gpu/the driver counts alike", the_driver_counts_alike);
    g_test_add_func("/exec/gpu/a GPU is measured", a_gpu_is_measured);
    g_test_add_func("/exec/gpu/one rank of many is rehearsed", one_rank_of_many_is_rehearsed);
    g_test_add_func("/exec/gpu/foreshard run plays it", foreshard_run_plays_it);
    gpu_add_last_failures();
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_assert(argc == 4 || argc == 5);
    g_setenv("FORESHARD_EMULATOR_LEAKS", "1", TRUE);
    gpu_runs.foreshard = argv[1];
    gpu_runs.on_host = argv[2];
    gpu_runs.on_gpu = argv[3];
    gpu_runs.folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    gpu_runs.real = g_str_equal(gpu_runs.on_host, gpu_runs.on_gpu);
    ops_played = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    gpu_write_networks();
    g_autofree char *said = NULL;
    if (gpu_runs.real && !g_getenv("FORESHARD_TEST_HAS_GPU") && !gpu_is_there(&said)) {
        printf("1..0 # SKIP no GPU can be used here: %s\n", said);
        test_run_remove_folder(gpu_runs.folder);
        return 0;
    }
    if (argc == 5) {
        gpu_runs.watchdog_s = 300;
        add_cases((unsigned)g_ascii_strtoull(argv[4], NULL, 10));
    } else {
        add_all();
    }
    int status = g_test_run();
    g_hash_table_unref(ops_played);
    test_run_remove_folder(gpu_runs.folder);
    g_free(gpu_runs.folder);
    return status;
}
