#include "bench/plans.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/host/heap.h"
#include "cli/source/data-dir.h"
#include "models/network.h"

static Plan *build(const char *network, const char *strategy_words, PlanForm form) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = cli_data_find(CLI_DATA_NETWORKS, network, &error);
    g_assert_no_error(error);
    g_autoptr(ModelNetwork) read = model_network_read_file(path, NULL);
    PlanStrategy strategy;
    g_assert_true(plan_strategy_of_words(&strategy, strategy_words, NULL));
    return model_network_plan(read, &strategy, form, NULL);
}

Plan *bench_plan(const char *network, const char *strategy_words) {
    return build(network, strategy_words, PLAN_FORM_WHOLE);
}

Plan *bench_plan_for_one(const char *network, const char *strategy_words) {
    return build(network, strategy_words, PLAN_FORM_FOR_ONE);
}

uint64_t bench_page_faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_minflt;
}

void bench_apart(void (*run)(unsigned i), unsigned i) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        cli_heap_in_large_pages();
        run(i);
        fflush(stdout);
        _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    g_assert(child > 0 && status == 0);
}

double bench_cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}
