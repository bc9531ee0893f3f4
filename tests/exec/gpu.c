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
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/op/op.h"
#include "tests/exec/runs.h"

static const char *foreshard, *on_host, *on_gpu;
static bool real; /* the GPU */
static unsigned watchdog_s = 60;
static char *folder;

enum {
    STEPS = 3
};

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
    return g_build_filename(folder, file, NULL);
}

static void write_networks(void) {
    for (unsigned i = 0; i < G_N_ELEMENTS(written); i++) {
        g_autofree char *path = path_of(i);
        g_assert_true(g_file_set_contents(path, written[i].text, -1, NULL));
    }
}

static void plan(const char *words) {
    g_auto(GStrv) parts = g_strsplit(words, " ", 2);
    g_autofree char *network = g_strdup(parts[0]);
    for (unsigned i = 0; i < G_N_ELEMENTS(written); i++) {
        if (g_str_equal(parts[0], written[i].name)) {
            g_free(network);
            network = path_of(i);
        }
    }
    test_run_program = foreshard;
    test_run_ok("plan %s %s -o %s/x.plan", network, parts[1], folder);
}

static unsigned ranks_of(const char *words) {
    return (unsigned)g_ascii_strtoull(strstr(words, "-n ") + 3, NULL, 10);
}

static const char *comm_of(const char *device) {
    const char *comm = g_getenv("FORESHARD_TEST_COMM");
    return comm && g_str_equal(device, "cuda") ? comm : "auto";
}

static char *line_of(const char *words, const char *device, const char *trace) {
    return g_strdup_printf("%s/x.plan --local-ranks %u --device %s --comm %s --steps %d "
                           "--watchdog %u --trace %s/%s",
                           folder, ranks_of(words), device, comm_of(device), STEPS, watchdog_s,
                           folder, trace);
}

static Trace *trace_of(const char *name) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    return test_run_take_trace(path);
}

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

typedef struct {
    const char *words;
    double bound; /* of the losses, relative */
} Case;

#define FLOAT8        "llama-toy -n 2 --kernels compiled --param-dtype bf16 "
#define FLOAT8_SHARED "llama-toy -n 4 --tensor 2 --kernels compiled --param-dtype bf16 "
#define FP32          2e-6
/* The loss is rounded to the model's dtype, and what leads to it may fall on either side. */
#define BF16 0x1p-6
#define FP16 0x1p-9
/* Muon's products are rounded to bf16 15 times, whatever parameters are stored in. */
#define MUON 0x1p-12

/* Together they have each op on each axis in each mixture of dtypes that plans have it in, and each
 * setting that changes what a device is asked for. */
static const Case cases[] = {
    {"gpt-toy -n 2 --sharding none --bucket-view yes --accumulate 2 --optimizer momentum "
     "--optimizer-kernel fused --lr 0.05",
     FP32},
    {"gpt-toy -n 2 --sharding grad-op --kernels fused --optimizer-kernel fused", FP32},
    {"gpt-toy -n 2 --kernels fused --param-dtype bf16", BF16},
    {"gpt-toy -n 1 --flavour fsdp1 --kernels fused --param-dtype bf16 --checkpointing full", BF16},
    {"gpt-toy -n 2 --allocator expandable --flavour fsdp1 --checkpointing full --offload "
     "activations",
     FP32},
    {"gpt-toy -n 4 --sharding hybrid --replicate 2 --accumulate 2 --micro-batch 1", FP32},
    {"gpt-toy -n 2 --sharding optimizer-only --optimizer sgd --optimizer-kernel fused", FP32},
    {"gpt-toy -n 4 --flavour fsdp1 --sharding hybrid --replicate 2 --micro-batch 1", FP32},
    {"gpt-toy -n 2 --network-key layers=1 --flavour fsdp1 --use-orig-params yes --optimizer-kernel "
     "loop --clip 1",
     FP32},
    {"gpt-toy -n 2 --optimizer-kernel loop --optimizer-count device --clip 1 --host-reads both",
     FP32},
    {"gpt-toy -n 2 --offload optimizer --optimizer adam --weight-decay 0.1", FP32},
    {"gpt-toy -n 2 --offload params --clip 0.3 --zero-grad keep", FP32},
    {"gpt-toy -n 2 --flavour fsdp1 --offload params --optimizer momentum --lr 0.05", FP32},
    {"gpt-toy -n 2 --reshard-after-forward no --zero-grad keep --accumulate 2", FP32},
    {"llama-toy --network-key loss=kernel -n 2 --accumulate 2", FP32},
    {"llama-toy --network-key loss=kernel --network-key loss_at=loop -n 2 --param-dtype bf16",
     BF16},
    {"llama-toy -n 1 --sharding none --kernels compiled --compile network --model-dtype bf16",
     BF16},
    {"gpt-toy -n 1 --sharding none --kernels compiled --compile network-holding --model-dtype bf16 "
     "--network-key logits_held=backward",
     BF16},
    {"olmo2-toy -n 2 --kernels compiled --checkpointing full", FP32},
    {"joined-toy -n 2 --flavour fsdp1", FP32},
    {"llama-toy -n 2 --rms-norm ops --deterministic yes", FP32},
    {"gpt-toy-dropout -n 2 --flavour fsdp1 --checkpointing full --deterministic yes", FP32},
    {"t5-toy -n 2", FP32},
    {"t5-kernel -n 2 --micro-batch 2", FP32},
    {"mlp-toy -n 3 --clip 1", FP32},
    {"mpt-toy -n 1 --sharding none", FP32},
    {"neox-toy -n 2 --checkpointing full", FP32},
    {"phi-toy -n 2 --flavour fsdp1", FP32},
    {"opt-toy -n 2 --micro-batch 2 --network-key logits_shifted=yes", FP32},
    {"starcoder2-toy -n 2 --kernels fused", FP32},
    {"llama-toy -n 4 --tensor 2 --micro-batch 3 --kernels compiled --tensor-plan kempnerforge",
     FP32},
    {"long-toy -n 2 --context 2 --micro-batch 2", FP32},
    {"long-toy -n 2 --context 2 --kernels compiled --accumulate 2 --micro-batch 1", FP32},
    {"long-toy -n 4 --context 2 --tensor 2 --checkpointing full --clip 1", FP32},
    {"llama-toy -n 4 --pipeline 2 --accumulate 3 --micro-batch 1 --clip 1", FP32},
    {"llama-toy -n 4 --pipeline 2 --accumulate 2 --pipeline-schedule gpipe --checkpointing full",
     FP32},
    {"llama-toy --network-key layers=4 -n 6 --pipeline 3 --accumulate 3 --micro-batch 1 "
     "--param-dtype bf16 --reduce-dtype fp32",
     BF16},
    {"llama-toy --network-key layers=6 -n 3 --pipeline 3 --accumulate 3 --micro-batch 1 "
     "--pipeline-schedule interleaved-1f1b --pipeline-stages 2 --pipeline-split even --clip 1",
     FP32},
    {"llama-toy --network-key layers=6 -n 4 --pipeline 2 --tensor 2 --accumulate 2 --micro-batch 2 "
     "--pipeline-schedule interleaved-1f1b --pipeline-stages 2",
     FP32},
    {"moe-shared -n 1 --sharding none", FP32},
    {"moe-toy -n 2 --network-key code=transformers", FP32},
    {"deepseek-toy -n 2", FP32},
    {"gpt-toy -n 2 --network-key loss=chunked --micro-batch 3", FP32},
    {"gpt-toy -n 2 --network-key loss=liger --micro-batch 3", FP32},
    {"llama-toy -n 2 --network-key window=7 --network-key window_by=kernel --kernels fused", FP32},
    {"llama-toy -n 2 --network-key window=9 --network-key code=transformers --micro-batch 2", FP32},
    {"llama-toy -n 2 --tensor 2 --network-key loss=kernel", FP32},
    {"moe-toy -n 4 --network-key routing=in-turn --expert 2 --micro-batch 3 --checkpointing full "
     "--clip 1",
     FP32},
    {"llama-toy -n 3 --context 3 --network-key seq=48 --kernels compiled --checkpointing full "
     "--param-dtype bf16",
     BF16},
    {"moe-toy -n 4 --network-key routing=in-turn --network-key layers=1 --context 2 --expert 4 "
     "--micro-batch 1 --param-dtype bf16",
     BF16},
    {"llama-toy -n 2 --lora-rank 4 --lora-base nf4 --lora-base-double yes --lora-base-storage "
     "model "
     "--micro-batch 2",
     FP32},
    {"gpt-toy -n 2 --lora-rank 4 --lora-base fp4 --sharding none --lora-on all-linear", FP32},
    {"llama-toy -n 2 --lora-rank 4 --lora-base nf4 --lora-base-double yes --lora-base-storage "
     "model "
     "--model-dtype bf16 --flavour fsdp1 --wrap module=.*\\.\\d+|.*lora_[AB] --offload params "
     "--checkpointing full",
     BF16},
    {"gpt-toy -n 2 --param-dtype bf16 --reduce-dtype fp32", BF16},
    {"gpt-toy -n 2 --model-dtype bf16 --sharding none", BF16},
    {"gpt-toy -n 2 --sharding none --autocast bf16 --checkpointing full", BF16},
    {"gpt-toy -n 2 --model-dtype bf16 --offload params --clip 0.3", BF16},
    {"qwen3-toy -n 2 --param-dtype bf16 --kernels fused --flavour fsdp1", BF16},
    {"neox-toy -n 2 --param-dtype bf16", BF16},
    {"sliced-toy -n 2 --param-dtype bf16", BF16},
    {FLOAT8 "--float8 tensorwise --flavour fsdp1 --checkpointing full", BF16},
    {FLOAT8 "--float8 tensorwise --float8-gather yes", BF16},
    {FLOAT8 "--float8 tensorwise --float8-gather precomputed --checkpointing full", BF16},
    {FLOAT8_SHARED "--float8 tensorwise --micro-batch 2", BF16},
    {FLOAT8_SHARED "--float8 tensorwise --checkpointing selective-op", BF16},
    {FLOAT8_SHARED "--float8 rowwise --micro-batch 2", BF16},
    {FLOAT8_SHARED "--async-tensor yes --micro-batch 3", BF16},
    {FLOAT8_SHARED "--async-tensor yes --micro-batch 2 --float8 tensorwise --checkpointing full",
     BF16},
    {FLOAT8_SHARED "--async-tensor yes --micro-batch 2 --float8 rowwise", BF16},
    {"llama-toy -n 4 --pipeline 2 --micro-batch 1 --accumulate 2 --kernels compiled --param-dtype "
     "bf16 --float8 rowwise --checkpointing full",
     BF16},
    {"llama-toy --network-key layers=1 -n 2 --optimizer muon --muon-lr 0.01 "
     "--muon-rate match-rms-adamw --checkpointing full",
     MUON},
    {"gpt-toy --network-key layers=1 -n 1 --sharding none --optimizer muon --muon-nesterov no "
     "--clip 1",
     MUON},
    {"gpt-toy --network-key layers=1 -n 2 --model-dtype bf16 --optimizer muon", BF16},
    {"moe-toy -n 2 --network-key code=transformers --param-dtype bf16", BF16},
    {"deepseek-toy -n 2 --param-dtype bf16", BF16},
    {"gpt-toy -n 2 --network-key loss=chunked --param-dtype bf16 --micro-batch 3", BF16},
    {"gpt-toy -n 2 --network-key loss=liger --param-dtype bf16 --micro-batch 3", BF16},
    {"llama-toy -n 2 --network-key window=7 --param-dtype bf16", BF16},
    {"llama-toy -n 2 --tensor 2 --network-key loss=kernel --param-dtype bf16", BF16},
    {"t5-toy -n 1 --flavour fsdp2 --param-dtype fp16", FP16},
    /* The first step of those that begin from a scale of 100000 or 300000 is skipped. */
    {"gpt-toy -n 1 --sharding none --autocast fp16 --loss-scale dynamic --optimizer-kernel fused",
     FP16},
    {"gpt-toy -n 2 --sharding none --autocast fp16 --loss-scale from=300000 --clip 1 "
     "--optimizer momentum --weight-decay 0.1 --lr 0.05",
     FP16},
    {"gpt-toy -n 2 --flavour fsdp1 --param-dtype fp16 --loss-scale from=100000 --clip 1", FP16},
    {"llama-toy -n 2 --param-dtype fp16 --loss-scale from=100000 --optimizer-kernel loop", FP16},
    {"gpt-toy -n 2 --param-dtype fp16 --loss-scale from=100000 --optimizer-kernel fused "
     "--clip 1",
     FP16},
    {"t5-kernel -n 2 --flavour fsdp1 --param-dtype bf16 --checkpointing full", BF16},
};

/* A real GPU adds up in other orders, and its libraries choose theirs. */
static double bound_of(double bound) {
    return real && bound == FP32 ? 10 * FP32 : bound;
}

static void plays_alike(gconstpointer data) {
    const Case *c = data;
    double host[STEPS], emulated[STEPS], worst = 0;
    g_autofree char *seed = g_strdup_printf("%u", (unsigned)(c - cases) % 4);
    test_run_name = "FORESHARD_EMULATOR_SEED";
    test_run_value = seed;
    g_autofree char *host_line = line_of(c->words, "host", "h.trace");
    g_autofree char *gpu_line = line_of(c->words, "cuda", "e.trace");
    plan(c->words);
    test_run_program = on_host;
    test_run_losses_of(host_line, host, STEPS);
    test_run_program = on_gpu;
    test_run_losses_of(gpu_line, emulated, STEPS);
    for (unsigned i = 0; i < STEPS; i++) {
        worst = MAX(worst, fabs(emulated[i] / host[i] - 1));
    }
    test_run_name = NULL;
    test_run_program = foreshard;
    test_run_ok("replay %s/x.plan %s/e.trace", folder, folder);
    g_autoptr(Trace) h = trace_of("h.trace");
    g_autoptr(Trace) e = trace_of("e.trace");
    memory_is_equal(h, e, strstr(c->words, "fsdp1") != NULL);
    ops_are_timed(h, e);
    note_ops(e);
    g_test_message("%s: losses differ by %.2g relative, memory equal at %u instructions", c->words,
                   worst, h->memory->len);
    g_assert_cmpfloat(worst, <=, bound_of(c->bound));
}

/* Those of traced networks alone are another test's (test-traced-gpu.py), and some are refused. */
static bool has_a_case(PlanOpKind kind) {
    return !plan_op_is_traced(kind) && kind != PLAN_OP_BROADCAST;
}

/* Whoever adds an op adds it to a case. */
static void every_op_is_played(void) {
    if (cases_played < G_N_ELEMENTS(cases)) {
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
    static const Case long_cases[] = {{"gpt-toy -n 2", FP32},
                                      {"llama-toy -n 2 --param-dtype bf16", BF16}};
    for (unsigned c = 0; c < G_N_ELEMENTS(long_cases); c++) {
        double losses[2][LONG], worst = 0;
        plan(long_cases[c].words);
        for (unsigned gpu = 0; gpu < 2; gpu++) {
            const char *device = gpu ? "cuda" : "host";
            g_autofree char *line =
                g_strdup_printf("%s/x.plan --local-ranks 2 --device %s --comm %s --steps %d",
                                folder, device, comm_of(device), LONG);
            test_run_program = gpu ? on_gpu : on_host;
            test_run_losses_of(line, losses[gpu], LONG);
        }
        for (unsigned i = 0; i < LONG; i++) {
            worst = MAX(worst, fabs(losses[1][i] / losses[0][i] - 1));
        }
        g_test_message("%s: %d losses differ by at most %.2g relative", long_cases[c].words, LONG,
                       worst);
        g_assert_cmpfloat(worst, <=, real ? 10 * long_cases[c].bound : long_cases[c].bound);
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
        plan(plans[i]);
        for (unsigned again = 0; again < 2; again++) {
            g_autofree char *line = line_of(plans[i], "cuda", "r.trace");
            test_run_program = on_gpu;
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
    unsigned ranks = ranks_of(words);
    plan(words);
    static const char *const ways[][2] = {{"host", "cuda"}, {"cuda", "host"}};
    for (unsigned i = 0; i < G_N_ELEMENTS(ways); i++) {
        const char *writer = ways[i][0], *reader = ways[i][1];
        test_run_program = on_gpu; /* it knows both */
        test_run_ok("%s/x.plan --local-ranks %u --device %s --comm %s --steps 2 --save %s/%s.w",
                    folder, ranks, writer, comm_of(writer), folder, writer);
        double own[1], other[1];
        g_autofree char *from_own =
            g_strdup_printf("%s/x.plan --local-ranks %u --device %s --comm %s --steps 1 --load "
                            "%s/%s.w",
                            folder, ranks, writer, comm_of(writer), folder, writer);
        g_autofree char *from_other =
            g_strdup_printf("%s/x.plan --local-ranks %u --device %s --comm %s --steps 1 --load "
                            "%s/%s.w",
                            folder, ranks, reader, comm_of(reader), folder, writer);
        test_run_losses_of(from_own, own, 1);
        test_run_losses_of(from_other, other, 1);
        g_assert_cmpfloat(fabs(own[0] / other[0] - 1), <=, bound_of(FP32));
    }
}

static void weights_are_saved_and_loaded(void) {
    weights_go_between("gpt-toy -n 2");
    weights_go_between("llama-toy -n 4 --tensor 2"); /* of whose parameters ranks have columns */
}

static uint64_t number_of(const Trace *trace, const char *key) {
    const char *text = trace_get(trace, key);
    g_assert_nonnull(text);
    return g_ascii_strtoull(text, NULL, 10);
}

static void header_says_what_ran(void) {
    plan("gpt-toy -n 2");
    test_run_program = on_gpu;
    test_run_ok("%s/x.plan --local-ranks 2 --device cuda --comm local --steps 2 --no-op-times "
                "--trace %s/t.trace",
                folder, folder);
    g_autoptr(Trace) trace = trace_of("t.trace");
    g_assert_cmpstr(trace_get(trace, "device"), ==, "cuda");
    g_assert_nonnull(trace_get(trace, "gpu"));
    g_assert_cmpstr(trace_get(trace, "op_times"), ==, "no");
    g_assert_nonnull(trace_get(trace, "gpu_ranks_sharing"));
    g_assert_cmpstr(trace_get(trace, "gpu_attention"), ==, "own kernels"); /* of fp32 */
    g_assert_nonnull(strstr(trace_get(trace, "gpu_comm"), "local"));
    g_assert_nonnull(trace_get(trace, "gpu_used_bytes_end"));
    if (!real || trace_get(trace, "driver")) { /* with a management library */
        g_assert_cmpuint(number_of(trace, "gpu_busy_samples"), >, 0);
        g_assert_cmpuint(number_of(trace, "gpu_busy_clock_mhz_mean"), >, 100);
        g_assert_cmpuint(number_of(trace, "gpu_busy_clock_mhz_most"), >=,
                         number_of(trace, "gpu_busy_clock_mhz_least"));
        g_assert_cmpuint(number_of(trace, "gpu_busy_power_mw_mean"), >, 10000);
    }
    if (!real) {
        g_assert_cmpstr(trace_get(trace, "driver"), ==, "580.00");
        g_assert_cmpuint(number_of(trace, "gpu_power_limit_mw"), ==, 700000);
        test_run_ok("%s/x.plan --local-ranks 2 --device cuda --steps 1 --trace %s/a.trace", folder,
                    folder); /* what binds ranks is left to it */
        g_autoptr(Trace) left = trace_of("a.trace");
        g_assert_nonnull(strstr(trace_get(left, "gpu_comm"), "; not NCCL: this was built without"));
    }
}

/* What the driver counts more at the end than at the opening is what the allocator has reserved and
 * the kernels hold, within 1 % and what CUDA takes as it loads kernels (assumed: 256 MiB). */
static void the_driver_counts_alike(void) {
    plan("gpt-toy -n 1 --sharding none --micro-batch 64");
    test_run_program = on_gpu;
    test_run_ok("%s/x.plan --device cuda --steps 2 --trace %s/t.trace", folder, folder);
    g_autoptr(Trace) trace = trace_of("t.trace");
    double grown = (double)number_of(trace, "gpu_used_bytes_end") -
                   (double)number_of(trace, "gpu_used_bytes_open");
    double held = (double)number_of(trace, "reserved_bytes_end") +
                  (double)number_of(trace, "kernel_scratch_bytes") -
                  (double)number_of(trace, "kernel_scratch_bytes_open");
    g_test_message("the driver counts %.3f MB more, %.3f MB are held (1e6 bytes); an event costs "
                   "%" G_GUINT64_FORMAT " ns",
                   grown / 1e6, held / 1e6, number_of(trace, "op_times_record_ns"));
    g_assert_cmpfloat(held, >, 30e6);
    g_assert_cmpfloat(fabs(grown - held), <=, 0.01 * held + (real ? 256 << 20 : 0));
    g_assert_cmpuint(number_of(trace, "op_times_record_ns"), >, 0);
}

/* What a small GPU has room for, on two ranks. */
static void a_gpu_is_measured(void) {
    const char *const lines[] = {"gpu ",
                                 "fact sms ",
                                 real ? "fact compute_capability " : "fact compute_capability 89\n",
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
    test_run_program = on_gpu;
    test_run_name = "FORESHARD_EMULATOR_MIB"; /* means nothing to a real one */
    test_run_value = "80";                    /* of which a lane's library handles take 32 */
    g_setenv("FORESHARD_EMULATOR_CAPABILITY", "89", TRUE);
    g_autofree char *line =
        g_strdup_printf("--costs --device cuda --local-ranks 2 --comm %s", comm_of("cuda"));
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
        test_run_program = foreshard;
        test_run_ok("predict %s --cluster dgx-h100 --every-rank --steps %d --trace %s/p.trace",
                    plans[i], STEPS, folder);
        test_run_name = "FORESHARD_EXEC";
        test_run_value = on_gpu;
        test_run_ok("rehearse %s --rank 3 --cluster dgx-h100 --device cuda --steps %d --trace "
                    "%s/r.trace",
                    plans[i], STEPS, folder);
        test_run_name = NULL;
        g_autoptr(Trace) p = trace_of("p.trace");
        g_autoptr(Trace) r = trace_of("r.trace");
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
    test_run_program = foreshard;
    test_run_losses("gpt-toy -n 2", expected, STEPS);
    test_run_name = "FORESHARD_EXEC";
    test_run_value = on_gpu;
    test_run_losses("gpt-toy -n 2 --device cuda --comm local", losses, STEPS);
    test_run_name = NULL;
    for (unsigned i = 0; i < STEPS; i++) {
        g_assert_cmpfloat(fabs(losses[i] / expected[i] - 1), <=, bound_of(FP32));
    }
}

/* ---- failures ------------------------------------------------------------------------------- */

static void fails(const char *words, int status, const char *expected) {
    TestRun run = test_run_finish(test_run_start(words));
    if (run.status != status || !strstr(run.err, expected)) {
        g_test_message("%s: status %d, '%s'; expected status %d, '%s'", words, run.status, run.err,
                       status, expected);
        g_test_fail();
    }
    test_run_clear(&run);
}

static void fails_on_gpu(const char *words, int status, const char *expected) {
    g_autofree char *line =
        g_strdup_printf("%s/x.plan --device cuda --comm %s %s", folder, comm_of("cuda"), words);
    test_run_program = on_gpu;
    fails(line, status, expected);
}

static void failures_say_why(void) {
    plan("gpt-toy -n 2 --lr 1000 --weight-decay 10");
    fails_on_gpu("--local-ranks 2 --steps 200", 1, "op nll_loss of unit root: the loss is ");
    fails_on_gpu("--local-ranks 2 --memory-limit 3000000", 1, "out of memory: step ");
    fails_on_gpu("--local-ranks 2 --memory-limit 3000000", 1, "allocated: parameters/sharded ");
    fails_on_gpu("--local-ranks 3", 2, "the plan is for 2 ranks, but 3 are started");
    fails_on_gpu("--local-ranks 2 --comm quick", 2, "there is no communicator 'quick'");
    if (!real) {
        fails_on_gpu("--local-ranks 2 --comm nccl", 2, "built without NCCL");
        plan("gpt-toy -n 1 --allocator expandable");
        test_run_name = "FORESHARD_EMULATOR_PAGES";
        test_run_value = "no";
        fails_on_gpu("", 2, "expandable");
        test_run_value = "closed"; /* which is no want of room */
        fails_on_gpu("", 1, "rank 0: step 0: cuMemSetAccess failed: CUDA_ERROR_INVALID_VALUE");
        plan("gpt-toy -n 1 --sharding none");
        test_run_name = "FORESHARD_EMULATOR_MIB";
        test_run_value = "36"; /* of which products take 32 for themselves */
        fails_on_gpu("", 1, " bytes free: kernels, other ranks or other programs hold the rest");
        plan("gpt-toy -n 1 --offload params");
        test_run_name = "FORESHARD_EMULATOR_PINNED_MIB";
        test_run_value = "1";
        fails_on_gpu("", 1, "bytes left that can be pinned, for ");
        test_run_name = NULL;
    }
    plan(FLOAT8 "--float8 rowwise --network-key seq=24");
    fails_on_gpu("--local-ranks 2", 2, "as many tokens, and sides, as 16 divides");
    if (!real) {
        plan(FLOAT8 "--float8 rowwise");
        test_run_name = "FORESHARD_EMULATOR_CAPABILITY";
        test_run_value = "80";
        fails_on_gpu("--local-ranks 2", 2, "compute capability 8.9 or more; set float8=none");
        test_run_name = NULL;
    }
    plan("moe-toy -n 2 --expert 2 --micro-batch 6");
    fails_on_gpu("--local-ranks 2", 2, "the router sends more rows to one rank than to another");
}

/* A kernel that touches what it may not: the error comes later, with whatever is asked then: a
 * wait, or at once a product of a library, or a segment, which looks as if there were no room. */
static void a_fault_of_the_device_is_named(void) {
    if (real) {
        g_test_skip("no fault is planted on a real GPU");
        return;
    }
    static const struct {
        const char *plan, *kernel; /* of some 200; the last shows when an event is made */
    } faults[] = {
        {"gpt-toy -n 1 --sharding none", "12"},
        {"gpt-toy -n 1 --sharding none", "90"},
        {"gpt-toy -n 1 --sharding none", "180"},
        {"gpt-toy -n 1 --sharding none", "34!"},
        {"gpt-toy -n 1 --sharding none", "169!"},
        {"gpt-toy -n 1 --flavour fsdp1 --checkpointing full --offload activations", "58!"}};
    static const char *const parts[] = {"an illegal memory access was encountered", "rank 0: step ",
                                        "with CUDA_LAUNCH_BLOCKING=1"};
    g_autofree char *line = g_strdup_printf(
        "%s/x.plan --device cuda --steps 4 --no-op-times --trace %s/f.trace", folder, folder);
    for (unsigned i = 0; i < G_N_ELEMENTS(faults); i++) {
        plan(faults[i].plan);
        test_run_program = on_gpu;
        test_run_name = "FORESHARD_EMULATOR_FAULT";
        test_run_value = faults[i].kernel;
        TestRun run = test_run_finish(test_run_start(line));
        test_run_name = NULL;
        g_test_message("kernel %s: %s", faults[i].kernel, run.err);
        g_assert_cmpint(run.status, ==, 1);
        for (unsigned part = 0; part < G_N_ELEMENTS(parts); part++) {
            g_assert_nonnull(strstr(run.err, parts[part]));
        }
        g_assert_null(strstr(run.err, "out of memory"));
        g_assert_null(strchr(strchr(run.err, '\n') + 1, '\n')); /* one line */
        test_run_clear(&run);
    }
}

/* The last child of a process that has at least two, by their numbers; 0: not yet. Of each process
 * the system says whose child it is; a list of children only some kernels keep. */
static int second_child_of(const char *parent) {
    g_autoptr(GDir) all = g_dir_open("/proc", 0, NULL);
    int last = 0;
    unsigned n = 0;
    for (const char *name; (name = g_dir_read_name(all));) {
        g_autofree char *path = g_build_filename("/proc", name, "stat", NULL), *text = NULL;
        int of = 0;
        if (g_ascii_isdigit(name[0]) && g_file_get_contents(path, &text, NULL, NULL) &&
            strrchr(text, ')') && sscanf(strrchr(text, ')'), ") %*c %d", &of) == 1 &&
            of == atoi(parent)) {
            last = MAX(last, atoi(name));
            n++;
        }
    }
    return n >= 2 ? last : 0;
}

/* A rank that stops in the middle of training: the others say what they wait for, and all end. A
 * real GPU may load a kernel for seconds, and takes turns with the ranks of other programs. */
static void a_hung_collective_ends_all(void) {
    int patience = real ? 10 : 2;
    plan("gpt-toy -n 2");
    g_autofree char *line = g_strdup_printf(
        "%s/x.plan --device cuda --local-ranks 2 --comm %s --steps 100000 --watchdog %d", folder,
        comm_of("cuda"), patience);
    test_run_program = on_gpu;
    GSubprocess *process = test_run_start(line);
    int second = 0;
    for (unsigned tries = 0; tries < 300 && !second; tries++) {
        g_usleep(50000);
        second = second_child_of(g_subprocess_get_identifier(process));
    }
    g_assert_cmpint(second, >, 0);
    char first_word; /* of its first step: it trains */
    g_assert_cmpint(
        g_input_stream_read(g_subprocess_get_stdout_pipe(process), &first_word, 1, NULL, NULL), ==,
        1);
    g_assert_cmpint(kill(second, SIGSTOP), ==, 0);
    gint64 stopped_at = g_get_monotonic_time();
    TestRun run = test_run_finish(process);
    double seconds = (double)(g_get_monotonic_time() - stopped_at) / 1e6;
    g_test_message("ended after %.1f s: %s", seconds, run.err);
    g_assert_cmpint(run.status, ==, 1);
    g_assert_cmpfloat(seconds, <, 20);
    g_autofree char *said =
        g_strdup_printf("rank 0: nothing has got on for %d s: the host is at ", patience);
    g_assert_nonnull(strstr(run.err, said));
    test_run_clear(&run);
}

/* What this machine's own foreshard-exec says: that there is none, or nothing (NULL), or that it
 * fails otherwise; then there is one, and the tests tell what is wrong. */
static bool there_is_a_gpu(char **ret_said) {
    static const char *const reasons[] = {"no GPU can be used",
                                          "the GPU's part of this program cannot be loaded: lib",
                                          "there is no device 'cuda' here"};
    bool here = true;
    plan("gpt-toy -n 1 --sharding none");
    test_run_program = on_host;
    g_autofree char *line = g_strdup_printf("%s/x.plan --device cuda --steps 1", folder);
    TestRun run = test_run_finish(test_run_start(line));
    for (unsigned i = 0; run.status && i < G_N_ELEMENTS(reasons); i++) {
        here = here && !strstr(run.err, reasons[i]);
    }
    g_auto(GStrv) lines = g_strsplit(run.err, "\n", 2);
    *ret_said = run.status && lines[0] ? g_strdup(lines[0]) : NULL;
    test_run_clear(&run);
    return here;
}

static void a_machine_without_gpus_says_so(void) {
    g_autofree char *said = NULL;
    if (there_is_a_gpu(&said)) {
        g_assert_cmpstr(said, ==, NULL);
        g_test_skip("there is a GPU here");
    }
}

static void add_cases(unsigned each) {
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i += each) {
        g_autofree char *name = g_strconcat("/exec/gpu/plays alike: ", cases[i].words, NULL);
        g_test_add_data_func(name, &cases[i], plays_alike);
    }
}

static void add_all(void) {
    /* First what stands for most: minutes with a GPU may end before the list does. */
    g_test_add_func("/exec/gpu/losses of 20 steps", losses_of_20_steps);
    g_test_add_func("/exec/gpu/failures say why", failures_say_why);
    g_test_add_func("/exec/gpu/a hung collective ends all", a_hung_collective_ends_all);
    add_cases(1);
    g_test_add_func("/exec/gpu/every op is played", every_op_is_played);
    g_test_add_func("/exec/gpu/losses repeat", losses_repeat);
    g_test_add_func("/exec/gpu/weights are saved and loaded", weights_are_saved_and_loaded);
    g_test_add_func("/exec/gpu/header says what ran", header_says_what_ran);
    g_test_add_func("/exec/gpu/the driver counts alike", the_driver_counts_alike);
    g_test_add_func("/exec/gpu/a GPU is measured", a_gpu_is_measured);
    g_test_add_func("/exec/gpu/one rank of many is rehearsed", one_rank_of_many_is_rehearsed);
    g_test_add_func("/exec/gpu/foreshard run plays it", foreshard_run_plays_it);
    g_test_add_func("/exec/gpu/a fault of the device is named", a_fault_of_the_device_is_named);
    g_test_add_func("/exec/gpu/no GPU is said", a_machine_without_gpus_says_so);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_assert(argc == 4 || argc == 5);
    g_setenv("FORESHARD_EMULATOR_LEAKS", "1", TRUE);
    foreshard = argv[1];
    on_host = argv[2];
    on_gpu = argv[3];
    folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    real = g_str_equal(on_host, on_gpu);
    ops_played = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    write_networks();
    g_autofree char *said = NULL;
    if (real && !g_getenv("FORESHARD_TEST_HAS_GPU") && !there_is_a_gpu(&said)) {
        printf("1..0 # SKIP no GPU can be used here: %s\n", said);
        test_run_remove_folder(folder);
        return 0;
    }
    if (argc == 5) {
        watchdog_s = 300;
        add_cases((unsigned)g_ascii_strtoull(argv[4], NULL, 10));
    } else {
        add_all();
    }
    int status = g_test_run();
    g_hash_table_unref(ops_played);
    test_run_remove_folder(folder);
    g_free(folder);
    return status;
}
