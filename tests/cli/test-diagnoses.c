/* What would change a verdict: what foreshard diagnose finds, and what makes a plan fit. Takes the
 * path of foreshard as its argument.
 */
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>

#include "tests/cli/shell.h"

/* What a tuned run has left to turn, with its price; where a GPU has no float8 none is offered. */
static void what_is_left_to_turn(void) {
    const char *words = "diagnose llama3-8b -n 8 --param-dtype bf16 --checkpointing full --cluster";
    static const char *const offered[] = {
        "float8 in compiled blocks (--kernels compiled --float8 tensorwise)",
        " %) saved by a change to the program", " checkpointing=selective-op "};
    g_autofree char *newer = g_strconcat(words, " dgx-h100", NULL);
    g_autofree char *older = g_strconcat(words, " a100-node", NULL);
    g_auto(Result) with = run(newer);
    g_autofree char *said = unbroken(with.out);
    for (unsigned i = 0; i < G_N_ELEMENTS(offered); i++) {
        g_assert_nonnull(strstr(said, offered[i]));
    }
    g_auto(Result) without = run(older);
    g_assert_null(strstr(without.out, "float8"));
    g_assert_nonnull(strstr(without.out, "   kernels=compiled "));
}

/* The rate limiter is FSDP1's: beside FSDP2 it is not among what was tried to no effect. */
static void idle_keys_are_not_tried(void) {
    g_auto(Result) later = run("diagnose gpt-toy -n 8 --cluster a100-node");
    g_assert_nonnull(strstr(later.out, "   no effect: "));
    g_assert_null(strstr(later.out, "limit_all_gathers"));
    g_auto(Result) first = run("diagnose gpt-toy -n 8 --cluster a100-node --flavour fsdp1");
    g_assert_nonnull(strstr(first.out, "limit_all_gathers=0"));
}

/* All wait for the slowest: what that costs is priced against ranks that are alike. */
static void unequal_ranks(void) {
    write_cluster("mixed.ini", "dgx-h100", "\nwatts",
                  "700\n[nodes old]\nat = 1\nlike = a100-node\n[device]");
    const char *words =
        "diagnose llama3-8b -n 16 --param-dtype bf16 --checkpointing full --cluster";
    g_autofree char *mixed = g_strconcat(words, " mixed.ini", NULL);
    expect(mixed, 0,
           "7. bottleneck: nodes are of several kinds, and the quicker ones wait for the slower; "
           "train on nodes of one kind (priced: all of them H100-SXM5-80GB)",
           "");
    expect("predict llama3-8b -n 16 --param-dtype bf16 --cluster dgx-h100 --every-rank --slow "
           "rank=3:1.5 --trace slow.trace",
           0, "fits: yes", "");
    expect("diagnose slow.trace", 0, "7. bottleneck: some GPUs are slower, or some links weaker,",
           "");
    g_autofree char *equal = g_strconcat(words, " dgx-h100", NULL);
    g_auto(Result) alike = run(equal);
    g_assert_cmpint(alike.status, ==, 0);
    g_assert_null(strstr(alike.out, "wait for"));
}

/* Whether to share experts; what it is held against shares none. */
static void whether_to_share_experts(void) {
    const char *words = "diagnose mixtral-8x7b -n 32 --seq 4096 --param-dtype bf16 "
                        "--checkpointing full --cluster h200-p5e:4";
    g_autofree char *shared = g_strconcat(words, " --expert 8", NULL);
    expect(words, 0,
           "7. bottleneck: each rank gathers all experts; share experts among eight ranks", "");
    expect(words, 0, "   expert=8 ", "");
    expect(shared, 0, "   expert=1 ", "");
    expect(shared, 0,
           "busiest gets that many\n   times its share of rows:\n   expert_overload=1.5 ", "");
    expect(shared, 0, "this strategy beats the best of them, FSDP2 full, checkpointed, by ", "");
    expect("predict mixtral-8x7b -n 64 --seq 4096 --param-dtype bf16 --cluster dgx-h100", 0,
           "  fits with --expert 8: ", "");
    const char *choose = "choose mixtral-8x7b -n 64 --seq 4096 --cluster dgx-h100 --top 2 ";
    expect(choose, 0, "all rows have --expert 8 ", "");
    g_autofree char *gathered = g_strconcat(choose, "--expert 1", NULL);
    expect(gathered, 0, "nothing fits", "");
}

/* What went through stages in many microbatches is held against as few passes as have room. */
static void stages_against_one_batch(void) {
    expect("predict llama-toy -n 4 --micro-batch 4 --cluster a100-node --trace one.trace", 0,
           "fits", "");
    g_auto(Result) one = run("explain step_ms one.trace");
    double step_ms = g_ascii_strtod(strstr(one.out, " = ") + 3, NULL);
    g_auto(Result) stages =
        run("diagnose llama-toy -n 4 --pipeline 2 --accumulate 8 --cluster a100-node");
    g_autofree char *said = unbroken(stages.out);
    g_auto(GStrv) words = g_strsplit(said, "FSDP2 full ", 2);
    g_assert_nonnull(words[1]);
    g_autofree char *behind = g_strdup_printf("step %.3f ms, ", step_ms);
    g_assert_true(g_str_has_prefix(g_strchug(words[1]), behind));
}

/* Five situations planted, each of which is to be named first. */
static void diagnoses(void) {
    expect("diagnose gpt-toy -n 2 --cluster this-machine", 0, "7. bottleneck: ", "");
    expect("diagnose gpt-toy -n 2", 2, "", "gpt-toy is a network: give the cluster");
    expect("predict gpt-toy -n 2 --cluster this-machine --trace s.trace", 0, "fits", "");
    static const char *const commands[] = {"diagnose", "plot", "explain step_ms"};
    for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++) {
        g_autofree char *words = g_strdup_printf("%s s.trace --micro-batch 2", commands[i]);
        expect(words, 2, "", "s.trace is a trace, whose strategy is settled");
    }
    static const struct {
        const char *options, *cluster, *bottleneck;
    } planted[] = {
        {"gpt2-xl -n 16 --wrap whole --micro-batch 4", "dgx-h100", "units are too coarse"},
        {"gpt2-xl -n 16 --backward-prefetch none --checkpointing full --micro-batch 2", "dgx-h100",
         "backward gathers start only when they are needed"},
        {"gpt2-xl -n 16 --micro-batch 2", "two-nodes-ethernet", "the link between nodes is slow"},
        {"gpt-toy -n 8 --micro-batch 2", "dgx-h100", "host-bound"},
        {"gpt2-xl -n 8 --checkpointing full --offload activations --micro-batch 2", "hot.ini",
         "the link to the host's memory (PCIe) is too slow"},
    };
    write_cluster("hot.ini", "a100-node", "\nhost_link_gb_per_s", "1");
    for (unsigned i = 0; i < G_N_ELEMENTS(planted); i++) {
        g_autofree char *words =
            g_strdup_printf("predict %s --param-dtype bf16 --cluster %s --trace planted.trace",
                            planted[i].options, planted[i].cluster);
        g_autofree char *first = g_strconcat("7. bottleneck: ", planted[i].bottleneck, NULL);
        expect(words, 0, "fits: yes", "");
        g_autofree char *diagnose =
            g_strdup_printf("diagnose planted.trace --cluster %s", planted[i].cluster);
        expect(diagnose, 0, first, "");
    }
    /* The simple strategy wins over whole-model units, and is said to. */
    expect("predict gpt2-xl -n 8 --cluster a100-node --wrap whole --trace planted.trace", 0, "fits",
           "");
    expect("diagnose planted.trace", 0, "this strategy LOSES to", "");
    expect("diagnose planted.trace --cluster dgx-h100", 0, "predicted on dgx-h100", "");
    /* So does checkpointing without need, against the same tuned. */
    expect("predict gpt2-xl -n 8 --cluster a100-node --checkpointing full --sharding grad-op "
           "--trace planted.trace",
           0, "fits", "");
    expect("diagnose planted.trace", 0, "this strategy LOSES to FSDP2 grad-op by", "");
    /* Hybrid sharding's groups are no part of the simple strategies. */
    expect("predict gpt2-xl -n 16 --sharding hybrid --cluster two-nodes-ethernet "
           "--trace planted.trace",
           0, "fits", "");
    expect("diagnose planted.trace", 0, "this strategy beats the best of them", "");
    /* Nor are shared layers: the same global batch, a sequence to each GPU. */
    expect("diagnose llama3-8b -n 8 --cluster dgx-h100 --param-dtype bf16 --checkpointing full "
           "--tensor 4 --micro-batch 4",
           0, "this strategy LOSES to FSDP2 full by", "");
    expect("diagnose planted.trace --cluster no-such-cluster", 2, "", "no-such-cluster");
    expect("diagnose", 2, "", "give one trace");
}

/* What a trace's header says of a traced network is where its file lies. */
static void of_a_traced_network(void) {
    static const char file[] = FORESHARD_MODELS "/pytorch/mixer.network";
#define PREDICT                                                                                    \
    "predict " FORESHARD_MODELS "/pytorch/mixer.network -n 8 --cluster a100-node "                 \
    "--param-dtype bf16 --micro-batch "
    expect(PREDICT "1024", 0, "fits with --checkpointing full", "");
    expect(PREDICT "64 --trace mixer.trace", 0, "fits: yes", "");
#undef PREDICT
    expect("diagnose mixer.trace", 0, "checkpointing=full          ", "");
    expect("report mixer.trace -o mixer.html", 0, "", "");
    g_autofree char *text = NULL, *page = NULL;
    g_autofree char *report = g_build_filename(shell.folder, "mixer.html", NULL);
    g_autofree char *other = g_build_filename(shell.folder, "other.network", NULL);
    g_assert_true(g_file_get_contents(report, &page, NULL, NULL));
    g_assert_nonnull(strstr(page, "pytorch/mixer.network --strategy strategy.ini"));
    /* It must be the file that was predicted. */
    gsize length;
    g_assert_true(g_file_get_contents(file, &text, &length, NULL));
    g_assert_true(g_file_set_contents(other, text, (gssize)length, NULL));
    expect("plan other.network -n 8 --param-dtype bf16 -o other.plan", 0, "", "");
    expect("predict other.plan --cluster a100-node --trace other.trace", 0, "fits: yes", "");
    expect("diagnose other.trace", 0, "7. bottleneck: ", "");
    g_assert_true(g_file_set_contents(other, "traced-network 1\n", -1, NULL));
    expect("diagnose other.trace", 2, "", "other.network:");
    g_assert_cmpint(g_remove(other), ==, 0);
    expect("diagnose other.trace", 2, "", "other.network: cannot be read");
}

/* And others, of which the first cause and what is said of it are known too. */
static void more_diagnoses(void) {
    static const struct {
        const char *options, *said;
    } cases[] = {
        {"gpt2-xl -n 1 --cluster a100-node --param-dtype bf16",
         "   there is memory for --micro-batch "},
        {"t5-11b -n 512 --cluster a100-roce --flavour fsdp1 --checkpointing full --param-dtype "
         "bf16",
         "7. bottleneck: collectives span more ranks than they need"},
        {"gpt-10b -n 8 --sharding none --cluster a100-node",
         "this strategy does not fit, FSDP2 full does: use that"},
        {"gpt-10b -n 8 --sharding none --cluster a100-node", "it fits with --sharding full\n"},
        {"gpt2-xl -n 8 --offload params --cluster a100-node --micro-batch 4 --param-dtype bf16",
         "7. bottleneck: the device waits for what was offloaded"},
        {"gpt-175b -n 64 --cluster a100-roce --flavour fsdp1 --checkpointing full "
         "--limit-all-gathers 0 --param-dtype bf16",
         "7. bottleneck: the allocator frees its cache and asks the GPU again (retries); gather at "
         "most one unit ahead"},
        {"gpt-175b -n 64 --cluster a100-roce --flavour fsdp1 --checkpointing full "
         "--limit-all-gathers 0 --param-dtype bf16",
         "4. host-bound, by allocation retries (see 5) too: the compute lane is busy"},
        {"gpt-175b -n 512 --cluster a100-roce --flavour fsdp1 --checkpointing full --param-dtype "
         "bf16",
         "  94 allocation retries in 20 steps"},
        {"gpt2-xl -n 8 --checkpointing full --micro-batch 4 --cluster a100-node --param-dtype bf16",
         "7. bottleneck: blocks are computed twice"},
        {"gpt2-xl -n 8 --clip 1 --host-reads both --micro-batch 2 --cluster a100-node "
         "--param-dtype bf16",
         "7. bottleneck: the host reads loss or norm within a step"},
        {"gpt2-xl -n 8 --optimizer-kernel loop --optimizer-count device --cluster a100-node "
         "--param-dtype bf16",
         "the host reads each parameter's step count from the device"},
        {"gpt2 -n 8 --wrap linear --micro-batch 8 --cluster dgx-h100 --param-dtype bf16",
         "7. bottleneck: units are too fine"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *words = g_strdup_printf("predict %s --trace more.trace", cases[i].options);
        expect(words, 0, "fits: ", "");
        expect("diagnose more.trace", 0, cases[i].said, "");
    }
    /* One precision is not held against another. */
    expect("predict gpt2-xl -n 1 --cluster a100-node --param-dtype bf16 --trace more.trace", 0,
           "fits: ", "");
    expect("diagnose more.trace", 0, "  DDP, autocast   ", "");
    expect("diagnose more.trace", 0, "this strategy LOSES to FSDP2 grad-op", "");
    expect("predict gpt2-xl -n 1 --cluster a100-node --param-dtype bf16 --kernels fused "
           "--trace more.trace",
           0, "fits: ", "");
    expect("diagnose more.trace", 0, ", without fp32 weights\n", "");
    expect("diagnose more.trace", 0, "this strategy LOSES to FSDP2 grad-op", "");
}

/* What does not fit is told at once what would make it fit; and that is true. */
static void ways_to_fit(void) {
    expect("predict llama3-70b -n 64 --cluster dgx-h100", 0,
           "  fits with --checkpointing full --param-dtype bf16: step ", "");
    expect("predict llama3-70b -n 64 --cluster dgx-h100 --checkpointing full --param-dtype bf16", 0,
           "fits: yes", "");
    /* What recomputes less is a second way, where it is quicker by much. */
    expect("predict gpt2-xl -n 8 --cluster a100-node --param-dtype bf16 --micro-batch 32", 0,
           "  fits with --checkpointing every=4: step ", "");
    expect("predict gpt2-xl -n 8 --cluster a100-node --param-dtype bf16 --micro-batch 32 "
           "--checkpointing every=4",
           0, "fits: yes", "");
    /* The smallest number of ranks that fits gives memory back; the next does not. */
    expect("predict gpt-175b -n 32 --cluster dgx-h100 --checkpointing full --param-dtype bf16", 0,
           "  fits with -n 64: step ", "");
    expect("predict gpt-175b -n 32 --cluster dgx-h100 --checkpointing full --param-dtype bf16", 0,
           "  fits with -n 128: step ", "");
    expect("predict llama3-70b -n 64 --param-dtype bf16 --checkpointing full --accumulate 2 "
           "--cluster dgx-h100",
           0, "  fits with --accumulate-sync every: step ", "");
    expect("predict gpt-1t -n 8 --cluster a100-node", 0, "  no setting tried makes it fit", "");
    /* What fits by giving memory back is told what does without. */
    expect("predict gpt-175b -n 512 --cluster a100-roce --flavour fsdp1 --checkpointing full "
           "--limit-all-gathers 0 --param-dtype bf16",
           0, "  no retries with --limit-all-gathers 2: step ", "");
    g_auto(Result) calm =
        run("predict gpt-175b -n 512 --cluster a100-roce --flavour fsdp1 --checkpointing full "
            "--limit-all-gathers 2 --param-dtype bf16");
    g_assert_null(strstr(calm.out, "no retries with"));
    /* Long sequences, more than a node's GPUs have room for without giving memory back. */
    expect("predict llama3-70b -n 32 --cluster dgx-h100 --network-key seq=131072 --param-dtype "
           "bf16 --checkpointing full",
           0, "  fits with --context 16: step ", "");
    /* Of a long sequence logits are what is too large, and the network's keys are settings too. */
    expect("predict llama3-8b -n 8 --cluster dgx-h100 --seq 65536 --network-key seq=65536 "
           "--param-dtype bf16 --checkpointing full",
           0,
           " fits with --network-key loss=kernel --optimizer-kernel fused --allocator expandable: "
           "step ",
           "");
    expect("predict llama3-8b -n 8 --cluster dgx-h100 --seq 65536 --network-key seq=65536 "
           "--param-dtype bf16 --checkpointing full --network-key loss=kernel "
           "--optimizer-kernel fused --allocator expandable",
           0, "fits: yes", "");
    /* More ranks in fp32, and fewer of them in 16 bits. */
    expect("predict llama3-70b -n 16 --cluster dgx-h100", 0,
           "  fits with -n 128 --checkpointing full: step ", "");
    expect("predict llama3-70b -n 16 --cluster dgx-h100", 0,
           "  fits with -n 32 --checkpointing full --param-dtype bf16: step ", "");
}

/* Beside adapters what is frozen may have fewer bits; what is trained keeps its own. */
static void ways_with_adapters(void) {
    expect("predict qwen2.5-7b -n 1 --cluster rtx4090 --seq 2048 --lora-rank 16", 0,
           "  fits with --model-dtype bf16 --checkpointing full: step ", "");
    expect("predict llama3-70b -n 8 --cluster rtx4090 --seq 2048 --param-dtype bf16 "
           "--checkpointing full --lora-rank 16",
           0, "  fits with --model-dtype bf16 --lora-base nf4 --lora-base-storage model: step ",
           "");
    g_auto(Result) all = run("predict qwen2.5-7b -n 1 --cluster rtx4090 --seq 2048");
    g_assert_null(strstr(all.out, "--model-dtype"));
}

/* What learns otherwise is offered where nothing else helps. */
static void ways_of_fewer_bits(void) {
    expect("predict llama2-70b -n 8 --cluster dgx-h100:1 --seq 2048", 0,
           "  fits with --checkpointing full --model-dtype bf16 --network-key loss=kernel\n"
           "    --optimizer adamw-torch-8bit: step ",
           "");
    g_auto(Result) more_gpus = run("predict llama2-70b -n 8 --cluster dgx-h100 --seq 2048");
    g_assert_null(strstr(more_gpus.out, "adamw-torch-8bit"));
}

/* Of several ways two are marked; a single one needs no mark. */
static void ways_are_marked(void) {
    g_auto(Result) several = run("predict t5-11b -n 8 --cluster a100-node --micro-batch 8");
    g_test_message("%s", several.out);
    g_assert_true(
        g_regex_match_simple("  fits with --checkpointing full: [^\n]*\\(least change\\)\n"
                             "  fits with [^\n]*bf16: step [^\n]*\\(quickest\\)\n",
                             several.out, 0, 0));
    /* One that gives memory back is not called the quickest. */
    expect("predict gpt-175b -n 32 --cluster dgx-h100 --checkpointing full --param-dtype bf16", 0,
           " 1 allocation retry in 20 steps (least\n", "");
    g_auto(Result) one = run("predict llama3-8b -n 8 --cluster dgx-h100 --param-dtype bf16 "
                             "--micro-batch 4");
    g_assert_nonnull(strstr(one.out, "  fits with --checkpointing full: step "));
    g_assert_null(strstr(one.out, "quickest"));
    g_assert_null(strstr(one.out, "least change"));
}

/* What does not fit is told what would make it fit. */
static void diagnoses_of_too_much(void) {
    expect("predict gpt2-xl -n 2 --micro-batch 32 --cluster a100-node --trace big.trace", 0,
           "fits: NO", "");
    expect("diagnose big.trace", 0, "it fits with --checkpointing full\n", "");
    expect("predict llama2-70b -n 8 --param-dtype bf16 --cluster dgx-h100 --trace big.trace", 0,
           "fits: NO", "");
    expect("diagnose big.trace", 0, "it fits with -n ", "");
    expect("diagnose big.trace", 0, "none of them fits", "");
    expect("predict gpt-1t -n 8 --param-dtype bf16 --cluster a100-node --trace big.trace", 0,
           "fits: NO", "");
    expect("diagnose big.trace", 0, "no setting tried makes it fit", "");
    expect("predict gpt2 -n 2 --cluster v100-dgx --param-dtype bf16 --trace none.trace", 0,
           "cannot compute in bf16", "none.trace was not written");
    expect("explain step gpt2 -n 2 --cluster v100-dgx --param-dtype bf16", 2, "",
           "V100-SXM2-32GB cannot compute in bf16; choose another --param-dtype");
    expect("explain shardings gpt2 -n 2 --cluster v100-dgx --param-dtype bf16", 0,
           "not possible: V100-SXM2-32GB cannot compute in bf16", "");
}

/* The first group; NULL: it does not match. Transfer full. */
static char *found(const char *pattern, const char *text) {
    g_autoptr(GRegex) regex = g_regex_new(pattern, 0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    return g_regex_match(regex, text, 0, &match) ? g_match_info_fetch(match, 1) : NULL;
}

/* What a measured step waited for is a share of that step, not of the one that is predicted, here
 * on a machine of another kind. */
static void measured_waits(void) {
    expect("run gpt-toy -n 2 --trace measured.trace", 0, "step time", "");
    g_auto(Result) result = run("diagnose measured.trace --cluster dgx-h100");
    g_assert_cmpint(result.status, ==, 0);
    g_autofree char *said = unbroken(result.out);
    g_autofree char *gaps = found("gaps between kernels +([0-9.]+) %", said);
    g_autofree char *saved =
        found("kernels start late on their lanes: [0-9.]+ [a-z]+ a step \\(([0-9.]+) %\\)", said);
    g_assert_nonnull(gaps);
    if (saved != NULL) { /* not so where four others save more, or hardly anything waits */
        g_assert_cmpstr(saved, ==, gaps);
    } else {
        g_assert_true(g_ascii_strtod(gaps, NULL) < 2 || strstr(said, " 4. ") != NULL);
    }
}

int main(int argc, char **argv) {
    shell_init(&argc, &argv);
    g_test_add_func("/cli/diagnoses/ways with adapters", ways_with_adapters);
    g_test_add_func("/cli/diagnoses/ways of fewer bits", ways_of_fewer_bits);
    g_test_add_func("/cli/diagnoses/unequal ranks", unequal_ranks);
    g_test_add_func("/cli/diagnoses/measured waits", measured_waits);
    g_test_add_func("/cli/diagnoses/stages against one batch", stages_against_one_batch);
    g_test_add_func("/cli/diagnoses/what is left to turn", what_is_left_to_turn);
    g_test_add_func("/cli/diagnoses/idle keys are not tried", idle_keys_are_not_tried);
    g_test_add_func("/cli/diagnoses/whether to share experts", whether_to_share_experts);
    g_test_add_func("/cli/diagnoses/diagnoses", diagnoses);
    g_test_add_func("/cli/diagnoses/more diagnoses", more_diagnoses);
    g_test_add_func("/cli/diagnoses/of a traced network", of_a_traced_network);
    g_test_add_func("/cli/diagnoses/ways to fit", ways_to_fit);
    g_test_add_func("/cli/diagnoses/ways are marked", ways_are_marked);
    g_test_add_func("/cli/diagnoses/diagnoses of too much", diagnoses_of_too_much);
    return shell_finish(g_test_run());
}
