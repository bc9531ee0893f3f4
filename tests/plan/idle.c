/* Keys that change nothing are called idle: whatever can be set beside the usual strategies, and
 * leaves the plan as it is, has a row in plan/strategy/idle.c or its reason here. (That those rows
 * are right is tried in drawn.c.) */
#include <string.h>

#include "plan/strategy/strategy.h"
#include "plan/text/text.h"
#include "tests/plan/plans.h"

/* Has all that keys speak of: RMSNorm, SiLU, several blocks. */
#define LLAMA_TOY "[network]\nfamily=llama\nlayers=2\nwidth=16\nheads=2\nffn=20\nvocab=12\nseq=8\n"

static const char *const usual[] = {
    "ranks=1 sharding=none", "ranks=4 sharding=none",           "ranks=4",
    "ranks=4 flavour=fsdp1", "ranks=4 sharding=optimizer-only", "ranks=4 kernels=compiled",
};

/* Of a choice with an argument, or a number. */
static const struct {
    const char *name, *value;
} arguments[] = {
    {"every=K", "every=2"},
    {"size=N", "size=500"},
    {"module=REGEX", "module=.*attn.*"},
    {"ratio=P", "ratio=0.5"},
    {"N", "2"},
    {"from=K", "from=8"},
    {"conf=TEXT", NULL},
    {"lr", "0.5"},
    {"beta1", "0.5"},
    {"beta2", "0.5"},
    {"eps", "0.5"},
    {"momentum", "0.5"},
    {"lora_rank", "4"},
    {"lora_alpha", "4"},
    {"lora_dropout", "0.5"},
    {"bucket_mb", "0.001"},
    {"clip", "1"},
    {"weight_decay", "0.5"},
    {"muon_lr", "0.5"},
    {"muon_momentum", "1"},
    {"muon_weight_decay", "1"},
    {"muon_steps", "3"},
    {"seq", "4"},
    {"document", "4"},
};

/* Why a key that leaves a plan as it is has no row. */
static const struct {
    const char *key, *why;
} exempt[] = {
    {"pytorch", "versions are alike in much"},
    {"flavour", "it names what auto means too"},
    {"allocator", "it is no instruction, but where they find memory"},
    {"attention_kernel", "it is no instruction, but how long one takes"},
    {"param_dtype", "it names the dtype that is meant without it"},
    {"reduce_dtype", "likewise"},
    {"state_dtype", "likewise"},
    {"compile", "the compiled last norm is one kernel, as the eager one"},
};

static bool is_exempt(const char *key) {
    for (gsize i = 0; i < G_N_ELEMENTS(exempt); i++) {
        if (g_str_equal(exempt[i].key, key)) {
            return true;
        }
    }
    return false;
}

/* NULL: there is none to try. */
static const char *value_for(const char *name) {
    for (gsize i = 0; i < G_N_ELEMENTS(arguments); i++) {
        if (g_str_equal(arguments[i].name, name)) {
            return arguments[i].value;
        }
    }
    return name;
}

/* NULL: the words do not go together. */
static char *instructions(const char *words, PlanStrategy *ret_settled) {
    g_autoptr(Plan) plan = test_plan_or_refusal(LLAMA_TOY, words);
    if (!plan) {
        return NULL;
    }
    bool is_whole = plan_strategy_of_text(ret_settled, plan->strategy, NULL);
    g_assert_true(is_whole);
    Plan bare = *plan;
    bare.strategy = bare.title = "";
    return g_string_free(plan_text(&bare), FALSE);
}

static void check_value(const char *base, const char *before, const char *key, const char *value) {
    PlanStrategy settled, untouched;
    plan_strategy_init(&untouched);
    g_autofree char *words = g_strdup_printf("%s %s=%s", base, key, value);
    g_autofree char *after = instructions(words, &settled);
    g_autofree char *own = plan_strategy_value(&untouched, key);
    const char *decided_by;
    if (!after || g_str_equal(own, value) || !g_str_equal(before, after) ||
        plan_strategy_why_idle(&settled, key, &decided_by)) {
        return;
    }
    g_test_message("%s leaves the plan as it is; idle.c does not say why", words);
    g_test_fail();
}

static void check_key(const char *base, const char *before, const PlanStrategyKey *key) {
    g_autofree char *own = g_strdup_printf("%s=", key->key);
    if (is_exempt(key->key) || strstr(base, own)) {
        return;
    }
    g_auto(GStrv) names = g_strsplit(key->choices ? key->choices : key->key, " ", -1);
    for (char **name = names; *name; name++) {
        const char *value = value_for(*name);
        if (value && (key->choices || !g_str_equal(value, key->key))) {
            check_value(base, before, key->key, value);
        } else if (!key->choices) {
            check_value(base, before, key->key, "2");
        }
    }
}

static void none_is_silent(void) {
    unsigned n;
    const PlanStrategyKey *keys = plan_strategy_keys(&n);
    for (gsize base = 0; base < G_N_ELEMENTS(usual); base++) {
        PlanStrategy settled;
        g_autofree char *before = instructions(usual[base], &settled);
        g_assert_nonnull(before);
        for (unsigned i = 0; i < n; i++) {
            check_key(usual[base], before, &keys[i]);
        }
    }
}

static void says_what_it_is_of(void) {
    static const char *const cases[][3] = {
        {"ranks=4", "limit_all_gathers", "is FSDP1's (flavour=fsdp1)"},
        {"ranks=4 flavour=fsdp1", "limit_all_gathers", NULL},
        {"ranks=4", "wrap", NULL},
        {"ranks=4 sharding=none", "wrap", "is of what is sharded (sharding)"},
        {"ranks=4 optimizer=sgd", "beta1", "is Adam's (optimizer=adamw or adam)"},
        {"ranks=4 optimizer=muon", "beta1", NULL},
        {"ranks=4", "lr", NULL},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        PlanStrategy settled;
        const char *decided_by;
        g_autofree char *plan = instructions(cases[i][0], &settled);
        g_assert_cmpstr(plan_strategy_why_idle(&settled, cases[i][1], &decided_by), ==,
                        cases[i][2]);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/idle/none is silent", none_is_silent);
    g_test_add_func("/plan/idle/says what it is of", says_what_it_is_of);
    return g_test_run();
}
