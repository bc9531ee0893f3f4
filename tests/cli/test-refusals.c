/* What foreshard refuses: bad input ends in status 2 and one line with place and remedy; nothing is
 * lost. Takes the path of foreshard as its argument.
 */
#include <gio/gio.h>
#include <string.h>

#include "tests/cli/shell.h"

/* What a broken file holds does not flood the terminal, nor break the line. */
static void messages_are_one_line(void) {
    g_autofree char *junk = g_strnfill(100000, 'x');
    g_autofree char *text =
        g_strconcat("[network]\nfamily = gpt\nlayers = 2\x1b[31m", junk, "\n", NULL);
    write_file("junk.ini", text);
    g_auto(Result) result = run("plan ./junk.ini -n 2");
    g_assert_cmpint(result.status, ==, 2);
    g_assert_nonnull(strstr(result.err, "junk.ini:3: layers must be a whole number"));
    g_assert_nonnull(strstr(result.err, "xxx..."));
    g_assert_null(strchr(result.err, '\x1b'));
    g_assert_cmpuint(strlen(result.err), <, 500);
    g_assert_true(strchr(result.err, '\n') == result.err + strlen(result.err) - 1);
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
        "run gpt-toy -n 2 --steps 1 --pace mine.ini --trace mine.ini",
        "run gpt-toy -n 2 --steps 1 --pace mine.ini --save mine.ini",
        "run gpt-toy -n 2 --steps 1 --strategy mine.ini --trace mine.ini",
        "run gpt-toy -n 2 --steps 1 --strategy mine.ini --save mine.ini",
        "plan gpt-toy --strategy mine.ini -o mine.ini",
        "predict gpt-toy --strategy mine.ini --cluster two-laptops --trace mine.ini",
        "rehearse gpt-toy --strategy mine.ini --rank 0 --cluster two-laptops --trace mine.ini",
    };
    static const char text[] = "[network]\nfamily = mlp\nlayers = 2\nwidth = 8\nseq = 4\n";
    expect("run gpt-toy -n 2 --steps 1 --trace x --save ./x", 2, "", "both name ./x; give each a");
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        write_file("mine.ini", text);
        expect(words[i], 2, "", "is read and would be written over");
        g_autofree char *left = read_file("mine.ini");
        g_assert_cmpstr(left, ==, text);
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
        g_ptr_array_add(argv, (gpointer)shell.program);
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

/* A trace that finds no room does not take the prediction with it. */
static void full_disk_for_a_trace(void) {
    expect("predict gpt-toy --cluster this-machine --trace /dev/full", 1,
           "trains well: ", "/dev/full: cannot be written: No space left on device");
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
    g_autofree char *dash = g_build_filename(shell.folder, "-", NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(alike) - !gnuplot; i++) {
        expect(alike[i].to_file, 0, "", "");
        g_auto(Result) result = run(alike[i].to_standard);
        g_assert_cmpint(result.status, ==, 0);
        g_autofree char *written = read_file("alike");
        g_assert_cmpuint(strlen(written), >, 1000);
        g_assert_cmpstr(result.out, ==, written);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(refused); i++) {
        expect(refused[i], 2, "", " -: standard output has what is printed already; give a name");
    }
    expect("plot gpt-toy --cluster this-machine -o -", 2, "", "a picture's name ends in");
    g_assert_false(g_file_test(dash, G_FILE_TEST_EXISTS));
}

static void bad_networks(void) {
    write_file("bad.ini", "[network]\nfamily = gpt\nlayers = 2\nwidth = x\n");
    expect("plan bad.ini", 2, "", "bad.ini:4: width must be a whole number");
    expect("plan no-such-network", 2, "", "no-such-network");
    expect("predict bad.ini --cluster this-machine", 2, "", "bad.ini:4:");
    /* A name that is wrong comes before a cluster that lacks. */
    expect("predict llama-3-8b", 2, "", "did you mean llama3-8b?");
    expect("choose llama-3-8b", 2, "", "did you mean llama3-8b?");
    expect("predict llama3-8b", 2, "", "give a cluster");
    expect("choose llama3-8b", 2, "", "give a cluster");
    expect("run bad.ini", 2, "", "bad.ini:4:");
    expect("plan gpt-toy --network-key loss", 2, "", "as in --network-key loss=chunked");
    expect("plan gpt-toy --network-key loss=chunkd", 2, "", "with loss=chunkd: ");
    expect("plan gpt-toy --network-key lost=ops", 2, "", "family gpt has no key 'lost'");
    expect("plan gpt-toy -n 2 -o good.plan", 0, "", "");
    expect("plan good.plan --network-key loss=ops", 2, "", "whose network.loss is settled");
}

/* What never ends is not read: it would take all memory first. */
static void endless_files(void) {
    static const char *const words[] = {
        "compare /dev/zero e.trace",
        "compare e.trace /dev/zero",
        "replay gpt-toy /dev/zero",
        "report /dev/zero -o e.html",
        "export --chrome /dev/urandom -o e.json",
        "validate /dev/zero",
        "plan gpt-toy --strategy /dev/full",
    };
    expect("predict gpt-toy --cluster this-machine --trace e.trace", 0, "step ", "");
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        expect(words[i], 2, "", ": cannot be read: it is a device that never ends; name a file\n");
    }
}

static void numbers_below_zero(void) {
    static const char *const words[] = {
        "plot gpt-toy --cluster this-machine -o below.svg --rank -1",
        "compare e.trace e.trace --rank -1",
        "diagnose gpt-toy --cluster this-machine --rank -1",
        "explain step_ms e.trace --rank -1",
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        expect(words[i], 2, "", ": --rank takes a number from 0, not -1\n");
    }
    expect("compare e.trace e.trace --device -2", 2, "",
           ": --device takes a number from 0, not -2");
}

/* A shell's variable that is not set. */
static void empty_words(void) {
    expect("plan ''", 2, "",
           ": the word behind 'foreshard plan' is empty; give one, or leave it out");
    expect("plan gpt-toy -o ''", 2, "", ": the word behind '-o' is empty; ");
    expect("run gpt-toy --steps 1 --trace= -n 2", 2, "", ": --trace= has no value; give one, or ");
}

/* A build without CUDA refuses it, as run does. */
static void no_gpu(void) {
    g_auto(Result) run_says = run("run gpt-toy --device cuda"),
                   says = run("calibrate --device cuda -o gpu.ini");
    if (strstr(run_says.err, "-Dcuda=enabled")) {
        g_assert_cmpint(run_says.status, ==, 2);
        g_assert_cmpint(says.status, ==, 2);
        g_assert_cmpstr(strchr(says.err, ':'), ==, strchr(run_says.err, ':'));
    } else {
        g_test_skip("built with CUDA");
    }
}

/* A file of one kind where another belongs. */
static void wrong_kinds(void) {
    write_file("of-a-network", "[network]\nfamily = mlp\nlayers = 2\nwidth = 8\nseq = 4\n");
    write_cluster("of-a-cluster.ini", "a100-node", "\nnodes", "2");
    expect("plan of-a-network -n 2 -o of.plan", 0, "sha256:", "");
    expect("predict of.plan --cluster this-machine --trace of.trace", 0, "step ", "");
    expect("plan of.trace", 2, "", "of.trace is a trace; give the plan or the network");
    expect("plan of-a-cluster.ini", 2, "", "of-a-cluster.ini: this describes no network");
    expect("plan gpt-toy --strategy of.plan", 2, "", "of.plan:1: this is a foreshard-plan, where");
    expect("predict gpt-toy --cluster of.trace", 2, "", "of.trace:1: this is a foreshard-trace");
    expect("predict gpt-toy --cluster of-a-network", 2, "",
           "of-a-network:2: 'family' stands in [network], and a cluster's file has no such");
    const char *source = g_getenv("SOURCE");
    static const char *const of_traces[] = {"explain oom", "diagnose", "export --chrome -o x",
                                            "replay gpt-toy", "report -o x.html"};
    static const char *const of_networks[] = {"plan", "predict --cluster a100-node", "units"};
    for (unsigned i = 0; i < G_N_ELEMENTS(of_traces); i++) {
        g_autofree char *words =
            g_strdup_printf("%s %s/tests/trace/pytorch/window.pickle.gz", of_traces[i], source);
        expect(words, 2, "", "window.pickle.gz is of PyTorch's kind: hold it against a prediction");
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(of_networks); i++) {
        g_autofree char *words =
            g_strdup_printf("%s %s/tests/trace/pytorch/cpu.json.gz", of_networks[i], source);
        expect(words, 2, "", "or draw it (foreshard plot FILE)");
    }
    expect("plan ./", 2, "", "./: this folder holds no config.json; name one that does");
    expect("predict gpt-toy --cluster ./", 2, "", "./: this is no regular file; name one");
}

static void bad_strategies(void) {
    write_file("s.ini", "");
    expect("plan gpt-toy --strategy s.ini", 2, "", "s.ini: this holds no strategy: it has no sect");
    expect("plan gpt-toy --strategy /dev/null", 2, "", "/dev/null: this holds no strategy");
    write_file("s.ini", "[strategy]\n");
    expect("plan gpt-toy --strategy s.ini", 0, "sha256:", "");
    write_file("s.ini", "[strategy]\nranks = 2\nwrap = blok\n");
    expect("plan gpt-toy --strategy s.ini", 2, "", "s.ini:3: wrap must be one of block, whole");
    expect("plan gpt-toy --wrap blok", 2, "", "option --wrap: wrap must be one of");
    expect("plan gpt-toy -n 0", 2, "", "ranks must be a whole number");
    expect("plan gpt-toy -n 2 --flavour plain --sharding none", 2, "",
           "flavour=plain is for one rank");
    expect("plan gpt-toy --host-reads nrm", 2, "", "must be one of none, loss, norm, both");
    expect("plan gpt-toy -n 2 --host-reads norm", 2, "", "set clip, or host_reads=loss or none");
    expect("plan gpt-toy -n 2 --optimizer-count device", 2, "", "and optimizer_kernel=loop, or");
    write_file("reads.ini", "[strategy]\nranks = 2\n\nhost_reads = both\n");
    expect("plan gpt-toy --strategy reads.ini", 2, "", "plan: reads.ini:4: host_reads=norm and");
    expect("plan gpt-toy --strategy reads.ini --host-reads norm", 2, "", "plan: host_reads=norm");
    expect("plan gpt-toy --strategy reads.ini --clip 1 -o reads.plan", 0, "", "");
    expect("plan deepseek-v3 -n 8 --tensor 2", 2, "", "for experts; set tensor=1\n");
    expect("plan deepseek-v3 -n 8 --context 2", 2, "", "(kv_lora_rank); set context=1\n");
    expect("plan deepseek-v3 -n 8 --document 8 --param-dtype bf16", 2, "", "; set document=0\n");
    expect("plan deepseek-v3 -n 8 --float8 tensorwise --kernels compiled --param-dtype bf16", 2, "",
           "layers in float8; set float8=none, or kernels=eager\n");
    expect("plan t5-11b -n 8 --document 64", 2, "", "this network's family; set document=0\n");
    expect("plan llama3-8b -n 8 --document 64", 2, "", "set param_dtype=bf16, or document=0\n");
    expect("plan deepseek-v3 -n 8 --network-key code=transformers", 2, "",
           "not with this code; leave it out\n");
    expect("plan deepseek-v3 -n 8 --network-key window=8", 2, "", "not with this window; leave it");
    expect("plan gpt-toy --allocator conf=xx", 2, "", "plan: allocator option xx: found");
    write_file("conf.ini", "[strategy]\n\nallocator = conf=max_split_size_mb:-1\n");
    expect("units gpt-toy --strategy conf.ini", 2, "",
           "units: conf.ini:3: allocator option max_sp");
    expect("plan llama3-8b -n 8 --sequence-parallel no", 2, "", "; set tensor, or sequence_par");
    expect("plan llama3-8b -n 8 --tensor-plan transformers", 2, "", "set tensor, or tensor_plan=");
    expect("plan llama3-8b -n 8 --tensor 8 --tensor-plan transformers", 2, "",
           "set sequence_parallel=no, or tensor_plan=torchtitan\n");
    expect("plan gpt-toy --seq 33", 2, "", "longer than the 32 positions");
    expect("plan gpt-toy --seq 33", 2, "", "let it have more: --network-key seq=33");
    expect("plan gpt-toy --seq 33 --network-key seq=33", 0, "", "");
}

static void bad_clusters(void) {
    write_file("c.ini", "[cluster]\ntitle = x\n[device]\nkind = toaster\n");
    expect("predict gpt-toy --cluster c.ini", 2, "", "c.ini:4:");
    expect("predict gpt-toy --cluster no-such-cluster", 2, "", "no-such-cluster");
    expect("predict gpt-toy --cluster dgx-h100:2:inter_node.nic_gb_per_s=200", 0,
           "2 nodes, inter_node.nic_gb_per_s=200 (1600 Gb/s a GPU)\n", "");
    write_file("c.ini", "[cluster]\nlike = dgx-h100\n[nodes]\nat = 1\n");
    expect("predict gpt-toy --cluster c.ini", 2, "", "; did you mean nodes NAME?\n");
    expect("predict gpt-toy -n 9 --cluster a100-node", 2, "", "place for 8 (1 node of 8)");
}

/* What a trace names a machine by is no file's path. */
static void cluster_of_a_trace(void) {
    write_cluster("of-mine.ini", "a100-node", "\nnodes", "1");
    expect("predict gpt-toy --cluster of-mine.ini --trace mine.trace", 0, "step ", "");
    expect("diagnose mine.trace", 2, "",
           "predicted on of-mine; if that was a file, give it: --cluster FILE.ini");
    expect("diagnose mine.trace --cluster of-mine.ini", 0, "bottleneck", "");
    expect("explain mfu mine.trace", 0, "its machine is not known here; give it, as in: --clu", "");
    expect("explain mfu mine.trace --cluster of-mine.ini", 0, "mfu = ", "");
    expect("explain mfu gpt-toy -n 2", 0, "mfu = ", "note: on dgx-h100, since no --cluster was gi");
}

static void bad_plans(void) {
    expect("plan gpt-toy -n 2 -o good.plan", 0, "sha256:", "");
    expect("plan good.plan --check", 0, "sound", "");
    expect("plan good.plan -n 3", 2, "", "is a plan for 2 ranks");
    expect("plan good.plan --wrap whole", 2, "", "whose wrap is settled");
    g_autofree char *text = read_file("good.plan");
    text[strlen(text) / 2] = 0;
    write_file("short.plan", text);
    static const char *const commands[] = {"plan", "predict --cluster this-machine", "run"};
    for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++) {
        g_autofree char *words = g_strdup_printf("%s short.plan", commands[i]);
        expect(words, 2, "", "short.plan:");
    }
}

static void output_is_not_lost(void) {
    expect("plan gpt-toy -o no-such-folder/x.plan", 1, "", "no-such-folder/x.plan");
    expect("predict gpt-toy --cluster this-machine --trace no-such-folder/x.trace", 1, "",
           "no-such-folder/x.trace");
    expect("run mlp-toy -n 2 --trace no-such-folder/x.trace", 1, "", "no-such-folder/x.trace");
    expect("rehearse mlp-toy -n 2 --rank 0 --cluster a100-node --trace no-such-folder/x", 1, "",
           "no-such-folder/x");
    expect("calibrate -n 1 -o no-such-folder/x.ini", 1, "", "no-such-folder");
    expect("choose gpt-toy --cluster a100-node -o no-such-folder/x", 1, "", "x: cannot be written");
    expect("predict gpt-toy --cluster this-machine --trace /dev/null", 0, "step ", "");
    expect("calibrate -n 1 -o .", 1, "", ". is a folder; name a file to write");
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
        {"--seed 7", "--seed is for every-rank play; add --every-rank"},
        {"--trace-ranks 0", "--trace-ranks is for every-rank play"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *words =
            g_strdup_printf("predict gpt-toy -n 4 --cluster a100-node %s", bad[i].options);
        expect(words, 2, "", bad[i].words);
    }
    static const char *const forced[] = {"predict gpt-toy -n 2", "collectives -n 2"};
    for (unsigned i = 0; i < G_N_ELEMENTS(forced); i++) {
        g_autofree char *command = g_strconcat(forced[i], " --cluster a100-node", NULL);
        g_autofree char *algo = g_strconcat(command, " --nccl-algo rings", NULL);
        g_autofree char *proto = g_strconcat(command, " --nccl-proto ll129", NULL);
        g_autofree char *known = g_strconcat(command, " --nccl-algo Tree --nccl-proto LL", NULL);
        expect(algo, 2, "", "--nccl-algo is one of ring, tree, nvls, nvlstree, pat\n");
        expect(proto, 2, "", "--nccl-proto is one of ll, ll128, simple\n");
        expect(known, 0, "", "");
    }
    write_cluster("wide.ini", "a100-roce", "\nnodes", "100000");
    expect("predict gpt-toy -n 400000 --cluster wide.ini --every-rank", 2, "",
           "400000 ranks are too many to play each (32768 at most)");
    expect("predict gpt-toy -n 400000 --cluster wide.ini", 0, "fits: yes", "");
}

/* What would be passed over, or gets in the way of another. */
static void options_that_do_not_go_together(void) {
    expect("plan gpt-toy --memory --json", 2, "", "--memory and --json print different things");
    expect("plan gpt-toy -o - --check", 2, "", "-o - and --check print different things");
    expect("plan gpt-toy --unit root --lane compute -o p.plan", 0, "section steady", "");
    expect("validate --settings --json no.csv", 2, "", "leave --json away");
    expect("run gpt-toy --watchdog -1", 2, "", "--watchdog takes a number of seconds, 0 for never");
    expect("explain step_ms gpt-toy --rank 3", 2, "", "--rank is of a trace");
    expect("choose gpt-toy --cluster a100-node --top 0", 2, "", "--top takes a number from 1");
    expect("choose gpt-toy --cluster a100-node --global-batch 0", 2, "", "--global-batch takes");
    expect("choose gpt-toy --cluster a100-node --global-batch -1", 2, "", "--global-batch takes");
    expect("plot x.trace --picture lanes --knob wrap=block,whole", 2, "", "--knob is nothing to");
    expect("plot gpt-toy --knob wrap=block,whole --rank 1", 2, "", "--rank is nothing to");
    expect("plot gpt-toy --knob ranks=1,2 --where a=b", 2, "", "add --published FILE.csv");
    expect("predict gpt-toy --cluster this-machine --trace predicted.trace", 0, "step ", "");
    expect("report predicted.trace --json --cluster nonesuch", 2, "", "no cluster is called");
    expect("replay gpt-toy predicted.trace", 2, "", "predicted.trace is a predicted trace; give");
}

/* Keys that are nearly right, in files and behind names. */
static void slips_in_keys(void) {
    write_file("slip.ini", "[strategy]\nmicrobatch = 3\n");
    expect("plan gpt-toy --strategy slip.ini", 2, "",
           "slip.ini:2: 'microbatch' is no key of a strategy; did you mean micro_batch?");
    expect("plan gpt-toy --network-key sqe=3", 2, "", "no key 'sqe'; did you mean seq?");
    expect("plan gpt-toy --network-key seq=4k", 2, "", "write it out: 4000, or 4096 (k may be");
    expect("plot gpt-toy --knob nic_gb_per_s=1,2", 2, "",
           "is no key of a strategy; of a cluster it is cluster.inter_node.nic_gb_per_s");
    expect("plot gpt-toy --knob inter_node.nic_gb_per_s=1,2", 2, "", "cluster.inter_node.nic_gb");
    expect("choose gpt-toy --hours 3", 2, "", "here it is --days, of the whole training");
    expect("plot gpt-toy --knob micro_batch=1,,2", 2, "", "one of its values is empty; leave a");
    expect("rehearse gpt-toy -n 256 --rank 0 --cluster dgx-h100", 2, "",
           "take a larger cluster, or the same one with more nodes (NAME:NODES)");
    write_cluster("slip-key.ini", "dgx-h100", "\nnic_gb_per_s", "50\nnic_gbps = 50");
    expect("predict gpt-toy --cluster slip-key.ini", 2, "",
           "'nic_gbps' in [inter_node]; did you mean nic_gb_per_s?");
    write_cluster("slip-key.ini", "dgx-h100", "\nnic_gb_per_s", "50\nspeed = 50");
    expect("predict gpt-toy --cluster slip-key.ini", 2, "",
           "in [inter_node]; it is one of nic_gb_per_s, ");
    expect("predict gpt-toy --cluster dgx-h100:inter_node.nic=50", 2, "",
           "did you mean inter_node.nic_gb_per_s?");
    expect("predict gpt-toy --cluster dgx-h100:none.such=50", 2, "",
           "foreshard list dgx-h100 prints");
    expect("predict gpt-toy --cluster dgx-h100:16nodes", 2, "",
           "cluster dgx-h100: behind its name stand :NODES or :SECTION.KEY=VALUE, not ':16nodes'");
    expect("predict gpt-toy --cluster h200-node:2", 2, "",
           "with these GPUs: h200-kempner, h200-p5e)");
    expect("predict gone.json --cluster dgx-h100", 2, "", "gone.json: there is no such file");
    write_file("mine.py", "import torch\n");
    write_file("mine.safetensors", "weights");
    expect("predict mine.py --cluster dgx-h100", 2, "", "trace its network by models/pytorch/");
    expect("plan mine.safetensors", 2, "", "these are weights; name the config.json");
}

/* Values by the names that PyTorch and DeepSpeed have for them; options of other commands. */
static void other_words(void) {
    static const struct {
        const char *words, *said;
    } cases[] = {
        {"plan gpt-toy --sharding FULL_SHARD", "not 'FULL_SHARD'; did you mean full?"},
        {"plan gpt-toy --sharding SHARD_GRAD_OP", "did you mean grad-op?"},
        {"plan gpt-toy --sharding zero1", "did you mean optimizer-only?"},
        {"plan gpt-toy --sharding _HYBRID_SHARD_ZERO2", "did you mean hybrid-grad-op?"},
        {"plan gpt-toy --param-dtype bfloat16", "did you mean bf16?"},
        {"plan gpt-toy --reduce-dtype torch.float32", "did you mean fp32?"},
        {"plan gpt-toy --backward-prefetch BACKWARD_POST", "did you mean post?"},
        {"plan gpt-toy --checkpointing true", "; did you mean full?"},
        {"plan gpt-toy --checkpointing on", "; did you mean full?"},
        {"plan gpt-toy --offload cpu", "; did you mean params?"},
        {"plan gpt-toy --float8", " --float8; it is one of none, tensorwise, rowwise\n"},
        {"run gpt-toy --cluster a100-node", "--cluster; foreshard predict has it (and run --pace"},
        {"plan gpt-toy --attn-implementation sdpa", "--attention-kernel flash, or cudnn"},
        {"plan gpt-toy --step-sync false", "did you mean no?"},
        {"plan gpt-toy --optimizer adamx", "did you mean adamw or adam?"},
        {"plan gpt-toy -n 2 --flavour fsdp1 --optimizer muon", "whose shards are flat"},
        {"plan gpt-toy -n 2 --sharding optimizer-only --optimizer muon", "optimizer-only; set"},
        {"plan gpt-toy -n 4 --sharding hybrid --replicate 2 --optimizer muon", "groups of ranks"},
        {"plan llama-toy -n 4 --tensor 2 --optimizer muon", "where ranks share layers"},
        {"plan gpt-toy -n 2 --offload params --optimizer muon", "is not planned on the host"},
        {"plan gpt-toy --pytorch 2.12 --optimizer muon", "is planned only for PyTorch 2.13"},
        {"plan gpt-toy --model-dtype bf16 --muon-nesterov no --optimizer muon",
         "in place, in PyTo"},
        {"plan gpt-toy --state-dtype bf16 --muon-nesterov no --optimizer muon",
         "in place, in PyTo"},
        {"plan gpt-toy -n 3 --optimizer muon", "layers.0.attn.qkv.weight has 192 x 64 over 3"},
        {"plan gpt-toy --freeze module=GptBlock --optimizer muon", "finds no weight of two dimens"},
        {"predict gpt-toy --tokens 1T", "--tokens; foreshard choose has it"},
        {"diagnose gpt-toy --knob micro_batch=1,2", "foreshard plot and foreshard choose have it"},
        {"predict gpt-toy --cluster dgx-h100:nic_gb_per_s=25",
         "did you mean inter_node.nic_gb_per_s?"},
        {"predict gpt-toy --cluster dgx-h100:launch_overhead_ns=25",
         "did you mean device.launch_overhead_ns?"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        expect(cases[i].words, 2, "", cases[i].said);
    }
}

/* A plan and a trace that some program gave other ends of lines. */
static void ends_of_lines(void) {
    static const char *const files[] = {"ends.plan", "ends.trace"};
    expect("plan gpt-toy -n 2 -o ends.plan", 0, "", "");
    expect("predict gpt-toy -n 2 --cluster a100-node --trace ends.trace", 0, "", "");
    for (unsigned i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *text = read_file(files[i]);
        g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
        g_autofree char *other = g_strjoinv("\r\n", lines);
        write_file(files[i], other);
    }
    expect("predict ends.plan --cluster a100-node", 2, "", "ends.plan:1: lines end in CR and LF");
    expect("diagnose ends.trace", 2, "", "ends.trace:1: lines end in CR and LF");
}

/* Names, options and commands that are nearly right. */
static void slips(void) {
    expect("predcit gpt2", 2, "", "did you mean predict?");
    expect("predict llama-3-70b --cluster dgx-h100", 2, "", "did you mean llama3-70b?");
    expect("predict meta-llama/Llama-3-70B --cluster dgx-h100", 2, "",
           "there is no such file; did you mean llama3-70b?");
    expect("predict meta-llama/Llama-3.1-8B-Instruct --cluster dgx-h100", 2, "",
           "there is no such file; did you mean llama3-8b?");
    expect("predict Qwen/Qwen2.5-72B-Instruct --cluster dgx-h100", 2, "", "mean qwen2.5-72b?");
    expect("predict nobody/none-such --cluster dgx-h100", 2, "", "planned by its config.json");
    expect("predict gpt2 --cluster h100-dgx", 2, "", "did you mean dgx-h100?");
    expect("predict gpt2 --cluster H100", 2, "", "did you mean dgx-h100, h100-a3 or ");
    write_cluster("this-laptop.ini", "dgx-h100", "\nnodes", "2");
    expect("predict gpt2 --cluster this-laptop", 2, "",
           "the file this-laptop.ini is here: name it with its ending");
    write_file("mine.network", "[network]\n");
    expect("plan mine", 2, "", "the file mine.network is here: name it with its ending");
    expect("predict gpt2xl --cluster dgx-h100", 2, "", "did you mean gpt2-xl? (looked in ");
    expect("plot gpt-toy -n 2 --clip 1 --cluster a100-node --knob ranks=2,4", 0,
           "gpt-toy on a100-node, clip=1\n", "");
    expect("plot gpt-toy -n 2 --cluster a100-node --knob seq=8 --knob seq=16", 2, "",
           "--knob seq is given twice; give all its values at once");
    expect("plot gpt-toy -n 2 --cluster a100-node --knob batch=1,2", 2, "",
           "'batch' is no key of a strategy; here it is --micro-batch");
    expect("choose gpt2 --cluster dgx-h100 --tokens 2 trillion", 2, "",
           "'trillion' is one word too many; give one NETWORK");
    expect("predict gpt2 --micro-bacth 3", 2, "", "did you mean --micro-batch?");
    expect("predict gpt-toy -n8 --cluster a100-node", 0, "8 ranks", "");
    expect("predict gpt-toy -nx8 --cluster a100-node", 2, "", "not '--cluster'");
    expect("predict gpt2 -micro-batch 3", 2, "",
           "Unknown option -micro-batch; did you mean --micro");
    expect("list gpt9", 2, "", "nor a network or cluster of that name; did you mean gpt2?");
    expect("list dgx", 2, "", "; did you mean dgx-h100 or v100-dgx?");
    expect("predict gpt2 --steps 4k", 2, "", " for --steps; give a whole number");
    expect("collectives --bytes 64MiB", 2, "", " for --bytes; give a number without a unit");
    write_file("cut.json", "{\"model_type\": \"llama\",\n");
    expect("plan cut.json", 2, "",
           "cut.json: not JSON: it is cut short, for it does not end with }");
    expect("predict gpt2 -k wrap=block", 2, "", "Unknown option -k; --help lists those there are");
    expect("predict gpt2 --gpus 8", 2, "", "Unknown option --gpus; here it is --ranks (-n)");
    expect("predict gpt2 --gradient_checkpointing", 2, "", "here it is --checkpointing full");
    expect("predict gpt2 --memory 40", 2, "", "here it is --cluster NAME:device.memory_bytes=N");
    expect("predict gpt2 -n 250 --cluster dgx-h100", 2, "", "more nodes (NAME:32)");
    expect("collectives -n 250 --cluster dgx-h100", 2, "", "more nodes (NAME:32)");
    expect("choose gpt2 --cost 9", 2, "", "here it is --budget, of the whole training");
    expect("compare a b --gpus 8", 2, "", "Unknown option --gpus; --help lists");
    expect("run gpt-toy --chekpointing=full", 2, "", "did you mean --checkpointing?");
    expect("predict something-else --cluster dgx-h100", 2, "", "`foreshard list` names the ");
    expect("predict something-else --cluster dgx-h100", 2, "", "a config.json from Hugging Face");
    expect("frobnicate", 2, "", "no command 'frobnicate'; `foreshard --help`");
    expect("explain peak_alocated_bytes gpt-toy", 2, "", "did you mean peak_allocated_bytes?");
    expect("explain layer.1 gpt-toy", 2, "", "did you mean layers.1?");
    expect("explain nonsense gpt-toy", 2, "", "Keys: step_ms, ");
    expect("compare no.trace no.trace", 2, "", "no.trace: cannot be read: No such file");
    expect("predict gpt-toy --frob", 2, "", "Unknown option --frob; --help lists those there are");
    expect("rehearse gpt-toy --rank 0 --cluster a100-node --device tpu", 2, "", "no device 'tpu'");
    expect("rehearse gpt-toy --rank 0 --cluster a100-node --no-op-times", 2, "",
           "--no-op-times is of GPUs alone; add --device cuda");
    expect("run gpt-toy --comm banana --no-op-times", 2, "", "--comm is of GPUs alone");
    expect("run gpt-toy --device host --no-op-times", 2, "", "--no-op-times is of GPUs alone");
    expect("run gpt-toy --steps 1 --comm auto", 0, "step time", "");
    expect("collectives --cluster a100-node -n 16", 2, "", "than the cluster has ranks, 8; name");
}

/* A run that no machine here has memory for is refused before it takes any; one within its limit is
 * not. */
static void too_large_to_run(void) {
    expect("run gpt-1t -n 2", 2, "", "2 ranks of 9.17 TiB at the peak, and ");
    expect("rehearse gpt-1t -n 2 --rank 0 --cluster a100-roce", 2, "", "1 rank of 9.17 TiB");
    expect("rehearse gpt-1t -n 2 --rank 0 --cluster a100-roce --memory-limit 4000000", 1, "",
           "out of memory");
    static const char *const too_little[] = {"-1", "1", "2097151"};
    for (guint i = 0; i < G_N_ELEMENTS(too_little); i++) {
        g_autofree char *run = g_strdup_printf("run gpt-toy --memory-limit %s", too_little[i]);
        expect(run, 2, "", "0 for none, else at least 2097152");
    }
    expect("rehearse gpt-toy -n 2 --rank 0 --cluster a100-roce --memory-limit 2097151", 2, "",
           "at least 2097152");
}

/* The plan with a key of its first such line changed. */
static void write_edited(const char *plan, const char *line, const char *key, const char *value) {
    g_autofree char *text = read_file(plan);
    char *at = strstr(text, line);
    g_assert_nonnull(at);
    g_autofree char *word = g_strdup_printf(" %s=", key);
    char *number = strstr(at, word) + strlen(word);
    g_autofree char *head = g_strndup(text, (gsize)(number - text));
    g_autofree char *edited = g_strconcat(head, value, number + strcspn(number, " \n"), NULL);
    write_file("edited.plan", edited);
}

/* What is offloaded is the host's memory too, and an edited plan does not ask for all of it. */
static void too_large_to_offload(void) {
    expect("run gpt-1t -n 2 --offload params --device cuda", 2, "",
           "2 ranks of 7.33 TiB offloaded, ");
    expect("plan gpt-toy -n 2 --offload params -o small.plan", 0, "", "");
    static const struct {
        const char *line, *key, *value, *said;
    } cases[] = {
        {"\nhost_op host_adam ", "n", "100000000000000", "363.80 TiB of them in slot 0, and "},
        {"\nhost_op host_adam ", "offset", "100000000000000", "offloaded, "},
        {"\nhost_op host_init_fill ", "n", "1000000000000", "3.64 TiB of them in slot 9, and "},
        {"\nhost_op host_adam ", "offset", "1000000",
         "host_adam of 3072 elements from 1000000 on in slot 0 of the host: that is larger than "},
        {"\nhost_op host_adam ", "slot", "4294967292", "host_adam names slot 4294967295 of "},
        {"\nhost_op host_adam ", "slot", "4000000000000", "names slot 4000000000000 of the host"},
        {"\nhost_op host_adam ", "offset", "-5", "offset must be a whole number, not '-5'"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        write_edited("small.plan", cases[i].line, cases[i].key, cases[i].value);
        expect("run edited.plan --steps 1", 2, "", cases[i].said);
    }
}

int main(int argc, char **argv) {
    shell_init(&argc, &argv);
    g_test_add_func("/cli/refusals/messages are one line", messages_are_one_line);
    g_test_add_func("/cli/refusals/too large to offload", too_large_to_offload);
    g_test_add_func("/cli/refusals/inputs are spared", inputs_are_spared);
    g_test_add_func("/cli/refusals/full disk", full_disk);
    g_test_add_func("/cli/refusals/full disk for a trace", full_disk_for_a_trace);
    g_test_add_func("/cli/refusals/standard output", standard_output);
    g_test_add_func("/cli/refusals/bad networks", bad_networks);
    g_test_add_func("/cli/refusals/endless files", endless_files);
    g_test_add_func("/cli/refusals/cluster of a trace", cluster_of_a_trace);
    g_test_add_func("/cli/refusals/numbers below zero", numbers_below_zero);
    g_test_add_func("/cli/refusals/empty words", empty_words);
    g_test_add_func("/cli/refusals/no gpu", no_gpu);
    g_test_add_func("/cli/refusals/wrong kinds", wrong_kinds);
    g_test_add_func("/cli/refusals/bad strategies", bad_strategies);
    g_test_add_func("/cli/refusals/bad clusters", bad_clusters);
    g_test_add_func("/cli/refusals/bad plans", bad_plans);
    g_test_add_func("/cli/refusals/unwritable output", output_is_not_lost);
    g_test_add_func("/cli/refusals/every rank, refused", every_rank_refused);
    g_test_add_func("/cli/refusals/options that do not go together",
                    options_that_do_not_go_together);
    g_test_add_func("/cli/refusals/slips", slips);
    g_test_add_func("/cli/refusals/slips in keys", slips_in_keys);
    g_test_add_func("/cli/refusals/other words", other_words);
    g_test_add_func("/cli/refusals/ends of lines", ends_of_lines);
    g_test_add_func("/cli/refusals/too large to run", too_large_to_run);
    return shell_finish(g_test_run());
}
