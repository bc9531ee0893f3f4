/* bench/predict.c - from a network to the verdict, on one core: the plan is built, construction and
 * steps are played with the caching allocator on a modeled cluster, and peak and step time are
 * known. No trace is kept. Each in a process of its own: the best of seven, in all and by part, and
 * the first, of the process's own time. Then the first case once more with every rank played by
 * itself, under 5 % jitter.
 *
 * bench-predict CASE plays that one alone, once and in this process, for a profiler to look at.
 */
#include <stdio.h>
#include <sys/resource.h>

#include "bench/plans.h"
#include "cli/host/heap.h"
#include "cli/source/data-dir.h"
#include "sim/predict.h"

static const struct {
    const char *name, *network, *cluster, *strategy;
} cases[] = {
    {"GPT-175B, FSDP1, 512 GPUs", "gpt-175b", "a100-roce",
     "ranks=512 flavour=fsdp1 param_dtype=bf16 checkpointing=full"},
    {"GPT-175B, FSDP2, 512 GPUs", "gpt-175b", "a100-roce",
     "ranks=512 param_dtype=bf16 reduce_dtype=fp32 checkpointing=full"},
    {"T5-11B, FSDP1, 512 GPUs", "t5-11b", "a100-roce",
     "ranks=512 flavour=fsdp1 micro_batch=8 param_dtype=bf16 checkpointing=full"},
    {"Llama 3 8B, FSDP2, 64 GPUs", "llama3-8b", "dgx-h100",
     "ranks=64 param_dtype=bf16 reduce_dtype=fp32 checkpointing=selective-op"},
};

static ModelCluster *cluster_of(unsigned i) {
    g_autofree char *path = cli_data_find(CLI_DATA_CLUSTERS, cases[i].cluster, NULL);
    return model_cluster_read_file(path, NULL);
}

typedef struct {
    double build_ms, play_ms;
} Times;

static Times time_once(unsigned i, const ModelCluster *cluster) {
    double start = bench_cpu_ns();
    g_autoptr(Plan) plan = bench_plan_for_one(cases[i].network, cases[i].strategy);
    double built = bench_cpu_ns();
    SimOptions options = {.steps = 3}; /* two that make state, and a steady one */
    g_autoptr(SimPrediction) prediction = sim_predict(plan, cluster, &options, NULL, NULL);
    double end = bench_cpu_ns();
    g_assert_nonnull(prediction);
    return (Times){(built - start) / 1e6, (end - built) / 1e6};
}

static void run(unsigned i) {
    g_autoptr(ModelCluster) cluster = cluster_of(i);
    double best_build = 1e9, best_play = 1e9, best = 1e9, first = 0;
    for (unsigned turn = 0; turn < 7; turn++) {
        Times times = time_once(i, cluster);
        double all = times.build_ms + times.play_ms;
        first = turn == 0 ? all : first;
        best_build = MIN(best_build, times.build_ms);
        best_play = MIN(best_play, times.play_ms);
        best = MIN(best, all);
    }
    printf("%-28s %8.2f ms: plan %7.2f ms, construction and 3 steps played %7.2f ms; "
           "the first in a process %7.2f ms\n",
           cases[i].name, best, best_build, best_play, first);
}

static void run_every_rank(unsigned i) {
    g_autoptr(ModelCluster) cluster = cluster_of(i);
    g_autoptr(Plan) plan = bench_plan(cases[i].network, cases[i].strategy);
    SimOptions options = {
        .steps = 3, .every_rank = true, .jitter = {.shares = {[SIM_JITTER_KERNEL] = 0.05}}};
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    g_autoptr(SimPrediction) prediction = sim_predict(plan, cluster, &options, NULL, NULL);
    getrusage(RUSAGE_SELF, &after);
    g_assert_nonnull(prediction);
    double seconds = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
                     (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) / 1e6;
    printf("%-28s %8.2f s of one core: every rank, 5 %% jitter; peak memory %.3f GB\n",
           cases[i].name, seconds, (double)after.ru_maxrss * 1024 / 1e9);
}

/* By its number, from 1. */
static bool run_once(const char *number) {
    uint64_t n = g_ascii_strtoull(number, NULL, 10);
    if (n < 1 || n > G_N_ELEMENTS(cases)) {
        fprintf(stderr, "no case %s; there are 1 to %zu\n", number, G_N_ELEMENTS(cases));
        return false;
    }
    cli_heap_in_large_pages(); /* as bench_apart() does */
    unsigned i = (unsigned)n - 1;
    g_autoptr(ModelCluster) cluster = cluster_of(i);
    Times times = time_once(i, cluster);
    printf("%-28s %8.2f ms: plan %7.2f ms, construction and 3 steps played %7.2f ms\n",
           cases[i].name, times.build_ms + times.play_ms, times.build_ms, times.play_ms);
    return true;
}

int main(int argc, char **argv) {
    if (argc > 1) {
        return run_once(argv[1]) ? 0 : 2;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        bench_apart(run, i);
    }
    run_every_rank(0);
    return 0;
}
