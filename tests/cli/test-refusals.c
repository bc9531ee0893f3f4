/* What foreshard refuses: bad input ends in status 2 and one line with place and remedy; nothing is
 * lost. Takes the path of foreshard as its argument.
 */
#include <glib/gstdio.h>
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
        "export --chrome /dev/zero -o e.json",
        "validate /dev/zero",
        "plan gpt-toy --strategy /dev/full",
    };
    expect("predict gpt-toy --cluster this-machine --trace e.trace", 0, "step ", "");
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        expect(words[i], 2, "", ": cannot be read: it is a device that never ends; name a file\n");
    }
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
    expect("plan llama-toy -n 4 --tensor 2 --wrap linear", 2, "",
           "unit layers.0.attn.q is a linear layer that ranks share");
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
    expect("predict gpt-toy -n 9 --cluster a100-node", 2, "",
           "place for 8 (1 node of 8); plan for fewer ranks, or name a larger cluster: this one "
           "cannot have more nodes");
    expect("predict gpt-toy -n 9 --cluster dgx-h100:1", 2, "", "with more nodes (NAME:2)");
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

/* A title, a name and a file's name are shown as they are: none may move a terminal's cursor. */
static void control_characters(void) {
    expect("plan gpt-toy -n 2 -o quiet.plan", 0, "", "");
    expect("predict quiet.plan --cluster a100-node --trace quiet.trace", 0, "", "");
    static const char *const files[] = {"quiet.plan", "quiet.trace"};
    static const struct {
        const char *from, *to;
    } made[] = {{"title gpt-toy", "title \x1b[2Jgpt-toy"}, {"layers.0", "layers\x07.0"}};
    for (unsigned i = 0; i < G_N_ELEMENTS(files); i++) {
        for (unsigned k = 0; k < G_N_ELEMENTS(made); k++) {
            g_autofree char *text = read_file(files[i]);
            g_auto(GStrv) parts = g_strsplit(text, made[k].from, -1);
            g_autofree char *loud = g_strjoinv(made[k].to, parts);
            write_file("loud", loud);
            g_auto(Result) result = run(i == 0 ? "units loud" : "explain step_ms loud");
            g_assert_cmpint(result.status, ==, 2);
            g_assert_nonnull(strstr(result.err, "loud:"));
            g_assert_null(strpbrk(result.out, "\x1b\x07"));
            g_assert_null(strpbrk(result.err, "\x1b\x07"));
        }
    }
    g_autofree char *json =
        g_strdup("{\"model_type\": \"llama\", \"hidden_size\": 64, \"intermediate_size\": 128, "
                 "\"num_attention_heads\": 4, \"num_hidden_layers\": 2, \"vocab_size\": 256, "
                 "\"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-5}\n");
    write_file("\x1b[2J.json", json);
    expect("units ./\x1b[2J.json", 0, "?[2J.json", "");
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
        g_autofree char *nowhere =
            g_strconcat(forced[i], " --cluster this-machine --nccl-algo ring", NULL);
        expect(nowhere, 2, "", "--nccl-algo has no effect on this-machine, whose ranks do not");
    }
    write_cluster("wide.ini", "a100-roce", "\nnodes", "100000");
    expect("predict gpt-toy -n 400000 --cluster wide.ini --every-rank", 2, "",
           "400000 ranks are too many to play each (32768 at most)");
    expect("predict gpt-toy -n 400000 --cluster wide.ini", 0, "fits: yes", "");
}

/* What NCCL cannot do as it is forced to is said on standard error; with all else it is empty. */
static void forced_in_vain(void) {
    static const struct {
        const char *options, *note;
    } cases[] = {
        {"-n 2 --nccl-algo ring --nccl-proto simple", ""},
        {"-n 2 --nccl-algo tree --sharding none", ""},
        {"-n 1 --nccl-algo tree", ""},
        {"-n 2 --nccl-algo Tree",
         "foreshard predict: note: NCCL has no tree for all_gather, reduce_scatter among"},
        {"-n 2 --nccl-algo nvls --nccl-proto ll --sharding none --json",
         "foreshard predict: note: NCCL has no nvls with ll for all_reduce among"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *words =
            g_strdup_printf("predict gpt-toy --cluster a100-node %s", cases[i].options);
        g_auto(Result) result = run(words);
        g_assert_cmpint(result.status, ==, 0);
        g_assert_true(*cases[i].note ? g_str_has_prefix(result.err, cases[i].note) : !*result.err);
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

static void byte_order_mark(void) {
    expect("plan gpt-toy -n 2 -o unmarked.plan", 0, "", "");
    g_autofree char *text = read_file("unmarked.plan");
    g_autofree char *marked = g_strconcat("\xef\xbb\xbf", text, NULL);
    write_file("marked.plan", marked);
    expect("predict marked.plan --cluster a100-node", 2, "",
           "marked.plan:1: a byte order mark (U+FEFF) stands before foreshard-plan");
}

static void folders(void) {
    g_autofree char *folder = g_build_filename(shell.folder, "folder.ini", NULL);
    g_assert_cmpint(g_mkdir(folder, 0700), ==, 0);
    expect("predict folder.ini --cluster a100-node", 2, "",
           "folder.ini: this folder holds no config.json; name one that does, or a file");
    expect("predict gpt-toy --cluster folder.ini", 2, "",
           "folder.ini: this is no regular file; name one");
    g_rmdir(folder);
}

/* A run that no machine here has memory for is refused before it takes any; one within its limit is
 * not. */
/* A file of another version of this program. */
static void other_version(void) {
    expect("plan gpt-toy -n 2 -o now.plan", 0, "", "");
    g_autofree char *now = read_file("now.plan");
    g_autofree char *later = g_strconcat("foreshard-plan 2", strchr(now, '\n'), NULL);
    write_file("later.plan", later);
    expect(
        "predict later.plan --cluster a100-node", 2, "",
        "later.plan:1: version 2 is not known here; this program reads version 1: build the plan "
        "again (foreshard plan)");
}

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
    g_test_add_func("/cli/refusals/bad networks", bad_networks);
    g_test_add_func("/cli/refusals/endless files", endless_files);
    g_test_add_func("/cli/refusals/cluster of a trace", cluster_of_a_trace);
    g_test_add_func("/cli/refusals/no gpu", no_gpu);
    g_test_add_func("/cli/refusals/wrong kinds", wrong_kinds);
    g_test_add_func("/cli/refusals/bad strategies", bad_strategies);
    g_test_add_func("/cli/refusals/bad clusters", bad_clusters);
    g_test_add_func("/cli/refusals/bad plans", bad_plans);
    g_test_add_func("/cli/refusals/control characters", control_characters);
    g_test_add_func("/cli/refusals/every rank, refused", every_rank_refused);
    g_test_add_func("/cli/refusals/forced in vain", forced_in_vain);
    g_test_add_func("/cli/refusals/ends of lines", ends_of_lines);
    g_test_add_func("/cli/refusals/byte order mark", byte_order_mark);
    g_test_add_func("/cli/refusals/folders", folders);
    g_test_add_func("/cli/refusals/other version", other_version);
    g_test_add_func("/cli/refusals/too large to run", too_large_to_run);
    return shell_finish(g_test_run());
}
