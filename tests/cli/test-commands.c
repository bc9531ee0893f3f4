/* What foreshard's commands do with good input, from any folder. Takes the path of foreshard as its
 * argument.
 */
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/cli/shell.h"

static void help(void) {
    expect("--help", 0, "Commands:", "");
    expect("--version", 0, "foreshard ", "");
    expect("", 2, "", "Usage: foreshard COMMAND");
    expect("plna gpt-toy", 2, "", "there is no command 'plna'");
    expect("help", 0, "Commands:", "");
    expect("help predict", 0, "foreshard predict [OPTION", "");
    expect("help plna", 2, "", "there is no command 'plna'");
    static const char *const commands[] = {"plan",     "units",    "predict", "collectives",
                                           "run",      "compare",  "plot",    "export",
                                           "validate", "diagnose", "report",  "explain"};
    for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++) {
        g_autofree char *words = g_strdup_printf("%s --help", commands[i]);
        expect(words, 0, "xample", "");
        g_autofree char *bad = g_strdup_printf("%s --no-such-option", commands[i]);
        expect(bad, 2, "", "no-such-option");
        expect(commands[i], 2, "", "foreshard ");
    }
}

/* What `plan -o -` wrote is a plan for all that take one. */
static void plan_from_standard_input(void) {
    expect("plan gpt-toy -n 2 -o in.plan", 0, "", "");
    expect("predict - --cluster a100-node <in.plan", 0, "gpt-toy, FSDP2, a unit per block, 2 ranks",
           "");
    expect("explain step_ms - <in.plan", 0, "step_ms = ", "");
    expect("plan /dev/stdin <in.plan", 0, "gpt-toy, FSDP2, a unit per block, 2 ranks", "");
    expect("plan - -n 3 <in.plan", 2, "", "standard input is a plan for 2 ranks, not 3");
    write_file("no.plan", "65536\n");
    expect("units - <no.plan", 2, "", "standard input:1: expected 'foreshard-plan', not '65536'");
}

/* Blocks until the pipe is read. */
static gpointer feed_pipe(gpointer path) {
    g_autofree char *text = read_file("in.plan");
    FILE *pipe = fopen(path, "w");
    g_assert_nonnull(pipe);
    g_assert_cmpuint(fwrite(text, 1, strlen(text), pipe), ==, strlen(text));
    g_assert_cmpint(fclose(pipe), ==, 0);
    return NULL;
}

/* What is piped in under a name of its own, as a shell's <(...) has one, can be read only once. */
static void plan_from_pipe(void) {
    expect("plan gpt-toy -n 2 -o in.plan", 0, "", "");
    g_autofree char *path = g_build_filename(shell.folder, "pipe", NULL);
    g_assert_cmpint(mkfifo(path, 0600), ==, 0);
    GThread *writer = g_thread_new("feeds", feed_pipe, path);
    expect("plan pipe", 0, "gpt-toy, FSDP2, a unit per block, 2 ranks", "");
    g_thread_join(writer);
    g_unlink(path);
}

/* A file of this folder needs no "./", whatever its name ends in. */
static void files_here(void) {
    write_file("config.json",
               "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 64, \"n_head\": 2,"
               "\"vocab_size\": 96, \"n_positions\": 32}");
    expect("plan config.json -n 2", 0, "parameters    ",
           "note: config.json: dropout is left out (resid_pdrop 0.1, embd_pdrop 0.1, ");
    expect("plan . -n 2", 0, "parameters    ",
           "config.json: sequences have 32 tokens, the most it allows; --seq N plans shorter ones");
    g_auto(Result) shorter = run("plan config.json --seq 16");
    g_assert_cmpint(shorter.status, ==, 0);
    g_assert_null(strstr(shorter.err, "the most it allows"));
    write_file("list.json", "[1]");
    expect("plan list.json", 2, "", "list.json: not a config.json: it is no object");
    expect("predict gpt-toy --cluster .", 2, "", "no cluster is called '.'");
    write_file("scaled.txt", "[network]\nfamily = llama\nlayers = 1\nwidth = 8\nheads = 2\n"
                             "ffn = 12\nvocab = 4\nseq = 4\nrope_scaling = llama3\n");
    expect("plan scaled.txt", 0, "scaled.txt, ", "");
    expect("plan no-such.txt", 2, "", "no-such.txt: there is no such file; `foreshard list`");
    expect("run moe-toy -n 2 --expert 2 --expert-overload 1.5 --steps 1", 2, "",
           "expert_overload is a what-if of the predictor; set expert_overload=1 to run");
    g_setenv("FORESHARD_EXEC", "no-such-program", TRUE); /* nothing has to be trained for this */
    expect("run scaled.txt", 1, "", "note: rotary angles are not scaled (rope_scaling = llama3), ");
    expect(
        "run gpt-toy -n 2 --flavour fsdp1 --offload params --accumulate 3 --accumulate-sync every",
        1, "", "note: of 3 passes the last one alone is learned from, ");
    g_unsetenv("FORESHARD_EXEC");
}

/* The sums of both views of a plan are the checker's own (tests/oracle holds those to PyTorch). */
static void views_of_a_plan(void) {
    expect("units gpt-toy -n 3 --flavour fsdp1", 0, "38146", ""); /* 114432 and 6 of padding by 3 */
    expect("units llama-toy -n 2 --tree", 0, "[32, 64] fp32, 2048 elements, unit layers.0", "");
    expect("plan gpt-toy -n 2 --lane gather --phase forward", 0, "launch gather all_gather", "");
    expect("plan gpt-toy -n 2 --phase forwrd", 2, "", "no phase 'forwrd'; did you mean forward?");
    expect("plan gpt-toy -n 2 --lane gater", 2, "", "no lane 'gater'; did you mean gather?");
    expect("plan gpt-toy -n 2 --unit layers.7", 2, "", "no unit 'layers.7'");
    g_auto(Result) json = run("plan gpt-toy -n 2 --json");
    g_auto(Result) table = run("plan gpt-toy -n 2 --memory");
    const char *peak = strstr(json.out, "\"peak_bytes\" : ");
    const char *all = strstr(table.out, "\nin all");
    g_assert_nonnull(peak);
    g_assert_nonnull(all);
    g_assert_cmpuint(g_ascii_strtoull(strchr(peak, ':') + 1, NULL, 10), ==,
                     g_ascii_strtoull(all + strlen("\nin all"), NULL, 10));
}

static void collectives(void) {
    expect("collectives --cluster dgx-h100 -n 64 --table", 0, "64 ranks on 8 nodes", "");
    expect("collectives --cluster dgx-h100 --nccl-algo tree", 0, "tree ", "");
    expect("collectives --cluster dgx-h100 --bytes 1e6", 2, "", "--bytes is the size for --table");
    expect("collectives --cluster dgx-h100 --table --bytes 0", 2, "", "--bytes is a size from 1");
    expect("collectives --cluster this-machine -n 2", 0, "1 node", "");
    expect("collectives --cluster dgx-h100 --nccl-algo bush", 2, "", "is one of ring, tree");
    expect("collectives --cluster a100-node -n 16", 2, "", "more than the cluster has ranks");
}

static const char rows[] =
    "hardware,gpus,gpus_per_node,framework,model,layers,d_model,heads,kv_heads,d_ff,mlp_type,vocab,"
    "seq_len,micro_batch,grad_accum,sharding_strategy,tp,pp,activation_checkpointing,offload,"
    "compile,status,tokens_per_s_per_gpu,peak_mem_gib,peak_mem_kind\n"
    "A100-80GB,8,8,PyTorch FSDP,tiny,2,256,2,2,512,swiglu,1000,128,2,1,FULL_SHARD,1,1,none,none,no,"
    "ok,10000,1,max reserved\n"
    "A100-80GB,8,8,Megatron-LM,tiny,2,256,2,2,512,swiglu,1000,128,2,1,FULL_SHARD,1,1,none,none,no,"
    "ok,10000,,\n";

/* A row's columns may tell its time differently: the first is taken, and the reader is told. A kind
 * of which there is no row has no error, not one of 0. */
static void figures_that_differ(void) {
    g_auto(GStrv) columns = g_strsplit(rows, "peak_mem_gib,peak_mem_kind", 2);
    g_autofree char *with_step = g_strjoinv("samples_per_s,step_ms", columns);
    g_auto(GStrv) both = g_strsplit(with_step, ",10000,1,max reserved", 2);
    static const struct {
        const char *figures,
            *said; /* 256 tokens of 8 ranks, at 10000 a second: 25.6 ms, 625 samples */
    } cases[] = {
        {",10000,625,25.6", NULL},
        {",10000,630,25", NULL},
        {",10000,,1",
         "tokens_per_s_per_gpu makes a step of 25.6 ms and is taken, step_ms one of 1.0"},
        {",10000,62.5,", "is taken, samples_per_s one of 256.0"},
        {",3,0.2,", NULL}, /* 85 s by the first; 80 s by the second, which is anything from 0.15 */
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strjoinv(cases[i].figures, both);
        write_file("differ.csv", text);
        g_auto(Result) result = run("validate --json differ.csv");
        g_assert_cmpint(result.status, ==, 0);
        g_assert_nonnull(strstr(result.out, "\"memory\" : null"));
        g_assert_null(strstr(result.out, "\"rows\" : 0"));
        g_assert_true((strstr(result.out, " makes a step of ") != NULL) == (cases[i].said != NULL));
        g_assert_true(cases[i].said == NULL || strstr(result.out, cases[i].said) != NULL);
    }
}

/* Rows of nobody's known tables. */
static void validate(void) {
    write_file("rows.csv", rows);
    expect("validate rows.csv", 0, "rows.csv: 2 rows, 1 predicted, 1 skipped", "");
    expect("validate rows.csv", 0, "skipped: no rule knows this framework", "");
    expect("validate --json rows.csv", 0, "\"overall\"", "");
    expect("validate --settings rows.csv", 0, "flavour=fsdp1", "");
    g_auto(GStrv) around = g_strsplit(rows, "offload", 2);
    g_autofree char *unknown = g_strjoinv("surprise", around);
    write_file("unknown.csv", unknown);
    expect("validate unknown.csv", 2, "", "unknown.csv:1: column 'surprise' is unknown");
    g_auto(GStrv) parts = g_strsplit(rows, ",10000,1,", 2);
    g_autofree char *word = g_strjoinv(",fast,1,", parts);
    write_file("word.csv", word);
    expect("validate word.csv", 2, "", "word.csv:2: tokens_per_s_per_gpu is 'fast'");
    g_autofree char *cut = g_strndup(rows, strlen(rows) - 20);
    write_file("cut.csv", cut);
    expect("validate cut.csv", 2, "", "cut.csv:3: ");
    write_file("other.csv", "x,y\n1,2\n");
    expect("validate other.csv", 2, "", "other.csv:1: these columns are of no table");
    expect("validate nowhere.csv", 2, "", "nowhere.csv");
    figures_that_differ();
    expect("validate rows.csv nowhere.csv", 2, "skipped: no rule knows this framework",
           "nowhere.csv");
    expect("validate --cores -1 rows.csv", 2, "", "--cores is -1");
    expect("validate --cores 3 rows.csv rows.csv", 0, "overall: 4 rows, 2 predicted", "");
}

/* A plan has the network's text as it was changed, so that it can be read and built again. */
static void network_keys(void) {
    expect("plan gpt-toy -n 2 --network-key seq=16 --network-key loss=chunked -o changed.plan", 0,
           "gpt-toy (seq=16 loss=chunked), FSDP2", "");
    expect("plan changed.plan --check", 0, "sound", "");
    g_autofree char *text = read_file("changed.plan");
    g_assert_nonnull(strstr(text, "\n| seq = 16\n"));
    g_assert_null(strstr(text, "\n| seq = 32\n"));
    g_assert_nonnull(strstr(text, "\n| loss = chunked\n"));
    expect("predict gpt-toy -n 2 --cluster this-machine --network-key loss=chunked "
           "--trace changed.trace",
           0, "gpt-toy (loss=chunked)", "");
    expect("diagnose changed.trace", 0, "", "");
    expect("plot gpt-toy -n 2 --cluster this-machine --knob network.loss=lost", 2, "",
           "with loss=lost");
}

static void knobs(void) {
    expect("plot gpt-toy -n 2 --cluster this-machine --knob wrap", 2, "", "as in --knob wrap=");
    expect("plot gpt-toy -n 2 --cluster this-machine --knob warp=block", 2, "",
           "did you mean wrap?");
    expect("plot gpt-toy -n 2 --cluster this-machine --knob zzz=1", 2, "", "--help-strategy");
    expect("plot no-such.trace", 2, "", "no-such.trace does not exist; give one, or a plan or");
    expect("plot gpt-toy -n 2", 2, "",
           "gpt-toy is a network: give the cluster to predict it on, as in: --cluster");
    expect("diagnose gpt-toy -n 2", 2, "", "gpt-toy is a network: give the cluster to predict");
    expect("plot gpt-tou -n 2", 2, "", "gpt-tou is no trace; give one, or a plan or network and");
    expect("plot gpt-tou -n 2 --cluster this-machine", 2, "", "did you mean gpt-toy?");
    expect("predict gpt2 --cluster dgx-b200", 2, "", "did you mean b200-p6 or b200-node?");
    expect("predict gpt2 --cluster dgx-a100", 2, "", "did you mean a100-p4d,");
    expect("plot gpt-toy -n 2 --knob wrap=block,whole", 2, "", "as in: --cluster");
    expect("plot gpt-toy -n 2 --cluster this-machine -p pareto", 2, "", "a network and a knob");
    expect("plot -p validation", 2, "", "tables of published runs");
    expect("plot -p validation no-such.csv", 2, "", "no-such.csv");
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (!gnuplot) {
        g_test_skip("gnuplot is not installed");
        return;
    }
    expect("plot gpt-toy -n 2 --cluster this-machine", 0, "host time since the start of step 0",
           "");
    expect("plot gpt-toy -n 2 --cluster this-machine -p lanes", 0, "compute busy", "");
    expect("plot gpt-toy -n 2 --cluster v100-dgx --param-dtype bf16", 2, "",
           "V100-SXM2-32GB cannot compute in bf16; choose another --param-dtype");
    expect("plot gpt-toy -n 2 --cluster this-machine -k wrap=block,whole", 0, "peak reserved", "");
    expect("plot gpt-toy -n 2 --cluster this-machine -p pareto -k wrap=block,whole -k "
           "sharding=full,none -k param-dtype=auto,bf16",
           0, "on the front",
           "left out, with 1 more for the same reason: wrap=block, sharding=none, "
           "param_dtype=bf16");
    expect("predict gpt-toy -n 2 --cluster this-machine --trace k.trace", 0, "fits", "");
    expect("plot gpt-toy -n 2 --cluster this-machine -k wrap=block,whole k.trace -o k.svg", 0,
           "\nwhole ", ""); /* the numbers, also when the picture goes to a file */
    expect("plot k.trace -k wrop=block", 2, "", "k.trace: the trace's strategy has no wrop");
}

/* Published runs are told apart by table; of more tables than colours, by what limits them. */
static void published_runs(void) {
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    if (!gnuplot) {
        g_test_skip("gnuplot is not installed");
        return;
    }
    write_file("ours.csv", "hardware,framework,model,gpus,seq_len,micro_batch,sharding_strategy,"
                           "tokens_per_s_per_gpu\n"
                           "A100-80GB,PyTorch FSDP2,llama2-7b,8,4096,2,FULL_SHARD,3500\n"
                           "A100-80GB,PyTorch FSDP2,gpt2,8,128,1,FULL_SHARD,1000\n");
    g_autoptr(GString) words = g_string_new("plot -p validation");
    for (unsigned i = 0; i < 8; i++) {
        g_string_append(words, " ours.csv");
    }
    expect(words->str, 0, "a   ours", "");
    g_string_append(words, " ours.csv");
    expect(words->str, 0, "a   bound by arithmetic", "");
    expect(words->str, 0, "b   bound by the host", "");
}

static void traces(void) {
    expect("predict gpt-toy --cluster this-machine --trace a.trace", 0, "fits", "");
    expect("predict mlp-toy --cluster this-machine --trace b.trace", 0, "fits", "");
    expect("compare a.trace a.trace", 0, "equal", "");
    expect("compare a.trace b.trace", 2, "", "traces are of different plans");
    expect("compare a.trace nowhere.trace", 2, "", "nowhere.trace");
    g_autofree char *text = read_file("a.trace");
    text[strlen(text) / 2] = 0;
    write_file("short.trace", text);
    expect("compare a.trace short.trace", 2, "", "short.trace:");
    expect("plot short.trace", 2, "", "short.trace:");
    expect("plot a.trace -o a.jpeg", 2, "", "a.jpeg");
    expect("export --chrome short.trace -o short.json", 2, "", "short.trace:");
    expect("export --chrome a.trace -o no-such-folder/a.json", 1, "", "no-such-folder/a.json");
    expect("export --chrome --memory-viz a.trace -o a.json", 2, "", "one of --chrome");
    expect("export --memory-viz a.trace", 2, "", "-o FILE");
}

/* The names that each list has are those that are found. */
static void lists(void) {
    expect("list", 0, "  gpt2                 124.44 M parameters,  12 layers, width   768, ", "");
    expect("list", 0, "  llama2-7b              6.74 B parameters", "");
    expect("list networks", 0, "  t5-11b                11.31 B parameters", "");
    expect("list clusters", 0, "  dgx-h100             128 ranks: 16 nodes of 8 x H100", "");
    expect("list networks --names", 0, "\ngpt2\ngpt2-large\n", "");
    expect("list nothing", 2, "", "there is no list of 'nothing'");
    g_auto(Result) part = run("list h100");
    g_assert_cmpint(part.status, ==, 0);
    g_assert_true(g_str_has_prefix(part.out, "clusters\n  dgx-h100 "));
    g_assert_nonnull(strstr(part.out, "\n  h100-p5 "));
    g_assert_null(strstr(part.out, "a100"));
    expect("list h100 --csv", 2, "", "--csv is of one list");
    expect("list a100-p4d", 0, "\nnic_gb_per_s = 6.25\n", "");
    expect("list gpt2 -o own.ini", 0, "", "");
    expect("plan own.ini", 0, "own, ", "");
    expect("list clusters -o own.ini", 2, "", "-o is for the file of one network or cluster");
    expect("list gpt2 -o own.ini", 0, "", "");
    expect("list gpt2-xl -o own.ini", 2, "", "own.ini is there already, and says something else");
    expect("plan own.ini", 0, "own, ", "");
    expect("list gpt2 -o no/such/own.ini", 1, "", "no/such/own.ini");
}

/* Ranks that end without a word, for one thing or for all; without mpirun, which would take a
 * second for each. */
static void calibrate_with(const char *script, int status, const char *in_out, const char *in_err) {
    write_file("ranks.sh", script);
    g_autofree char *path = g_build_filename(shell.folder, "ranks.sh", NULL);
    g_assert_cmpint(g_chmod(path, 0700), ==, 0);
    g_autofree char *search = g_strdup(g_getenv("PATH"));
    g_setenv("FORESHARD_EXEC", path, TRUE);
    g_setenv("PATH", shell.folder, TRUE);
    expect("calibrate -n 1 -o measured.ini", status, in_out, in_err);
    g_setenv("PATH", search, TRUE);
    g_unsetenv("FORESHARD_EXEC");
}

/* What works is measured, whatever else fails. */
static void calibrate_takes_what_there_is(void) {
    calibrate_with("#!/bin/sh\nexit 3\n", 1,
                   "gpt-bf16    failed: ", "nothing could be measured: costs: ");
    calibrate_with(
        "#!/bin/sh\n"
        "case \"$*\" in *--costs*) ;; *) exit 3 ;; esac\n"
        "printf 'launch_us 0.625\\nwait_us 1\\nhost_wait_us 20\\nsegment_new_us 3000\\n'\n"
        "printf 'segment_free_us 500\\nalloc_us 1\\nfree_us 1\\nlane_wake_us 60\\n'\n",
        0, "llama       failed: ", "");
    g_autofree char *text = read_file("measured.ini");
    g_assert_nonnull(strstr(text, "\n# Failed: t5: "));
    g_assert_nonnull(strstr(text, "taken over from this-machine"));
    g_assert_nonnull(
        strstr(text, "\n# taken over: what measures it failed\nmatmul_fp32_tflops = "));
    g_assert_nonnull(strstr(text, "\nlaunch_us = 0.625\n"));
    expect("predict gpt-toy -n 1 --cluster ./measured.ini", 0, "tokens/s", "");
}

int main(int argc, char **argv) {
    shell_init(&argc, &argv);
    g_test_add_func("/cli/commands/help", help);
    g_test_add_func("/cli/commands/files here", files_here);
    g_test_add_func("/cli/commands/plan from standard input", plan_from_standard_input);
    g_test_add_func("/cli/commands/plan from a pipe", plan_from_pipe);
    g_test_add_func("/cli/commands/views of a plan", views_of_a_plan);
    g_test_add_func("/cli/commands/calibrate takes what there is", calibrate_takes_what_there_is);
    g_test_add_func("/cli/commands/collectives", collectives);
    g_test_add_func("/cli/commands/validate", validate);
    g_test_add_func("/cli/commands/network keys", network_keys);
    g_test_add_func("/cli/commands/knobs", knobs);
    g_test_add_func("/cli/commands/published-runs", published_runs);
    g_test_add_func("/cli/commands/traces", traces);
    g_test_add_func("/cli/commands/lists", lists);
    return shell_finish(g_test_run());
}
