/* The command from outside: bad input ends in status 2 and a message with place and remedy; good
 * input works from any folder. Takes the path of foreshard as its argument.
 */
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>

static const char *program;
static char *folder;

typedef struct {
    int status;
    char *out, *err;
} Result;

static Result run(const char *words) {
    g_autoptr(GPtrArray) argv = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(argv, g_strdup(program));
    g_auto(GStrv) list = g_strsplit(words, " ", -1);
    for (char **word = list; *word; word++) {
        if (**word) {
            g_ptr_array_add(argv, g_strdup(*word));
        }
    }
    g_ptr_array_add(argv, NULL);
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE);
    g_subprocess_launcher_set_cwd(launcher, folder);
    g_autoptr(GError) error = NULL;
    g_autoptr(GSubprocess) process =
        g_subprocess_launcher_spawnv(launcher, (const char *const *)argv->pdata, &error);
    g_assert_no_error(error);
    Result result = {0};
    g_subprocess_communicate_utf8(process, NULL, NULL, &result.out, &result.err, &error);
    g_assert_no_error(error);
    g_assert_true(g_subprocess_get_if_exited(process));
    result.status = g_subprocess_get_exit_status(process);
    return result;
}

static void expect(const char *words, int status, const char *in_out, const char *in_err) {
    Result result = run(words);
    if (result.status != status || !strstr(result.out, in_out) || !strstr(result.err, in_err)) {
        g_test_message("foreshard %s\nstatus %d, expected %d\nstdout: %.300s\nexpected '%s'\n"
                       "stderr: %.300s\nexpected '%s'",
                       words, result.status, status, result.out, in_out, result.err, in_err);
        g_test_fail();
    }
    g_free(result.out);
    g_free(result.err);
}

static void write_file(const char *name, const char *text) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

/* What a broken file holds does not flood the terminal, nor break the line. */
static void messages_are_one_line(void) {
    g_autofree char *junk = g_strnfill(100000, 'x');
    g_autofree char *text =
        g_strconcat("[network]\nfamily = gpt\nlayers = 2\x1b[31m", junk, "\n", NULL);
    write_file("junk.ini", text);
    Result result = run("plan ./junk.ini -n 2");
    g_assert_cmpint(result.status, ==, 2);
    g_assert_nonnull(strstr(result.err, "junk.ini:3: layers must be a whole number"));
    g_assert_nonnull(strstr(result.err, "xxx..."));
    g_assert_null(strchr(result.err, '\x1b'));
    g_assert_cmpuint(strlen(result.err), <, 500);
    g_assert_true(strchr(result.err, '\n') == result.err + strlen(result.err) - 1);
    g_free(result.out);
    g_free(result.err);
}

/* What is read is not written over, whatever name it has. */
static void inputs_are_spared(void) {
    static const char *const words[] = {
        "plan mine.ini -n 2 -o mine.ini",
        "plan mine.ini -n 2 -o ./mine.ini",
        "predict mine.ini -n 2 --cluster this-machine --trace mine.ini",
        "run mine.ini -n 2 --steps 1 --trace mine.ini",
        "run gpt-toy -n 2 --steps 1 --data mine.ini --trace mine.ini",
        "run mine.ini -n 2 --steps 1 --save mine.ini",
        "rehearse mine.ini -n 2 --rank 0 --cluster two-laptops --trace mine.ini",
        "export --chrome mine.ini -o mine.ini",
        "report mine.ini -o mine.ini",
    };
    static const char text[] = "[network]\nfamily = mlp\nlayers = 2\nwidth = 8\nseq = 4\n";
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        write_file("mine.ini", text);
        expect(words[i], 2, "", "is read and would be written over");
        g_autofree char *path = g_build_filename(folder, "mine.ini", NULL);
        g_autofree char *left = NULL;
        g_assert_true(g_file_get_contents(path, &left, NULL, NULL));
        g_assert_cmpstr(left, ==, text);
    }
}

static void help(void) {
    expect("--help", 0, "Commands:", "");
    expect("--version", 0, "foreshard ", "");
    expect("", 2, "", "Usage: foreshard COMMAND");
    expect("plna gpt-toy", 2, "", "there is no command 'plna'");
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

/* Linux's /dev/full takes nothing, as a full disk. Long output finds out before the end, short only
 * there, and after --help it is GLib that ends the program. (tests/exec/failures.c has runs.) */
static void full_disk(void) {
    static const char *const commands[] = {
        "--help",
        "plan --help",
        "list",
        "plan gpt-toy",
        "plan gpt-toy --print",
        "plan gpt-toy -o -",
        "units gpt-toy --tree",
        "predict gpt-toy --cluster this-machine",
        "predict gpt-toy --cluster this-machine --json",
        "collectives --cluster a100-node",
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++) {
        g_auto(GStrv) words = g_strsplit(commands[i], " ", -1);
        g_autoptr(GPtrArray) argv = g_ptr_array_new();
        g_ptr_array_add(argv, (gpointer)program);
        for (char **word = words; *word; word++) {
            g_ptr_array_add(argv, *word);
        }
        g_ptr_array_add(argv, NULL);
        g_autoptr(GSubprocessLauncher) launcher =
            g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDERR_PIPE);
        g_subprocess_launcher_set_stdout_file_path(launcher, "/dev/full");
        g_autoptr(GSubprocess) process =
            g_subprocess_launcher_spawnv(launcher, (const char *const *)argv->pdata, NULL);
        g_autofree char *said = NULL;
        g_assert_true(g_subprocess_communicate_utf8(process, NULL, NULL, NULL, &said, NULL));
        g_assert_cmpint(g_subprocess_get_exit_status(process), ==, 1);
        g_assert_nonnull(strstr(said, "the output cannot be written"));
        g_assert_true(strchr(said, '\n') == said + strlen(said) - 1); /* and nothing else */
    }
}

/* "-o -" is standard output, which then has the file alone; elsewhere it is refused, and no file
 * gets that name. */
static void standard_output(void) {
    static const char *const refused[] = {
        "predict gpt-toy --cluster this-machine --trace -",
        "run gpt-toy --steps 1 --trace -",
        "run gpt-toy --steps 1 --save -",
        "rehearse gpt-toy -n 2 --rank 1 --cluster two-laptops --trace -",
        "compare gpt.trace gpt.trace -o -",
    };
    static const struct {
        const char *to_file, *to_standard;
    } alike[] = {
        {"plan gpt-toy -n 2 -o alike", "plan gpt-toy -n 2 -o -"},
        {"export --chrome gpt.trace -o alike", "export --chrome gpt.trace -o -"},
        {"report gpt.trace -o alike", "report gpt.trace -o -"}, /* the last: needs gnuplot */
    };
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    expect("predict gpt-toy -n 2 --cluster this-machine --trace gpt.trace", 0, "step ", "");
    g_autofree char *path = g_build_filename(folder, "alike", NULL);
    g_autofree char *dash = g_build_filename(folder, "-", NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(alike) - !gnuplot; i++) {
        g_autofree char *written = NULL;
        expect(alike[i].to_file, 0, "", "");
        Result result = run(alike[i].to_standard);
        g_assert_cmpint(result.status, ==, 0);
        g_assert_true(g_file_get_contents(path, &written, NULL, NULL));
        g_assert_cmpuint(strlen(written), >, 1000);
        g_assert_cmpstr(result.out, ==, written);
        g_free(result.out);
        g_free(result.err);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(refused); i++) {
        expect(refused[i], 2, "", " -: standard output has what is printed already; give a name");
    }
    expect("plot gpt-toy --cluster this-machine -o -", 2, "", "a picture's name ends in");
    g_assert_false(g_file_test(dash, G_FILE_TEST_EXISTS));
}

/* A file of this folder needs no "./", whatever its name ends in. */
static void files_here(void) {
    write_file("config.json",
               "{\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 64, \"n_head\": 2,"
               "\"vocab_size\": 96, \"n_positions\": 32}");
    expect("plan config.json -n 2", 0, "parameters    ",
           "note: config.json: dropout is left out (resid_pdrop 0.1, embd_pdrop 0.1, ");
    write_file("scaled.txt", "[network]\nfamily = llama\nlayers = 1\nwidth = 8\nheads = 2\n"
                             "ffn = 12\nvocab = 4\nseq = 4\nrope_scaling = llama3\n");
    expect("plan scaled.txt", 0, "scaled.txt, ", "");
    expect("plan no-such.txt", 2, "", "no network is called 'no-such.txt'");
    g_setenv("FORESHARD_EXEC", "no-such-program", TRUE); /* nothing has to be trained for this */
    expect("run scaled.txt", 1, "", "note: rotary angles are not scaled (rope_scaling = llama3), ");
    expect(
        "run gpt-toy -n 2 --flavour fsdp1 --offload params --accumulate 3 --accumulate-sync every",
        1, "", "note: of 3 passes the last one alone is learned from, ");
    g_unsetenv("FORESHARD_EXEC");
}

static void bad_networks(void) {
    write_file("bad.ini", "[network]\nfamily = gpt\nlayers = 2\nwidth = x\n");
    expect("plan bad.ini", 2, "", "bad.ini:4: width must be a whole number");
    expect("plan no-such-network", 2, "", "no-such-network");
    expect("predict bad.ini --cluster this-machine", 2, "", "bad.ini:4:");
    expect("run bad.ini", 2, "", "bad.ini:4:");
}

static void bad_strategies(void) {
    write_file("s.ini", "[strategy]\nranks = 2\nwrap = blok\n");
    expect("plan gpt-toy --strategy s.ini", 2, "", "s.ini:3: wrap must be one of block, whole");
    expect("plan gpt-toy --wrap blok", 2, "", "option --wrap: wrap must be one of");
    expect("plan gpt-toy -n 0", 2, "", "ranks must be a whole number");
    expect("plan gpt-toy -n 2 --flavour plain --sharding none", 2, "", "nothing that joins ranks");
    expect("plan gpt-toy --host-reads nrm", 2, "", "must be one of none, loss, norm, both");
    expect("plan gpt-toy -n 2 --host-reads norm", 2, "", "set clip, or host_reads=loss or none");
    expect("plan gpt-toy -n 2 --optimizer-count device", 2, "", "and optimizer_kernel=loop, or");
    write_file("reads.ini", "[strategy]\nranks = 2\n\nhost_reads = both\n");
    expect("plan gpt-toy --strategy reads.ini", 2, "", "plan: reads.ini:4: host_reads=norm and");
    expect("plan gpt-toy --strategy reads.ini --host-reads norm", 2, "", "plan: host_reads=norm");
    expect("plan gpt-toy --strategy reads.ini --clip 1 -o reads.plan", 0, "", "");
    expect("plan gpt-toy --seq 33", 2, "", "longer than the 32 positions");
}

static void bad_clusters(void) {
    write_file("c.ini", "[cluster]\ntitle = x\n[device]\nkind = toaster\n");
    expect("predict gpt-toy --cluster c.ini", 2, "", "c.ini:4:");
    expect("predict gpt-toy --cluster no-such-cluster", 2, "", "no-such-cluster");
    expect("predict gpt-toy -n 9 --cluster a100-node", 2, "", "place for 8");
}

static void bad_plans(void) {
    expect("plan gpt-toy -n 2 -o good.plan", 0, "sha256:", "");
    expect("plan good.plan --check", 0, "sound", "");
    expect("plan good.plan -n 3", 2, "", "is a plan for 2 ranks");
    expect("plan good.plan --wrap whole", 2, "", "whose wrap is settled");
    g_autofree char *path = g_build_filename(folder, "good.plan", NULL);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    text[strlen(text) / 2] = 0;
    write_file("short.plan", text);
    static const char *const commands[] = {"plan", "predict --cluster this-machine", "run"};
    for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++) {
        g_autofree char *words = g_strdup_printf("%s short.plan", commands[i]);
        expect(words, 2, "", "short.plan:");
    }
}

/* The sums of both views of a plan are the checker's own (tests/oracle holds those to PyTorch). */
static void views_of_a_plan(void) {
    expect("units gpt-toy -n 3 --flavour fsdp1", 0, "38146", ""); /* 114432 and 6 of padding by 3 */
    expect("units llama-toy -n 2 --tree", 0, "[32, 64] fp32, 2048 elements, unit layers.0", "");
    expect("plan gpt-toy -n 2 --lane gather --phase forward", 0, "launch gather all_gather", "");
    expect("plan gpt-toy -n 2 --phase forwrd", 2, "", "no phase 'forwrd'; did you mean forward?");
    expect("plan gpt-toy -n 2 --lane gater", 2, "", "no lane 'gater'; did you mean gather?");
    expect("plan gpt-toy -n 2 --unit layers.7", 2, "", "no unit 'layers.7'");
    Result json = run("plan gpt-toy -n 2 --json"), table = run("plan gpt-toy -n 2 --memory");
    const char *peak = strstr(json.out, "\"peak_bytes\" : ");
    const char *all = strstr(table.out, "\nin all");
    g_assert_nonnull(peak);
    g_assert_nonnull(all);
    g_assert_cmpuint(g_ascii_strtoull(strchr(peak, ':') + 1, NULL, 10), ==,
                     g_ascii_strtoull(all + strlen("\nin all"), NULL, 10));
    g_free(json.out);
    g_free(json.err);
    g_free(table.out);
    g_free(table.err);
}

static void collectives(void) {
    expect("collectives --cluster dgx-h100 -n 64 --table", 0, "64 ranks on 8 nodes", "");
    expect("collectives --cluster dgx-h100 --nccl-algo tree", 0, "tree ", "");
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
}

static void output_is_not_lost(void) {
    expect("plan gpt-toy -o no-such-folder/x.plan", 1, "", "no-such-folder/x.plan");
    expect("predict gpt-toy --cluster this-machine --trace no-such-folder/x.trace", 1, "",
           "no-such-folder/x.trace");
}

static void knobs(void) {
    expect("plot gpt-toy -n 2 --cluster this-machine --knob wrap", 2, "", "as in --knob wrap=");
    expect("plot gpt-toy -n 2 --cluster this-machine --knob warp=block", 2, "",
           "did you mean wrap?");
    expect("plot gpt-toy -n 2 --cluster this-machine --knob zzz=1", 2, "", "--help-strategy");
    expect("plot gpt-toy -n 2", 2, "", "gpt-toy is no trace; give one, or a plan or network and");
    expect("plot gpt-tou -n 2 --cluster this-machine", 2, "", "did you mean gpt-toy?");
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
           0, "on the front", "left out: wrap=block, sharding=none, param_dtype=bf16");
    expect("predict gpt-toy -n 2 --cluster this-machine --trace k.trace", 0, "fits", "");
    expect("plot gpt-toy -n 2 --cluster this-machine -k wrap=block,whole k.trace -o k.svg", 0,
           "\nwhole ", ""); /* the numbers, also when the picture goes to a file */
    expect("plot k.trace -k wrop=block", 2, "", "k.trace: the trace's strategy has no wrop");
}

static void traces(void) {
    expect("predict gpt-toy --cluster this-machine --trace a.trace", 0, "fits", "");
    expect("predict mlp-toy --cluster this-machine --trace b.trace", 0, "fits", "");
    expect("compare a.trace a.trace", 0, "equal", "");
    expect("compare a.trace b.trace", 2, "", "traces are of different plans");
    expect("compare a.trace nowhere.trace", 2, "", "nowhere.trace");
    g_autofree char *path = g_build_filename(folder, "a.trace", NULL);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
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

/* A copy of a cluster with one number changed. */
static void write_cluster(const char *name, const char *from, const char *key, const char *value) {
    g_autofree char *path = g_strdup_printf("%s/models/clusters/%s.ini", g_getenv("SOURCE"), from);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    char *line = strstr(text, key);
    g_assert_nonnull(line);
    g_autoptr(GString) changed = g_string_new_len(text, line - text);
    g_string_append_printf(changed, "%s = %s%s", key, value, strchr(line + 1, '\n'));
    write_file(name, changed->str);
}

/* Fitting and training well are two verdicts. */
static void two_verdicts(void) {
    expect("predict gpt2-xl -n 8 --param-dtype bf16 --micro-batch 8 --cluster dgx-h100", 0,
           "trains well: yes", "");
    expect("predict gpt2-xl -n 16 --param-dtype bf16 --cluster two-nodes-ethernet", 0,
           "most is lost to inter-node network", "");
    expect("predict gpt-175b -n 128 --micro-batch 2 --flavour fsdp1 --param-dtype bf16 "
           "--checkpointing full --pytorch 2.0 --cluster a100-roce",
           0, "trains well: NO, the allocator gave memory back", "");
}

/* Each rank by itself: jitter, stragglers, links, kinds of node; then what reads such traces. */
static void every_rank(void) {
    expect(
        "predict gpt-toy -n 4 --cluster a100-node --every-rank", 0,
        "who waits for whom (4 ranks, jitter 0 %, spread 1.5 %, of hosts 0 %, of links 0 %, seed 0",
        "");
    expect("predict gpt-toy -n 16 --cluster a100-roce --every-rank --jitter 5 --seed 7 --steps 6 "
           "--slow rank=3:30 --slow node=1:1.1 --degrade nic=8-9:0.5 --degrade node=0:0.9 "
           "--trace every.trace --trace-ranks 0,3,9-10",
           0, "below: rank 3, which loses least to others", "");
    expect("predict gpt-toy -n 16 --cluster a100-roce --every-rank --json", 0,
           "\"times_of_rank\" : 0", "");
    expect("predict gpt-toy -n 3 --cluster a100-node --every-rank", 0,
           "peak reserved, least rank's", "");
    expect("plot every.trace --picture jitter", 0, "rank 0: median", "");
    expect("plot every.trace --picture jitter --rank 3 -o every.svg", 0, "", "");
    expect("diagnose every.trace", 0, "jitter: 4 steady steps from", "");
    expect("diagnose every.trace --rank 10", 0, "jitter: 4 steady steps from", "");
    expect("diagnose every.trace --rank 1", 2, "", "has not recorded rank 1");
    expect("export --chrome every.trace -o every.json", 0, "", "");
    Result result = run("predict gpt-toy -n 4 --cluster a100-node --every-rank --jitter 5");
    g_assert_null(strstr(result.err, "playing")); /* no progress where nobody looks on */
    g_free(result.out);
    g_free(result.err);
}

static void every_rank_refused(void) {
    static const struct {
        const char *options, *words;
    } bad[] = {
        {"--every-rank --slow rank=9:1.2", "--slow: there is no rank 9; the plan has 4"},
        {"--every-rank --slow node=1:1.2", "--slow: there is no node 1; the plan has 1"},
        {"--every-rank --slow rank=1", "'rank=1' is not WHO:FACTOR"},
        {"--every-rank --slow rank=1:fast", "is not WHO:FACTOR"},
        {"--every-rank --slow rank=x:2", "names no ranks"},
        {"--every-rank --slow rank=2-1:2", "names no ranks"},
        {"--every-rank --slow nic=1:2", "'nic' is unknown; give rank or node"},
        {"--every-rank --slow rank=1:-2", "out of bounds"},
        {"--every-rank --degrade rank=1:0", "out of bounds"},
        {"--every-rank --degrade gpu=1:0.5", "'gpu' is unknown"},
        {"--every-rank --jitter -1", "no percentage"},
        {"--every-rank --jitter much", "no percentage"},
        {"--every-rank --host-jitter 1001", "--host-jitter: '1001' is no percentage"},
        {"--every-rank --link-jitter nan", "--link-jitter: 'nan' is no percentage"},
        {"--link-jitter 5", "add --every-rank"},
        {"--every-rank --spread 8%", "no percentage"},
        {"--every-rank --seed -1", "no whole number"},
        {"--every-rank --trace-ranks 0,4", "there is no rank 4"},
        {"--jitter 5", "--jitter is for every-rank play"},
        {"--slow rank=1:2", "--slow is for every-rank play"},
        {"--trace-ranks 0", "--trace-ranks is for every-rank play"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *words =
            g_strdup_printf("predict gpt-toy -n 4 --cluster a100-node %s", bad[i].options);
        expect(words, 2, "", bad[i].words);
    }
    write_cluster("wide.ini", "a100-roce", "\nnodes", "100000");
    expect("predict gpt-toy -n 400000 --cluster wide.ini --every-rank", 2, "",
           "400000 ranks are too many to play each (32768 at most)");
    expect("predict gpt-toy -n 400000 --cluster wide.ini", 0, "fits: yes", "");
}

/* Of the JSON that was printed. */
static double figure(const Result *result, const char *key) {
    g_autofree char *quoted = g_strdup_printf("\"%s\" : ", key);
    const char *place = strstr(result->out, quoted);
    g_assert_nonnull(place);
    return g_ascii_strtod(place + strlen(quoted), NULL);
}

/* 400 W and 2.5 an hour: 8 GPUs, 32 tokens each a step. Known or not, for all ranks or none. */
static void energy_and_money(void) {
    write_cluster("priced.ini", "a100-node", "\nwatts", "400\nprice_per_hour = 2.5");
    Result result = run("predict gpt-toy -n 8 --cluster priced.ini --json");
    double hours = figure(&result, "step_ms") / 3.6e6 / (8 * 32 / 1e6);
    double kwh = figure(&result, "kwh_per_million_tokens");
    double price = figure(&result, "price_per_million_tokens");
    g_assert_cmpfloat_with_epsilon(kwh / (8 * 0.4 * hours), 1, 1e-9);
    g_assert_cmpfloat_with_epsilon(price / (8 * 2.5 * hours), 1, 1e-9);
    g_free(result.out);
    g_free(result.err);
    expect("predict gpt-toy -n 8 --cluster priced.ini", 0, "price of a million tokens: ", "");
    write_cluster("unknown.ini", "a100-node", "\nwatts", "0");
    result = run("predict gpt-toy -n 8 --cluster unknown.ini");
    g_assert_null(strstr(result.out, "kWh"));
    g_assert_null(strstr(result.out, "price"));
    g_free(result.out);
    g_free(result.err);
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
         "gathers of backward begin only when they are needed"},
        {"gpt2-xl -n 16 --micro-batch 2", "two-nodes-ethernet", "the link between nodes is slow"},
        {"gpt-toy -n 8 --micro-batch 2", "dgx-h100", "host-bound"},
        {"gpt2-xl -n 8 --checkpointing full --offload activations --micro-batch 2", "hot.ini",
         "the path to the host's memory (PCIe) is hot"},
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
    expect("diagnose planted.trace --cluster no-such-cluster", 2, "", "no-such-cluster");
    expect("diagnose", 2, "", "give one trace");
}

/* And others, of which the first cause and what is said of it are known too. */
static void more_diagnoses(void) {
    static const struct {
        const char *options, *said;
    } cases[] = {
        {"gpt2-xl -n 1 --cluster a100-node --param-dtype bf16",
         "and there is memory for --micro-batch "},
        {"t5-11b -n 512 --cluster a100-roce --flavour fsdp1 --checkpointing full --param-dtype "
         "bf16",
         "7. bottleneck: collectives span more ranks than they need"},
        {"gpt-10b -n 8 --sharding none --cluster a100-node",
         "this strategy does not fit, FSDP2 full does: use that"},
        {"gpt-10b -n 8 --sharding none --cluster a100-node", "it fits with --sharding full\n"},
        {"gpt2-xl -n 8 --offload params --cluster a100-node --micro-batch 4 --param-dtype bf16",
         "7. bottleneck: what was offloaded is waited for"},
        {"gpt-175b -n 64 --cluster a100-roce --flavour fsdp1 --checkpointing full "
         "--limit-all-gathers 0 --param-dtype bf16",
         "7. bottleneck: the allocator gives memory back and asks for it again (retries); one unit "
         "ahead"},
        {"gpt2-xl -n 8 --checkpointing full --micro-batch 4 --cluster a100-node --param-dtype bf16",
         "7. bottleneck: blocks are computed twice"},
        {"gpt2-xl -n 8 --clip 1 --host-reads both --cluster a100-node --param-dtype bf16",
         "7. bottleneck: the host reads loss or norm within a step"},
        {"gpt2-xl -n 8 --optimizer-kernel loop --optimizer-count device --cluster a100-node "
         "--param-dtype bf16",
         "the host reads each parameter's count of steps from the device"},
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
    expect("diagnose more.trace", 0, ", keeps no fp32 weights\n", "");
    expect("diagnose more.trace", 0, "this strategy LOSES to FSDP2 grad-op", "");
}

/* What does not fit is told at once what would make it fit; and that is true. */
static void ways_to_fit(void) {
    expect("predict llama3-70b -n 64 --cluster dgx-h100", 0,
           "  fits with --checkpointing full --param-dtype bf16: step ", "");
    expect("predict llama3-70b -n 64 --cluster dgx-h100 --checkpointing full --param-dtype bf16", 0,
           "fits: yes", "");
    expect("predict gpt-1t -n 8 --cluster a100-node", 0, "  no setting tried makes it fit", "");
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
    expect("explain --sharding gpt2 -n 2 --cluster v100-dgx --param-dtype bf16", 0,
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
    Result plain = run("predict gpt2 -n 4 --cluster a100-node --trace plain.trace");
    g_autofree char *usual = after(plain.out, "  step ");
    for (unsigned i = 0; i < G_N_ELEMENTS(settings); i++) {
        g_autofree char *words = g_strdup_printf(
            "predict gpt2 -n 4 --cluster a100-node --trace asked.trace %s", settings[i]);
        Result asked = run(words), again = run("diagnose asked.trace");
        g_assert_cmpint(asked.status, ==, 0);
        g_assert_cmpint(again.status, ==, 0);
        g_autofree char *step = after(asked.out, "  step ");
        g_assert_cmpstr(step, !=, usual);
        g_autofree char *said = after(again.out, "where this plan takes ");
        step[strcspn(step, " ")] = '\0';
        said[strcspn(said, " ")] = '\0';
        g_assert_cmpstr(step, ==, said);
        g_free(asked.out);
        g_free(asked.err);
        g_free(again.out);
        g_free(again.err);
    }
    g_free(plain.out);
    g_free(plain.err);
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
    g_autofree char *path = g_build_filename(folder, "wall.html", NULL), *page = NULL;
    g_assert_true(g_file_get_contents(path, &page, NULL, NULL));
    g_assert_nonnull(strstr(page, oom));
}

/* Names, options and commands that are nearly right. */
static void slips(void) {
    expect("predcit gpt2", 2, "", "did you mean predict?");
    expect("predict llama-3-70b --cluster dgx-h100", 2, "", "did you mean llama3-70b?");
    expect("predict gpt2 --cluster h100-dgx", 2, "", "did you mean dgx-h100?");
    expect("predict gpt2 --micro-bacth 3", 2, "", "did you mean --micro-batch?");
    expect("run gpt-toy --chekpointing=full", 2, "", "did you mean --checkpointing?");
    expect("predict something-else --cluster dgx-h100", 2, "", "there are: gpt-100b, ");
    expect("frobnicate", 2, "", "no command 'frobnicate'; `foreshard --help`");
    expect("explain peak_alocated_bytes gpt-toy", 2, "", "did you mean peak_allocated_bytes?");
    expect("explain layer.1 gpt-toy", 2, "", "did you mean layers.1?");
    expect("explain nonsense gpt-toy", 2, "", "Keys: step_ms, ");
    expect("compare no.trace no.trace", 2, "", "no.trace: cannot be read: No such file");
    expect("predict gpt-toy --frob", 2, "", "Unknown option --frob; --help lists those there are");
    expect("rehearse gpt-toy --rank 0 --cluster a100-node --device tpu", 2, "", "no device 'tpu'");
    expect("collectives --cluster a100-node -n 16", 2, "", "more than the cluster has ranks");
}

/* A run that no machine here has memory for is refused before it takes any; one within its limit is
 * not. */
static void too_large_to_run(void) {
    expect("run gpt-1t -n 2", 2, "", "2 ranks of 10080.39 GB (1e9 bytes) at the peak, and ");
    expect("rehearse gpt-1t -n 2 --rank 0 --cluster a100-roce", 2, "", "1 rank of 10080.39 GB");
    expect("rehearse gpt-1t -n 2 --rank 0 --cluster a100-roce --memory-limit 1000000", 1, "",
           "out of memory");
}

/* The names that each list has are those that are found. */
static void lists(void) {
    expect("list", 0, "  gpt2                 124.44 M parameters,  12 layers, width   768, ", "");
    expect("list", 0, "  llama2-7b              6.74 B parameters", "");
    expect("list networks", 0, "  t5-11b                11.31 B parameters", "");
    expect("list clusters", 0, "  dgx-h100             128 ranks: 16 nodes of 8 x H100", "");
    expect("list networks --names", 0, "\ngpt2\ngpt2-large\n", "");
    expect("list nothing", 2, "", "there is no list of 'nothing'");
}

/* Same input, same bytes. */
static void deterministic(void) {
    char *texts[2] = {NULL, NULL};
    for (unsigned i = 0; i < 2; i++) {
        expect("predict gpt-toy -n 3 --cluster this-machine --trace d.trace", 0, "fits", "");
        g_autofree char *path = g_build_filename(folder, "d.trace", NULL);
        g_assert_true(g_file_get_contents(path, &texts[i], NULL, NULL));
    }
    g_assert_cmpstr(texts[0], ==, texts[1]);
    g_free(texts[0]);
    g_free(texts[1]);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_assert(argc == 2);
    program = argv[1];
    folder = g_dir_make_tmp("foreshard-test-XXXXXX", NULL);
    g_test_add_func("/cli/messages are one line", messages_are_one_line);
    g_test_add_func("/cli/inputs are spared", inputs_are_spared);
    g_test_add_func("/cli/commands/help", help);
    g_test_add_func("/cli/commands/full disk", full_disk);
    g_test_add_func("/cli/commands/standard output", standard_output);
    g_test_add_func("/cli/commands/files here", files_here);
    g_test_add_func("/cli/commands/bad networks", bad_networks);
    g_test_add_func("/cli/commands/bad strategies", bad_strategies);
    g_test_add_func("/cli/commands/bad clusters", bad_clusters);
    g_test_add_func("/cli/commands/bad plans", bad_plans);
    g_test_add_func("/cli/commands/views of a plan", views_of_a_plan);
    g_test_add_func("/cli/commands/collectives", collectives);
    g_test_add_func("/cli/commands/validate", validate);
    g_test_add_func("/cli/commands/unwritable output", output_is_not_lost);
    g_test_add_func("/cli/commands/knobs", knobs);
    g_test_add_func("/cli/commands/traces", traces);
    g_test_add_func("/cli/commands/two verdicts", two_verdicts);
    g_test_add_func("/cli/commands/every rank", every_rank);
    g_test_add_func("/cli/commands/every rank, refused", every_rank_refused);
    g_test_add_func("/cli/commands/kinds of node", kinds_of_node);
    g_test_add_func("/cli/commands/energy and money", energy_and_money);
    g_test_add_func("/cli/commands/clusters of one name", clusters_of_one_name);
    g_test_add_func("/cli/commands/diagnoses", diagnoses);
    g_test_add_func("/cli/commands/more diagnoses", more_diagnoses);
    g_test_add_func("/cli/commands/ways to fit", ways_to_fit);
    g_test_add_func("/cli/commands/diagnoses of too much", diagnoses_of_too_much);
    g_test_add_func("/cli/commands/slips", slips);
    g_test_add_func("/cli/commands/too large to run", too_large_to_run);
    g_test_add_func("/cli/commands/lists", lists);
    g_test_add_func("/cli/commands/settings are kept", settings_are_kept);
    g_test_add_func("/cli/commands/up to the wall", up_to_the_wall);
    g_test_add_func("/cli/commands/same input, same bytes", deterministic);
    int status = g_test_run();
    GDir *dir = g_dir_open(folder, 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_unlink(path);
    }
    g_dir_close(dir);
    g_rmdir(folder);
    g_free(folder);
    return status;
}
