/* How much is gathered and reduced, by sharding. */
#include "plan/check/check.h"
#include "plan/mesh.h"
#include "plan/op/names.h"
#include "plan/op/work.h"
#include <string.h>

#include "plan/text/text.h"
#include "tests/plan/plans.h"

#define LLAMA                                                                                      \
    "[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=4\nkv_heads=2\nffn=20\nvocab=12\nseq=8\n"

/* Blocks are gathered twice, the root once; every unit is reduced once. */
static void gathers_and_reduces(void) {
    for (unsigned blocks = 1; blocks < 6; blocks++) {
        g_autofree char *network = g_strdup_printf(
            "[network]\nfamily=gpt\nlayers=%u\nwidth=16\nheads=2\nvocab=16\nseq=8\n", blocks);
        g_autoptr(Plan) plan = test_plan(network, "ranks=4");
        TestCounts counts = test_count_steady(plan);
        g_assert_cmpuint(counts.n[PLAN_OP_ALL_GATHER], ==, 2 * blocks + 1);
        g_assert_cmpuint(counts.n[PLAN_OP_REDUCE_SCATTER], ==, blocks + 1);
    }
}

/* Without padding: full sharding gathers all but the root twice and reduces all once. */
static void volumes(void) {
    const char *network = "[network]\nfamily=gpt\nlayers=3\nwidth=32\nheads=2\nvocab=64\nseq=16\n";
    g_autoptr(Plan) full = test_plan(network, "ranks=4");
    uint64_t all = 0, root = full->units[0].elements * 4;
    for (uint32_t u = 0; u < full->n_units; u++) {
        g_assert_cmpuint(full->units[u].shard_elements * 4, ==, full->units[u].elements);
        all += full->units[u].elements * 4;
    }
    TestCounts counts = test_count_steady(full);
    g_assert_cmpuint(counts.bytes[PLAN_OP_ALL_GATHER], ==, 2 * all - root);
    g_assert_cmpuint(counts.bytes[PLAN_OP_REDUCE_SCATTER], ==, all);
    g_autoptr(Plan) ddp = test_plan(network, "ranks=4 sharding=none");
    g_assert_cmpuint(test_count_steady(ddp).bytes[PLAN_OP_ALL_REDUCE], ==, all);
}

/* What a rank sends, by axis: grad-op as much as replicated training; hybrid within its group what
 * full sharding does there, and between groups one all-reduce of its shard. */
static void volumes_of_other_strategies(void) {
    const char *network = "[network]\nfamily=gpt\nlayers=3\nwidth=32\nheads=2\nvocab=64\nseq=16\n";
    static const char *const flavours[] = {"fsdp1", "fsdp2"};
    for (unsigned i = 0; i < G_N_ELEMENTS(flavours); i++) {
        g_autofree char *grad_op =
            g_strdup_printf("ranks=4 sharding=grad-op flavour=%s", flavours[i]);
        g_autoptr(Plan) plan = test_plan(network, grad_op);
        uint64_t all = 0, root = plan->units[0].elements * 4;
        for (uint32_t u = 0; u < plan->n_units; u++) {
            all += plan->units[u].elements * 4;
        }
        TestCounts counts = test_count_steady(plan);
        g_assert_cmpuint(counts.bytes[PLAN_OP_ALL_GATHER], ==, all);
        g_assert_cmpuint(counts.bytes[PLAN_OP_REDUCE_SCATTER], ==, all);
        g_autofree char *hybrid =
            g_strdup_printf("ranks=8 sharding=hybrid replicate=2 flavour=%s", flavours[i]);
        g_autoptr(Plan) mixed = test_plan(network, hybrid);
        counts = test_count_steady(mixed);
        g_assert_cmpuint(counts.bytes[PLAN_OP_ALL_GATHER], ==, 2 * all - root);
        g_assert_cmpuint(counts.bytes[PLAN_OP_REDUCE_SCATTER], ==, all);
        g_assert_cmpuint(counts.bytes[PLAN_OP_ALL_REDUCE], ==, all / 4);
        g_assert_cmpuint(mixed->axes[PLAN_AXIS_SHARD], ==, 4);
        g_assert_cmpuint(mixed->axes[PLAN_AXIS_REPLICATE], ==, 2);
    }
}

/* The optimizer alone sharded: DDP's volume, a gather and a reduction for each unit; between steps
 * whole parameters, and 3 of 16 bytes over the ranks: the part of the parameters and Adam's two. */
static void optimizer_only(void) {
    const char *network = "[network]\nfamily=gpt\nlayers=3\nwidth=32\nheads=2\nvocab=64\nseq=16\n";
    g_autoptr(Plan) plan = test_plan(network, "ranks=4 sharding=optimizer-only");
    uint64_t all = 0;
    for (uint32_t u = 0; u < plan->n_units; u++) {
        all += plan->units[u].elements * 4;
    }
    TestCounts counts = test_count_steady(plan);
    g_assert_cmpuint(counts.bytes[PLAN_OP_ALL_GATHER], ==, all);
    g_assert_cmpuint(counts.bytes[PLAN_OP_REDUCE_SCATTER], ==, all);
    g_assert_cmpuint(counts.n[PLAN_OP_ALL_REDUCE], ==, 0);
    const PlanRole *role = &plan->roles[0];
    uint64_t floor[PLAN_N_CATEGORIES] = {0};
    for (uint32_t b = 0; b < role->n_buffers; b++) {
        if (role->buffers[b].carried >> PLAN_SECTION_STEADY & 1) {
            floor[plan_subcategory_category((PlanSubcategory)role->buffers[b].sub)] +=
                role->buffers[b].bytes;
        }
    }
    g_assert_cmpuint(floor[PLAN_CATEGORY_PARAMETERS], ==, all + all / 4);
    g_assert_cmpuint(floor[PLAN_CATEGORY_GRADIENTS], ==, 0);
    g_assert_cmpuint(floor[PLAN_CATEGORY_OPTIMIZER], >=, 2 * all / 4); /* and a step count each */
    g_assert_cmpuint(floor[PLAN_CATEGORY_OPTIMIZER], <=, 2 * all / 4 + 8 * plan->n_units);
}

/* Ranks that share layers: half of each matrix, all of a norm; a gather and a scatter of tokens for
 * attention, and for the hidden layer, and backward likewise the other way; the embedding has a
 * scatter, the head a gather. A norm's gradient is added up, and three reductions make the loss. */
static void shared_layers(void) {
    enum {
        TOKENS = 2 * 8 * 16, /* numbers of all tokens of the two sequences */
        BLOCKS = 2
    };
    g_autoptr(Plan) alone = test_plan(LLAMA, "ranks=2 micro_batch=2");
    g_autoptr(Plan) shared = test_plan(LLAMA, "ranks=4 tensor=2 micro_batch=2");
    g_assert_cmpuint(shared->axes[PLAN_AXIS_SHARD], ==, 2);
    g_assert_cmpuint(shared->tokens_per_rank, ==, alone->tokens_per_rank / 2);
    for (uint32_t p = 0; p < alone->n_parameters; p++) {
        const PlanParameter *whole = &alone->parameters[p], *part = &shared->parameters[p];
        g_assert_cmpuint(part->elements, ==, whole->elements);
        g_assert_cmpmem(part->dims, sizeof part->dims, whole->dims, sizeof whole->dims);
        g_assert_cmpuint(plan_parameter_elements_of_rank(shared, part), ==,
                         whole->elements / (whole->n_dims == 2 ? 2 : 1));
    }
    TestCounts before = test_count_steady(alone), with = test_count_steady(shared);
    uint64_t moved = (2 * BLOCKS + 1) * TOKENS * sizeof(float); /* one way */
    uint64_t norms = (2 * BLOCKS + 1) * 16 * sizeof(float), rows = 3 * 2 * 8 * sizeof(float);
    g_assert_cmpuint(with.n[PLAN_OP_ALL_GATHER], ==,
                     before.n[PLAN_OP_ALL_GATHER] + 2 * (2 * BLOCKS + 1));
    g_assert_cmpuint(with.n[PLAN_OP_REDUCE_SCATTER], ==,
                     before.n[PLAN_OP_REDUCE_SCATTER] + 2 * (2 * BLOCKS + 1));
    g_assert_cmpuint(with.bytes[PLAN_OP_ALL_REDUCE], ==, norms + rows);
    uint64_t halves = 0; /* of what is gathered for a reduction */
    for (uint32_t u = 0; u < shared->n_units; u++) {
        halves += shared->units[u].elements * sizeof(float);
    }
    g_assert_cmpuint(with.bytes[PLAN_OP_REDUCE_SCATTER], ==, halves + 2 * moved);
    g_autoptr(GString) text = plan_text(shared);
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) read = plan_read(text->str, text->len, "shared.plan", &error);
    g_assert_no_error(error);
    g_assert_cmpstr(plan_digest(read), ==, plan_digest(shared));
}

/* Where they leave sequences whole: forward each block's two results are added up, and those of the
 * embedding; backward the gradients of what five layers of a block read, and the head. The other
 * two ways of sharing leave out the embedding, and the head too. */
static void shared_without_sequences(void) {
    enum {
        TOKENS = 2 * 8 * 16,
        BLOCKS = 2
    };
    static const struct {
        const char *words;
        unsigned n;      /* all-reduces of all tokens, beside the blocks' */
        uint64_t others; /* bytes of those for the loss */
    } ends[] = {{"tensor_plan=torchtitan", 2, 3 * 2 * 8 * sizeof(float)},
                {"tensor_plan=transformers", 1, 0},
                {"tensor_plan=kempnerforge", 0, 0}};
    g_autoptr(Plan) alone = test_plan(LLAMA, "ranks=2 micro_batch=2");
    TestCounts before = test_count_steady(alone);
    for (unsigned i = 0; i < G_N_ELEMENTS(ends); i++) {
        g_autofree char *words = g_strconcat("ranks=4 tensor=2 micro_batch=2 sequence_parallel=no ",
                                             ends[i].words, NULL);
        g_autoptr(Plan) shared = test_plan(LLAMA, words);
        TestCounts with = test_count_steady(shared);
        uint64_t sums = 7 * BLOCKS + ends[i].n;
        g_assert_cmpuint(with.bytes[PLAN_OP_ALL_REDUCE], ==,
                         sums * TOKENS * sizeof(float) + ends[i].others);
        g_assert_cmpuint(with.n[PLAN_OP_ALL_REDUCE], ==, sums + (ends[i].others ? 3 : 0));
        g_assert_cmpuint(with.n[PLAN_OP_REDUCE_SCATTER], ==, before.n[PLAN_OP_REDUCE_SCATTER]);
        g_assert_cmpuint(with.n[PLAN_OP_ALL_GATHER], ==,
                         before.n[PLAN_OP_ALL_GATHER] + (i == 1)); /* logits */
    }
}

/* Ranks that share sequences: a third of the tokens each; keys and values gathered once forward and
 * once backward, and their gradients passed on as often as there are ranks, in fp32. */
#define RING "param_dtype=bf16 seq=6 context=3"
static double attention_flops(const PlanRole *role) {
    double flops = 0;
    for (uint32_t i = 0; i < role->n_ops; i++) {
        const PlanOp *op = &role->ops[i];
        bool attends = plan_op_info((PlanOpKind)op->kind)->op_class == PLAN_CLASS_ATTENTION;
        flops += attends ? plan_op_flops(role, op) + plan_op_model_flops(role, op) : 0;
    }
    return flops;
}

static void shared_sequences(void) {
    enum {
        KEYS = 2 * 2 * 4, /* numbers of a rank's keys: tokens, heads, their width */
        BLOCKS = 2
    };
    g_autoptr(Plan) alone = test_plan(LLAMA, "ranks=6 param_dtype=bf16 seq=6");
    g_autoptr(Plan) shared = test_plan(LLAMA, "ranks=6 " RING);
    g_assert_cmpuint(shared->tokens_per_rank, ==, 2);
    g_assert_cmpuint(shared->axes[PLAN_AXIS_SHARD], ==, 6);
    g_assert_cmpuint(plan_n_batches(shared), ==, 2);
    g_assert_cmpuint(plan_part_of_sequence(shared, 4, false), ==, 1);
    g_assert_cmpuint(plan_part_of_sequence(shared, 4, true), ==, 4);
    TestCounts before = test_count_steady(alone), with = test_count_steady(shared);
    g_assert_cmpuint(with.n[PLAN_OP_ALL_GATHER], ==, before.n[PLAN_OP_ALL_GATHER] + 2 * BLOCKS);
    g_assert_cmpuint(with.bytes[PLAN_OP_ALL_GATHER], ==,
                     before.bytes[PLAN_OP_ALL_GATHER] + 2 * BLOCKS * 3 * 2 * KEYS * 2);
    g_assert_cmpuint(with.n[PLAN_OP_PASS_ON], ==, 3 * BLOCKS);
    g_assert_cmpuint(with.bytes[PLAN_OP_PASS_ON], ==, 3 * BLOCKS * 2 * KEYS * sizeof(float));
    g_assert_cmpuint(with.bytes[PLAN_OP_REDUCE_SCATTER], ==, before.bytes[PLAN_OP_REDUCE_SCATTER]);
    for (uint32_t r = 0; r < shared->n_roles; r++) { /* a third of the pairs, wherever they lie */
        g_assert_cmpfloat(3 * attention_flops(&shared->roles[r]), ==,
                          attention_flops(&alone->roles[0]));
    }
    g_autoptr(GString) text = plan_text(shared);
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) read = plan_read(text->str, text->len, "shared.plan", &error);
    g_assert_no_error(error);
    g_assert_cmpstr(plan_digest(read), ==, plan_digest(shared));
}

#define EXPERTS                                                                                    \
    "[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=4\nexperts=8\nexperts_per_token=2\n"       \
    "expert_ffn=24\nvocab=12\nseq=8\n"

/* Rows go to their experts and back, forward and backward, and before that how many. Each rank has
 * the experts of four, of which three have the same. */
static void shared_experts(void) {
    enum {
        ROWS = 8 * 2 * 16, /* numbers of a rank's rows: tokens, experts of each, width */
        EXPERTS_OF_RANK = 3 * 16 * 24 * 2, /* numbers of two experts */
        BLOCKS = 2
    };
    g_autoptr(Plan) alone = test_plan(EXPERTS, "ranks=8 param_dtype=bf16");
    g_autoptr(Plan) shared = test_plan(EXPERTS, "ranks=8 param_dtype=bf16 expert=4");
    g_assert_cmpuint(shared->axes[PLAN_AXIS_SHARD], ==, 8);
    g_assert_cmpuint(shared->axes[PLAN_AXIS_ALIKE], ==, 2);
    g_assert_cmpuint(plan_n_batches(shared), ==, 8);
    g_assert_cmpuint(plan_rank_on_axis(shared, 6, PLAN_AXIS_EXPERT), ==, 2);
    g_assert_cmpuint(plan_rank_on_axis(shared, 6, PLAN_AXIS_ALIKE), ==, 1);
    g_assert_cmpuint(plan_group_of_rank(shared, 6, PLAN_AXIS_EXPERT), ==, 1);
    g_assert_cmpuint(plan_group_of_rank(shared, 6, PLAN_AXIS_ALIKE), ==, 2);
    TestCounts before = test_count_steady(alone), with = test_count_steady(shared);
    g_assert_cmpuint(with.n[PLAN_OP_ALL_TO_ALL], ==, 5 * BLOCKS);
    g_assert_cmpuint(with.bytes[PLAN_OP_ALL_TO_ALL], ==,
                     BLOCKS * (8 * sizeof(int64_t) + 4 * 2 * ROWS));
    g_assert_cmpuint(with.n[PLAN_OP_SPLITS_TO_HOST], ==, 2 * BLOCKS);
    g_assert_cmpuint(with.n[PLAN_OP_ALL_GATHER], ==, before.n[PLAN_OP_ALL_GATHER] + 2 * BLOCKS);
    g_assert_cmpuint(with.bytes[PLAN_OP_ALL_GATHER], ==,
                     before.bytes[PLAN_OP_ALL_GATHER] - 2 * BLOCKS * 3 * EXPERTS_OF_RANK * 2);
    g_assert_cmpuint(shared->roles[0].n_parameter_elements, ==,
                     alone->roles[0].n_parameter_elements);
    g_autoptr(GString) text = plan_text(shared);
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) read = plan_read(text->str, text->len, "shared.plan", &error);
    g_assert_no_error(error);
    g_assert_cmpstr(plan_digest(read), ==, plan_digest(shared));
}

/* The busiest rank's rows, and they alone, are more: what comes to it and goes back, and what its
 * experts make of them. What it sends, and how many rows go where, is as before. */
static void overloaded_experts(void) {
    enum {
        PAIRS = 8 * 2, /* of a rank's tokens and their experts */
        WIDTH = 16,
        BLOCKS = 2
    };
    g_autoptr(Plan) even = test_plan(EXPERTS, "ranks=8 param_dtype=bf16 expert=4");
    g_autoptr(Plan) said =
        test_plan(EXPERTS, "ranks=8 param_dtype=bf16 expert=4 expert_overload=1");
    g_autoptr(Plan) uneven =
        test_plan(EXPERTS, "ranks=8 param_dtype=bf16 expert=4 expert_overload=2.5");
    g_assert_cmpstr(plan_digest(even), ==, plan_digest(said));
    g_autoptr(Plan) alone = test_plan(EXPERTS, "ranks=8 param_dtype=bf16");
    g_autoptr(Plan) idle = test_plan(EXPERTS, "ranks=8 param_dtype=bf16 expert_overload=2.5");
    g_assert_cmpstr(plan_digest(alone), ==, plan_digest(idle));
    TestCounts before = test_count_steady(even), with = test_count_steady(uneven);
    g_assert_cmpuint(before.n[PLAN_OP_UNEVEN_ALL_TO_ALL], ==, 0);
    g_assert_cmpuint(with.n[PLAN_OP_ALL_TO_ALL], ==, BLOCKS);
    g_assert_cmpuint(with.bytes[PLAN_OP_ALL_TO_ALL], ==, BLOCKS * 8 * sizeof(int64_t));
    g_assert_cmpuint(with.n[PLAN_OP_UNEVEN_ALL_TO_ALL], ==, 4 * BLOCKS);
    g_assert_cmpuint(with.bytes[PLAN_OP_UNEVEN_ALL_TO_ALL], ==,
                     BLOCKS * 4 * 2 * PAIRS * 5 / 2 * WIDTH);
    const PlanRole *role = &uneven->roles[0];
    for (uint32_t i = 0; i < role->n_ops; i++) {
        const int64_t *d = plan_op_dims(role, &role->ops[i]);
        if (role->ops[i].kind == PLAN_OP_GROUPED_LINEAR) {
            g_assert_cmpint(d[GROUPED_LINEAR_M], ==, PAIRS * 5 / 2);
        } else if (role->ops[i].kind == PLAN_OP_MUL_COLUMN) {
            g_assert_cmpint(d[MUL_COLUMN_ROWS], ==, PAIRS);
        }
    }
    g_autoptr(GString) text = plan_text(uneven);
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) read = plan_read(text->str, text->len, "uneven.plan", &error);
    g_assert_no_error(error);
    g_assert_cmpstr(plan_digest(read), ==, plan_digest(uneven));
}

/* What its link carries is neither what it sends nor what comes. */
static void overload_that_is_none(void) {
    g_autoptr(Plan) plan =
        test_plan(EXPERTS, "ranks=8 param_dtype=bf16 expert=4 expert_overload=1.5");
    PlanRole *role = &plan->roles[0];
    uint32_t i = 0;
    while (role->ops[i].kind != PLAN_OP_UNEVEN_ALL_TO_ALL) {
        i++;
    }
    role->dims[role->ops[i].dims + UNEVEN_COLLECTIVE_ELEMENTS]--;
    g_autoptr(GError) error = NULL;
    g_assert_false(plan_check(plan, &error));
    g_assert_error(error, PLAN_ERROR, PLAN_ERROR_CHECK);
    g_assert_nonnull(strstr(error->message, "uneven_all_to_all"));
}

/* A compiler keeps what was gathered; of keys and values that are repeated (LLAMA's twice) that is
 * as much more, and so is what is passed on. */
static void shared_sequences_in_blocks(void) {
    g_autoptr(Plan) eager = test_plan(LLAMA, "ranks=6 " RING);
    g_autoptr(Plan) grouped = test_plan(LLAMA, "ranks=6 kernels=compiled " RING);
    g_autoptr(Plan) repeated = test_plan(LLAMA "kv=repeated\n", "ranks=6 kernels=compiled " RING);
    TestCounts a = test_count_steady(eager), b = test_count_steady(grouped);
    TestCounts c = test_count_steady(repeated);
    g_assert_cmpuint(a.bytes[PLAN_OP_PASS_ON], ==, b.bytes[PLAN_OP_PASS_ON]);
    g_assert_cmpuint(2 * b.bytes[PLAN_OP_PASS_ON], ==, c.bytes[PLAN_OP_PASS_ON]);
    g_assert_cmpuint(a.n[PLAN_OP_ALL_GATHER], ==, b.n[PLAN_OP_ALL_GATHER] + 2);
    g_assert_cmpuint(a.n[PLAN_OP_ATTENTION_PART], ==, b.n[PLAN_OP_ATTENTION_PART]);
    for (uint32_t r = 0; r < grouped->n_roles; r++) {
        g_assert_cmpfloat(attention_flops(&grouped->roles[r]), ==,
                          attention_flops(&eager->roles[0]));
    }
}

/* 2 copies, each over 3 ranks; and parts of 2 ranks of 4. */
static void groups_of_ranks(void) {
    static const struct {
        const char *words;
        PlanAxis axis;
        uint32_t group[6], place[6];
    } rows[] = {
        {"ranks=6 sharding=hybrid replicate=2",
         PLAN_AXIS_SHARD,
         {0, 0, 0, 1, 1, 1},
         {0, 1, 2, 0, 1, 2}},
        {"ranks=6 sharding=hybrid replicate=2",
         PLAN_AXIS_REPLICATE,
         {0, 1, 2, 0, 1, 2},
         {0, 0, 0, 1, 1, 1}},
        {"ranks=6 sharding=hybrid replicate=2", PLAN_AXIS_NONE, {0, 1, 2, 3, 4, 5}, {0}},
        {"ranks=4 reshard_after_forward=2", PLAN_AXIS_PART, {0, 0, 1, 1}, {0, 1, 0, 1}},
        {"ranks=6 tensor=2", PLAN_AXIS_TENSOR, {0, 0, 1, 1, 2, 2}, {0, 1, 0, 1, 0, 1}},
        {"ranks=6 tensor=2", PLAN_AXIS_SHARD, {0, 1, 0, 1, 0, 1}, {0, 0, 1, 1, 2, 2}},
        {RING " ranks=6", PLAN_AXIS_CONTEXT, {0, 0, 0, 1, 1, 1}, {0, 1, 2, 0, 1, 2}},
        {RING " ranks=6", PLAN_AXIS_SHARD, {0, 0, 0, 0, 0, 0}, {0, 1, 2, 3, 4, 5}},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        bool is_shared = strstr(rows[i].words, "tensor") || strstr(rows[i].words, "context");
        g_autoptr(Plan) plan = test_plan(is_shared ? LLAMA : GPT_TOY, rows[i].words);
        for (uint32_t rank = 0; rank < plan->world; rank++) {
            uint32_t group = plan_group_of_rank(plan, rank, rows[i].axis);
            uint32_t place = plan_rank_on_axis(plan, rank, rows[i].axis);
            g_assert_cmpuint(group, ==, rows[i].group[rank]);
            g_assert_cmpuint(place, ==, rows[i].place[rank]);
        }
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/volumes/gathers and reductions", gathers_and_reduces);
    g_test_add_func("/plan/volumes/full and replicated", volumes);
    g_test_add_func("/plan/volumes/other strategies", volumes_of_other_strategies);
    g_test_add_func("/plan/volumes/optimizer only", optimizer_only);
    g_test_add_func("/plan/volumes/shared layers", shared_layers);
    g_test_add_func("/plan/volumes/shared layers, sequences whole", shared_without_sequences);
    g_test_add_func("/plan/volumes/shared sequences", shared_sequences);
    g_test_add_func("/plan/volumes/shared experts", shared_experts);
    g_test_add_func("/plan/volumes/the busiest rank of experts", overloaded_experts);
    g_test_add_func("/plan/volumes/an overload that is none", overload_that_is_none);
    g_test_add_func("/plan/volumes/shared sequences in blocks", shared_sequences_in_blocks);
    g_test_add_func("/plan/volumes/groups of ranks", groups_of_ranks);
    return g_test_run();
}
