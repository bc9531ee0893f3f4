/* What fused kernels join: gradients at the ends of products and in one array, blocks' sums. */
#include "plan/op/op.h"
#include "tests/plan/plans.h"

enum {
    LAYERS = 2, /* of GPT_TOY */
};

typedef struct {
    unsigned through_gelu, gelu, with_bias, sums, in_one, apart, joins;
} Backward;

static Backward backward_of(const char *network, const char *words) {
    g_autoptr(Plan) plan = test_plan(network, words);
    TestCounts c = test_count_steady(plan);
    return (Backward){.through_gelu = c.n[PLAN_OP_LINEAR_DX_GELU],
                      .gelu = c.n[PLAN_OP_GELU_TANH_BACKWARD] + c.n[PLAN_OP_GELU_ERF_BACKWARD],
                      .with_bias = c.n[PLAN_OP_LINEAR_DW_DB],
                      .sums = c.n[PLAN_OP_SUM_ROWS],
                      .in_one = c.n[PLAN_OP_ATTENTION_BACKWARD_QKV],
                      .apart = c.n[PLAN_OP_ATTENTION_BACKWARD],
                      .joins = c.n[PLAN_OP_CONCAT_COLUMNS]};
}

/* Four biases a block: one after GELU's gradient, three beside their weights'. */
static void at_the_ends_of_products(void) {
    static const char *const words[] = {"ranks=1 sharding=none kernels=fused",
                                        "ranks=2 flavour=fsdp1 kernels=fused",
                                        "ranks=2 flavour=fsdp2 kernels=fused checkpointing=full"};
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        Backward b = backward_of(GPT_TOY, words[i]);
        g_assert_cmpuint(b.through_gelu, ==, LAYERS);
        g_assert_cmpuint(b.gelu, ==, 0);
        g_assert_cmpuint(b.with_bias, ==, 3 * LAYERS);
        g_assert_cmpuint(b.sums, ==, 0);
        g_assert_cmpuint(b.in_one, ==, LAYERS);
        g_assert_cmpuint(b.apart + b.joins, ==, 0);
    }
}

/* PyTorch's programs, and what a compiler makes of a block. */
static void not_elsewhere(void) {
    static const char *const kernels[] = {"eager", "compiled"};
    for (unsigned i = 0; i < G_N_ELEMENTS(kernels); i++) {
        g_autofree char *words = g_strdup_printf("ranks=1 sharding=none kernels=%s", kernels[i]);
        Backward b = backward_of(GPT_TOY, words);
        g_assert_cmpuint(b.through_gelu + b.with_bias + b.in_one, ==, 0);
        g_assert_cmpuint(b.gelu, ==, LAYERS);
        g_assert_cmpuint(b.sums, ==, 4 * LAYERS);
        g_assert_cmpuint(b.apart, ==, LAYERS);
        g_assert_cmpuint(b.joins, ==, LAYERS);
    }
}

/* A unit that begins between GELU and the product after it; a GELU that no epilogue knows; q, k and
 * v that are no parts of one array. */
static void where_they_cannot(void) {
    Backward b = backward_of(GPT_TOY, "ranks=2 flavour=fsdp2 wrap=linear kernels=fused");
    g_assert_cmpuint(b.through_gelu, ==, 0);
    g_assert_cmpuint(b.gelu, ==, LAYERS);
    g_assert_cmpuint(b.with_bias, ==, 4 * LAYERS);
    b = backward_of(GPT_TOY "gelu=erf\n", "ranks=1 sharding=none kernels=fused");
    g_assert_cmpuint(b.through_gelu, ==, 0);
    g_assert_cmpuint(b.gelu, ==, LAYERS);
    b = backward_of(GPT_TOY "bias=no\n", "ranks=1 sharding=none kernels=fused");
    g_assert_cmpuint(b.through_gelu, ==, LAYERS);
    g_assert_cmpuint(b.with_bias, ==, 0);
    b = backward_of("[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=2\nffn=24\nvocab=12\n"
                    "seq=8\n",
                    "ranks=1 sharding=none kernels=fused");
    g_assert_cmpuint(b.in_one, ==, 0);
    g_assert_cmpuint(b.apart, ==, LAYERS);
}

static unsigned sums_of(const char *network, const char *words) {
    g_autoptr(Plan) plan = test_plan(network, words);
    return test_count_steady(plan).n[PLAN_OP_ADD];
}

/* The next norm makes a block's last sum, across units' borders too, and gradients of both terms
 * are one tensor. What is left: tokens and positions forward, and the two gradients of what the
 * first block is given; of Llama those of what several products read. A checkpointed block keeps
 * what it is given, which is one array if it is the sum: so each has one, and one of gradients. */
static void sums_at_the_next_norm(void) {
    const char *llama = "[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=2\nffn=24\nvocab=12\n"
                        "seq=8\n";
    static const char *const joined[] = {"ranks=1 sharding=none kernels=fused",
                                         "ranks=2 flavour=fsdp1 kernels=fused",
                                         "ranks=2 flavour=fsdp2 kernels=fused"};
    unsigned products = 2 + 1; /* of q, k and v; of gate and up */
    for (unsigned i = 0; i < G_N_ELEMENTS(joined); i++) {
        g_assert_cmpuint(sums_of(GPT_TOY, joined[i]), ==, 1 + 1);
        g_assert_cmpuint(sums_of(llama, joined[i]), ==, 1 + products * LAYERS);
    }
    const char *checkpointed = "ranks=2 flavour=fsdp2 kernels=fused checkpointing=full";
    g_assert_cmpuint(sums_of(GPT_TOY, checkpointed), ==, 1 + 2 * LAYERS);
}

/* Arrays of tokens x width that the kernels of a block beside its products read and write, in a
 * network so large that weights and what is kept a row are nothing beside them. */
static double arrays_of_a_block(const char *words) {
    enum {
        WIDTH = 8192,
        TOKENS = 32768
    };
    static const PlanOpKind kinds[] = {
        PLAN_OP_ADD,       PLAN_OP_LAYERNORM,          PLAN_OP_ADD_LAYERNORM,
        PLAN_OP_GELU_TANH, PLAN_OP_LAYERNORM_BACKWARD, PLAN_OP_ADD_LAYERNORM_BACKWARD,
        PLAN_OP_SUM_ROWS,  PLAN_OP_GELU_TANH_BACKWARD, PLAN_OP_CONCAT_COLUMNS};
    double bytes[2] = {0};
    for (unsigned more = 0; more < 2; more++) {
        g_autofree char *network =
            g_strdup_printf("[network]\nfamily=gpt\nlayers=%u\nwidth=%d\nheads=64\nvocab=12\n"
                            "seq=%d\n",
                            2 + more, WIDTH, TOKENS);
        g_autoptr(Plan) plan = test_plan(network, words);
        TestCounts counts = test_count_steady(plan);
        for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
            bytes[more] += (double)counts.bytes[kinds[i]];
        }
    }
    return (bytes[1] - bytes[0]) / (4.0 * WIDTH * TOKENS);
}

/* Of the 24 that kernels/README.md counts 8 belong to products: what goes into GELU. */
static void what_a_block_moves(void) {
    double fused = arrays_of_a_block("ranks=1 sharding=none kernels=fused");
    double eager = arrays_of_a_block("ranks=1 sharding=none kernels=eager");
    g_test_message("%.3f arrays a block, by PyTorch's kernels %.3f", fused, eager);
    g_assert_cmpfloat_with_epsilon(fused, 16, 0.05);
    g_assert_cmpfloat(eager, >, 3 * fused);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/fused/gradients end products", at_the_ends_of_products);
    g_test_add_func("/plan/fused/not in other programs", not_elsewhere);
    g_test_add_func("/plan/fused/where they cannot", where_they_cannot);
    g_test_add_func("/plan/fused/sums at the next norm", sums_at_the_next_norm);
    g_test_add_func("/plan/fused/what a block moves", what_a_block_moves);
    return g_test_run();
}
