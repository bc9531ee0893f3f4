/* Traced networks: the same network from its family and traced makes the same plan, event by event;
 * what a file says is done; a file that is damaged, and a strategy that a trace cannot answer, are
 * refused by name. Its argument is the folder of networks that were traced. */
#include <string.h>

#include "models/network.h"
#include "plan/op/work.h"
#include "plan/text/text.h"
#include "tests/plan/plans.h"

static const char *folder;

static char *traced_text(const char *name) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_autoptr(GError) error = NULL;
    char *text = NULL;
    g_file_get_contents(path, &text, NULL, &error);
    g_assert_no_error(error);
    return text;
}

/* ---- a family's network, traced ------------------------------------------------------------- */

/* Allocations with their bytes, frees with the number of what they free, and collectives. */
static GArray *events_of(const PlanRole *role, PlanSection section) {
    GArray *events = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_autofree uint64_t *number = g_new0(uint64_t, role->n_buffers);
    uint64_t n = 0;
    for (uint32_t i = 0; i < role->n_instrs[section]; i++) {
        const PlanInstr *instr = &role->sections[section][i];
        uint64_t event[2] = {instr->kind, 0};
        if (instr->kind == PLAN_ALLOC) {
            number[instr->arg] = ++n;
            event[1] = role->buffers[instr->arg].bytes;
        } else if (instr->kind == PLAN_FREE) {
            event[1] = number[instr->arg];
        } else if (instr->kind == PLAN_LAUNCH &&
                   plan_op_is_collective((PlanOpKind)role->ops[instr->arg].kind)) {
            event[1] = (uint64_t)plan_op_work(role, &role->ops[instr->arg]).bytes;
        } else {
            continue;
        }
        g_array_append_vals(events, event, 2);
    }
    return events;
}

static void assert_alike(const char *family, const char *traced, const char *words) {
    g_autoptr(Plan) a = test_plan(family, words);
    g_autoptr(Plan) b = test_plan(traced, words);
    g_test_message("%s", words);
    g_assert_cmpuint(a->n_roles, ==, b->n_roles);
    g_assert_cmpuint(a->n_units, ==, b->n_units);
    for (PlanSection s = PLAN_SECTION_FIRST; s < PLAN_N_SECTIONS; s++) {
        g_autoptr(GArray) theirs = events_of(&a->roles[0], s);
        g_autoptr(GArray) ours = events_of(&b->roles[0], s);
        g_assert_cmpuint(theirs->len, ==, ours->len);
        for (uint32_t i = 0; i < theirs->len; i++) {
            g_assert_cmpuint(g_array_index(theirs, uint64_t, i), ==,
                             g_array_index(ours, uint64_t, i));
        }
    }
}

static const char *const strategies[] = {
    "ranks=1 sharding=none",
    "ranks=4",
    "ranks=4 micro_batch=3 accumulate=2",
    "ranks=8 checkpointing=full reshard_after_forward=no backward_prefetch=none",
    "ranks=8 wrap=size=20000 clip=1 optimizer=sgd",
    "ranks=8 checkpointing=ratio=0.5 optimizer=sgd",
    "ranks=4 wrap=module=.*attn flavour=fsdp1",
    "ranks=4 wrap=whole checkpointing=full checkpoint_early_stop=no",
    "ranks=4 flavour=fsdp1 checkpointing=full checkpoint_place=outside limit_all_gathers=1",
    "ranks=4 flavour=fsdp1 use_orig_params=no sharding=grad-op accumulate=2",
    "ranks=4 flavour=ddp sharding=none checkpointing=full accumulate=2",
    "ranks=8 sharding=hybrid replicate=2 offload=params",
    "ranks=8 checkpointing=selective-op",
};

static void same_as_family(gconstpointer data) {
    const char *const *pair = data;
    g_autofree char *traced = traced_text(pair[1]);
    for (unsigned i = 0; i < G_N_ELEMENTS(strategies); i++) {
        assert_alike(pair[0], traced, strategies[i]);
    }
}

/* ---- a file by hand ------------------------------------------------------------------------- */

static void by_hand(void) {
    g_autoptr(Plan) plan = test_plan(TRACED_TINY, "ranks=2 micro_batch=3");
    g_assert_cmpuint(plan->n_units, ==, 3);
    g_assert_cmpuint(plan->tokens_per_rank, ==, 24);
    TestCounts counts = test_count_steady(plan);
    g_assert_cmpuint(counts.n[PLAN_OP_TRACED_MATMUL], ==, 5);
    g_assert_cmpuint(counts.n[PLAN_OP_TRACED_MEMORY], ==, 1);
    g_assert_cmpuint(counts.bytes[PLAN_OP_TRACED_MATMUL], ==,
                     2 * (64 * 3 + 256) + 3 * (36 * 3 + 32));
    g_autoptr(GString) text = plan_text(plan);
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) read = plan_read(text->str, text->len, "tiny.plan", &error);
    g_assert_no_error(error);
    g_autoptr(GString) again = plan_text(read);
    g_assert_true(g_string_equal(text, again));
}

/* What backward asks for is made again, once. */
static void made_again(void) {
    g_autoptr(Plan) plan = test_plan(TRACED_TINY, "ranks=2 checkpointing=full");
    TestCounts counts = test_count_steady(plan);
    g_assert_cmpuint(counts.n[PLAN_OP_TRACED_MATMUL], ==, 5); /* both stop before their product */
}

static char *replaced(const char *text, const char *from, const char *to) {
    g_auto(GStrv) parts = g_strsplit(text, from, 2);
    g_assert_cmpuint(g_strv_length(parts), ==, 2);
    return g_strjoinv(to, parts);
}

/* A unit is given a value several times, which its block uses once. */
static void given_again(void) {
    g_autofree char *text = replaced(TRACED_TINY, "enter 2 3\n", "enter 2 3 3 3\n");
    g_autoptr(Plan) plan = test_plan(text, "ranks=2");
    TestCounts counts = test_count_steady(plan);
    g_assert_cmpuint(counts.n[PLAN_OP_TRACED_MATMUL], ==, 5);
}

/* The tiny network with what its kernels compute; behind forward, how a gradient would be added. */
#define WITH_CALL(call, sum)                                                                       \
    g_autofree char *with_call =                                                                   \
        replaced(TRACED_TINY, "< i2 i1 > o0\n", "< i2 i1 > o0\n" call "\n");                       \
    g_autofree char *text = replaced(with_call, "loss 5\n", sum "loss 5\n")

/* Counts are of this many samples, storages are operands; a text is held once, and read back. */
static void calls(void) {
    WITH_CALL("call mm i2/fp32/1n,8 [i1/fp32/8,8/1,8/2n+3;true;-] 1e-05 > o0/fp32/1n,8",
              "sum 4 add.Tensor x0/fp32/1n x1/fp32/1n 1 > y0/fp32/1n\n");
    g_autoptr(Plan) plan = test_plan(text, "ranks=2 micro_batch=3");
    g_assert_cmpuint(plan->n_calls, ==, 1);
    g_assert_cmpstr(plan->calls[0], ==,
                    "mm 0/fp32/3,8 [1/fp32/8,8/1,8/9;true;-] 1e-05 > 2/fp32/3,8");
    g_autoptr(GString) written = plan_text(plan);
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) read = plan_read(written->str, written->len, "tiny.plan", &error);
    g_assert_no_error(error);
    g_assert_cmpstr(plan_digest(read), ==, plan_digest(plan));
    g_assert_cmpstr(read->calls[0], ==, plan->calls[0]);
    g_autofree char *beyond = replaced(written->str, "call=1 ", "call=2 ");
    g_autoptr(Plan) none = plan_read(beyond, strlen(beyond), "tiny.plan", &error);
    g_assert_null(none);
    g_assert_nonnull(strstr(error->message, "there is no call 2"));
}

static void damaged_calls(void) {
    static const struct {
        const char *call, *message;
    } cases[] = {
        {"call mm i9/fp32/8", "tiny.network:17: 'i9' is nothing that stands before it"},
        {"call mm t0/fp32/8", "tiny.network:17: 't0' is nothing that stands before it"},
        {"call mm i1/fp32/8n-9", "tiny.network:17: '8n-9' is no count"},
        {"call mm\ncall mm", "tiny.network:18: a call stands behind the kernel that it is of"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *line = g_strconcat("< i2 i1 > o0\n", cases[i].call, "\n", NULL);
        g_autofree char *text = replaced(TRACED_TINY, "< i2 i1 > o0\n", line);
        g_autoptr(GError) error = NULL;
        g_assert_null(model_network_read(text, strlen(text), "tiny.network", &error));
        g_assert_nonnull(error);
        g_assert_nonnull(strstr(error->message, cases[i].message));
    }
    g_autofree char *sum = replaced(TRACED_TINY, "loss 5\n", "sum 4 add x2/fp32/1\nloss 5\n");
    g_autoptr(GError) error = NULL;
    g_assert_null(model_network_read(sum, strlen(sum), "tiny.network", &error));
    g_assert_nonnull(strstr(error->message, "'x2' is not x0, x1 or y0"));
}

static void damaged(void) {
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        {"dtype fp32", "dtype fp31", "tiny.network:4: 'fp31' is no dtype"},
        {"dtype fp32", "dtype fp32 units", "tiny.network:4: behind a dtype stands 'blocks'"},
        {"module 0 two", "module 7 two", "tiny.network:8: '7' is no module"},
        {"weight 8x8", "weight 8x0", "tiny.network:9: '8x0' is no shape"},
        {"trace 1 -", "trace 0 -", "tiny.network:11: a trace is of samples"},
        {"input 8n fp32", "input 8n-9 fp32", "tiny.network:12: '8n-9' is no count"},
        {"kind mm 2 3 1", "kind mm 4 3 1", "tiny.network:13: it has more edges than inputs"},
        {"kind mm 2 3 1", "kind mm 2 3 2", "the kind before it has not as many outputs"},
        {"save i2 i1", "save i2 i3", "tiny.network:15: 'i3' is nothing that stands before it"},
        {"run matmul 1n 8 8 1", "run matmul 1n 8 0 1", "tiny.network:16: k is 0"},
        {"give - t0", "give - t1", "tiny.network:22: 't1' is nothing"},
        {"kind mm 2 3 1", "kind mm 2 3 4097", "'4097' is no number of outputs, of which there are"},
        {"run matmul 1n 8 8 1", "run matmul 1n-1 8 8 1", "tiny.network:16: m is 0"},
        {"alloc 64 fp32\n", "alloc 64 fp32\ndrop s0\n",
         "tiny.network:20: 's0' was let go of before it"},
        {"drop s0\n", "drop s0\ndrop s0\n", "tiny.network:21: 's0' is dropped twice"},
        {"alloc 8n fp32\n", "alloc 8n fp32\nfree t1\n",
         "tiny.network:32: 't1' was let go of before it"},
        {"drop s1\n", "free t0\nfree t0\n", "tiny.network:33: 't0' is freed twice"},
        {"drop s1\n", "free t0\n", "tiny.network:34: 't0' does not flow on"},
        {"give - t0", "give - -", "op 0 (mm) gives nothing to edge 1"},
        {"give t1 t0", "give t0", "it has 1 gradients for 2 edges"},
        {"op 0 - 0 2", "op 9 - 0 2", "'9' is no kind"},
        {"op 0 - 0 2", "op 0 - 0 3", "'3' is no value"},
        {"op 1 3 1", "op 1 2 1", "backward does not come to op 0"},
        {"let 3\n", "", "value 3 is never let go of"},
        {"let 3\n", "let 2\n", "value 2 was not made by an op"},
        {"let 4\n", "let 4\nlet 4\n", "value 4 lies in a storage that was let go of"},
        {"leave 2 4", "leave 1 4", "module 1 is left, but did not return"},
        {"loss 5", "loss 2", "value 2 is no loss"},
        {"loss 5\n", "", "it ends before its last trace does"},
        {"end\n", "stop\n", "'stop' begins no line"},
        {"end\n", "kind mm 0 0 0\n", "'kind' does not stand here"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = replaced(TRACED_TINY, cases[i].from, cases[i].to);
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelNetwork) network =
            model_network_read(text, strlen(text), "tiny.network", &error);
        g_assert_null(network);
        g_test_message("%s: %s", cases[i].to, error->message);
        g_assert_nonnull(strstr(error->message, cases[i].message));
        g_assert_nonnull(strstr(error->message, "tiny.network:"));
        g_assert_nonnull(strstr(error->message, "trace the network again"));
    }
}

/* A plan of it would not be read again. */
static void not_text(void) {
    g_autofree char *text =
        replaced(TRACED_TINY, "module 0 two Layer block", "module 0 two Lay\xff block");
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelNetwork) network =
        model_network_read(text, strlen(text), "tiny.network", &error);
    g_assert_null(network);
    g_assert_true(g_str_has_prefix(error->message, "tiny.network:8: this is not text"));
}

/* 2^54 numbers of each of 1000 samples. */
static void counts_beyond_64_bits(void) {
    g_autofree char *of_many = replaced(TRACED_TINY, "trace 1 -", "trace 1000 -");
    g_autofree char *text = replaced(of_many, "input 8n fp32", "input 18014398509481984n fp32");
    g_autoptr(GError) error = NULL;
    g_autoptr(ModelNetwork) network =
        model_network_read(text, strlen(text), "tiny.network", &error);
    g_assert_null(network);
    g_assert_nonnull(strstr(error->message, "'18014398509481984n' is no count"));
}

static void unknown(void) {
    static const struct {
        const char *words, *message;
    } cases[] = {
        {"kernels=compiled", "set kernels = eager"},
        {"kernels=fused", "set kernels = eager"},
        {"lora_rank=4", "put them into the network that is traced"},
        {"freeze=module=one", "requires_grad_(False)"},
        {"ignored=module=one", "that the wrapper leaves alone; set ignored = none"},
        {"tensor=2", "leave tensor, context and pipeline at 1"},
        {"autocast=bf16", "set autocast = none"},
        {"seq=4", "trace it with that"},
        {"pytorch=2.4", "set pytorch = current"},
        {"deterministic=yes", "set deterministic = no"},
        {"offload=activations checkpointing=full", "offload = activations; set another"},
        {"param_dtype=bf16", "trace it with --dtype bf16"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *words = g_strconcat("ranks=4 ", cases[i].words, NULL);
        g_autoptr(GError) error = test_plan_error(TRACED_TINY, words);
        g_test_message("%s: %s", words, error->message);
        g_assert_nonnull(strstr(error->message, cases[i].message));
    }
    g_autofree char *nested =
        replaced(TRACED_TINY, "module 0 two Layer block", "module 1 two Layer block");
    g_autoptr(GError) inside = test_plan_error(nested, "ranks=2 checkpointing=full");
    g_assert_true(g_str_has_prefix(inside->message, "block one.two lies inside block one, and"));
    g_autofree char *cast = replaced(TRACED_TINY, "dtype fp32", "dtype fp32 blocks");
    g_autoptr(Plan) as_fsdp2_casts = test_plan(cast, "ranks=4 param_dtype=fp32");
    static const char *const others[] = {"ranks=4", "ranks=4 param_dtype=fp32 wrap=whole",
                                         "ranks=4 param_dtype=fp32 flavour=fsdp1"};
    for (unsigned i = 0; i < G_N_ELEMENTS(others); i++) {
        g_autoptr(GError) uncast = test_plan_error(cast, others[i]);
        g_assert_nonnull(strstr(uncast->message, "or trace it with --cast root"));
    }
    g_autofree char *from_two = replaced(TRACED_TINY, "trace 1 -", "trace 2 4");
    g_autoptr(GError) error = test_plan_error(from_two, "ranks=2");
    g_assert_nonnull(strstr(error->message, "was not traced with 1 samples"));
}

int main(int argc, char **argv) {
    static const char *const gpt[] = {
        "[network]\nfamily=gpt\nlayers=2\nwidth=64\nheads=2\nvocab=96\nseq=32\n",
        "gpt_toy.network"};
    static const char *const llama[] = {
        "[network]\nfamily=llama\nlayers=2\nwidth=64\nheads=4\nkv_heads=2\nffn=160\nvocab=96\n"
        "seq=32\n",
        "llama_toy.network"};
    g_test_init(&argc, &argv, NULL);
    folder = argv[1];
    g_test_add_data_func("/traced/same-as-family/gpt", gpt, same_as_family);
    g_test_add_data_func("/traced/same-as-family/llama", llama, same_as_family);
    g_test_add_func("/traced/by-hand", by_hand);
    g_test_add_func("/traced/made-again", made_again);
    g_test_add_func("/traced/given again", given_again);
    g_test_add_func("/traced/calls", calls);
    g_test_add_func("/traced/damaged", damaged);
    g_test_add_func("/traced/damaged calls", damaged_calls);
    g_test_add_func("/traced/not text", not_text);
    g_test_add_func("/traced/counts beyond 64 bits", counts_beyond_64_bits);
    g_test_add_func("/traced/unknown", unknown);
    return g_test_run();
}
