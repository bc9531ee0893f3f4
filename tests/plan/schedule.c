/* Schedules: the counts and orders that PyTorch's own documentation and recordings promise. */
#include "plan/check/check.h"
#include "plan/op/work.h"
#include "plan/player.h"
#include "tests/plan/plans.h"

/* Each step leaves its gradients where the step before it had none. */
static void steps_by_turns(void) {
    static const PlanSection sections[] = {PLAN_SECTION_FIRST, PLAN_SECTION_SECOND,
                                           PLAN_SECTION_STEADY, PLAN_SECTION_SECOND,
                                           PLAN_SECTION_STEADY};
    const char *words = "ranks=2 flavour=fsdp1 sharding=none param_dtype=bf16 zero_grad=keep "
                        "accumulate_sync=every accumulate=%u";
    for (unsigned accumulate = 1; accumulate <= 4; accumulate++) {
        g_autofree char *strategy = g_strdup_printf(words, accumulate);
        g_autoptr(Plan) plan = test_plan(GPT_TOY, strategy);
        bool by_turns = accumulate % 2;
        g_assert_true(plan_steps_alternate(&plan->roles[0]) == by_turns);
        g_assert_true(plan_check(plan, NULL));
        PlanNullCounts counts = {0};
        g_autoptr(PlanPlayer) player =
            plan_player_new(plan, 0, G_N_ELEMENTS(sections), &plan_null_device, &counts);
        const PlanPosition *at = plan_player_position(player);
        while (!plan_player_at_end(player)) {
            bool is_late = at->step > 1;
            g_assert_true(at->step < 0 || (is_late && !by_turns) ||
                          at->section == sections[at->step]);
            g_assert_cmpint(plan_player_step(player, NULL), ==, PLAN_DONE);
        }
    }
}

/* A loop that holds logits past a step: DDP's second step is like no other, so steps that would
 * take turns with it are refused. */
static void logits_past_steps(void) {
    const char *network = GPT_TOY "logits_held=next-forward\n";
    const char *words = "ranks=2 flavour=ddp sharding=none accumulate=%u";
    g_autofree char *even = g_strdup_printf(words, 4), *odd = g_strdup_printf(words, 3);
    g_autoptr(Plan) plan = test_plan(network, even);
    g_assert_false(plan_steps_alternate(&plan->roles[0]));
    g_assert_true(plan_check(plan, NULL));
    g_autoptr(GError) error = test_plan_error(network, odd);
    g_assert_nonnull(strstr(error->message, "set logits_held = backward, or an even accumulate"));
}

/* Parameters, their gradients and Adam's two states, each of 4 bytes: 16 bytes a parameter before
 * activations. gpt-10b: not on one card of 80 GB (1e9) replicated, but sharded over 8. */
static void known_sums(void) {
    const char *one = "[network]\nfamily=mlp\nlayers=10\nwidth=10000\nseq=1\n"; /* 1.0001e9 */
    g_autoptr(Plan) plan = test_plan(one, "ranks=1 sharding=none optimizer_kernel=fused");
    PlanNullCounts counts = {0};
    g_autoptr(PlanPlayer) player = plan_player_new(plan, 0, 3, &plan_null_device, &counts);
    g_assert_cmpint(plan_player_run(player, NULL), ==, PLAN_DONE);
    uint64_t n = 10 * (uint64_t)(10000 * 10000 + 10000);
    g_test_message("%.4g parameters: %.4g bytes at the peak", (double)n, (double)counts.peak_bytes);
    g_assert_cmpuint(counts.peak_bytes, >=, 16 * n);
    g_assert_cmpuint(counts.peak_bytes, <=, 16 * n + 10000 * 10000); /* one layer's activations */

    const char *ten =
        "[network]\nfamily=gpt\nlayers=48\nwidth=4096\nheads=32\nvocab=51200\nseq=2048\ntied=yes\n";
    static const char *const words[] = {"ranks=8 sharding=none", "ranks=8 sharding=full"};
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autoptr(Plan) large = test_plan(ten, words[i]);
        PlanNullCounts bytes = {0};
        g_autoptr(PlanPlayer) play = plan_player_new(large, 0, 3, &plan_null_device, &bytes);
        g_assert_cmpint(plan_player_run(play, NULL), ==, PLAN_DONE);
        g_test_message("10 B, %s: %.1f GB (1e9)", words[i], (double)bytes.peak_bytes / 1e9);
        g_assert_true((bytes.peak_bytes > 80e9) == (i == 0));
    }
}

/* In fp16 gradients are divided before and after they are added, by all ranks in all. */
static void gradients_are_means(void) {
    static const char *const flavours[] = {"fsdp1", "fsdp1 pytorch=2.0", "fsdp2"};
    for (unsigned i = 0; i < G_N_ELEMENTS(flavours); i++) {
        for (unsigned ranks = 2; ranks < 10; ranks++) {
            g_autofree char *words =
                g_strdup_printf("ranks=%u param_dtype=fp16 flavour=%s", ranks, flavours[i]);
            g_autoptr(Plan) plan = test_plan(GPT_TOY, words);
            const PlanRole *role = &plan->roles[0];
            double divided = 1;
            for (uint32_t j = 0; j < role->n_instrs[PLAN_SECTION_STEADY]; j++) {
                const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][j];
                if (instr->kind == PLAN_LAUNCH && instr->unit == 1 &&
                    role->ops[instr->arg].kind == PLAN_OP_SCALE) {
                    divided *= plan_op_attrs(role, &role->ops[instr->arg])[0];
                }
            }
            g_assert_cmpfloat_with_epsilon(divided * ranks, 1, 1e-12);
        }
    }
}

/* DDP: one bucket in the first step, PyTorch's limits afterwards. */
static void buckets(void) {
    const char *network = "[network]\nfamily=mlp\nlayers=10\nwidth=1024\nseq=1\n";
    g_autoptr(Plan) plan = test_plan(network, "ranks=2 sharding=none");
    static const uint64_t expected[] = {4198400, 29388800, 8396800}; /* 4.004, 28.027, 8.008 MiB */
    const PlanRole *role = &plan->roles[0];
    unsigned n[PLAN_N_SECTIONS] = {0};
    for (unsigned s = 0; s < PLAN_N_SECTIONS; s++) {
        for (uint32_t i = 0; i < role->n_instrs[s]; i++) {
            const PlanInstr *instr = &role->sections[s][i];
            if (instr->kind != PLAN_LAUNCH || role->ops[instr->arg].kind != PLAN_OP_ALL_REDUCE) {
                continue;
            }
            uint64_t bytes = (uint64_t)plan_op_work(role, &role->ops[instr->arg]).bytes;
            g_assert_cmpuint(bytes, ==, s == PLAN_SECTION_FIRST ? 41984000 : expected[n[s]]);
            n[s]++;
        }
    }
    g_assert_cmpuint(n[PLAN_SECTION_FIRST], ==, 1);
    g_assert_cmpuint(n[PLAN_SECTION_SECOND], ==, 3);
    g_assert_cmpuint(n[PLAN_SECTION_STEADY], ==, 3);
}

/* The gather of the block before stands ahead of this block's gradients, or behind them. */
static void prefetch_order(void) {
    static const char *const words[] = {"ranks=2", "ranks=2 backward_prefetch=none"};
    for (unsigned with = 0; with < 2; with++) {
        g_autoptr(Plan) plan = test_plan(GPT_TOY, words[with]);
        const PlanRole *role = &plan->roles[0];
        bool gathered_ahead = false;
        for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
            const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][i];
            if (instr->kind != PLAN_LAUNCH || instr->phase != PLAN_PHASE_BACKWARD) {
                continue;
            }
            unsigned kind = role->ops[instr->arg].kind;
            gathered_ahead |= kind == PLAN_OP_ALL_GATHER && instr->unit == 1;
            if (kind == PLAN_OP_LINEAR_DW && instr->unit == 2) {
                g_assert_true(gathered_ahead == (with == 0));
                break;
            }
        }
    }
}

/* Which buffer an instruction of the section frees, marks or allocates is its arg. */
static bool is_marked_next(const PlanInstr *instrs, uint32_t n, uint32_t from, uint32_t buffer,
                           uint32_t lane) {
    for (uint32_t i = from; i < n && instrs[i].kind == PLAN_MARK; i++) {
        if (instrs[i].arg == buffer && instrs[i].lane == lane) {
            return true;
        }
    }
    return false;
}

/* PyTorch 2.0: each collective on c10d's own lane, which marks what it reads and writes. */
static void collectives_of_2_0(void) {
    g_autoptr(Plan) plan = test_plan(GPT_TOY, "ranks=4 flavour=fsdp1 param_dtype=bf16 pytorch=2.0");
    const PlanRole *role = &plan->roles[0];
    const PlanInstr *instrs = role->sections[PLAN_SECTION_STEADY];
    uint32_t n = role->n_instrs[PLAN_SECTION_STEADY], seen = 0, c10d = plan->n_lanes - 1;
    g_assert_cmpstr(plan->lanes[c10d], ==, "c10d");
    for (uint32_t i = 0; i < n; i++) {
        const PlanOp *op = &role->ops[instrs[i].arg];
        if (instrs[i].kind != PLAN_LAUNCH || !plan_op_is_collective(op->kind)) {
            continue;
        }
        g_assert_cmpuint(instrs[i].lane, ==, c10d);
        g_assert_true(is_marked_next(instrs, n, i + 1, plan_op_buffer(role, op, 0), c10d));
        g_assert_true(is_marked_next(instrs, n, i + 1, plan_op_buffer(role, op, 1), c10d));
        seen++;
    }
    g_assert_cmpuint(seen, >, 0);
}

static unsigned packed_gradients(const char *version) {
    g_autofree char *keys =
        g_strconcat("ranks=4 flavour=fsdp1 limit_all_gathers=2 pytorch=", version, NULL);
    g_autoptr(Plan) plan =
        test_plan("[network]\nfamily=gpt\nlayers=3\nwidth=16\nheads=2\nvocab=16\nseq=8\n", keys);
    const PlanRole *role = &plan->roles[0];
    unsigned packed = 0;
    for (uint32_t i = 0; i < role->n_buffers; i++) {
        packed += role->buffers[i].sub == PLAN_COMMUNICATION_REDUCE;
    }
    return packed;
}

/* 1.13 copies the gradient of each unit before it is reduced, also where nothing is padded. */
static void gradients_of_1_13(void) {
    g_assert_cmpuint(packed_gradients("2.0"), ==, 0);
    g_assert_cmpuint(packed_gradients("1.13"), ==, 4);
}

static void uneven_roles(void) {
    g_autoptr(Plan) plan =
        test_plan("[network]\nfamily=mlp\nlayers=2\nwidth=10\nseq=2\n", "ranks=4");
    g_assert_cmpuint(plan->n_roles, ==, 2); /* 3, 3, 3 and 1 rows */
    g_assert_cmpuint(plan->roles[0].n_ranks, ==, 3);
    g_assert_cmpuint(plan_role_of_rank(plan, 3), ==, 1);
    g_assert_cmpuint(plan->roles[0].n_parameter_elements, ==, 2 * (3 * 10 + 3));
    g_assert_cmpuint(plan->roles[1].n_parameter_elements, ==, 2 * (1 * 10 + 1));
}

static const PlanInstr *next_of_passes(const PlanRole *role, PlanSection section, uint32_t *at) {
    while (*at < role->n_instrs[section]) {
        const PlanInstr *instr = &role->sections[section][(*at)++];
        if (instr->phase == PLAN_PHASE_BACKWARD || instr->phase == PLAN_PHASE_RECOMPUTE) {
            return instr;
        }
    }
    return NULL;
}

/* Forward and backward are one program, whatever rows a rank has; the buffers are others. */
static void roles_have_one_program(void) {
    static const char *const words[] = {"ranks=7 checkpointing=full accumulate=2 param_dtype=bf16",
                                        "ranks=5 reshard_after_forward=no", "ranks=100"};
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autoptr(Plan) plan = test_plan(GPT_TOY, words[i]);
        g_assert_cmpuint(plan->n_roles, >, 1);
        for (uint32_t r = 1; r < plan->n_roles; r++) {
            for (PlanSection s = PLAN_SECTION_FIRST; s < PLAN_N_SECTIONS; s++) {
                uint32_t m = 0, n = 0;
                const PlanInstr *a, *b;
                while ((a = next_of_passes(&plan->roles[0], s, &m))) {
                    b = next_of_passes(&plan->roles[r], s, &n);
                    g_assert_true(b && a->kind == b->kind && a->lane == b->lane &&
                                  a->phase == b->phase && a->unit == b->unit &&
                                  a->module == b->module);
                }
                g_assert_null(next_of_passes(&plan->roles[r], s, &n));
            }
        }
    }
}

static uint64_t bytes_of(const Plan *plan) {
    uint64_t bytes = 0;
    for (uint32_t r = 0; r < plan->n_roles; r++) {
        const PlanRole *role = &plan->roles[r];
        for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
            bytes += plan_section_repeats(role, s) ? 0 : role->n_instrs[s] * sizeof(PlanInstr);
        }
        bytes += role->n_buffers * sizeof(PlanBuffer) + role->n_ops * sizeof(PlanOp) +
                 role->n_operands * sizeof(PlanOperand) + role->n_dims * sizeof(int64_t) +
                 role->n_attrs * sizeof(double);
    }
    return bytes;
}

/* GPT-175B on 512 ranks, each block checkpointed: the plan is small, and each block adds as much.
 */
static void large_plans(void) {
    uint64_t n[4] = {0};
    for (uint32_t i = 1; i <= 3; i++) {
        g_autofree char *network = g_strdup_printf("[network]\nfamily=gpt\nlayers=%u\nwidth=12288\n"
                                                   "heads=96\nvocab=50000\nseq=2048\n",
                                                   32 * i);
        g_autoptr(Plan) plan =
            test_plan(network, "ranks=512 checkpointing=full param_dtype=bf16 reduce_dtype=fp32");
        for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
            n[i] += plan->roles[0].n_instrs[s];
        }
        g_test_message("%u blocks: %" G_GUINT64_FORMAT " instructions, %.1f MiB", 32 * i, n[i],
                       (double)bytes_of(plan) / (1 << 20));
        g_assert_cmpuint(bytes_of(plan), <, (uint64_t)64 << 20);
    }
    g_assert_cmpuint(n[3] - n[2], ==, n[2] - n[1]);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/schedule/steps by turns", steps_by_turns);
    g_test_add_func("/plan/schedule/logits past steps", logits_past_steps);
    g_test_add_func("/plan/schedule/known sums", known_sums);
    g_test_add_func("/plan/schedule/gradients are means", gradients_are_means);
    g_test_add_func("/plan/schedule/DDP buckets", buckets);
    g_test_add_func("/plan/schedule/prefetch order", prefetch_order);
    g_test_add_func("/plan/schedule/PyTorch 2.0, collectives", collectives_of_2_0);
    g_test_add_func("/plan/schedule/PyTorch 1.13, gradients", gradients_of_1_13);
    g_test_add_func("/plan/schedule/uneven roles", uneven_roles);
    g_test_add_func("/plan/schedule/roles have one program", roles_have_one_program);
    g_test_add_func("/plan/schedule/large plans", large_plans);
    return g_test_run();
}
