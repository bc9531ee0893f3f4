/* Latent attention and DeepSeek's routing: what a network may say of them, and what attention with
 * heads of two lengths computes.
 */
#include <string.h>

#include "models/network.h"
#include "plan/op/work.h"
#include "tests/plan/plans.h"

#define LATENT                                                                                     \
    "[network]\nfamily=llama\nlayers=3\nwidth=16\nheads=2\nvocab=32\nseq=8\nrope=complex\n"        \
    "kv_lora_rank=12\nqk_nope_head_dim=12\nqk_rope_head_dim=4\nv_head_dim=8\n"
#define DENSE LATENT "ffn=24\n"
#define EXPERTS                                                                                    \
    LATENT "ffn=24\ndense_layers=1\nexperts=6\nexperts_per_token=2\nexpert_ffn=16\nshared_ffn=8\n"
#define GROUPS EXPERTS "expert_groups=3\ngroups_per_token=2\n"

static ModelNetwork *read_network(const char *text, GError **error) {
    return model_network_read(text, strlen(text), "n.ini", error);
}

static void files_refused(void) {
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=2\nvocab=4\nseq=4\nffn=8\nv_head_dim="
         "4\n",
         "v_head_dim is of latent attention; add kv_lora_rank"},
        {DENSE "head_dim=8\n", "remove head_dim and kv_heads"},
        {DENSE "qk_norm=head\n", "latent attention is known of a plain Llama"},
        {DENSE "attention=math\n", "latent attention is known of a plain Llama"},
        {DENSE "window=4\n", "latent attention is known of a plain Llama"},
        {DENSE "dense_layers=1\n", "dense_layers is of a network with experts"},
        {DENSE "score=sigmoid\n", "score is of a network with experts"},
        {EXPERTS "expert_groups=3\n", "expert_groups and groups_per_token are of each other"},
        {EXPERTS "groups_per_token=3\n", "expert_groups and groups_per_token are of each other"},
        {EXPERTS "expert_groups=6\ngroups_per_token=2\n", "groups are scored by their two best"},
        {EXPERTS "expert_groups=4\ngroups_per_token=2\n", "groups are scored by their two best"},
        {EXPERTS "expert_groups=3\ngroups_per_token=4\n", "a token's experts are of"},
        {EXPERTS "code=transformers\n", "latent attention is known of a plain Llama"},
        {EXPERTS "score=tanh\n", "score must be sigmoid or softmax, not 'tanh'"},
        {EXPERTS "route_scale=0\n", "route_scale must be a number from 1e-6"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(read_network(cases[i].text, &error));
        g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, cases[i].expected));
    }
    static const struct {
        const char *from, *to, *expected;
    } changes[] = {
        {"rope=complex", "rope=real", "set rope = complex"},
        {"v_head_dim=8", "v_head_dim=16", "heads of v as long as those of q"},
        {"v_head_dim=8", "v_head_dim=6", "heads of 16 bytes or a multiple"},
        {"qk_rope_head_dim=4", "qk_rope_head_dim=5", "make qk_rope_head_dim an even number"},
        {"qk_nope_head_dim=12\n", "", "latent attention needs qk_nope_head_dim"},
        {"dense_layers=1", "dense_layers=3", "leaves no block to have experts"},
        {"dense_layers=1\n", "", "a block has experts or a hidden layer of ffn"},
        {"ffn=24\n", "", "dense_layers blocks have a hidden layer; give its width"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(changes); i++) {
        g_auto(GStrv) parts = g_strsplit(EXPERTS, changes[i].from, 2);
        g_autofree char *text = g_strjoinv(changes[i].to, parts);
        g_autoptr(GError) error = NULL;
        g_assert_null(read_network(text, &error));
        g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, changes[i].expected));
    }
}

/* What was not recorded of them. */
static void strategies_refused(void) {
    static const struct {
        const char *text, *words, *expected;
    } cases[] = {
        {DENSE, "autocast=bf16", "latent attention is not planned with autocast"},
        {DENSE, "pytorch=2.4", "latent attention is not planned for PyTorch 2.4"},
        {DENSE, "lora_rank=4", "latent attention is not planned with adapters"},
        {DENSE, "freeze=module=embed", "latent attention is not planned with frozen parameters"},
        {DENSE, "rms_norm=ops", "latent attention is not planned with norms written out"},
        {DENSE, "ranks=2 deterministic=yes", "latent attention is not planned with deterministic"},
        {DENSE, "kernels=compiled compile=network", "is not planned for latent attention with"},
        {DENSE, "kernels=fused", "only eager kernels are planned"},
        {DENSE, "ranks=2 context=2", "is not planned for latent attention"},
        {DENSE, "ranks=2 tensor=2", "is not planned for latent attention"},
        {GROUPS, "ranks=2 param_dtype=fp16", "experts are not planned in fp16"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = test_plan_error(cases[i].text, cases[i].words);
        g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, cases[i].expected));
    }
}

/* The dense blocks are the network's first, not each stage's. */
static void stages_have_their_blocks(void) {
    g_autoptr(Plan) plan = test_plan(EXPERTS, "ranks=2 pipeline=2 pipeline_split=even accumulate=2 "
                                              "param_dtype=bf16");
    unsigned n_groups[2] = {0};
    g_assert_cmpuint(plan->n_roles, ==, 2);
    for (uint32_t role = 0; role < 2; role++) {
        for (uint32_t i = 0; i < plan->roles[role].n_ops; i++) {
            n_groups[role] += plan->roles[role].ops[i].kind == PLAN_OP_GROUPED_LINEAR;
        }
    }
    g_assert_cmpuint(n_groups[0], ==, n_groups[1]); /* the first stage has a block more */
}

/* Of 2 sequences of 8 tokens, 2 heads of q 16 long and of v 8: 36 pairs each are seen. */
static void counts_both_lengths(void) {
    const double pairs = 2 * 2 * 36, of_q = 16, of_v = 8;
    g_autoptr(Plan) plan = test_plan(DENSE, "ranks=2 micro_batch=2");
    const PlanRole *role = &plan->roles[0];
    unsigned n_forward = 0, n_backward = 0;
    for (uint32_t i = 0; i < role->n_ops; i++) {
        const PlanOp *op = &role->ops[i];
        double flops = plan_op_flops(role, op), model = plan_op_model_flops(role, op);
        if (op->kind == PLAN_OP_LATENT_ATTENTION) {
            n_forward++;
            g_assert_cmpfloat(flops, ==, 2 * pairs * (of_q + of_v));
            g_assert_cmpfloat(model, ==, flops);
        } else if (op->kind == PLAN_OP_LATENT_ATTENTION_BACKWARD) {
            n_backward++; /* scores again, and dq and dk; dv, and the scores' gradient */
            g_assert_cmpfloat(flops, ==, 2 * pairs * (3 * of_q + 2 * of_v));
            g_assert_cmpfloat(model, ==, flops - 2 * pairs * of_q);
        }
    }
    g_assert_cmpuint(n_forward, >, 0);
    g_assert_cmpuint(n_backward, ==, n_forward);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/latent/files that are refused", files_refused);
    g_test_add_func("/plan/latent/strategies that were not recorded", strategies_refused);
    g_test_add_func("/plan/latent/stages", stages_have_their_blocks);
    g_test_add_func("/plan/latent/arithmetic of heads of two lengths", counts_both_lengths);
    return g_test_run();
}
