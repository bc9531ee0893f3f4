/* Asynchronous tensor parallel: which collectives of a block it takes the place of, on which
 * lanes, and how a checker tells parts of a buffer apart. */
#include <string.h>

#include "plan/check/parts.h"
#include "plan/op/names.h"
#include "plan/op/shape.h"
#include "plan/op/work.h"
#include "tests/plan/plans.h"

enum {
    BLOCKS = 2,
    SEQ = 8,
    WIDTH = 64,
    RANKS = 4,
    BATCH = 3
};

#define LLAMA                                                                                      \
    "[network]\nfamily=llama\nlayers=2\nwidth=64\nheads=4\nkv_heads=4\nffn=128\nvocab=16\nseq=8\n"
#define SHARED "ranks=8 tensor=4 kernels=compiled param_dtype=bf16 micro_batch=3 "

typedef struct {
    unsigned barriers, offers, pulls, swaps, gathers, scatters, reductions;
} Met;

static Met met_in(const char *words) {
    g_autofree char *all = g_strconcat(SHARED, words, NULL);
    g_autoptr(Plan) plan = test_plan(LLAMA, all);
    TestCounts counts = test_count_steady(plan);
    return (Met){.barriers = counts.n[PLAN_OP_BARRIER],
                 .offers = counts.n[PLAN_OP_OFFER],
                 .pulls = counts.n[PLAN_OP_PULL],
                 .swaps = counts.n[PLAN_OP_SWAP],
                 .gathers = counts.n[PLAN_OP_ALL_GATHER],
                 .scatters = counts.n[PLAN_OP_REDUCE_SCATTER]};
}

/* So many gathers with their products, and products with their scatters, a block; what remains of
 * collectives over the ranks that share is `less` fewer than without. */
static void expect(const char *words, unsigned gathers, unsigned scatters) {
    g_autofree char *without = g_strconcat("async_tensor=no ", words, NULL);
    g_autofree char *with = g_strconcat("async_tensor=yes ", words, NULL);
    Met a = met_in(without), b = met_in(with);
    g_assert_cmpuint(a.barriers + a.offers + a.pulls + a.swaps, ==, 0);
    g_assert_cmpuint(b.offers, ==, BLOCKS * gathers);
    g_assert_cmpuint(b.pulls, ==, BLOCKS * gathers * (RANKS - 1));
    g_assert_cmpuint(b.swaps, ==, BLOCKS * scatters * (RANKS - 1));
    g_assert_cmpuint(b.barriers, ==, BLOCKS * (3 * gathers + (2 + 2 * (RANKS - 1)) * scatters));
    g_assert_cmpuint(b.gathers, ==, a.gathers - BLOCKS * gathers);
    g_assert_cmpuint(b.scatters, ==, a.scatters - BLOCKS * scatters);
}

/* Forward both gathers and both scatters; backward both gathers of gradients. A block that is
 * computed again does forward's once more, but for its last scatter; with selective-op what was
 * scattered was kept. By rows and of one sequence no gather is replaced. */
static void replaced(void) {
    expect("", 4, 2);
    expect("float8=tensorwise", 4, 2);
    expect("float8=rowwise", 0, 2);
    expect("micro_batch=1", 0, 2);
    expect("checkpointing=full", 6, 3);
    expect("checkpointing=full float8=tensorwise", 6, 3);
    expect("checkpointing=selective-op", 6, 2);
    expect("checkpointing=selective-op float8=tensorwise", 6, 2);
}

/* One rank's part of the hidden states, once or twice. */
static void workspace(void) {
    uint64_t part = BATCH * SEQ * WIDTH * sizeof(uint16_t) / RANKS;
    g_autoptr(Plan) in_bf16 = test_plan(LLAMA, SHARED "async_tensor=yes");
    g_assert_cmpuint(plan_workspace_bytes(&in_bf16->roles[0]), ==, 2 * part);
    g_autoptr(Plan) without = test_plan(LLAMA, SHARED);
    g_assert_cmpuint(plan_workspace_bytes(&without->roles[0]), ==, 0);
}

static bool is_of_async(const Plan *plan, uint8_t lane) {
    return g_str_equal(plan->lanes[lane], "async");
}

/* Products alternate: a rank's own part on compute, the next on the lane beside, and so on. */
static void lanes(void) {
    g_autoptr(Plan) plan = test_plan(LLAMA, SHARED "async_tensor=yes");
    const PlanRole *role = &plan->roles[0];
    unsigned n = 0, beside = 0;
    const PlanInstr *instrs = role->sections[PLAN_SECTION_STEADY];
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        if (instrs[i].kind == PLAN_LAUNCH && role->ops[instrs[i].arg].kind == PLAN_OP_PULL) {
            uint64_t ahead = (uint64_t)plan_op_dims(role, &role->ops[instrs[i].arg])[PULL_AHEAD];
            g_assert_cmpuint(is_of_async(plan, instrs[i].lane), ==, ahead % 2);
            beside += is_of_async(plan, instrs[i].lane);
            n++;
        }
    }
    g_assert_cmpuint(n, >, 0);
    g_assert_cmpuint(3 * beside, ==, 2 * n);
}

static void expect_met(PlanPartUses *uses, uint32_t *list, PlanPartUse use, const uint32_t *known,
                       bool meets) {
    g_assert_cmpint(plan_part_uses_meet(uses, list, use, known, 100) != NULL, ==, meets);
}

/* Two lanes write halves; nobody may read the other's, or all, before it knows. */
static void parts(void) {
    PlanPartUses uses = {0};
    uint32_t list = 0, of_none[2] = {0, 0}, of_both[2] = {5, 5};
    expect_met(&uses, &list, (PlanPartUse){0, 50, 1, 0, true}, of_none, false);
    expect_met(&uses, &list, (PlanPartUse){50, 100, 1, 1, true}, of_none, false);
    expect_met(&uses, &list, (PlanPartUse){40, 60, 2, 0, false}, (uint32_t[]){2, 0}, true);
    expect_met(&uses, &list, (PlanPartUse){40, 60, 2, 0, false}, (uint32_t[]){2, 1}, false);
    expect_met(&uses, &list, (PlanPartUse){45, 55, 3, 1, true}, (uint32_t[]){1, 3}, true);
    expect_met(&uses, &list, (PlanPartUse){45, 55, 3, 1, false}, (uint32_t[]){1, 3}, false);
    /* all of it stands for what came before */
    expect_met(&uses, &list, (PlanPartUse){0, 100, 5, 0, false}, of_both, false);
    expect_met(&uses, &list, (PlanPartUse){0, 10, 6, 1, false}, (uint32_t[]){4, 6}, true);
    expect_met(&uses, &list, (PlanPartUse){0, 10, 6, 1, false}, (uint32_t[]){5, 6}, false);
    plan_part_uses_drop(&uses, &list);
    g_assert_cmpuint(list, ==, 0);
    plan_part_uses_clear(&uses);
}

static PlanOperand *taken_by_a_pull(Plan *plan, const PlanOp **ret_op) {
    PlanRole *role = &plan->roles[0];
    uint32_t i = 0;
    while (role->ops[i].kind != PLAN_OP_PULL) {
        i++;
    }
    *ret_op = &role->ops[i];
    PlanRef taken = plan_op_operands(role, *ret_op)[1];
    g_assert_true(plan_ref_is_part(taken));
    return &role->parts[taken - PLAN_PART];
}

static void expect_no_part(const Plan *plan, const PlanOp *op, PlanOperand *operand,
                           PlanOperand edited) {
    PlanOperand sound = *operand;
    *operand = edited;
    g_autofree char *fault = plan_op_shape_fault(plan, &plan->roles[0], op);
    g_assert_nonnull(fault);
    g_assert_nonnull(strstr(fault, "is no part of one of the 4 ranks of axis tensor"));
    *operand = sound;
}

/* Each rank finds the same places, in another order: a part that is none would lie outside. */
static void places(void) {
    g_autoptr(Plan) plan = test_plan(LLAMA, SHARED "async_tensor=yes");
    const PlanOp *op;
    PlanOperand *taken = taken_by_a_pull(plan, &op), edited = *taken;
    g_assert_cmpuint(taken->rows, ==, 1);
    g_assert_cmpuint(taken->offset_bytes, ==, taken->elements * sizeof(uint16_t));
    g_assert_null(plan_op_shape_fault(plan, &plan->roles[0], op));
    edited.rows = 7;
    expect_no_part(plan, op, taken, edited);
    edited = *taken;
    edited.offset_bytes /= 2;
    expect_no_part(plan, op, taken, edited);
    edited = *taken;
    edited.elements *= 2;
    edited.offset_bytes *= 2;
    expect_no_part(plan, op, taken, edited);
}

static void refused(void) {
    static const struct {
        const char *words, *expected;
    } cases[] = {
        {"ranks=2 async_tensor=yes kernels=compiled param_dtype=bf16",
         "async_tensor=yes needs ranks that share"},
        {"ranks=4 tensor=2 async_tensor=yes param_dtype=bf16",
         "is planned only with compiled blocks"},
        {"ranks=4 tensor=2 async_tensor=yes kernels=compiled", "is planned only in bf16"},
        {"ranks=4 tensor=2 async_tensor=yes kernels=compiled param_dtype=bf16 compile=network",
         "is planned only with compiled blocks"},
        {"ranks=4 tensor=2 async_tensor=yes kernels=compiled param_dtype=bf16 "
         "tensor_plan=kempnerforge",
         "is planned only with torchtitan's way"},
        {"ranks=2 tensor=2 async_tensor=yes kernels=compiled model_dtype=bf16 sharding=none",
         "is planned only with FSDP2"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = test_plan_error(LLAMA, cases[i].words);
        g_assert_nonnull(strstr(error->message, cases[i].expected));
        g_assert_nonnull(strstr(error->message, "async_tensor=no"));
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/async/what is replaced", replaced);
    g_test_add_func("/plan/async/workspace", workspace);
    g_test_add_func("/plan/async/lanes", lanes);
    g_test_add_func("/plan/async/parts of a buffer", parts);
    g_test_add_func("/plan/async/places of parts", places);
    g_test_add_func("/plan/async/refused", refused);
    return g_test_run();
}
