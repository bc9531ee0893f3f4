/* Command lines that are nearly right, are of another program or do not go together: each is
 * refused with what was meant. Takes the path of foreshard as its argument.
 */
#include <string.h>

#include "tests/cli/shell.h"

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
    expect("choose gpt-toy --cluster a100-node --global-batch 4M", 2, "", "N tokens has N / seq");
    expect("plot x.trace --picture lanes --knob wrap=block,whole", 2, "", "--knob is nothing to");
    expect("plot x.csv --picture validation --cluster dgx-h100", 2, "", "--cluster is nothing to");
    expect("plot no-such.csv --picture validation", 2, "",
           "no-such.csv: there is no such file; give tables of");
    expect("plot . --picture validation -n 8", 2, "", "ranks=8: runs are predicted with the");
    expect("plot gpt-toy --knob wrap=block,whole --rank 1", 2, "", "--rank is nothing to");
    expect("plot gpt-toy --knob ranks=1,2 --where a=b", 2, "", "add --published FILE.csv");
    expect("predict gpt-toy --cluster this-machine --trace predicted.trace", 0, "step ", "");
    expect("plot predicted.trace --cluster dgx-h100", 2, "",
           "--cluster is for a plan or a network");
    expect("report predicted.trace --json --cluster nonesuch", 2, "", "no cluster is called");
    expect("replay gpt-toy predicted.trace", 2, "", "predicted.trace is a predicted trace; give");
}

/* GLib takes the last of two values; nobody who gave two means that one of them is nothing. */
static void options_given_twice(void) {
    expect("predict gpt-toy --cluster a100-node -c dgx-h100", 2, "",
           "--cluster is given twice, as 'a100-node' and as 'dgx-h100'; give one, or compare them");
    expect("plan gpt-toy -o a.plan --output=b.plan", 2, "", "--output is given twice, as 'a.plan'");
    expect("compare a b --rank 0 -r1", 2, "", "--rank is given twice, as '0' and as '1'; give one");
    expect("predict gpt-toy -c this-machine -jc dgx-h100", 2, "",
           "--cluster is given twice, as 'this-machine' and as 'dgx-h100'; give one");
    static const char *const of_ranks[] = {"seed",        "jitter",      "spread",
                                           "host-jitter", "link-jitter", "trace-ranks"};
    for (unsigned i = 0; i < G_N_ELEMENTS(of_ranks); i++) {
        const char *name = of_ranks[i];
        g_autofree char *words = g_strdup_printf(
            "predict gpt-toy -c this-machine --every-rank --%s 1 --%s=1 --%s 2", name, name, name);
        g_autofree char *said =
            g_strdup_printf("--%s is given twice, as '1' and as '2'; give one\n", name);
        expect(words, 2, "", said);
    }
    expect("predict gpt-toy -c this-machine -n 2 --every-rank --seed 1 --seed 1", 0, "fits: ", "");
    expect("plan gpt-toy -n 2 --micro-batch 1 -n 4", 2, "", "ranks is given twice, as 2 and as 4");
    expect("plan gpt-toy -n 2 -n 2 --network-key seq=16 --network-key seq=8", 2, "",
           "network.seq is given twice, as 16 and as 8; give one (choose, plot and diagnose try");
    expect("plan gpt-toy -n 2 -n 2 -o twice.plan -o twice.plan", 0, "", "");
    expect("plan gpt-toy --strategy a.ini --strategy b.ini", 2, "",
           "--strategy is given twice, as 'a.ini' and as 'b.ini'; give one (options given beside");
    static const char choose[] = "choose gpt-toy --cluster a100-node --knob ranks=8 --price ";
    g_autofree char *two = g_strconcat(choose, "2 --price 3", NULL);
    expect(two, 2, "", "--price is given twice for the same machines, as 2 and as 3; give one");
    g_autofree char *two_named =
        g_strconcat(choose, "a100-node=2 --price a100-node=3 --price 1", NULL);
    expect(two_named, 2, "", "the same machines, as a100-node=2 and as a100-node=3");
}

/* A price that names its machine holds, wherever it stands among those of all. */
static void prices_of_all_and_of_one(void) {
    static const char choose[] = "choose gpt-toy --cluster a100-node --cluster dgx-h100:1 --knob "
                                 "ranks=8 --knob micro_batch=1 --csv --price ";
    static const char *const prices[] = {"1 --price a100-node=4", "a100-node=4 --price 1", "1"};
    char *rows[G_N_ELEMENTS(prices)];
    for (unsigned i = 0; i < G_N_ELEMENTS(prices); i++) {
        g_autofree char *words = g_strconcat(choose, prices[i], NULL);
        g_auto(Result) result = run(words);
        g_assert_cmpint(result.status, ==, 0);
        rows[i] = g_steal_pointer(&result.out);
    }
    g_assert_cmpstr(rows[0], ==, rows[1]);
    g_assert_cmpstr(rows[0], !=, rows[2]);
    for (unsigned i = 0; i < G_N_ELEMENTS(prices); i++) {
        g_free(rows[i]);
    }
}

/* Keys that are nearly right, in files and behind names. */
static void slips_in_keys(void) {
    write_file("slip.ini", "[strategy]\nmicrobatch = 3\n");
    expect("plan gpt-toy --strategy slip.ini", 2, "",
           "slip.ini:2: 'microbatch' is no key of a strategy; did you mean micro_batch?");
    expect("plan gpt-toy --network-key sqe=3", 2, "", "no key 'sqe'; did you mean seq?");
    expect("plan gpt-toy --param-dtype fp8", 2, "", "; linear layers in float8 are asked for by");
    expect("plan gpt-toy --optimizer adamw_8bit", 2, "", "adamw-torch-8bit is torchao's");
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
    static const char mine[] = "[cluster]\nlike = %s\n[topology]\nnodes = 4\n[inter_node]\n"
                               "nic_gb_per_s = 50\n";
    g_autofree char *alone = g_strdup_printf(mine, "h200-node");
    g_autofree char *of_several = g_strdup_printf(mine, "h200-p5e");
    write_file("mine.ini", alone);
    static const char *const notes[] = {
        "predict gpt-toy -n 16 --cluster mine.ini", "choose gpt-toy -n 16 --cluster mine.ini",
        "diagnose gpt-toy -n 16 --cluster mine.ini", "collectives -n 16 --cluster mine.ini"};
    for (unsigned i = 0; i < G_N_ELEMENTS(notes); i++) {
        expect(
            notes[i], 0, "",
            "note: mine has no far_latency_factor, far_extra_us, ... in [collectives], so "
            "between nodes NCCL's own estimate is taken, and measured collectives are slower; be "
            "like a cluster of several nodes (with these GPUs: h200-kempner, h200-p5e), or give");
    }
    write_file("mine.ini", of_several);
    g_auto(Result) quiet = run(notes[0]);
    g_assert_null(strstr(quiet.err, "note: mine"));
    expect("predict gone.json --cluster dgx-h100", 2, "", "gone.json: there is no such file");
}

static void files_of_other_programs(void) {
    write_file("mine.py", "import torch\n");
    write_file("mine.safetensors", "weights");
    write_file("accelerate.yaml", "distributed_type: FSDP\n");
    write_file("titan.toml", "[training]\nseq_len = 8192\n");
    expect("predict mine.py --cluster dgx-h100", 2, "", "trace its network by models/pytorch/");
    g_auto(Result) gone = run("predict model.py --cluster dgx-h100");
    g_assert_nonnull(strstr(gone.err, "no such file; `foreshard list` names what needs no file, "
                                      "and docs/own-network.md says how a program's network"));
    expect("plan mine.safetensors", 2, "", "these are weights; name the config.json");
    expect("plan accelerate.yaml", 2, "", "a trainer's settings; name the network (its config");
    expect("plan titan.toml", 2, "", "docs/hugging-face.md and docs/own-run.md translate them");
    write_file("ds.json", "{\"zero_optimization\": {\"stage\": 3}}");
    expect("plan ds.json", 2, "", "these are DeepSpeed's settings; name the network (its config");
    expect("plan gpt-toy --strategy accelerate.yaml", 2, "", "docs/hugging-face.md translates");
    expect("plan gpt-toy --strategy titan.toml", 2, "", "docs/own-run.md torchtitan's and a");
    expect("plan gpt-toy --strategy mine.py", 2, "", "a strategy is an ini file, as foreshard");
}

/* A config.json is JSON, as a profile of PyTorch's is. */
static void drawing_a_config(void) {
    write_file("drawn.json",
               "{\"model_type\": \"llama\", \"hidden_size\": 64, \"intermediate_size\": 128, "
               "\"num_attention_heads\": 4, \"num_hidden_layers\": 2, \"vocab_size\": 256, "
               "\"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-5}\n");
    write_file("profile.json", "{\"schemaVersion\": 1, \"traceEvents\": []}\n");
    expect("plot drawn.json -n 2 --cluster a100-node", 0, "Memory over time: drawn.json", "");
    expect("plot drawn.json -n 2", 2, "", "a plan or network and the cluster to predict it on");
    expect("plot profile.json", 2, "", "a profile, which says no block's life");
    expect("plot profile.json --cluster a100-node", 2, "", "the field 'model_type' is missing");
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
        {"plan gpt-toy --float8",
         " --float8; it is one of none, tensorwise, rowwise, delayed, mxfp8\n"},
        {"run gpt-toy --cluster a100-node", "--cluster; foreshard predict has it (and run --pace"},
        {"plan gpt-toy --attn-implementation sdpa", "--attention-kernel flash, or cudnn"},
        {"plan gpt-toy --step-sync false", "did you mean no?"},
        {"plan gpt-toy --wrap LlamaDecoderLayer", "did you mean module=LlamaDecoderLayer?"},
        {"plan gpt-toy --optimizer adamw_torch_fused", "did you mean adamw?"},
        {"plan gpt-toy --fsdp2", "here it is --flavour (fsdp1 or fsdp2)"},
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
        {"plan gpt-toy --optimizer AdamW8bit", "; did you mean adamw-torch-8bit?"},
        {"plan gpt-toy -n 2 --flavour fsdp1 --optimizer adamw-torch-8bit", "for one rank, DDP and"},
        {"plan gpt-toy --pytorch 2.12 --optimizer adamw-torch-8bit", "only for PyTorch 2.13"},
        {"plan gpt-toy --state-dtype bf16 --optimizer adamw-torch-8bit", "of its own dtype; set"},
        {"plan llama-toy -n 4 --tensor 2 --optimizer adamw-torch-8bit", "share layers or experts"},
        {"plan gpt-toy -n 2 --offload params --optimizer adamw-torch-8bit", "planned on the host"},
        {"plan gpt-toy --autocast fp16 --loss-scale dynamic --optimizer adamw-torch-8bit",
         "with a scaled loss; set"},
        {"plan gpt-toy --deterministic yes --optimizer adamw-torch-8bit", "deterministic=no"},
        {"plan llama-toy --model-dtype bf16 --kernels compiled --float8 rowwise --optimizer "
         "adamw-torch-8bit",
         "layers in float8; set"},
        {"plan gpt-toy --optimizer-kernel loop --optimizer-count device --optimizer "
         "adamw-torch-8bit",
         "is for Adam's loop"},
        {"predict gpt-toy --tokens 1T", "--tokens; foreshard choose has it"},
        {"plan gpt-toy --seqlen 8", "; here it is --seq\n"},
        {"plan gpt-toy --num-hidden-layers 3", "; here it is --network-key layers=N\n"},
        {"plan gpt-toy --dp-shard 2", "; here it is --ranks (-n), all of them: what other"},
        {"plan gpt-toy --gbs 2", "; here it is --micro-batch, of a rank and pass, with --acc"},
        {"choose gpt-toy --cluster a100-node --gbs 2", "; here it is --global-batch, in sequen"},
        {"plan gpt-toy --auto-wrap-policy x", "; here it is --wrap (block, or module=CLASS)\n"},
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

/* Names, options and commands that are nearly right. */
static void slips(void) {
    expect("predcit gpt2", 2, "", "did you mean predict?");
    expect("predict llama-3-70b --cluster dgx-h100", 2, "", "did you mean llama3-70b?");
    expect("predict meta-llama/Llama-3-70B --cluster dgx-h100", 2, "",
           "meta-llama/Llama-3-70B: no network has this name here; did you mean llama3-70b?");
    expect("predict meta-llama/Llama-3.1-8B-Instruct --cluster dgx-h100", 2, "",
           "no network has this name here; did you mean llama3-8b?");
    expect("predict Qwen/Qwen2.5-72B-Instruct --cluster dgx-h100", 2, "", "mean qwen2.5-72b?");
    expect("predict nobody/none-such --cluster dgx-h100", 2, "",
           "no network has this name here; a model of the Hub is planned by its config.json");
    expect("predict ./none-such --cluster dgx-h100", 2, "", "./none-such: there is no such file;");
    expect("predict gpt2 --cluster h100-dgx", 2, "", "did you mean dgx-h100?");
    expect("predict gpt2 --cluster H100", 2, "", "did you mean dgx-h100, h100-a3 or ");
    write_cluster("this-laptop.ini", "dgx-h100", "\nnodes", "2");
    expect("predict gpt2 --cluster this-laptop", 2, "",
           "the file this-laptop.ini is here: name it with its ending");
    write_file("mine.network", "[network]\n");
    expect("plan mine", 2, "", "the file mine.network is here: name it with its ending");
    expect("predict gpt2xl --cluster dgx-h100", 2, "", "did you mean gpt2-xl? (looked in ");
    expect("plot gpt-toy --clip 1 --cluster a100-node --knob ranks=2,4", 0,
           "gpt-toy on a100-node, clip=1\n", "");
    expect("plot gpt-toy -n 2 --cluster a100-node --knob seq=8 --knob seq=16", 2, "",
           "--knob seq is given twice; give all its values at once");
    static const char *const both[] = {
        "plot gpt-toy -n 2 --cluster a100-node --knob ranks=2,4",
        "choose gpt-toy -n 2 --cluster a100-node --knob ranks=2,4",
        "plot gpt-toy --cluster a100-node --network-key seq=8 --knob network.seq=8,16",
        "choose gpt-toy --cluster a100-node --network-key seq=8 --knob network.seq=8,16"};
    for (unsigned i = 0; i < G_N_ELEMENTS(both); i++) {
        expect(both[i], 2, "", " is given as a setting and as a knob; leave one of them away");
    }
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
    g_setenv("FORESHARD_EXEC", "/bin/false", TRUE); /* no rank has to be started to say it */
    expect("run gpt-toy -n 2 --load gone.safetensors", 2, "",
           "cannot read gone.safetensors: No such file or directory; give --load a file");
    expect("run gpt-toy -n 2 --data gone.bin", 2, "", "give --data a file that is there");
    g_unsetenv("FORESHARD_EXEC");
    expect("list gpus", 2, "", "there is no list of 'gpus'; did you mean clusters?");
    expect("list models", 2, "", "there is no list of 'models'; did you mean networks?");
    expect("fit gpt2", 2, "", "there is no command 'fit'; did you mean predict?");
    expect("optimize gpt2", 2, "", "did you mean choose?");
    expect("predict google/gemma-2-9b -n 8 --cluster dgx-h100", 2, "", "did you mean gemma2-9b?");
    expect("predict tiiuae/falcon-7b -n 8 --cluster dgx-h100", 2, "",
           "a model of the Hub is planned by its config.json");
    expect("predict gone/config.json -n 8 --cluster dgx-h100", 2, "",
           "gone/config.json: there is no such file; `foreshard list networks` names what needs");
    expect("explain fsdp", 0, "flavour is a setting", "");
    expect("explain full", 0, "sharding is a setting", "");
    expect("explain oom", 0, "oom: out of memory in step 0", "");
    expect("list dgx", 0, "\n  dgx-h100             128 ranks: 16 nodes of 8 x H100", "");
    expect("list dgx-h200", 2, "", "; did you mean h200-p5e, h200-node or h200-kempner?");
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
    expect("explain nonsense gpt-toy", 2, "", "there are\n  time             step_ms, ");
    expect("predict gpt2 -n 8 --cluster dgx-h100 --strategy ddp", 2, "",
           "--strategy takes a file of settings, as choose -o writes one (by name they are given "
           "as --sharding none, --flavour fsdp1, ...); ddp: cannot be read: No such file");
    expect("predict gpt2 -n 8 --cluster dgx-h100 --flavour deepspeed", 2, "",
           "DeepSpeed's ZeRO 3 is planned as fsdp2 with sharding=full");
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

int main(int argc, char **argv) {
    shell_init(&argc, &argv);
    g_test_add_func("/cli/slips/numbers below zero", numbers_below_zero);
    g_test_add_func("/cli/slips/empty words", empty_words);
    g_test_add_func("/cli/slips/options that do not go together", options_that_do_not_go_together);
    g_test_add_func("/cli/slips/options given twice", options_given_twice);
    g_test_add_func("/cli/slips/prices of all and of one", prices_of_all_and_of_one);
    g_test_add_func("/cli/slips/files of other programs", files_of_other_programs);
    g_test_add_func("/cli/slips/drawing a config", drawing_a_config);
    g_test_add_func("/cli/slips/slips", slips);
    g_test_add_func("/cli/slips/slips in keys", slips_in_keys);
    g_test_add_func("/cli/slips/other words", other_words);
    return shell_finish(g_test_run());
}
