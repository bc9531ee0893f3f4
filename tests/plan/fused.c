/* What fused kernels join: gradients at the ends of products and in one array, blocks' sums. */
#include "plan/op.h"
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

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/fused/gradients end products", at_the_ends_of_products);
    g_test_add_func("/plan/fused/not in other programs", not_elsewhere);
    g_test_add_func("/plan/fused/where they cannot", where_they_cannot);
    return g_test_run();
}
