/* What foreshard finds out of a plan: whether it fits and trains well, what it costs, on every rank
 * too and on machines of several kinds. Takes the path of foreshard as its argument.
 */
#include <stdbool.h>
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
           0,
           "trains well: NO, 208 allocation retries in 20 steps\n"
           "  in each the allocator frees its cache and asks the GPU again\n"
           "  unequal ranks do so at different moments",
           "");
}

/* With one sequence the host issues for all of the step. The compute lane mostly waits for gathers,
 * but links a hundred times as fast, or half as fast, change nothing, and a quicker host does. */
static void late_host(void) {
    static const char one[] = "gpt2-xl -n 8 --param-dtype bf16 --cluster a100-node";
    static const struct {
        const char *command, *machine, *said;
    } cases[] = {
        {"predict", "", "most is lost to host"},
        {"predict", "", "bound by: host\n"},
        {"predict", "", "  step 138.591 ms"},
        {"predict", ":intra_node.nccl_channel_gb_per_s=2000", "  step 138.591 ms"},
        {"predict", ":intra_node.nccl_channel_gb_per_s=10", "  step 138.591 ms"},
        {"predict", ":host.cpu_factor=1", "  step 103.554 ms"},
        {"predict", ":host.cpu_factor=1", "bound by: arithmetic"},
        {"diagnose", "", "\n4. host-bound: the compute lane is busy for 70.3 % of a step"},
        {"explain bound_by", "", "bound_by = host: it issues for nearly all of a step"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *words = g_strconcat(cases[i].command, " ", one, cases[i].machine, NULL);
        expect(words, 0, cases[i].said, "");
    }
}

/* Retries that only come until memory is as it stays: the step is that of the many behind them. */
static void retries_that_end(void) {
    static const char words[] =
        "predict gpt-175b -n 64 --cluster a100-roce --flavour fsdp1 --param-dtype bf16 "
        "--checkpointing full --limit-all-gathers 1";
    expect(words, 0, "trains well: yes, the GPU works for ", "");
    expect("predict gpt-toy -n 2 --cluster this-machine", 0, "the rank works for ", "");
    expect("choose gpt-toy -n 2 --cluster this-machine --knob micro_batch=1 --top 1", 0,
           "simplest that fits on row 1's ranks, tuned:", "");
    expect(words, 0, "\n  1 allocation retry in 20 steps, none of them in the last 10\n", "");
    expect(words, 0,
           "  allocation retries, 20 steps            1\n"
           "  a step, in the last 10                0.0\n",
           "");
}

/* Where fragmentation decides, more memory may take "fits" away: each is told to be near, and how
 * expandable segments fare; with plenty of room nothing is said. */
static void near_the_edge(void) {
    static const struct {
        const char *bytes, *said;
    } sizes[] = {
        {"3491233792", "fits: yes, 1.50 MiB"},
        {"3491233792", "  near the edge: 0.1 % left; "},
        {"3491233792", "  with --allocator expandable: 1.94 GiB reserved, 0.1 % left, 38 "},
        {"3495616839", "fits: NO"},
        {"3495616839", "  near the edge: tensors alone (1.85 GiB at most) would fit; frag"},
        {"3688470937", "  near the edge: 3.8 % left; 196.61 MiB of what is reserved is frag"},
        {"3688470937", "  with --allocator expandable: 2.01 GiB reserved, 5.4 % left, no alloc"},
    };
    static const char words[] = "predict gpt2 -n 32 --param-dtype bf16 --micro-batch 3 --cluster "
                                "dgx-h100:4:device.memory_bytes=";
    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autofree char *command = g_strconcat(words, sizes[i].bytes, NULL);
        expect(command, 0, sizes[i].said, "");
    }
    g_autofree char *command = g_strconcat(words, "3800000000", NULL);
    g_auto(Result) clear = run(command);
    g_assert_null(strstr(clear.out, "near the edge"));
    g_assert_null(strstr(clear.out, "expandable"));
}

/* A world that does not fill its last node is seldom meant. */
static void part_of_a_node(void) {
    const char *plan = "predict gpt-toy -n %u --cluster two-nodes-ethernet";
    static const struct {
        unsigned ranks;
        bool is_told;
    } cases[] = {{4, false}, {8, false}, {12, true}, {16, false}};
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *words = g_strdup_printf(plan, cases[i].ranks);
        g_auto(Result) result = run(words);
        const char *said = strstr(result.out, "on 2 nodes; in the last one on 4 of its 8 GPUs\n");
        g_assert_cmpint(said != NULL, ==, cases[i].is_told);
    }
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

static void expect_as_with_every_rank(const char *words) {
    g_autofree char *every = g_strconcat(words, " --every-rank", NULL);
    g_auto(Result) plain = run(words);
    g_auto(Result) asked = run(every);
    g_assert_cmpint(plain.status, ==, 0);
    g_assert_cmpstr(plain.out, ==, asked.out);
    g_assert_nonnull(strstr(plain.out, "every_rank"));
}

/* A cluster of two kinds of node: one rank cannot stand for both, so each is played, by whatever
 * command. */
static void kinds_of_node(void) {
    write_cluster("old.ini", "v100-dgx", "\nwatts", "250");
    write_cluster("mixed.ini", "a100-roce", "\nwatts",
                  "400\n[nodes old]\nat = 1\nlike = old.ini\ndevice.sms = 40\n[device]");
    expect_as_with_every_rank(
        "predict gpt-toy -n 16 --param-dtype fp16 --cluster mixed.ini --json");
    expect_as_with_every_rank("predict gpt2 -n 16 --accumulate 40 --param-dtype fp16 --cluster "
                              "mixed.ini --json");
    expect("predict gpt-toy -n 8 --cluster mixed.ini --jitter 5", 2, "", "add --every-rank");
    expect("predict gpt-toy -n 16 --cluster mixed.ini --jitter 5", 0, "jitter 5 %", "");
    expect("choose gpt-toy -n 16 --cluster mixed.ini --knob sharding=full,grad-op", 0,
           "simplest that fits on row 1's GPUs", "");
    expect("choose gpt-toy -n 16 --cluster mixed.ini --json", 0, "\"took_bf16\" : false", "");
    expect("choose gpt-toy -n 8 --cluster a100-roce --json", 0, "\"took_bf16\" : true", "");
    expect("diagnose gpt-toy -n 16 --cluster mixed.ini", 0, "predicted on mixed, where this plan",
           "");
    expect("explain every_rank gpt-toy -n 16 --cluster mixed.ini", 0, "\n  rank 15 ", "");
    expect("explain trains_well gpt-toy -n 16 --cluster mixed.ini", 0,
           "memory bandwidth in the mean of all ranks)", "");
    expect("plot gpt-toy -n 16 --cluster mixed.ini --knob wrap=block,whole", 0, "\nwhole ", "");
    expect("predict gpt-toy -n 16 --param-dtype fp16 --cluster mixed.ini --every-rank", 0,
           "kinds of node, the mean of their ranks\n      8 ranks  A100-SXM4-80GB ", "");
    expect("predict gpt-toy -n 16 --param-dtype bf16 --cluster mixed.ini --every-rank", 0,
           "fits: NO, V100-SXM2-32GB cannot compute in bf16; choose another --param-dtype", "");
    expect("predict gpt-toy -n 8 --cluster mixed.ini", 0, "fits: yes", "");
}

/* The slowest rank never waits; whether they train well is asked of all. */
static void who_waits(void) {
    const char *even = "predict llama3-8b -n 16 --cluster dgx-h100 --param-dtype bf16 --every-rank";
    g_autofree char *one = g_strconcat(even, " --slow rank=3:2.5", NULL);
    g_autofree char *most = g_strconcat(even, " --slow rank=1-15:2.5", NULL);
    g_auto(Result) among_equals = run(even);
    g_auto(Result) beside_slow = run(one);
    g_auto(Result) alone_quick = run(most);
    g_assert_nonnull(strstr(among_equals.out, "trains well: yes, the GPUs work for 9"));
    g_assert_null(strstr(among_equals.out, " waits for others for "));
    g_assert_nonnull(strstr(beside_slow.out, "trains well: NO, the GPUs work for 4"));
    g_assert_nonnull(
        strstr(beside_slow.out, "most is lost to other ranks: see who waits for whom\n"));
    g_assert_nonnull(strstr(alone_quick.out, "trains well: yes, the GPUs work for 9"));
    g_assert_nonnull(strstr(alone_quick.out, "\n  but rank 0 waits for others for 5"));
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

int main(int argc, char **argv) {
    shell_init(&argc, &argv);
    g_test_add_func("/cli/verdicts/who waits", who_waits);
    g_test_add_func("/cli/verdicts/two verdicts", two_verdicts);
    g_test_add_func("/cli/verdicts/late host", late_host);
    g_test_add_func("/cli/verdicts/retries that end", retries_that_end);
    g_test_add_func("/cli/verdicts/near the edge", near_the_edge);
    g_test_add_func("/cli/verdicts/part of a node", part_of_a_node);
    g_test_add_func("/cli/verdicts/every rank", every_rank);
    g_test_add_func("/cli/verdicts/one p95", one_p95);
    g_test_add_func("/cli/verdicts/kinds of node", kinds_of_node);
    g_test_add_func("/cli/verdicts/kinds like a name", kinds_like_a_name);
    g_test_add_func("/cli/verdicts/float8", float8_where_there_is_some);
    g_test_add_func("/cli/verdicts/several stages", several_stages);
    g_test_add_func("/cli/verdicts/copies between ranks", copies_between_ranks);
    g_test_add_func("/cli/verdicts/energy and money", energy_and_money);
    g_test_add_func("/cli/verdicts/same input, same bytes", deterministic);
    return shell_finish(g_test_run());
}
