/* Strategies and ini files: what is wrong is said with file, line and remedy. */
#include <math.h>
#include <string.h>

#include "plan/files/ini.h"
#include "plan/strategy/strategy.h"
#include "tests/plan/plans.h"

static void text_reads_back(void) {
    PlanStrategy a, b;
    plan_strategy_init(&a);
    a.ranks = 12;
    a.lr = 0.1 + 0.2; /* not a short decimal */
    a.wrap = (PlanVariant){.choice = PLAN_WRAP_EVERY, .number = 3};
    a.checkpointing = (PlanVariant){.choice = PLAN_CHECKPOINTING_RATIO, .number = 1.0 / 3};
    a.reshard_after_forward = (PlanVariant){.choice = PLAN_RESHARD_RANKS, .number = 4};
    g_autofree char *text = plan_strategy_text(&a);
    plan_strategy_init(&b);
    g_autoptr(GError) error = NULL;
    g_assert_true(plan_strategy_read(&b, text, strlen(text), "s.ini", &error));
    g_assert_no_error(error);
    g_autofree char *again = plan_strategy_text(&b);
    g_assert_cmpstr(text, ==, again);
}

/* Two pictures side by side say in what they differ. */
static void titles_tell_bargains(void) {
    static const char *const cases[][3] = {
        {"backward_prefetch", "none", "FSDP2, a unit per block, no backward prefetch, 8 ranks"},
        {"backward_prefetch", "pre", "FSDP2, a unit per block, 8 ranks"},
        {"offload", "optimizer", "FSDP2, a unit per block, optimizer offloaded, 8 ranks"},
        {"offload", "params", "FSDP2, a unit per block, parameters offloaded, 8 ranks"}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        PlanStrategy s;
        plan_strategy_init(&s);
        g_assert_true(plan_strategy_set(&s, "ranks", "8", NULL));
        g_assert_true(plan_strategy_set(&s, cases[i][0], cases[i][1], NULL));
        g_assert_true(plan_strategy_settle(&s, NULL));
        g_autofree char *title = plan_strategy_title(&s);
        g_assert_true(g_str_has_prefix(title, cases[i][2]));
    }
}

/* What a flavour alone is, written out. */
static void flavours_bring_sharding(void) {
    static const char *const cases[][2] = {{"ranks=8 flavour=ddp", "none"},
                                           {"ranks=1 flavour=plain", "none"},
                                           {"ranks=8 flavour=zero1", "optimizer-only"},
                                           {"ranks=8 flavour=fsdp1", "full"},
                                           {"ranks=8 flavour=fsdp1 sharding=none", "none"}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        PlanStrategy s;
        g_autoptr(GError) error = NULL;
        plan_strategy_of_words(&s, cases[i][0], &error);
        g_assert_no_error(error);
        g_autofree char *sharding = plan_strategy_value(&s, "sharding");
        g_assert_cmpstr(sharding, ==, cases[i][1]);
    }
}

/* Each key's value is one that the key takes, and the same again. */
static void values_read_back(void) {
    static const char *const set[][2] = {{"wrap", "every=3"},
                                         {"ranks", "12"},
                                         {"clip", "0.25"},
                                         {"sharding", "grad-op"},
                                         {"reshard_after_forward", "4"}};
    PlanStrategy s, again;
    plan_strategy_init(&s);
    plan_strategy_init(&again);
    for (gsize i = 0; i < G_N_ELEMENTS(set); i++) {
        g_assert_true(plan_strategy_set(&s, set[i][0], set[i][1], NULL));
        g_autofree char *value = plan_strategy_value(&s, set[i][0]);
        g_assert_cmpstr(value, ==, set[i][1]);
    }
    unsigned n;
    const PlanStrategyKey *keys = plan_strategy_keys(&n);
    for (unsigned i = 0; i < n; i++) {
        g_autofree char *value = plan_strategy_value(&s, keys[i].key);
        g_assert_true(plan_strategy_set(&again, keys[i].key, value, NULL));
    }
    g_autofree char *text = plan_strategy_text(&s), *same = plan_strategy_text(&again);
    g_assert_cmpstr(text, ==, same);
    g_assert_null(plan_strategy_value(&s, "no_such_key"));
}

/* A version sets defaults, and what is given itself wins. */
static void versions(void) {
    PlanStrategy s;
    plan_strategy_init(&s);
    g_assert_true(plan_strategy_set(&s, "pytorch", "2.0", NULL));
    g_assert_cmpuint(s.limit_all_gathers, ==, 0);
    g_assert_cmpuint(s.zero_grad, ==, PLAN_ZERO_DROP);
    g_assert_true(plan_strategy_set(&s, "pytorch", "1.13", NULL));
    g_assert_cmpuint(s.zero_grad, ==, PLAN_ZERO_KEEP);
    g_assert_cmpuint(s.optimizer_kernel, ==, PLAN_KERNEL_LOOP);
    g_assert_cmpuint(s.checkpoint_early_stop, ==, PLAN_NO);
    g_assert_true(plan_strategy_set(&s, "limit_all_gathers", "3", NULL));
    g_autofree char *text = plan_strategy_text(&s);
    PlanStrategy again;
    plan_strategy_init(&again);
    g_assert_true(plan_strategy_read(&again, text, strlen(text), "x.ini", NULL));
    g_assert_cmpuint(again.limit_all_gathers, ==, 3);
    g_assert_cmpuint(again.zero_grad, ==, PLAN_ZERO_KEEP);
}

/* The defaults of keys.def are those of the version that is current. */
static void versions_agree_with_defaults(void) {
    PlanStrategy s;
    plan_strategy_init(&s);
    g_autofree char *before = plan_strategy_text(&s);
    g_assert_true(plan_strategy_set(&s, "pytorch", "current", NULL));
    g_autofree char *after = plan_strategy_text(&s);
    g_assert_cmpstr(before, ==, after);
}

/* Whether a key stands before the version or behind it is all one. */
static void versions_leave_what_is_given(void) {
    static const char *const orders[][3] = {
        {"limit_all_gathers", "optimizer_kernel", "pytorch"},
        {"limit_all_gathers", "pytorch", "optimizer_kernel"},
        {"pytorch", "optimizer_kernel", "limit_all_gathers"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(orders); i++) {
        PlanStrategy s;
        plan_strategy_init(&s);
        for (unsigned k = 0; k < 3; k++) {
            const char *value = g_str_equal(orders[i][k], "pytorch")             ? "1.13"
                                : g_str_equal(orders[i][k], "limit_all_gathers") ? "2"
                                                                                 : "foreach";
            g_assert_true(plan_strategy_set(&s, orders[i][k], value, NULL));
        }
        g_assert_cmpuint(s.pytorch, ==, PLAN_PYTORCH_1_13);
        g_assert_cmpuint(s.limit_all_gathers, ==, 2);
        g_assert_cmpuint(s.optimizer_kernel, ==, PLAN_KERNEL_FOREACH);
        g_assert_cmpuint(s.zero_grad, ==, PLAN_ZERO_KEEP);
        g_assert_true(plan_strategy_set(&s, "pytorch", "current", NULL));
        g_assert_cmpuint(s.pytorch, ==, PLAN_PYTORCH_CURRENT);
        g_assert_cmpuint(s.zero_grad, ==, PLAN_ZERO_DROP);
        g_assert_cmpuint(s.limit_all_gathers, ==, 2);
    }
    PlanStrategy s;
    plan_strategy_init(&s);
    g_assert_false(plan_strategy_set(&s, "limit_all_gathers", "many", NULL));
    g_assert_true(
        plan_strategy_set(&s, "pytorch", "2.0", NULL)); /* what was refused is not given */
    g_assert_cmpuint(s.limit_all_gathers, ==, 0);
}

/* Each is like one that was recorded. */
static void versions_between(void) {
    static const struct {
        const char *version;
        PlanPytorch like;
        unsigned rms_norm, reshard_root, hold_reduced, attention_kernel;
    } cases[] = {
        {"current", PLAN_PYTORCH_CURRENT, PLAN_RMS_NORM_KERNEL, PLAN_YES, PLAN_NO,
         PLAN_ATTENTION_KERNEL_CUDNN},
        {"2.15.0", PLAN_PYTORCH_2_15, PLAN_RMS_NORM_KERNEL, PLAN_YES, PLAN_NO,
         PLAN_ATTENTION_KERNEL_CUDNN},
        {"2.14.1", PLAN_PYTORCH_2_14, PLAN_RMS_NORM_KERNEL, PLAN_YES, PLAN_NO,
         PLAN_ATTENTION_KERNEL_CUDNN},
        {"2.13", PLAN_PYTORCH_CURRENT, PLAN_RMS_NORM_KERNEL, PLAN_YES, PLAN_NO,
         PLAN_ATTENTION_KERNEL_CUDNN},
        {"2.12.1", PLAN_PYTORCH_2_12, PLAN_RMS_NORM_KERNEL, PLAN_YES, PLAN_YES,
         PLAN_ATTENTION_KERNEL_CUDNN},
        {"2.11.0", PLAN_PYTORCH_2_11, PLAN_RMS_NORM_KERNEL, PLAN_YES, PLAN_NO,
         PLAN_ATTENTION_KERNEL_CUDNN},
        {"2.9.1", PLAN_PYTORCH_2_11, PLAN_RMS_NORM_KERNEL, PLAN_YES, PLAN_NO,
         PLAN_ATTENTION_KERNEL_FLASH},
        {"2.8.0", PLAN_PYTORCH_2_11, PLAN_RMS_NORM_OPS, PLAN_YES, PLAN_NO,
         PLAN_ATTENTION_KERNEL_FLASH},
        {"2.7.1", PLAN_PYTORCH_2_11, PLAN_RMS_NORM_OPS, PLAN_NO, PLAN_NO,
         PLAN_ATTENTION_KERNEL_FLASH},
        {"2.5", PLAN_PYTORCH_2_11, PLAN_RMS_NORM_OPS, PLAN_NO, PLAN_NO,
         PLAN_ATTENTION_KERNEL_FLASH},
        {"2.4.1", PLAN_PYTORCH_2_4, PLAN_RMS_NORM_OPS, PLAN_NO, PLAN_NO,
         PLAN_ATTENTION_KERNEL_FLASH},
        {"2.3.1", PLAN_PYTORCH_2_3, PLAN_RMS_NORM_OPS, PLAN_NO, PLAN_NO,
         PLAN_ATTENTION_KERNEL_FLASH},
        {"2.1", PLAN_PYTORCH_2_3, PLAN_RMS_NORM_OPS, PLAN_NO, PLAN_NO, PLAN_ATTENTION_KERNEL_FLASH},
        {"2.0.1", PLAN_PYTORCH_2_0, PLAN_RMS_NORM_OPS, PLAN_NO, PLAN_NO,
         PLAN_ATTENTION_KERNEL_FLASH},
        {"1.13.1", PLAN_PYTORCH_1_13, PLAN_RMS_NORM_OPS, PLAN_NO, PLAN_NO,
         PLAN_ATTENTION_KERNEL_FLASH},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        PlanStrategy s;
        plan_strategy_init(&s);
        g_assert_true(plan_strategy_set(&s, "pytorch", cases[i].version, NULL));
        g_assert_cmpuint(s.pytorch, ==, cases[i].like);
        g_assert_cmpuint(s.rms_norm, ==, cases[i].rms_norm);
        g_assert_cmpuint(s.reshard_root, ==, cases[i].reshard_root);
        g_assert_cmpuint(s.hold_reduced, ==, cases[i].hold_reduced);
        g_assert_cmpuint(s.attention_kernel, ==, cases[i].attention_kernel);
    }
    static const char *const refused[] = {"1.12", "2.16",   "3.0",  "2", "2.",
                                          "2.6x", "2.1234", "-2.6", ""};
    for (unsigned i = 0; i < G_N_ELEMENTS(refused); i++) {
        PlanStrategy s;
        plan_strategy_init(&s);
        g_autoptr(GError) error = NULL;
        g_assert_false(plan_strategy_set(&s, "pytorch", refused[i], &error));
        g_assert_nonnull(strstr(error->message, "current or a version from 1.13 to 2.15, not '"));
    }
}

/* A remedy that would be refused as well is none. */
static void written_out(void) {
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"4k", "; write it out: 4000, or 4096 (k may be either)"},
        {"4kB", "; write it out: 4000, or 4096 (kB may be either)"},
        {"4 KiB", "; write it out: 4096"},
        {"4Ki", ""},
        {"1e4", "; write it out: 10000"},
        {"0", ""}, /* too small as it stands */
        {"20000", ""},
        {"1e9", ""},
        {"1M", ""},
        {"-1e2", ""},
        {"1.5", ""},
        {"many", ""},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *hint = plan_written_out(cases[i].text, 1, 10000);
        g_assert_cmpstr(hint, ==, cases[i].expected);
    }
}

/* "every=K" is no better word for "every=0", but it is one for "evry=2". */
static void near_names(void) {
    static const struct {
        const char *value;
        bool is_near;
    } cases[] = {{"every=0", false}, {"every=x", false}, {"evry=2", true}, {"blok", true}};
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        PlanStrategy strategy;
        plan_strategy_init(&strategy);
        g_autoptr(GError) error = NULL;
        g_assert_false(plan_strategy_set(&strategy, "wrap", cases[i].value, &error));
        g_assert_true((strstr(error->message, "did you mean") != NULL) == cases[i].is_near);
    }
}

static void bad_files(void) {
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"[strategy]\nranks = 0\n", "s.ini:2: ranks must be a whole number from 1 to 1000000, not"},
        {"[strategy]\nranks = -1\n", "s.ini:2: ranks must be"},
        {"[strategy]\nseq = 4k\n", "s.ini:2: seq must be a whole number from 0 to 10000000, not "
                                   "'4k'; write it out: 4000, or 4096 (k may be either)"},
        {"[strategy]\nseq = 1M\n", "s.ini:2: seq must be a whole number from 0 to 10000000, not "
                                   "'1M'; write it out: 1000000, or 1048576 (M may be either)"},
        {"[strategy]\nseq = 1e4\n",
         "s.ini:2: seq must be a whole number from 0 to 10000000, not '1e4'; write it out: 10000"},
        {"[strategy]\nwrap = blocks\n",
         "s.ini:2: wrap must be one of block, whole, linear, every=K, size=N, module=REGEX, not "
         "'blocks' (K and N are whole numbers from 1)"},
        {"[strategy]\n\nwrap = blocks\n", "s.ini:3: wrap must be one of block, whole"},
        {"[strategy]\nwarp = block\n", "s.ini:2: 'warp' is no key of a strategy"},
        {"[strategy]\nreshard_after_forward = 0\n",
         "s.ini:2: reshard_after_forward must be one of"},
        {"[strategy]\nlr = fast\n", "s.ini:2: lr must be a number"},
        {"[strategy]\nlr = nan\n", "s.ini:2: lr must be a number"},
        {"ranks = 2\n", "s.ini:1: 'ranks' stands outside [strategy]"},
        {"[strategy\nranks = 2\n", "s.ini:1: a section is written [name]"},
        {"[strategy]\nranks\n", "s.ini:2: expected a [section] or a line"},
        {"[strategy]\nranks=2\nranks=3\n", "s.ini:3: 'ranks' stands twice"},
        {"[strategy]\n\xff\n", "s.ini:2: not text"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        PlanStrategy strategy;
        plan_strategy_init(&strategy);
        g_autoptr(GError) error = NULL;
        g_assert_false(
            plan_strategy_read(&strategy, cases[i].text, strlen(cases[i].text), "s.ini", &error));
        g_assert_nonnull(error);
        if (!g_str_has_prefix(error->message, cases[i].expected)) {
            g_test_message("expected '%s', got '%s'", cases[i].expected, error->message);
            g_test_fail();
        }
    }
}

static void comments(void) {
    const char *text = "# a comment\n; another\n[a]\nkey = value # behind\nb = x#y\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(PlanIni) ini = plan_ini_read(text, strlen(text), "c.ini", &error);
    g_assert_no_error(error);
    g_assert_cmpuint(ini->n_entries, ==, 2);
    g_assert_cmpstr(plan_ini_find(ini, "a", "key")->value, ==, "value");
    g_assert_cmpstr(plan_ini_find(ini, "a", "b")->value, ==, "x#y");
    g_assert_cmpuint(plan_ini_find(ini, "a", "b")->line, ==, 5);
}

static void numbers_in_few_digits(void) {
    static const struct {
        double number;
        const char *text;
    } cases[] = {
        {0, "0"},
        {0.9, "0.9"},
        {1e-8, "1e-08"},
        {-2.5, "-2.5"},
        {512, "512"},
        {0.1 + 0.2, "0.30000000000000004"}, /* another number than 0.3 */
        {2.0 / 3, "0.6666666666666666"},
        {1e308, "1e+308"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        char text[G_ASCII_DTOSTR_BUF_SIZE];
        g_assert_cmpstr(plan_double_text(text, cases[i].number), ==, cases[i].text);
    }
    g_autoptr(GRand) dice = g_rand_new_with_seed(1);
    for (unsigned i = 0; i < 10000; i++) {
        double number = ldexp(g_rand_double(dice) - 0.5, g_rand_int_range(dice, -1000, 1000)), read;
        char text[G_ASCII_DTOSTR_BUF_SIZE];
        g_assert_true(plan_parse_double(plan_double_text(text, number), &read));
        g_assert_true(read == number);
    }
}

/* What a plan could not say again is not planned. */
static void values_that_no_line_holds(void) {
    static const char *const values[] = {"module=h.0\nranks = 3", "module=h.0|(a # b)",
                                         "module=h.0|(a ; b)", " block", "block "};
    PlanStrategy strategy;
    plan_strategy_init(&strategy);
    for (unsigned i = 0; i < G_N_ELEMENTS(values); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_false(plan_strategy_set(&strategy, "wrap", values[i], &error));
        g_assert_true(g_str_has_prefix(error->message, "wrap must be one line without a comment"));
    }
    g_assert_true(plan_strategy_set(&strategy, "wrap", "module=h.0|a#b", NULL));
}

/* A plan says its strategy; in words of another version the allocator is not guessed. */
static void allocators(void) {
    static const struct {
        const char *text, *conf;
    } rows[] = {{"", ""},
                {"[strategy]\nallocator = expandable\n", "expandable_segments:True"},
                {"[strategy]\nallocator = arena\n", NULL},
                {"[strategy]\nallocator = conf=max_split_size_mb:64\n", "max_split_size_mb:64"}};
    const char *conf;
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_true(plan_allocator_conf(rows[i].text, &conf, &error));
        g_assert_cmpstr(conf, ==, rows[i].conf);
    }
    g_autoptr(GError) error = NULL;
    g_assert_false(plan_allocator_conf("[strategy]\nalocator = expandable\n", &conf, &error));
    g_assert_nonnull(strstr(error->message, "make it again: strategy:2: 'alocator' is no key"));
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/strategy/text reads back", text_reads_back);
    g_test_add_func("/plan/strategy/titles tell bargains", titles_tell_bargains);
    g_test_add_func("/plan/strategy/flavours bring sharding", flavours_bring_sharding);
    g_test_add_func("/plan/strategy/values read back", values_read_back);
    g_test_add_func("/plan/strategy/bad files name line and remedy", bad_files);
    g_test_add_func("/plan/strategy/numbers written out", written_out);
    g_test_add_func("/plan/strategy/near names", near_names);
    g_test_add_func("/plan/strategy/versions set defaults", versions);
    g_test_add_func("/plan/strategy/versions agree with defaults", versions_agree_with_defaults);
    g_test_add_func("/plan/strategy/versions leave what is given", versions_leave_what_is_given);
    g_test_add_func("/plan/strategy/versions between", versions_between);
    g_test_add_func("/plan/strategy/allocators", allocators);
    g_test_add_func("/plan/strategy/values that no line holds", values_that_no_line_holds);
    g_test_add_func("/plan/ini/comments", comments);
    g_test_add_func("/plan/ini/numbers in as few digits as tell them", numbers_in_few_digits);
    return g_test_run();
}
