/* Strategies drawn at random, each key among all of its choices: one that is not refused makes a
 * sound plan, which plan_build() leaves to tests, and of several roles PLAN_FORM_FOR_ONE writes
 * the first likewise, which each eighth of them must show. A seed of another draw may be given, and
 * FORESHARD_DRAWN_PLANS in the environment says how many plans. */
#include <string.h>

#include "models/network.h"
#include "plan/build/build.h"
#include "plan/check/check.h"
#include "plan/text/text.h"

/* Sizes that few numbers of ranks divide, so that ranks differ. */
static const char *const networks[] = {
    "family=mlp\nlayers=3\nwidth=10\nseq=4\n",
    "family=gpt\nlayers=4\nwidth=12\nheads=2\nvocab=13\nseq=8\n",
    "family=gpt\nlayers=2\nwidth=12\nheads=2\nvocab=13\nseq=8\ntied=yes\ndropout=0.1\n",
    "family=gpt\nlayers=2\nwidth=12\nheads=2\nvocab=13\nseq=8\nattention=math\nloss=fp32\n"
    "loss_at=loop\n",
    "family=mpt\nlayers=3\nwidth=12\nheads=2\nvocab=13\nseq=8\nloss=metered\n",
    "family=llama\nlayers=3\nwidth=12\nheads=2\nkv_heads=1\nffn=20\nvocab=13\nseq=8\n",
    "family=llama\nlayers=2\nwidth=12\nheads=2\nffn=20\nvocab=13\nseq=8\nrope=complex\n"
    "loss_at=loop\nlogits_held=backward\n",
    "family=llama\nlayers=2\nwidth=16\nheads=4\nkv_heads=2\nffn=10\nvocab=14\n"
    "seq=8\nloss=fp32\n",
    "family=gpt\nlayers=2\nwidth=12\nheads=2\nvocab=13\nseq=8\nloss=fp32-logits\n"
    "logits_shifted=yes\nloss_in_place=yes\nlogits_held=backward\n",
    "family=llama\nlayers=2\nwidth=12\nheads=2\nffn=20\nvocab=13\nseq=8\nuse_cache=yes\n"
    "logits_held=next-forward\n",
    "family=llama\nlayers=2\nwidth=12\nheads=2\nffn=20\nvocab=13\nseq=8\ncode=transformers\n"
    "use_cache=copied\nlogits_held=backward\n",
    "family=gpt\nlayers=2\nwidth=12\nheads=2\nvocab=13\nseq=8\nloss_at=loop\n"
    "logits_held=next-forward\n",
    "family=llama\nlayers=2\nwidth=16\nheads=4\nkv_heads=2\nffn=10\nvocab=14\n"
    "seq=8\nloss=kernel\nloss_at=loop\n",
    "family=llama\nlayers=2\nwidth=16\nheads=4\nexperts=12\nexperts_per_token=2\nexpert_ffn=24\n"
    "vocab=14\nseq=8\n",
    "family=t5\nlayers=2\nwidth=12\nheads=2\nhead_dim=6\nffn=20\nvocab=13\nseq=8\ntied=yes\n",
};

/* What numbers are drawn from; the keys that are not here keep their defaults. */
static const struct {
    const char *key, *values;
} numbers[] = {
    {"ranks", "1 2 3 4 5 6 8 12"}, {"replicate", "0 2 3"},      {"limit_all_gathers", "0 1 2 3"},
    {"micro_batch", "1 2 3"},      {"accumulate", "1 2 3"},     {"seq", "0 4"},
    {"tensor", "1 1 1 2"},         {"context", "1 1 2 3"},      {"bucket_mb", "0 0.001 0.01"},
    {"expert", "1 1 2 3 4"},       {"weight_decay", "-1 0.1"},  {"clip", "0 1"},
    {"lora_rank", "0 0 0 2"},      {"lora_alpha", "4 16"},      {"momentum", "0.5 0.9"},
    {"beta1", "0.8 0.9"},          {"beta2", "0.9 0.999"},      {"eps", "1e-8 1e-6"},
    {"muon_lr", "1e-3 1e-2"},      {"muon_momentum", "0.9"},    {"muon_steps", "3 5"},
    {"muon_weight_decay", "0"},    {"eval_batches", "0 0 1 2"}, {"eval_micro_batch", "0 1 3"},
    {"expert_overload", "1.3 2"},
};

/* Of choices with an argument. */
static const struct {
    const char *name, *values;
} arguments[] = {
    {"every=K", "every=2 every=3"},
    {"size=N", "size=1 size=100 size=500 size=100000"},
    {"module=REGEX", "module=.*Block module=layers.* module=.*(attn|mlp).*"},
    {"ratio=P", "ratio=0 ratio=0.5"},
    {"N", "1 2 3 4"},
    {"from=K", "from=1 from=1024"},
    {"conf=TEXT", "conf=max_split_size_mb:64"},
};

static const char *any(GRand *rand, char **words) {
    return words[g_rand_int_range(rand, 0, (gint32)g_strv_length(words))];
}

static char *any_word(GRand *rand, const char *words) {
    g_auto(GStrv) list = g_strsplit(words, " ", -1);
    return g_strdup(any(rand, list));
}

static char *value_of(GRand *rand, const PlanStrategyKey *key) {
    if (!key->choices) {
        for (unsigned i = 0; i < G_N_ELEMENTS(numbers); i++) {
            if (g_str_equal(numbers[i].key, key->key)) {
                return any_word(rand, numbers[i].values);
            }
        }
        return NULL;
    }
    char *name = any_word(rand, key->choices);
    for (unsigned i = 0; i < G_N_ELEMENTS(arguments); i++) {
        if (g_str_equal(arguments[i].name, name)) {
            g_free(name);
            return any_word(rand, arguments[i].values);
        }
    }
    return name;
}

/* Ranks always, other keys now and then: of many at once most are refused. */
static void draw(GRand *rand, PlanStrategy *strategy, GString *ret_words) {
    unsigned n;
    const PlanStrategyKey *keys = plan_strategy_keys(&n);
    double share = g_rand_double_range(rand, 0, 0.4);
    plan_strategy_init(strategy);
    for (unsigned i = 0; i < n; i++) {
        bool is_drawn = g_str_equal(keys[i].key, "ranks") || g_rand_double(rand) < share;
        g_autofree char *value = is_drawn ? value_of(rand, &keys[i]) : NULL;
        if (value) {
            g_autoptr(GError) error = NULL;
            plan_strategy_set(strategy, keys[i].key, value, &error);
            g_assert_no_error(error);
            g_string_append_printf(ret_words, " %s=%s", keys[i].key, value);
        }
    }
}

static unsigned count = 1500, seed = 1;

/* NULL: refused. */
static Plan *plan_of(const char *network, PlanStrategy *strategy, PlanForm form) {
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strconcat("[network]\n", network, NULL);
    g_autoptr(ModelNetwork) read = model_network_read(text, strlen(text), "drawn.ini", &error);
    g_assert_no_error(error);
    return plan_strategy_settle(strategy, NULL) ? model_network_plan(read, strategy, form, NULL)
                                                : NULL;
}

/* All that a plan says, as if it had the first role alone. */
static GString *text_of_first(const Plan *plan) {
    Plan first = *plan;
    first.n_roles = 1;
    first.for_one = false;
    return plan_text(&first);
}

/* Built for one rank, the first role has the program that it has among the others. */
static void check_for_one(const char *network, PlanStrategy *strategy, const Plan *plan) {
    g_autoptr(Plan) for_one = plan_of(network, strategy, PLAN_FORM_FOR_ONE);
    g_assert_true(for_one->for_one);
    g_assert_cmpuint(for_one->n_roles, ==, plan->n_roles);
    g_assert_cmpuint(for_one->roles[1].n_instrs[PLAN_SECTION_FIRST], ==, 0);
    g_autoptr(GString) expected = text_of_first(plan), got = text_of_first(for_one);
    g_assert_true(g_string_equal(expected, got));
}

/* All that a plan says but how its strategy is written. */
static GString *text_of_instructions(const Plan *plan) {
    Plan same = *plan;
    same.strategy = same.title = "";
    return plan_text(&same);
}

/* One with an idle key given another value. */
static bool is_idle(const char *network, const PlanStrategy *drawn, const Plan *plan,
                    const char *key, const char *value) {
    PlanStrategy strategy = *drawn;
    bool is_one = plan_strategy_set(&strategy, key, value, NULL);
    g_assert_true(is_one);
    g_autoptr(Plan) changed = plan_of(network, &strategy, PLAN_FORM_WHOLE);
    if (!changed) { /* this value does not go with the others */
        return true;
    }
    g_autoptr(GString) expected = text_of_instructions(plan);
    g_autoptr(GString) got = text_of_instructions(changed);
    return g_string_equal(expected, got);
}

/* Keys that are called idle beside what was drawn change nothing. Returns how many were tried. */
static unsigned check_idle(GRand *rand, const char *network, const PlanStrategy *drawn,
                           const Plan *plan, const char *words) {
    PlanStrategy settled = *drawn;
    g_assert_true(plan_strategy_settle(&settled, NULL));
    unsigned n, tried = 0;
    const PlanStrategyKey *keys = plan_strategy_keys(&n);
    for (unsigned i = 0; i < n; i++) {
        const char *decided_by;
        bool idle = plan_strategy_why_idle(&settled, keys[i].key, &decided_by) != NULL;
        g_autofree char *value = idle ? value_of(rand, &keys[i]) : NULL;
        tried += value != NULL;
        if (value && !is_idle(network, drawn, plan, keys[i].key, value)) {
            g_test_message("%s\n%s\n%s=%s is no idle key", network, words, keys[i].key, value);
            g_test_fail();
        }
    }
    return tried;
}

static void idle(void) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    unsigned tried = 0;
    while (tried < count / 5) {
        const char *network = networks[g_rand_int_range(rand, 0, G_N_ELEMENTS(networks))];
        PlanStrategy strategy;
        g_autoptr(GString) words = g_string_new(NULL);
        draw(rand, &strategy, words);
        PlanStrategy drawn = strategy;
        g_autoptr(Plan) plan = plan_of(network, &strategy, PLAN_FORM_WHOLE);
        tried += plan ? check_idle(rand, network, &drawn, plan, words->str) : 0;
    }
}

static void sound(void) {
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    unsigned planned = 0, refused = 0, of_roles = 0;
    while (planned < count) {
        const char *network = networks[g_rand_int_range(rand, 0, G_N_ELEMENTS(networks))];
        PlanStrategy strategy;
        g_autoptr(GString) words = g_string_new(NULL);
        draw(rand, &strategy, words);
        g_autoptr(Plan) plan = plan_of(network, &strategy, PLAN_FORM_WHOLE);
        refused += plan == NULL;
        if (!plan) {
            continue;
        }
        g_autoptr(GError) error = NULL;
        if (!plan_check(plan, &error)) {
            g_test_message("%s\n%s\n%s", network, words->str, error->message);
            g_test_fail();
        }
        planned++;
        of_roles += plan->n_roles > 1;
        if (plan->n_roles > 1 && of_roles % 8 == 0) {
            check_for_one(network, &strategy, plan);
        }
    }
    g_test_message("%u sound plans, %u of several roles; %u strategies refused", planned, of_roles,
                   refused);
    g_assert_cmpuint(of_roles, >, planned / 10);
}

/* A network whose first product has a row too many makes a plan that is not sound. */
static void checked_when_asked(void) {
    const char *text = "[network]\nfamily=mlp\nlayers=1\nwidth=8\nseq=4\n";
    g_autoptr(ModelNetwork) network = model_network_read(text, strlen(text), "x.ini", NULL);
    PlanStrategy strategy;
    plan_strategy_init(&strategy);
    g_assert_true(plan_strategy_settle(&strategy, NULL));
    g_autoptr(PlanGraph) graph = model_network_emit_for(network, &strategy, NULL);
    const PlanGraphOp *op = plan_graph_op_at(graph, 0);
    while (op->kind != PLAN_OP_LINEAR) {
        op++;
    }
    graph->dims.items[op->dims]++;
    g_autoptr(Plan) plan = plan_build(graph, &strategy, "x", "", PLAN_FORM_WHOLE, NULL);
    g_assert_nonnull(plan);
    g_assert_false(plan_check(plan, NULL));
    g_setenv("FORESHARD_CHECK", "1", TRUE);
    g_autoptr(GError) error = NULL;
    g_assert_null(plan_build(graph, &strategy, "x", "", PLAN_FORM_WHOLE, &error));
    g_assert_error(error, PLAN_ERROR, PLAN_ERROR_CHECK);
    g_unsetenv("FORESHARD_CHECK");
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_unsetenv("FORESHARD_CHECK"); /* else what is unsound would look as if it were refused */
    const char *asked = g_getenv("FORESHARD_DRAWN_PLANS");
    count = asked ? (unsigned)g_ascii_strtoull(asked, NULL, 10) : count;
    seed = argc > 1 ? (unsigned)g_ascii_strtoull(argv[1], NULL, 10) : seed;
    g_test_add_func("/plan/drawn/sound", sound);
    g_test_add_func("/plan/drawn/idle", idle);
    g_test_add_func("/plan/drawn/checked when asked", checked_when_asked);
    return g_test_run();
}
