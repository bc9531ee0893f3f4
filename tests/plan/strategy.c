/* Strategies and ini files: what is wrong is said with file, line and remedy. */
#include "plan/strategy/strategy.h"

#include <math.h>
#include <string.h>

#include "plan/files/ini.h"
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

static void contradictions(void) {
    static const struct {
        const char *words, *expected;
    } cases[] = {
        {"ranks=2 sharding=none flavour=plain", "flavour=plain is for one rank"},
        {"ranks=2 flavour=ddp", "flavour=ddp shards nothing"},
        {"ranks=2 sharding=none flavour=fsdp2", "flavour=fsdp2 shards; set sharding"},
        {"ranks=4 replicate=2", "replicate belongs to hybrid sharding"},
        {"ranks=6 sharding=hybrid", "hybrid sharding in groups of 8 ranks needs a multiple of 8"},
        {"ranks=6 sharding=hybrid replicate=4",
         "replicate (the number of groups) must divide ranks"},
        {"ranks=6 reshard_after_forward=4", "reshard_after_forward=N needs an N that divides"},
        {"ranks=6 flavour=fsdp1 reshard_after_forward=yes", "reshard_after_forward is FSDP2's"},
        {"ranks=2 flavour=fsdp1 wrap_ends=tail", "wrap_ends=tail is FSDP2's"},
        {"ranks=6 sharding=grad-op reshard_after_forward=yes", "sharding grad-op keeps"},
        {"ranks=2 wrap=linear checkpointing=full checkpoint_early_stop=no",
         "unit layers.0.linear lies inside layers.0"},
        {"ranks=2 wrap=linear checkpointing=full forward_prefetch=yes flavour=fsdp1",
         "unit layers.0.linear lies inside layers.0"},
        {"ranks=2 checkpointing=module=mlp",
         "checkpointing=module=mlp is the whole name or class of nothing that lies in a block"},
        {"ranks=2 wrap=module=linear",
         "wrap=module=linear is the whole name or class of no module"},
        {"ranks=2 bucket_view=yes", "bucket_view is DDP's"},
        {"ranks=2 find_unused=yes", "find_unused and static_graph are DDP's"},
        {"ranks=2 sharding=none find_unused=yes static_graph=yes", "static_graph finds what is"},
        {"ranks=2 sharding=none static_graph=yes accumulate=2", "PyTorch fails at static_graph"},
        {"ranks=2 optimizer=sgd optimizer_kernel=fused", "fused SGD has no rule for FSDP2"},
        {"ranks=2 sharding=none offload=params", "offload=params is FSDP's"},
        {"ranks=2 offload=activations", "offload=activations moves what checkpointed blocks keep"},
        {"ranks=2 expert=2 sharding=none", "expert=2 is planned only with FSDP2"},
        {"ranks=4 expert=4 sharding=hybrid replicate=2",
         "expert=4 does not divide the 2 ranks that share a copy of the model; change one"},
        {"ranks=3 expert=2", "expert=2 does not divide the 3 ranks that share a copy"},
        {"ranks=8 pipeline=2 accumulate=2 expert=8", "expert=8 does not divide the 4 ranks that "
                                                     "share a copy of the model in a stage"},
        {"ranks=8 expert=2 tensor=2", "expert=2 is not planned with layers that ranks share"},
        {"ranks=2 expert=2 kernels=fused", "expert=2 is not planned with fused kernels"},
        {"ranks=2 expert=2 wrap=whole", "expert=2 is planned only with a unit for each block"},
        {"ranks=2 expert=2 forward_prefetch=1",
         "expert=2 has its own lists of what is gathered ahead"},
        {"ranks=2 expert=2 reduce_dtype=fp16", "expert=2 is planned only with gradients reduced"},
        {"ranks=6 pipeline=4 accumulate=4", "pipeline=4 does not divide the 6 ranks;"},
        {"ranks=4 sharding=hybrid pipeline=8", "pipeline=8 does not divide the 4 ranks;"},
        {"ranks=2 sharding=hybrid pipeline=16 tensor=2",
         "pipeline=16 does not divide the 2 ranks;"},
        {"ranks=8 sharding=hybrid pipeline=2 accumulate=2",
         "hybrid sharding in groups of 8 ranks needs a multiple"},
        {"ranks=4 pipeline=2", "pipeline=2 needs at least as many microbatches per step"},
        {"ranks=4 pipeline=2 accumulate=2 sharding=none", "pipeline=2 is planned only with FSDP2"},
        {"ranks=4 pipeline=2 accumulate=2 flavour=fsdp1", "pipeline=2 is planned only with FSDP2"},
        {"ranks=24 pipeline=2 accumulate=2 tensor=8",
         "tensor=8 does not divide the 12 ranks of a stage (ranks / pipeline); change one"},
        {"ranks=6 pipeline=2 accumulate=2 context=2",
         "context=2 does not divide the 3 ranks that share a copy"},
        {"ranks=8 pipeline=2 accumulate=2 tensor=2 tensor_plan=kempnerforge kernels=compiled",
         "pipeline=2 is planned only with torchtitan's way"},
        {"ranks=4 pipeline=2 accumulate=2 kernels=fused",
         "pipeline=2 is not planned with fused kernels"},
        {"ranks=4 pipeline=2 accumulate=2 kernels=compiled compile=network",
         "pipeline=2 is planned only with blocks compiled one by one"},
        {"ranks=4 pipeline=2 accumulate=2 reshard_after_forward=yes "
         "pipeline_schedule=looped-bfs pipeline_stages=2",
         "pipeline=2 with several stages per rank is planned only with units that stay whole"},
        {"ranks=4 pipeline=2 accumulate=2 accumulate_sync=every",
         "pipeline=2 reduces gradients only after"},
        {"ranks=4 pipeline=2 accumulate=2 zero_grad=keep",
         "pipeline=2 is not planned with gradients that are kept"},
        {"ranks=4 pipeline=2 accumulate=2 host_reads=loss",
         "pipeline=2 is not planned with reads within a step"},
        {"ranks=4 pipeline=2 accumulate=2 wrap_ends=own",
         "pipeline=2 is planned only with a unit for"},
        {"ranks=4 pipeline=2 accumulate=2 offload=params",
         "pipeline=2 is not planned with offload"},
        {"ranks=2 pipeline_schedule=gpipe", "pipeline_schedule and pipeline_stages need stages"},
        {"ranks=6 context=4", "context=4 does not divide the 6 ranks that share a copy"},
        {"ranks=2 context=2 sharding=none", "context=2 is planned only with FSDP2;"},
        {"ranks=2 context=2 flavour=fsdp1", "context=2 is planned only with FSDP2;"},
        {"ranks=6 context=2 sharding=hybrid replicate=2",
         "context=2 does not divide the 3 ranks that share a copy"},
        {"ranks=6 context=2 tensor=2", "context=2 does not divide the 3 ranks that share a copy"},
        {"ranks=4 context=2 tensor=2 tensor_plan=kempnerforge kernels=compiled",
         "context=2 is planned only with torchtitan's way"},
        {"ranks=2 context=2 kernels=fused", "context=2 is planned only with eager kernels or"},
        {"ranks=2 context=2 kernels=compiled compile=network",
         "context=2 is planned only with eager kernels or compiled blocks"},
        {"ranks=2 context=2 kernels=compiled checkpointing=selective-op",
         "context=2 with compiled blocks is not planned with selective"},
        {"ranks=2 context=2 autocast=bf16", "context=2 is not planned with autocast"},
        {"ranks=2 context=2 offload=params", "context=2 is not planned with offload"},
        {"ranks=6 tensor=4",
         "tensor=4 does not divide the 6 ranks; change one of them, or tensor=1"},
        {"ranks=2 tensor=2 sharding=none optimizer=sgd",
         "tensor=2 without FSDP is planned only for AdamW"},
        {"ranks=2 tensor=2 sharding=none optimizer_kernel=loop",
         "tensor=2 without FSDP is planned only for AdamW"},
        {"ranks=4 tensor=2 flavour=plain sharding=none", "flavour=plain is for one rank"},
        {"ranks=4 tensor=2 sharding=none", "tensor=2 is planned only with FSDP2;"},
        {"ranks=4 tensor=2 flavour=fsdp1", "tensor=2 is planned only with FSDP2"},
        {"ranks=8 tensor=2 sharding=hybrid replicate=3",
         "replicate (the number of groups) must divide ranks / tensor"},
        {"ranks=24 tensor=3 sharding=hybrid",
         "hybrid sharding in groups of 8 ranks needs a multiple"},
        {"ranks=4 tensor=2 pytorch=2.4", "tensor=2 is planned only for current PyTorch"},
        {"ranks=4 context=2 param_dtype=bf16 kernels=compiled pytorch=2.14",
         "context=2 with compiled blocks is not planned since PyTorch 2.14"},
        {"ranks=4 pipeline=2 accumulate=2 pytorch=2.15",
         "pipeline=2 is not planned for PyTorch 2.15"},
        {"ranks=4 tensor=2 kernels=fused", "tensor=2 is not planned with fused kernels"},
        {"ranks=4 tensor=2 tensor_plan=kempnerforge",
         "tensor_plan=kempnerforge is planned only with compiled"},
        {"ranks=4 kernels=compiled tensor_plan=kempnerforge",
         "tensor_plan needs ranks that share layers"},
        {"ranks=4 tensor=2 tensor_plan=transformers", "tensor_plan=transformers leaves sequences"},
        {"ranks=4 sequence_parallel=no", "sequence_parallel=no needs ranks that share layers"},
        {"ranks=4 tensor=2 sequence_parallel=no kernels=compiled checkpointing=selective-op",
         "sequence_parallel=no with compiled kernels is planned only block by block"},
        {"ranks=4 tensor=2 sequence_parallel=no kernels=compiled compile=network",
         "sequence_parallel=no with compiled kernels is planned only block by block"},
        {"ranks=4 tensor=2 sequence_parallel=no kernels=compiled param_dtype=bf16 async_tensor=yes",
         "async_tensor=yes is planned only with torchtitan's way"},
        {"ranks=4 tensor=2 sequence_parallel=no kernels=compiled param_dtype=bf16 "
         "float8=tensorwise",
         "float8 is planned only with torchtitan's way"},
        {"ranks=4 tensor=2 context=2 sequence_parallel=no",
         "context=2 is planned only with torchtitan's way"},
        {"ranks=2 tensor=2 sharding=none sequence_parallel=no zero_grad=keep",
         "tensor=2 without FSDP and sequence_parallel has gradients of two kinds"},
        {"ranks=8 tensor=2 reshard_after_forward=2",
         "tensor=2 is not planned with reshard_after_forward=N"},
        {"ranks=4 tensor=2 autocast=bf16", "tensor=2 is not planned with autocast"},
        {"ranks=4 tensor=2 param_dtype=fp16 loss_scale=dynamic",
         "tensor=2 is not planned with a scaled loss"},
        {"ranks=4 tensor=2 lora_rank=4",
         "tensor=2 is not planned with frozen parameters or adapters"},
        {"ranks=4 tensor=2 offload=params", "tensor=2 is not planned with offload"},
        {"ranks=4 tensor=2 deterministic=yes", "tensor=2 is not planned with deterministic"},
        {"ranks=2 sharding=optimizer-only zero_grad=keep", "sharding=optimizer-only keeps no"},
        {"ranks=2 sharding=optimizer-only accumulate=2 accumulate_sync=every",
         "sharding=optimizer-only reduces gradients once"},
        {"ranks=2 sharding=optimizer-only flavour=fsdp1", "flavour=fsdp1 shards gradients too"},
        {"ranks=2 sharding=none forward_prefetch=1", "forward_prefetch is FSDP's"},
        {"ranks=2 flavour=fsdp1 forward_prefetch=2", "forward_prefetch=N is FSDP2's"},
        {"ranks=2 flavour=fsdp1 reshard_last=no", "reshard_last=no is FSDP2's"},
        {"ranks=2 flavour=fsdp1 reshard_after_backward=no", "reshard_after_backward=no is FSDP2's"},
        {"ranks=4 pipeline=2 accumulate=2 reshard_after_backward=no",
         "pipeline=2 keeps a stage's units whole"},
        {"ranks=4 accumulate=2 accumulate_sync=scatter",
         "accumulate_sync=scatter leaves out the sums between groups; set sharding=hybrid"},
        {"ranks=4 flavour=fsdp1 sharding=hybrid replicate=2 accumulate=2 accumulate_sync=scatter",
         "accumulate_sync=scatter is FSDP2's"},
        {"ranks=2 flavour=fsdp1 param_dtype=bf16 output_dtype=fp32", "output_dtype is FSDP2's"},
        {"ranks=2 output_dtype=fp32", "output_dtype is planned only where units cast"},
        {"ranks=2 param_dtype=bf16 output_dtype=bf16 kernels=compiled",
         "output_dtype is planned only with eager kernels"},
        {"ranks=4 tensor=2 param_dtype=bf16 output_dtype=bf16",
         "output_dtype is planned only where ranks share nothing"},
        {"ranks=2 param_dtype=bf16 output_dtype=fp32 autocast=bf16",
         "output_dtype under autocast is planned only"},
        {"ranks=2 param_dtype=bf16 output_dtype=fp32 checkpointing=full checkpoint_place=outside",
         "output_dtype of another dtype than param_dtype is not planned with checkpoint_place"},
        {"ranks=2 param_dtype=bf16 output_dtype=fp32 checkpointing=full checkpoint_early_stop=no",
         "output_dtype of another dtype than param_dtype is not planned with checkpoint_early"},
        {"ranks=2 param_dtype=bf16 output_dtype=fp32 wrap=every=2",
         "output_dtype of another dtype than param_dtype is not planned where several"},
        {"ranks=2 flavour=fsdp1 param_dtype=bf16 keep_low_precision_grads=yes",
         "keep_low_precision_grads=yes leaves"},
        {"ranks=2 param_dtype=bf16 keep_low_precision_grads=yes",
         "keep_low_precision_grads is FSDP1's"},
        {"ranks=2 deterministic=yes kernels=compiled",
         "deterministic is planned only with eager kernels"},
        {"ranks=2 deterministic=unfilled pytorch=2.0 flavour=fsdp1",
         "deterministic is not planned for PyTorch 2.0 and before"},
        {"ranks=2 deterministic=yes offload=params",
         "deterministic is not planned with sharding=optimizer-only or offload"},
        {"ranks=2 deterministic=yes sharding=optimizer-only",
         "deterministic is not planned with sharding=optimizer-only or offload"},
        {"ranks=2 pytorch=2.0", "flavour=fsdp2 came with PyTorch 2.4"},
        {"ranks=2 pytorch=2.3", "flavour=fsdp2 came with PyTorch 2.4; set pytorch=2.4"},
        {"ranks=2 pytorch=2.4 forward_prefetch=2",
         "FSDP2 of PyTorch 2.4 cannot be told what to prefetch"},
        {"ranks=2 pytorch=2.4 backward_prefetch=none",
         "FSDP2 of PyTorch 2.4 cannot be told what to prefetch"},
        {"ranks=8 pytorch=1.13 flavour=fsdp1 use_orig_params=yes",
         "hybrid sharding and use_orig_params came with"},
        {"ranks=8 pytorch=1.13 flavour=fsdp1 sharding=hybrid",
         "hybrid sharding and use_orig_params came with"},
        {"ranks=2 host_reads=norm", "host_reads=norm and both need clipping"},
        {"ranks=2 host_reads=both", "host_reads=norm and both need clipping"},
        {"ranks=2 host_reads=both clip=1 flavour=fsdp1 pytorch=1.13",
         "host_reads=norm and both need a norm to read, and FSDP1's clip_grad_norm_"},
        {"ranks=2 compile=network", "compile needs compiled kernels"},
        {"ranks=2 optimizer_count=device", "optimizer_count=device is for Adam's loop"},
        {"ranks=2 optimizer_count=device optimizer_kernel=fused", "optimizer_count=device is for"},
        {"ranks=2 optimizer_count=device optimizer_kernel=loop optimizer=sgd",
         "optimizer_count=device is for Adam's loop"},
        {"ranks=2 optimizer_count=device optimizer_kernel=loop offload=params",
         "optimizer_count=device needs the optimizer on the device"},
        {"ranks=2 sharding=none param_dtype=bf16", "param_dtype and reduce_dtype are FSDP's"},
        {"ranks=2 sharding=optimizer-only loss_scale=dynamic",
         "loss_scale is not planned with sharding=optimizer-only"},
        {"ranks=4 flavour=fsdp1 sharding=hybrid replicate=2 loss_scale=dynamic",
         "loss_scale is not planned with sharding=optimizer-only, nor with hybrid"},
        {"ranks=2 loss_scale=dynamic offload=params",
         "loss_scale is not planned with parameters or optimizer on the host"},
        {"ranks=2 loss_scale=dynamic offload=optimizer",
         "loss_scale is not planned with parameters or optimizer on the host"},
        {"ranks=2 loss_scale=from=8 model_dtype=fp16", "GradScaler refuses gradients in fp16"},
        {"ranks=2 loss_scale=dynamic optimizer=sgd optimizer_kernel=fused",
         "loss_scale with fused SGD is not planned"},
        {"ranks=2 autocast=bf16 kernels=fused", "autocast is not planned with fused kernels"},
        {"ranks=2 sharding=optimizer-only autocast=bf16",
         "autocast is not planned with sharding=optimizer-only"},
        {"ranks=2 autocast=bf16 param_dtype=fp16",
         "autocast and param_dtype are two different 16-bit dtypes"},
        {"ranks=2 weight_decay=-0.5", "weight_decay is 0 or more"},
        {"ranks=2 freeze=module=layers.0 flavour=fsdp1 wrap=whole",
         "unit root is trained in part, which a flat parameter of FSDP1 cannot be"},
        {"ranks=2 freeze=module=layers.0 sharding=optimizer-only",
         "frozen parameters are not planned with sharding=optimizer-only"},
        {"ranks=2 lora_rank=2 kernels=compiled",
         "frozen parameters are planned only with eager kernels"},
        {"ranks=2 lora_rank=2 lora_base=nf4",
         "lora_base with FSDP wants bytes that lie in the dtype of what they are joined with; set "
         "lora_base_storage=model"},
        {"ranks=2 lora_rank=2 lora_base=nf4 lora_base_storage=model param_dtype=bf16",
         "lora_base with FSDP wants param_dtype=model"},
        {"ranks=2 sharding=none lora_base=nf4",
         "lora_base is of what adapters are beside; set lora_"},
        {"ranks=2 sharding=none lora_rank=2 lora_base_double=yes",
         "lora_base_double and lora_base_storage are of weights in 4 bits, and there are none"},
        {"ranks=2 sharding=none lora_rank=2 lora_base_storage=model",
         "lora_base_double and lora_base_storage are of weights in 4 bits, and there are none"},
        {"ranks=2 sharding=none lora_rank=2 lora_base=nf4 checkpointing=selective-op",
         "lora_base is not planned with checkpointing=selective-op; set checkpointing=full"},
        {"ranks=2 lora_dropout=0.1",
         "lora_dropout is of adapters, and there are none; set lora_rank"},
        {"ranks=2 lora_rank=2 pytorch=2.4",
         "frozen parameters with FSDP are planned only for current"},
        {"ranks=2 lora_rank=2 lora_dtype=fp32 model_dtype=bf16",
         "lora_dtype=fp32 with 16-bit weights gives FSDP's units two dtypes"},
        {"ranks=2 lora_rank=2",
         "lora_on=.*\\.(q|v|qkv|Wqkv|q_proj|v_proj) names no linear layer of a block"},
        {"ranks=2 freeze=module=layers", "freeze=module=layers is the whole name or class of no"},
        {"ranks=2 freeze=module=\\Qlayers.0",
         "freeze=module=\\Qlayers.0 needs a regular expression that can be matched"},
        {"ranks=2 freeze=module=(?x)layers#one", "freeze=module=(?x)layers#one needs a regular"},
        {"ranks=2 wrap=module=a)|(?:b", "wrap=module=a)|(?:b needs a regular expression"},
        {"ranks=2 freeze=module=.*", "freeze=module=.* leaves nothing to train"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = test_plan_error(MLP_TOY, cases[i].words);
        g_assert_true(g_str_has_prefix(error->message, cases[i].expected));
    }
}

/* What ranks would share is of a Llama as torchtitan has it, and divides by them. */
static void layers_that_are_not_shared(void) {
    static const struct {
        const char *more, *expected;
    } cases[] = {
        {"family=gpt\nheads=2\n", "is not planned for families other than llama"},
        {"family=llama\nheads=2\nkv_heads=1\n", "does not divide kv_heads (1)"},
        {"family=llama\nheads=2\nkv_heads=2\ntied=yes\n", "a head that is the embedding"},
        {"family=llama\nheads=2\nkv_heads=2\nqkv=joined\n", "q, k and v of one layer"},
        {"family=llama\nheads=2\nkv_heads=2\nqk_norm=width\n", "norms over the whole of q and k"},
        {"family=llama\nheads=2\nkv_heads=2\nloss=metered\n", "a metered or chunked loss"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf(
            "[network]\n%slayers=1\nwidth=8\nffn=8\nvocab=12\nseq=8\n", cases[i].more);
        g_autoptr(GError) error = test_plan_error(text, "ranks=4 tensor=2");
        g_assert_nonnull(strstr(error->message, cases[i].expected));
    }
}

/* Nor are sequences, of which every rank has two parts. */
static void sequences_that_are_not_shared(void) {
    static const struct {
        const char *more, *words, *expected;
    } cases[] = {
        {"family=gpt\nheads=2\n", "param_dtype=bf16",
         "is not planned for families other than llama"},
        {"family=llama\nheads=2\nattention=math\n", "", "attention with its scores in memory"},
        {"family=llama\nheads=2\nqkv=joined\n", "param_dtype=bf16", "q, k and v of one layer"},
        {"family=llama\nheads=2\nrope=complex\n", "param_dtype=bf16", "another rotary embedding"},
        {"family=llama\nheads=2\nqk_norm=width\n", "param_dtype=bf16",
         "norms over the whole of q and k"},
        {"family=llama\nheads=2\nqk_norm=head\n", "", "norms of q and k in fp32"},
        {"family=llama\nheads=2\nkv_heads=1\n", "", "groups of heads in fp32"},
        {"family=llama\nheads=2\n", "", "a rank's part of a sequence that 64 does not divide"},
        {"family=llama\nheads=2\n", "param_dtype=bf16 seq=6", "a sequence of 6 tokens is not cut"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf(
            "[network]\n%slayers=1\nwidth=8\nffn=8\nvocab=12\nseq=8\n", cases[i].more);
        g_autofree char *words = g_strconcat("ranks=2 context=2 ", cases[i].words, NULL);
        g_autoptr(GError) error = test_plan_error(text, words);
        g_assert_nonnull(strstr(error->message, cases[i].expected));
    }
}

/* Nor are experts that do not divide, or that are transformers'. */
static void experts_that_are_not_shared(void) {
    static const struct {
        const char *more, *words, *expected;
    } cases[] = {
        {"", "ranks=4 expert=4", "expert=4 does not divide the experts"},
        {"", "ranks=12 expert=2", "more ranks than experts shards each expert by rows"},
        {"code=transformers\nqk_norm=head\n", "ranks=2 expert=2 param_dtype=bf16",
         "torchtitan's experts, not transformers'"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text =
            g_strdup_printf("[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=2\nexperts=6\n"
                            "experts_per_token=2\nexpert_ffn=8\nvocab=12\nseq=8\n%s",
                            cases[i].more);
        g_autoptr(GError) error = test_plan_error(text, cases[i].words);
        g_assert_nonnull(strstr(error->message, cases[i].expected));
    }
    g_autoptr(GError) error = test_plan_error(MLP_TOY, "ranks=2 expert=2");
    g_assert_nonnull(strstr(error->message, "is planned only for family llama with experts"));
}

static void adapters_of_one_layer(void) {
    const char *text =
        "[network]\nfamily=neox\nlayers=1\nwidth=8\nheads=2\nffn=8\nvocab=12\nseq=8\n"
        "rotary_share=0.5\n";
    g_autoptr(GError) error = test_plan_error(text, "ranks=2 lora_rank=2");
    g_assert_nonnull(strstr(error->message, "family neox, where one layer gives q, k and v"));
}

/* What an old PyTorch could not run is not planned as if it had. */
static void kernels_that_were_not(void) {
    const char *text = "[network]\nfamily=t5\nlayers=1\nwidth=8\nheads=2\nffn=8\nvocab=12\nseq=8\n"
                       "attention=kernel\n";
    static const char *const refused[] = {"ranks=2 pytorch=2.0 flavour=fsdp1",
                                          "ranks=2 pytorch=1.13 flavour=fsdp1"};
    for (unsigned i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autoptr(GError) error = test_plan_error(text, refused[i]);
        g_assert_nonnull(strstr(error->message, "takes no scale before PyTorch 2.1"));
    }
    g_autoptr(Plan) plan = test_plan(text, "ranks=2 pytorch=2.4 flavour=fsdp1");
    g_assert_cmpuint(plan->world, ==, 2);
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

/* Tensors whose elements no number here counts. */
static void tensors_beyond_all_memory(void) {
    const char *text = "[network]\nfamily=gpt\nlayers=1\nwidth=64\nheads=4\nvocab=16777216\n"
                       "seq=16777216\n";
    g_autoptr(GError) error = test_plan_error(text, "ranks=1 sharding=none micro_batch=1000000");
    g_assert_nonnull(strstr(error->message, "that no memory holds; lower one of them"));
    const char *latent = "[network]\nfamily=llama\nlayers=1\nwidth=64\nheads=16384\nvocab=96\n"
                         "seq=1024\nffn=64\nrope=complex\nkv_lora_rank=8\nv_head_dim=8\n"
                         "qk_nope_head_dim=16384\nqk_rope_head_dim=16384\n";
    g_autoptr(GError) heads = test_plan_error(latent, "ranks=1 sharding=none micro_batch=1000000");
    g_assert_nonnull(strstr(heads->message, "that no memory holds; lower one of them"));
    const char *wide = "[network]\nfamily=llama\nlayers=40\nwidth=1048576\nheads=8\nvocab=96\n"
                       "seq=32\nexperts=4096\nexperts_per_token=2\nexpert_ffn=4194304\n";
    g_autoptr(GError) many = test_plan_error(wide, "ranks=65536");
    g_assert_nonnull(strstr(many->message, "has more than 2^58 parameters"));
    const char *sound = "[network]\nfamily=llama\nlayers=1000\nwidth=64\nheads=8\nvocab=96\n"
                        "ffn=4194304\nseq=1048576\n";
    g_autoptr(GError) sum = test_plan_error(sound, "ranks=2 micro_batch=2000");
    g_assert_nonnull(strstr(sum->message, "role 0: its buffers come to more than 2^62 bytes"));
    g_autoptr(Plan) plan = test_plan(text, "ranks=1 sharding=none seq=4096 micro_batch=1000");
    g_assert_cmpuint(plan->tokens_per_rank, ==, 4096000);
}

/* Weights that two units would share, and units that run twice. */
static void units_that_cannot_be(void) {
    static const struct {
        const char *network, *expected;
    } cases[] = {
        {"[network]\nfamily=gpt\nlayers=1\nwidth=8\nheads=2\nvocab=12\nseq=8\ntied=yes\n",
         "module head uses wte.weight, which belongs to unit wte"},
        {"[network]\nfamily=t5\nlayers=1\nwidth=8\nheads=2\nffn=8\nvocab=12\nseq=8\n",
         "module shared runs twice a pass"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = test_plan_error(cases[i].network, "ranks=2 wrap_ends=own");
        g_assert_true(g_str_has_prefix(error->message, cases[i].expected));
    }
}

/* Where nothing is cast for them they may be. */
static void adapters_that_are_units(void) {
    static const char llama[] =
        "[network]\nfamily=llama\nlayers=1\nwidth=8\nheads=2\nvocab=16\nseq=4\nffn=8\n";
    g_autoptr(GError) error =
        test_plan_error(llama, "ranks=2 lora_rank=2 wrap=linear param_dtype=bf16");
    g_assert_true(g_str_has_prefix(error->message, "unit layers.0.attn.q.lora_A is gathered in"));
    plan_free(test_plan(llama, "ranks=2 lora_rank=2 wrap=linear"));
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/strategy/text reads back", text_reads_back);
    g_test_add_func("/plan/strategy/titles tell bargains", titles_tell_bargains);
    g_test_add_func("/plan/strategy/values read back", values_read_back);
    g_test_add_func("/plan/strategy/bad files name line and remedy", bad_files);
    g_test_add_func("/plan/strategy/numbers written out", written_out);
    g_test_add_func("/plan/strategy/near names", near_names);
    g_test_add_func("/plan/strategy/versions set defaults", versions);
    g_test_add_func("/plan/strategy/versions agree with defaults", versions_agree_with_defaults);
    g_test_add_func("/plan/strategy/versions leave what is given", versions_leave_what_is_given);
    g_test_add_func("/plan/strategy/versions between", versions_between);
    g_test_add_func("/plan/strategy/contradictions are refused", contradictions);
    g_test_add_func("/plan/strategy/units that cannot be", units_that_cannot_be);
    g_test_add_func("/plan/strategy/adapters that are units", adapters_that_are_units);
    g_test_add_func("/plan/strategy/adapters of one layer", adapters_of_one_layer);
    g_test_add_func("/plan/strategy/kernels that were not", kernels_that_were_not);
    g_test_add_func("/plan/strategy/allocators", allocators);
    g_test_add_func("/plan/strategy/values that no line holds", values_that_no_line_holds);
    g_test_add_func("/plan/strategy/layers that are not shared", layers_that_are_not_shared);
    g_test_add_func("/plan/strategy/sequences that are not shared", sequences_that_are_not_shared);
    g_test_add_func("/plan/strategy/experts that are not shared", experts_that_are_not_shared);
    g_test_add_func("/plan/strategy/tensors beyond all memory", tensors_beyond_all_memory);
    g_test_add_func("/plan/ini/comments", comments);
    g_test_add_func("/plan/ini/numbers in as few digits as tell them", numbers_in_few_digits);
    return g_test_run();
}
