/* What kernels=compiled leaves eager, and when a compiled backward hands its gradients over. */
#include <string.h>

#include "plan/op/names.h"
#include "tests/plan/plans.h"

#define LLAMA_TOY "[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=2\nffn=24\nvocab=12\nseq=8\n"
#define ONE_BLOCK "[network]\nfamily=llama\nlayers=1\nwidth=16\nheads=2\nffn=24\nvocab=13\nseq=8\n"
#define IN_LOOP   LLAMA_TOY "loss_at=loop\n"
#define HOLDING   LLAMA_TOY "logits_held=backward\n"

static const PlanOp *op_at(const PlanRole *role, const PlanInstr *instr) {
    return instr->kind == PLAN_LAUNCH ? &role->ops[instr->arg] : NULL;
}

/* The last product that works out a gradient, and the first sum with an earlier pass's. */
static void find_sums(const PlanRole *role, uint32_t *ret_last, uint32_t *ret_first) {
    const PlanInstr *steady = role->sections[PLAN_SECTION_STEADY];
    uint32_t n = role->n_instrs[PLAN_SECTION_STEADY];
    *ret_last = 0;
    *ret_first = n;
    for (uint32_t i = 0; i < n; i++) {
        const PlanOp *op = op_at(role, &steady[i]);
        if (op && op->kind == PLAN_OP_LINEAR_DW) {
            *ret_last = i;
        } else if (op && op->kind == PLAN_OP_ACCUMULATE) {
            *ret_first = MIN(*ret_first, i);
        }
    }
}

static void at_once(void) {
    const char *blocks = "ranks=1 sharding=none accumulate=2 kernels=compiled";
    const char *network = "ranks=1 sharding=none accumulate=2 kernels=compiled compile=network";
    uint32_t last, first;
    g_autoptr(Plan) apart = test_plan(LLAMA_TOY, blocks);
    find_sums(&apart->roles[0], &last, &first);
    g_assert_cmpuint(first, <, last);
    g_autoptr(Plan) whole = test_plan(LLAMA_TOY, network);
    find_sums(&whole->roles[0], &last, &first);
    g_assert_cmpuint(first, >, last);
    TestCounts a = test_count_steady(apart), b = test_count_steady(whole);
    g_assert_cmpuint(a.n[PLAN_OP_ACCUMULATE], >, 0);
    g_assert_cmpuint(a.n[PLAN_OP_ACCUMULATE], ==, b.n[PLAN_OP_ACCUMULATE]);
}

/* Whether an operand of an op is let go of when the last pass's sums are through. */
static bool is_held(const char *network, const char *words, PlanOpKind kind, unsigned operand) {
    g_autoptr(Plan) plan = test_plan(network, words);
    const PlanRole *role = &plan->roles[0];
    const PlanInstr *steady = role->sections[PLAN_SECTION_STEADY];
    uint32_t n = role->n_instrs[PLAN_SECTION_STEADY], held = PLAN_NONE, freed = 0, sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        const PlanOp *op = op_at(role, &steady[i]);
        if (op && op->kind == kind) {
            held = plan_op_operand(role, op, operand).buffer;
        } else if (op && op->kind == PLAN_OP_ACCUMULATE) {
            sum = i;
        } else if (steady[i].kind == PLAN_FREE && steady[i].arg == held) {
            freed = i;
        }
    }
    g_assert_cmpuint(held, !=, PLAN_NONE);
    g_assert_cmpuint(sum, >, 0);
    g_assert_cmpuint(freed, >, 0);
    return freed > sum;
}

static void given(void) {
    const char *words = "ranks=1 sharding=none accumulate=2 kernels=compiled compile=%s";
    g_autofree char *freeing = g_strdup_printf(words, "network");
    g_autofree char *holding = g_strdup_printf(words, "network-holding");
    static const struct {
        const char *network;
        PlanOpKind kind;
        unsigned operand;
    } cases[] = {
        {IN_LOOP, PLAN_OP_LOG_SOFTMAX_BACKWARD, 2},   /* what it wrote */
        {HOLDING, PLAN_OP_COMPILED_LOSS_BACKWARD, 6}, /* what it was given for the logits */
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        PlanOpKind kind = cases[i].kind;
        g_assert_false(is_held(cases[i].network, freeing, kind, cases[i].operand));
        g_assert_true(is_held(cases[i].network, holding, kind, cases[i].operand));
    }
    /* Not what it made of them, wherever the loss stands among what it returned. */
    g_assert_false(
        is_held(HOLDING, holding, PLAN_OP_COMPILED_LOSS_BACKWARD, COMPILED_LOSS_BACKWARD_DLOGITS));
}

/* Of two blocks, five norms of ops, each of which multiplies by its weight in forward and backward:
 * of compiled blocks the last is left, of a compiled network none. */
static void around_blocks(void) {
    static const struct {
        const char *words;
        unsigned products, losses;
    } cases[] = {
        {"ranks=2 rms_norm=ops", 10, 0},
        {"ranks=2 rms_norm=ops kernels=compiled", 2, 0},
        {"ranks=2 rms_norm=ops kernels=compiled compile=network", 0, 0},
        {"ranks=2 flavour=fsdp1 rms_norm=ops kernels=compiled compile=network", 0, 0},
        {"ranks=1 sharding=none rms_norm=ops kernels=compiled", 2, 0},
        {"ranks=1 sharding=none rms_norm=ops kernels=compiled compile=network", 0, 1},
        {"ranks=2 sharding=none rms_norm=ops kernels=compiled compile=network", 0, 1},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Plan) plan = test_plan(LLAMA_TOY, cases[i].words);
        TestCounts counts = test_count_steady(plan);
        g_assert_cmpuint(counts.n[PLAN_OP_MUL_ROW], ==, cases[i].products);
        g_assert_cmpuint(counts.n[PLAN_OP_COMPILED_LOSS], ==, cases[i].losses);
    }
}

/* Gate's gradient is written over up, but where the same kernel makes the hidden layer of that. */
static void over_up(void) {
    static const struct {
        const char *words;
        bool over;
    } cases[] = {{"ranks=2 kernels=fused", false},
                 {"ranks=2 kernels=compiled", true},
                 {"ranks=2 kernels=compiled checkpointing=full", false}};
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Plan) plan = test_plan(LLAMA_TOY, cases[i].words);
        const PlanRole *role = &plan->roles[0];
        unsigned found = 0;
        for (uint32_t j = 0; j < role->n_instrs[PLAN_SECTION_STEADY]; j++) {
            const PlanOp *op = op_at(role, &role->sections[PLAN_SECTION_STEADY][j]);
            if (op && op->kind == PLAN_OP_SWIGLU_BACKWARD) {
                bool over = plan_op_buffer(role, op, SWIGLU_BACKWARD_DGATE) ==
                            plan_op_buffer(role, op, SWIGLU_BACKWARD_UP);
                g_assert_cmpint(over, ==, cases[i].over);
                found++;
            }
        }
        g_assert_cmpuint(found, >, 0);
    }
}

/* How many tensors as large as the hidden layer live at once in a step. */
static unsigned most_hidden(const PlanRole *role, uint64_t bytes) {
    const PlanInstr *steady = role->sections[PLAN_SECTION_STEADY];
    unsigned live = 0, most = 0;
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        bool moves = steady[i].kind == PLAN_ALLOC || steady[i].kind == PLAN_FREE;
        if (moves && role->buffers[steady[i].arg].bytes == bytes) {
            live += steady[i].kind == PLAN_ALLOC ? 1 : -1u;
            most = MAX(most, live);
        }
    }
    return most;
}

/* One kernel sums up what layers and their adapters give, and makes both gradients of each sum: as
 * recorded, of the hidden layer's size are then gate, up and two gradients of each, and of the
 * hidden layer's two terms; where a block is computed again, its own and both terms of each sum as
 * well. */
static void with_adapters(void) {
    enum {
        HIDDEN = 8 * 24 * 4
    };
    static const struct {
        const char *words;
        unsigned hidden;
    } cases[] = {
        {"lora_rank=2 lora_on=all-linear", 8},
        {"lora_rank=2 lora_on=all-linear checkpointing=full", 11},
        {"lora_rank=2 lora_on=all-linear lora_alpha=2", 8},
        {"lora_rank=2 lora_on=module=.*(q|v)", 4},
        {"lora_rank=2 lora_on=module=.*(q|v) checkpointing=full", 4},
        {"lora_rank=0", 4},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *words =
            g_strconcat("ranks=1 sharding=none kernels=compiled ", cases[i].words, NULL);
        g_autoptr(Plan) plan = test_plan(ONE_BLOCK, words);
        g_assert_cmpuint(most_hidden(&plan->roles[0], HIDDEN), ==, cases[i].hidden);
    }
}

/* In 16 bits the embedding's gradient is added up in fp32. */
static void embedding(void) {
    const char *words = "ranks=1 sharding=none kernels=compiled model_dtype=bf16 compile=";
    static const char *const compile[] = {"block", "network"};
    uint64_t bytes[2];
    for (unsigned i = 0; i < 2; i++) {
        g_autofree char *all = g_strconcat(words, compile[i], NULL);
        g_autoptr(Plan) plan = test_plan(LLAMA_TOY, all);
        const PlanRole *role = &plan->roles[0];
        for (uint32_t j = 0; j < role->n_instrs[PLAN_SECTION_STEADY]; j++) {
            const PlanOp *op = op_at(role, &role->sections[PLAN_SECTION_STEADY][j]);
            if (op && op->kind == PLAN_OP_EMBEDDING_BACKWARD) {
                bytes[i] =
                    role->buffers[plan_op_operand(role, op, EMBEDDING_BACKWARD_DW).buffer].bytes;
            }
        }
    }
    g_assert_cmpuint(bytes[0], ==, 12 * 16 * 2);
    g_assert_cmpuint(bytes[1], ==, 12 * 16 * 4);
}

/* The logits' gradient overwrites them, unless they are rows of a padded product's longer ones. */
static void longer_rows(void) {
    static const struct {
        unsigned words;
        const char *keys;
        bool over;
    } cases[] = {{12, "", true},
                 {13, "", false},
                 {13, " shape_padding=no", true},
                 {13, " model_dtype=fp32", true}};
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *network = g_strdup_printf("[network]\nfamily=llama\nlayers=2\nwidth=16\n"
                                                   "heads=2\nffn=24\nseq=8\nvocab=%u\n",
                                                   cases[i].words);
        g_autofree char *all =
            g_strconcat("ranks=1 sharding=none kernels=compiled model_dtype=bf16 "
                        "compile=network",
                        cases[i].keys, NULL);
        g_autoptr(Plan) plan = test_plan(network, all);
        const PlanRole *role = &plan->roles[0];
        unsigned found = 0;
        for (uint32_t j = 0; j < role->n_instrs[PLAN_SECTION_STEADY]; j++) {
            const PlanOp *op = op_at(role, &role->sections[PLAN_SECTION_STEADY][j]);
            if (op && op->kind == PLAN_OP_COMPILED_LOSS_BACKWARD) {
                bool over = plan_op_buffer(role, op, COMPILED_LOSS_BACKWARD_DLOGITS) ==
                            plan_op_buffer(role, op, COMPILED_LOSS_BACKWARD_LOGITS);
                g_assert_cmpint(over, ==, cases[i].over);
                found++;
            }
        }
        g_assert_cmpuint(found, >, 0);
    }
}

/* Logits that leave a program in fp32, whose gradient it would make in 16 bits. */
static void what_is_refused(void) {
    const char *words = "ranks=1 sharding=none kernels=compiled compile=network";
    g_autoptr(GError) error = test_plan_error(HOLDING "loss=fp32-logits\n", words);
    g_assert_nonnull(strstr(error->message, "logits_held = no or compile = block"));
    /* A checkpointed block without a gradient. */
    static const struct {
        const char *words, *expected;
    } cases[] = {
        {"freeze=module=embed|layers\\.0", "before all that is trained, as layers.0 is; set"},
        {"lora_rank=2 lora_on=module=layers\\.1.*", "before all that is trained, as layers.0 is"},
        {"freeze=module=layers\\.0", NULL},
        {"freeze=module=embed|layers\\.1", NULL},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *all = g_strconcat("ranks=1 sharding=none kernels=compiled checkpointing="
                                           "full ",
                                           cases[i].words, NULL);
        if (cases[i].expected) {
            g_autoptr(GError) idle = test_plan_error(LLAMA_TOY, all);
            g_assert_nonnull(strstr(idle->message, cases[i].expected));
        } else {
            g_autoptr(Plan) plan = test_plan(LLAMA_TOY, all);
        }
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/compile/all gradients at once", at_once);
    g_test_add_func("/plan/compile/the gradient given is held", given);
    g_test_add_func("/plan/compile/around blocks", around_blocks);
    g_test_add_func("/plan/compile/gate's gradient over up", over_up);
    g_test_add_func("/plan/compile/sums with adapters", with_adapters);
    g_test_add_func("/plan/compile/the embedding's gradient", embedding);
    g_test_add_func("/plan/compile/logits of longer rows", longer_rows);
    g_test_add_func("/plan/compile/what is refused", what_is_refused);
    return g_test_run();
}
