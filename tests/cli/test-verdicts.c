/* What foreshard finds out: verdicts, diagnoses and what would make a plan fit, on every rank too.
 * Takes the path of foreshard as its argument.
 */
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>

#include "tests/cli/shell.h"

/* Fitting and training well are two verdicts. */
static void two_verdicts(void) {
    expect("predict gpt2-xl -n 8 --param-dtype bf16 --micro-batch 8 --cluster dgx-h100", 0,
           "trains well: yes", "");
    expect("predict gpt2-xl -n 16 --param-dtype bf16 --cluster two-nodes-ethernet", 0,
           "most is lost to inter-node network", "");
    expect(
        "choose gpt2-xl -n 16 --micro-batch 1 --sharding full --cluster two-nodes-ethernet --top 1",
        0, "does not train well: most is lost to inter-node network", "");
    expect("predict gpt-175b -n 128 --micro-batch 2 --flavour fsdp1 --param-dtype bf16 "
           "--checkpointing full --pytorch 2.0 --cluster a100-roce",
           0, " allocation retries: the allocator frees its cache and asks the GPU again", "");
}

/* Each rank by itself: jitter, stragglers, links, kinds of node; then what reads such traces. */
static void every_rank(void) {
    expect("predict gpt-toy -n 4 --cluster a100-node --every-rank", 0,
           "who waits for whom (4 ranks, jitter 0 %, spread 1.5 %, hosts 0 %, links 0 %, seed 0; "
           "mean of",
           "");
    expect("predict gpt-toy -n 16 --cluster a100-roce --every-rank --jitter 5 --seed 7 --steps 6 "
           "--slow rank=3:30 --slow node=1:1.1 --degrade nic=8-9:0.5 --degrade node=0:0.9 "
           "--trace every.trace --trace-ranks 0,3,9-10",
           0, "below: rank 3, which waits least for others", "");
    expect("predict gpt-toy -n 16 --cluster a100-roce --every-rank --json", 0,
           "\"times_of_rank\" : 0", "");
    expect("predict gpt-toy -n 3 --cluster a100-node --every-rank", 0,
           "peak reserved, emptiest rank", "");
    expect("plot every.trace --picture jitter", 0, "rank 0: median", "");
    expect("plot every.trace --picture jitter --rank 3 -o every.svg", 0, "", "");
    /* Each step of both, and no half steps. */
    expect("predict gpt-toy -n 16 --cluster a100-roce --steps 3 --trace short.trace", 0, "", "");
    expect("plot short.trace every.trace --picture jitter", 0, "4             5\n", "");
    expect("diagnose every.trace", 0, "jitter: 4 steady steps from", "");
    expect("diagnose every.trace --rank 10", 0, "jitter: 4 steady steps from", "");
    expect("diagnose every.trace --rank 1", 2, "", "has not recorded rank 1");
    expect("export --chrome every.trace -o every.json", 0, "", "");
    g_auto(Result) result = run("predict gpt-toy -n 4 --cluster a100-node --every-rank --jitter 5");
    g_assert_null(strstr(result.err, "playing")); /* no progress where nobody looks on */
}

/* Of the JSON that was printed. */
static double figure(const Result *result, const char *key) {
    g_autofree char *quoted = g_strdup_printf("\"%s\" : ", key);
    const char *place = strstr(result->out, quoted);
    g_assert_nonnull(place);
    return g_ascii_strtod(place + strlen(quoted), NULL);
}

/* The edge of a lone rank's step times is one number, whether predict says it or who reads its
 * trace. */
static void one_p95(void) {
    static const char *const steps[] = {"3", "7", "22", "23"};
    for (unsigned i = 0; i < G_N_ELEMENTS(steps); i++) {
        g_autofree char *words =
            g_strdup_printf("predict gpt-toy -n 1 --cluster a100-node --every-rank --jitter 9 "
                            "--json --trace p95.trace --steps %s",
                            steps[i]);
        g_auto(Result) predicted = run(words);
        g_autofree char *said =
            g_strdup_printf("\nstep_ms_p95 = %.6f: ", figure(&predicted, "step_ms_p95"));
        expect("explain step_ms_p95 p95.trace", 0, said, "");
    }
}

/* 400 W and 2.5 an hour: 8 GPUs, 32 tokens each a step. Known or not, for all ranks or none. */
static void energy_and_money(void) {
    write_cluster("priced.ini", "a100-node", "\nwatts", "400\nprice_per_hour = 2.5");
    g_auto(Result) result = run("predict gpt-toy -n 8 --cluster priced.ini --json");
    double hours = figure(&result, "step_ms") / 3.6e6 / (8 * 32 / 1e6);
    double kwh = figure(&result, "kwh_per_million_tokens");
    double price = figure(&result, "price_per_million_tokens");
    g_assert_cmpfloat_with_epsilon(kwh / (8 * 0.4 * hours), 1, 1e-9);
    g_assert_cmpfloat_with_epsilon(price / (8 * 2.5 * hours), 1, 1e-9);
    expect("predict gpt-toy -n 8 --cluster priced.ini", 0, "price per million tokens: ", "");
    write_cluster("unknown.ini", "a100-node", "\nwatts", "0");
    g_auto(Result) unknown = run("predict gpt-toy -n 8 --cluster unknown.ini");
    g_assert_null(strstr(unknown.out, "kWh"));
    g_assert_null(strstr(unknown.out, "price"));
}

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

/* Whether to share experts; what it is held against shares none. */
static void whether_to_share_experts(void) {
    const char *words = "diagnose mixtral-8x7b -n 32 --seq 4096 --param-dtype bf16 "
                        "--checkpointing full --cluster h200-p5e:4";
    g_autofree char *shared = g_strconcat(words, " --expert 8", NULL);
    expect(words, 0,
           "7. bottleneck: each rank gathers all experts; share experts among eight ranks", "");
    expect(words, 0, "   expert=8 ", "");
    expect(shared, 0, "   expert=1 ", "");
    expect(shared, 0, "this strategy beats the best of them, FSDP2 full, checkpointed, by ", "");
    expect("predict mixtral-8x7b -n 64 --seq 4096 --param-dtype bf16 --cluster dgx-h100", 0,
           "  fits with --expert 8: ", "");
    const char *choose = "choose mixtral-8x7b -n 64 --seq 4096 --cluster dgx-h100 --top 2 ";
    expect(choose, 0, "all rows have --expert 8 ", "");
    g_autofree char *gathered = g_strconcat(choose, "--expert 1", NULL);
    expect(gathered, 0, "nothing fits", "");
}

/* Float8 is predicted where the GPU has it; CPU ranks have kernels for it. */
static void float8_where_there_is_some(void) {
    const char *words = "llama-toy -n 2 --kernels compiled --param-dtype bf16 --float8 rowwise";
    g_autofree char *older = g_strconcat("predict ", words, " --cluster a100-node", NULL);
    g_autofree char *newer = g_strconcat("predict ", words, " --cluster l40s-node", NULL);
    g_autofree char *real = g_strconcat("run ", words, " --steps 1", NULL);
    expect(older, 0, "fits: NO, A100-SXM4-80GB cannot compute in e4m3; choose --float8 none", "");
    expect(newer, 0, "fits: yes", "");
    expect(real, 0, "step 0    loss ", "");
}

/* The bubbles of several stages a rank stand beside what the schedule has by itself; whoever has
 * them is named with all. */
static void several_stages(void) {
    const char *words = "llama-toy -n 2 --network-key layers=4 --pipeline 2 --accumulate 4 "
                        "--pipeline-schedule interleaved-1f1b --pipeline-stages 2 "
                        "--pipeline-split even";
    g_autofree char *predict = g_strconcat("predict ", words, " --cluster a100-node", NULL);
    g_autofree char *real = g_strconcat("run ", words, " --steps 1", NULL);
    expect(predict, 0, "of it the schedule's own, if stages were even", "");
    expect(real, 0, "peak of rank 0, stages 1, 3 of 4: ", "");
}

/* Symmetric memory is of one node; on CPU ranks a gather stands for it. */
static void copies_between_ranks(void) {
    const char *words =
        " --kernels compiled --param-dtype bf16 --micro-batch 2 --async-tensor yes ";
    g_autofree char *real = g_strconcat("run llama-toy -n 2 --tensor 2 --steps 1", words, NULL);
    g_autofree char *near =
        g_strconcat("predict llama-toy -n 4 --tensor 2 --cluster dgx-h100", words, NULL);
    g_autofree char *far = g_strconcat(
        "predict llama3-8b -n 16 --tensor 16 --network-key kv_heads=16 --cluster dgx-h100", words,
        NULL);
    expect(real, 0, "step 0    loss 4.5", "");
    expect(near, 0, "fits: yes", "");
    expect(far, 2, "",
           "the 16 ranks that share layers lie on 2 nodes of cluster dgx-h100; set tensor");
}

/* A cluster of two kinds of node: one rank cannot stand for both, and says what to do. */
static void kinds_of_node(void) {
    write_cluster("old.ini", "v100-dgx", "\nwatts", "250");
    write_cluster("mixed.ini", "a100-roce", "\nwatts",
                  "400\n[nodes old]\nat = 1\nlike = old.ini\ndevice.sms = 40\n[device]");
    expect("predict gpt-toy -n 16 --param-dtype fp16 --cluster mixed.ini", 2, "",
           "add --every-rank to foreshard predict");
    expect("predict gpt-toy -n 16 --param-dtype fp16 --cluster mixed.ini --every-rank", 0, "old",
           "");
    expect("predict gpt-toy -n 16 --param-dtype bf16 --cluster mixed.ini --every-rank", 0,
           "fits: NO, V100-SXM2-32GB cannot compute in bf16; choose another --param-dtype", "");
    expect("predict gpt-toy -n 8 --cluster mixed.ini", 0, "fits: yes", "");
}

/* Nodes are like a cluster that comes along. */
static void kinds_like_a_name(void) {
    const char *predict =
        "predict gpt-toy -n 16 --param-dtype fp16 --every-rank --cluster mixed.ini";
    write_cluster("mixed.ini", "a100-roce", "\nwatts",
                  "400\n[nodes old]\nat = 1\nlike = v100-dgx\n[device]");
    expect(predict, 0, "old", "");
    write_cluster("mixed.ini", "a100-roce", "\nwatts",
                  "400\n[nodes old]\nat = 1\nlike = v100-dxg\n[device]");
    expect(predict, 2, "",
           "like = v100-dxg: no such file lies beside this one, and no cluster is called "
           "'v100-dxg'; did you mean v100-dgx?");
}

/* A trace tells its own cluster file from another of the same name. */
static void clusters_of_one_name(void) {
    write_cluster("a100-node.ini", "a100-node", "memory_gb_per_s", "1000");
    expect("predict gpt-toy -n 8 --cluster ./a100-node.ini --trace own.trace", 0, "fits", "");
    expect("diagnose own.trace", 2, "", "predicted on another a100-node");
    expect("diagnose own.trace --cluster ./a100-node.ini", 0, "predicted on a100-node", "");
}

/* Five situations planted, each of which is to be named first. */
static void diagnoses(void) {
    expect("diagnose gpt-toy -n 2 --cluster this-machine", 0, "7. bottleneck: ", "");
    expect("diagnose gpt-toy -n 2", 2, "", "gpt-toy is no trace");
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
         "4. host-bound, by allocation retries (5) too: the compute lane is busy"},
        {"gpt-175b -n 512 --cluster a100-roce --flavour fsdp1 --checkpointing full --param-dtype "
         "bf16",
         "  19 allocation retries"},
        {"gpt2-xl -n 8 --checkpointing full --micro-batch 4 --cluster a100-node --param-dtype bf16",
         "7. bottleneck: blocks are computed twice"},
        {"gpt2-xl -n 8 --clip 1 --host-reads both --cluster a100-node --param-dtype bf16",
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
           " 1 allocation retry (least change)\n", "");
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

/* What stands at the end of the first line that has the word before it. */
static char *after(const char *text, const char *word) {
    const char *at = strstr(text, word);
    g_assert_nonnull(at);
    return g_strndup(at + strlen(word), strcspn(at + strlen(word), "\n"));
}

/* What a prediction was asked for stands in its trace, and neighbours are asked for it too: the
 * plan as it is takes what predict said. */
static void settings_are_kept(void) {
    static const char *const settings[] = {
        "--nccl-algo tree --nccl-proto ll",
        "--no-sharing",
        "--every-rank --jitter 7 --seed 3 --slow rank=3:1.5 --degrade nvlink=1:0.25 --steps 6",
    };
    g_auto(Result) plain = run("predict gpt2 -n 4 --cluster a100-node --trace plain.trace");
    g_autofree char *usual = after(plain.out, "  step ");
    for (unsigned i = 0; i < G_N_ELEMENTS(settings); i++) {
        g_autofree char *words = g_strdup_printf(
            "predict gpt2 -n 4 --cluster a100-node --trace asked.trace %s", settings[i]);
        g_auto(Result) asked = run(words);
        g_auto(Result) again = run("diagnose asked.trace");
        g_assert_cmpint(asked.status, ==, 0);
        g_assert_cmpint(again.status, ==, 0);
        g_autofree char *step = after(asked.out, "  step ");
        g_assert_cmpstr(step, !=, usual);
        g_autofree char *said = after(again.out, "where this plan takes ");
        step[strcspn(step, " ")] = '\0';
        said[strcspn(said, " ")] = '\0';
        g_assert_cmpstr(step, ==, said);
    }
}

/* A prediction that does not fit is a result: its trace goes up to the wall, and each command that
 * reads it says so. */
static void up_to_the_wall(void) {
    static const char oom[] = "out of memory in step 0, forward of unit root: no room for ";
    expect("predict gpt2-xl -n 2 --sharding none --micro-batch 16 --cluster a100-node --trace "
           "wall.trace",
           0, "fits: NO, out of memory", "");
    expect("predict gpt2-xl -n 2 --sharding none --micro-batch 16 --cluster b200-node --trace "
           "room.trace",
           0, "fits: yes", "");
    expect("plot wall.trace", 0, oom, "");
    expect("plot wall.trace -p lanes", 0, oom, "");
    expect("diagnose wall.trace", 0, oom, "");
    expect("explain oom wall.trace", 0, oom, "");
    expect("explain oom.bytes wall.trace", 0, "activations/saved ", "");
    expect("explain peak_allocated_bytes wall.trace", 0, "the rows end out of memory", "");
    expect("explain oom room.trace", 0, "did not run out of memory", "");
    expect("compare wall.trace room.trace", 0, "\nfirst ends out of memory in step 0, ", "");
    expect("report wall.trace -o wall.html", 0, "", "");
    g_autofree char *page = read_file("wall.html");
    g_assert_nonnull(strstr(page, oom));
}

/* So is one that ends before its first step, of which no figure of a step is known: every command
 * that reads the trace says so, and calls step -1 by its name. */
static void up_to_construction(void) {
    static const char oom[] = "out of memory in construction: no room for ";
    static const struct {
        const char *words, *said;
    } commands[] = {
        {"diagnose", "allocated 76.64 GiB, in construction, setup of unit root"},
        {"diagnose", "\n3. jitter: no steady step was recorded\n4. compute lane: no steady step "
                     "was recorded\n5. allocator: no retries"},
        {"explain step_ms", "step_ms: no steady step was recorded\n"},
        {"explain mfu", "mfu: no steady step with a kernel was recorded\n"},
        {"explain compute_ms", "compute_ms: no steady step was recorded\n"},
        {"explain bound_by", "the compute lane's time: no steady step was recorded\nbound_by = "},
        {"explain all_reduce", "all_reduce: no steady step was recorded\n"},
        {"explain linear", "\n     not recorded  linear  "},
        {"explain root", "\n     not recorded  linear  "},
        {"explain peak_allocated_bytes", " ms (host time), in construction, in setup of"},
        {"explain peak_by_category", "of allocated memory, in construction, in setup of unit root"},
        {"explain oom", oom},
        {"plot", oom},
        {"plot", "host time since the start of construction (ms)"},
        {"plot -p lanes", " time since the start of construction (ms)"},
        {"compare wall.trace", "peak allocated, first: construction, setup of unit root, "},
        {"export --chrome -o -", "\"construction\""},
    };
    expect("predict gpt-175b -n 8 --sharding none --cluster a100-node --trace wall.trace", 0,
           "fits: NO, out of memory during construction", "");
    for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++) {
        g_autofree char *words = g_strconcat(commands[i].words, " wall.trace", NULL);
        g_auto(Result) result = run(words);
        g_test_message("%s", words);
        g_assert_cmpint(result.status, ==, 0);
        g_autofree char *whole = unbroken(result.out);
        g_assert_true(strstr(result.out, commands[i].said) || strstr(whole, commands[i].said));
        g_assert_null(strstr(result.out, "nan"));
        g_assert_null(strstr(result.out, "step -1"));
    }
    expect("plot -p jitter wall.trace", 2, "", "no rows to draw in construction");
    expect("report wall.trace -o wall.html", 0, "", "");
    g_autofree char *page = read_file("wall.html");
    g_assert_nonnull(strstr(page, oom));
    g_assert_nonnull(strstr(page, ">host time since the start of construction (ms)<"));
    g_assert_null(strstr(page, "nan %"));
    g_assert_null(strstr(page, "step -1"));
}

/* Same input, same bytes. */
static void deterministic(void) {
    char *texts[2] = {NULL, NULL};
    for (unsigned i = 0; i < 2; i++) {
        expect("predict gpt-toy -n 3 --cluster this-machine --trace d.trace", 0, "fits", "");
        texts[i] = read_file("d.trace");
    }
    g_assert_cmpstr(texts[0], ==, texts[1]);
    g_free(texts[0]);
    g_free(texts[1]);
}

/* Step 0 began, and its first allocation found no room: memory has no row of it, the lanes have. */
static void up_to_a_first_gather(void) {
    expect("predict gpt-175b -n 512 --wrap whole --cluster a100-roce --trace first.trace", 0,
           "in step 0, forward, unit root (section first, instruction 4)", "");
    expect("plot first.trace", 0, "host time since the start of construction (ms)", "");
    expect("plot first.trace -o first.png", 0, "", "");
    expect("report first.trace -o first.html", 0, "", "");
    g_autofree char *page = read_file("first.html");
    g_assert_nonnull(strstr(page, ">host time since the start of construction (ms)<"));
}

int main(int argc, char **argv) {
    shell_init(&argc, &argv);
    g_test_add_func("/cli/verdicts/two verdicts", two_verdicts);
    g_test_add_func("/cli/verdicts/every rank", every_rank);
    g_test_add_func("/cli/verdicts/one p95", one_p95);
    g_test_add_func("/cli/verdicts/kinds of node", kinds_of_node);
    g_test_add_func("/cli/verdicts/kinds like a name", kinds_like_a_name);
    g_test_add_func("/cli/verdicts/what is left to turn", what_is_left_to_turn);
    g_test_add_func("/cli/verdicts/whether to share experts", whether_to_share_experts);
    g_test_add_func("/cli/verdicts/float8", float8_where_there_is_some);
    g_test_add_func("/cli/verdicts/several stages", several_stages);
    g_test_add_func("/cli/verdicts/copies between ranks", copies_between_ranks);
    g_test_add_func("/cli/verdicts/energy and money", energy_and_money);
    g_test_add_func("/cli/verdicts/clusters of one name", clusters_of_one_name);
    g_test_add_func("/cli/verdicts/diagnoses", diagnoses);
    g_test_add_func("/cli/verdicts/more diagnoses", more_diagnoses);
    g_test_add_func("/cli/verdicts/of a traced network", of_a_traced_network);
    g_test_add_func("/cli/verdicts/ways to fit", ways_to_fit);
    g_test_add_func("/cli/verdicts/ways are marked", ways_are_marked);
    g_test_add_func("/cli/verdicts/diagnoses of too much", diagnoses_of_too_much);
    g_test_add_func("/cli/verdicts/settings are kept", settings_are_kept);
    g_test_add_func("/cli/verdicts/up to the wall", up_to_the_wall);
    g_test_add_func("/cli/verdicts/up to construction", up_to_construction);
    g_test_add_func("/cli/verdicts/up to a first gather", up_to_a_first_gather);
    g_test_add_func("/cli/verdicts/same input, same bytes", deterministic);
    return shell_finish(g_test_run());
}
