/* Runs on a GPU that fail: they name rank, step and op, and none hangs. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/exec/gpu-runs.h"

static void fails(const char *words, int status, const char *expected) {
    TestRun run = test_run_finish(test_run_start(words));
    if (run.status != status || !strstr(run.err, expected)) {
        g_test_message("%s: status %d, '%s'; expected status %d, '%s'", words, run.status, run.err,
                       status, expected);
        g_test_fail();
    }
    test_run_clear(&run);
}

static void fails_on_gpu(const char *words, int status, const char *expected) {
    g_autofree char *line = g_strdup_printf("%s/x.plan --device cuda --comm %s %s", gpu_runs.folder,
                                            gpu_comm_of("cuda"), words);
    test_run_program = gpu_runs.on_gpu;
    fails(line, status, expected);
}

static void failures_say_why(void) {
    gpu_plan("gpt-toy -n 2 --lr 1000 --weight-decay 10");
    fails_on_gpu("--local-ranks 2 --steps 200", 1, "op nll_loss of unit root: the loss is ");
    fails_on_gpu("--local-ranks 2 --memory-limit 3000000", 1, "out of memory: step ");
    fails_on_gpu("--local-ranks 2 --memory-limit 3000000", 1, "allocated: parameters/sharded ");
    fails_on_gpu("--local-ranks 3", 2, "the plan is for 2 ranks, but 3 are started");
    fails_on_gpu("--local-ranks 2 --comm quick", 2, "there is no communicator 'quick'");
    if (!gpu_runs.real) {
        fails_on_gpu("--local-ranks 2 --comm nccl", 2, "built without NCCL");
        gpu_plan("gpt-toy -n 1 --allocator expandable");
        test_run_name = "FORESHARD_EMULATOR_PAGES";
        test_run_value = "no";
        fails_on_gpu("", 2, "expandable");
        test_run_value = "closed"; /* which is no want of room */
        fails_on_gpu("", 1, "rank 0: step 0: cuMemSetAccess failed: CUDA_ERROR_INVALID_VALUE");
        gpu_plan("gpt-toy -n 1 --sharding none");
        test_run_name = "FORESHARD_EMULATOR_MIB";
        test_run_value = "36"; /* of which products take 32 for themselves */
        fails_on_gpu("", 1, " bytes free: kernels, other ranks or other programs hold the rest");
        gpu_plan("gpt-toy -n 1 --offload params");
        test_run_name = "FORESHARD_EMULATOR_PINNED_MIB";
        test_run_value = "1";
        fails_on_gpu("", 1, "bytes left that can be pinned, for ");
        test_run_name = NULL;
    }
    gpu_plan(FLOAT8 "--float8 rowwise --network-key seq=24");
    fails_on_gpu("--local-ranks 2", 2, "as many tokens, and sides, as 16 divides");
    if (!gpu_runs.real) {
        gpu_plan(MXFP8);
        fails_on_gpu("--local-ranks 2", 2, "compute capability 10.0 or more; set float8=rowwise");
        gpu_plan(FLOAT8 "--float8 rowwise");
        test_run_name = "FORESHARD_EMULATOR_CAPABILITY";
        test_run_value = "80";
        fails_on_gpu("--local-ranks 2", 2, "compute capability 8.9 or more; set float8=none");
        test_run_name = NULL;
    }
    gpu_plan("moe-toy -n 2 --expert 2 --micro-batch 6");
    fails_on_gpu("--local-ranks 2", 2, "the router sends more rows to one rank than to another");
}

/* A kernel that touches what it may not: the error comes later, with whatever is asked then: a
 * wait, or at once a product of a library, or a segment, which looks as if there were no room. */
static void a_fault_of_the_device_is_named(void) {
    if (gpu_runs.real) {
        g_test_skip("no fault is planted on a real GPU");
        return;
    }
    static const struct {
        const char *plan, *kernel; /* of some 200; the last shows when an event is made */
    } faults[] = {
        {"gpt-toy -n 1 --sharding none", "12"},
        {"gpt-toy -n 1 --sharding none", "90"},
        {"gpt-toy -n 1 --sharding none", "180"},
        {"gpt-toy -n 1 --sharding none", "34!"},
        {"gpt-toy -n 1 --sharding none", "169!"},
        {"gpt-toy -n 1 --flavour fsdp1 --checkpointing full --offload activations", "58!"}};
    static const char *const parts[] = {"an illegal memory access was encountered", "rank 0: step ",
                                        "with CUDA_LAUNCH_BLOCKING=1"};
    g_autofree char *line =
        g_strdup_printf("%s/x.plan --device cuda --steps 4 --no-op-times --trace %s/f.trace",
                        gpu_runs.folder, gpu_runs.folder);
    for (unsigned i = 0; i < G_N_ELEMENTS(faults); i++) {
        gpu_plan(faults[i].plan);
        test_run_program = gpu_runs.on_gpu;
        test_run_name = "FORESHARD_EMULATOR_FAULT";
        test_run_value = faults[i].kernel;
        TestRun run = test_run_finish(test_run_start(line));
        test_run_name = NULL;
        g_test_message("kernel %s: %s", faults[i].kernel, run.err);
        g_assert_cmpint(run.status, ==, 1);
        for (unsigned part = 0; part < G_N_ELEMENTS(parts); part++) {
            g_assert_nonnull(strstr(run.err, parts[part]));
        }
        g_assert_null(strstr(run.err, "out of memory"));
        g_assert_null(strchr(strchr(run.err, '\n') + 1, '\n')); /* one line */
        test_run_clear(&run);
    }
}

/* The last child of a process that has at least two, by their numbers; 0: not yet. Of each process
 * the system says whose child it is; a list of children only some kernels keep. */
static int second_child_of(const char *parent) {
    g_autoptr(GDir) all = g_dir_open("/proc", 0, NULL);
    int last = 0;
    unsigned n = 0;
    for (const char *name; (name = g_dir_read_name(all));) {
        g_autofree char *path = g_build_filename("/proc", name, "stat", NULL), *text = NULL;
        int of = 0;
        if (g_ascii_isdigit(name[0]) && g_file_get_contents(path, &text, NULL, NULL) &&
            strrchr(text, ')') && sscanf(strrchr(text, ')'), ") %*c %d", &of) == 1 &&
            of == atoi(parent)) {
            last = MAX(last, atoi(name));
            n++;
        }
    }
    return n >= 2 ? last : 0;
}

/* A rank that stops in the middle of training: the others say what they wait for, and all end. A
 * real GPU may load a kernel for seconds, and takes turns with the ranks of other programs. */
static void a_hung_collective_ends_all(void) {
    int patience = gpu_runs.real ? 10 : 2;
    gpu_plan("gpt-toy -n 2");
    g_autofree char *line = g_strdup_printf(
        "%s/x.plan --device cuda --local-ranks 2 --comm %s --steps 100000 --watchdog %d",
        gpu_runs.folder, gpu_comm_of("cuda"), patience);
    test_run_program = gpu_runs.on_gpu;
    GSubprocess *process = test_run_start(line);
    int second = 0;
    for (unsigned tries = 0; tries < 300 && !second; tries++) {
        g_usleep(50000);
        second = second_child_of(g_subprocess_get_identifier(process));
    }
    g_assert_cmpint(second, >, 0);
    char first_word; /* of its first step: it trains */
    g_assert_cmpint(
        g_input_stream_read(g_subprocess_get_stdout_pipe(process), &first_word, 1, NULL, NULL), ==,
        1);
    g_assert_cmpint(kill(second, SIGSTOP), ==, 0);
    gint64 stopped_at = g_get_monotonic_time();
    TestRun run = test_run_finish(process);
    double seconds = (double)(g_get_monotonic_time() - stopped_at) / 1e6;
    g_test_message("ended after %.1f s: %s", seconds, run.err);
    g_assert_cmpint(run.status, ==, 1);
    g_assert_cmpfloat(seconds, <, 20);
    g_autofree char *said =
        g_strdup_printf("rank 0: nothing has got on for %d s: the host is at ", patience);
    g_assert_nonnull(strstr(run.err, said));
    test_run_clear(&run);
}

/* What this machine's own foreshard-exec says: that there is none, or nothing (NULL), or that it
 * fails otherwise; then there is one, and the tests tell what is wrong. */
bool gpu_is_there(char **ret_said) {
    static const char *const reasons[] = {"no GPU can be used",
                                          "the GPU's part of this program cannot be loaded: lib",
                                          "there is no device 'cuda' here"};
    bool here = true;
    gpu_plan("gpt-toy -n 1 --sharding none");
    test_run_program = gpu_runs.on_host;
    g_autofree char *line = g_strdup_printf("%s/x.plan --device cuda --steps 1", gpu_runs.folder);
    TestRun run = test_run_finish(test_run_start(line));
    for (unsigned i = 0; run.status && i < G_N_ELEMENTS(reasons); i++) {
        here = here && !strstr(run.err, reasons[i]);
    }
    g_auto(GStrv) lines = g_strsplit(run.err, "\n", 2);
    *ret_said = run.status && lines[0] ? g_strdup(lines[0]) : NULL;
    test_run_clear(&run);
    return here;
}

static void a_machine_without_gpus_says_so(void) {
    g_autofree char *said = NULL;
    if (gpu_is_there(&said)) {
        g_assert_cmpstr(said, ==, NULL);
        g_test_skip("there is a GPU here");
    }
}

void gpu_add_first_failures(void) {
    g_test_add_func("/exec/gpu/failures say why", failures_say_why);
    g_test_add_func("/exec/gpu/a hung collective ends all", a_hung_collective_ends_all);
}

void gpu_add_last_failures(void) {
    g_test_add_func("/exec/gpu/a fault of the device is named", a_fault_of_the_device_is_named);
    g_test_add_func("/exec/gpu/no GPU is said", a_machine_without_gpus_says_so);
}
