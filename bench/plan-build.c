/* bench/plan-build.c - how long it takes to build a plan, from a toy to a trillion parameters.
 *
 * Network to frozen plan, unit a block, each block checkpointed, bf16 with fp32 reduction, 512
 * ranks, FSDP2 and FSDP1; each in a process of its own: the first plan and its page faults, the
 * best of N (10, or the first argument), the time per 1000 instructions, what the checker takes for
 * it, and the bytes that the plan holds. Times are the process's own, so that what else runs on the
 * machine counts little.
 */
#include <stdio.h>
#include <string.h>

#include "bench/plans.h"
#include "models/network.h"
#include "plan/check/check.h"

static const struct {
    const char *name, *text;
} networks[] = {
    {"gpt-toy", "[network]\nfamily=gpt\nlayers=2\nwidth=64\nheads=2\nvocab=96\nseq=32\n"},
    {"GPT-2 124M", "[network]\nfamily=gpt\nlayers=12\nwidth=768\nheads=12\nvocab=50257\nseq=1024\n"
                   "tied=yes\n"},
    {"GPT-175B",
     "[network]\nfamily=gpt\nlayers=96\nwidth=12288\nheads=96\nvocab=50000\nseq=2048\n"},
    {"GPT 1T",
     "[network]\nfamily=gpt\nlayers=128\nwidth=25600\nheads=160\nvocab=50000\nseq=2048\n"},
};

static const char *const flavours[] = {"fsdp2", "fsdp1"};

static unsigned turns;

static Plan *build(const ModelNetwork *network, const PlanStrategy *strategy) {
    return model_network_plan(network, strategy, PLAN_FORM_WHOLE, NULL);
}

static uint64_t bytes_of(const Plan *plan) {
    uint64_t bytes = 0;
    for (uint32_t r = 0; r < plan->n_roles; r++) {
        const PlanRole *role = &plan->roles[r];
        for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
            bool is_shared = plan_section_repeats(role, s);
            bytes += is_shared ? 0 : role->n_instrs[s] * sizeof(PlanInstr);
        }
        bytes += role->n_buffers * sizeof(PlanBuffer) + role->n_ops * sizeof(PlanOp) +
                 role->n_operands * sizeof(PlanRef) + role->n_parts * sizeof(PlanOperand) +
                 role->n_dims * sizeof(int64_t) + role->n_attrs * sizeof(double);
    }
    return bytes;
}

typedef struct {
    double first_ms, best_ms, check_ms; /* the last by itself, the best too */
    uint64_t first_faults;
    uint64_t rank0, all; /* instructions */
    uint64_t bytes;
    uint32_t roles;
} Times;

static void note(Times *times, const Plan *plan) {
    times->roles = plan->n_roles;
    times->bytes = bytes_of(plan);
    times->rank0 = times->all = 0;
    for (uint32_t r = 0; r < plan->n_roles; r++) {
        for (unsigned s = 0; s < PLAN_N_SECTIONS; s++) {
            times->all += plan->roles[r].n_instrs[s];
            times->rank0 += r == 0 ? plan->roles[r].n_instrs[s] : 0;
        }
    }
}

static Times time_builds(const ModelNetwork *network, const PlanStrategy *strategy) {
    Times times = {.best_ms = G_MAXDOUBLE, .check_ms = G_MAXDOUBLE};
    for (unsigned turn = 0; turn < turns; turn++) {
        uint64_t faults = bench_page_faults();
        double start = bench_cpu_ns();
        g_autoptr(Plan) plan = build(network, strategy);
        double ms = (bench_cpu_ns() - start) / 1e6;
        if (turn == 0) {
            times.first_ms = ms;
            times.first_faults = bench_page_faults() - faults;
            note(&times, plan);
        }
        times.best_ms = MIN(times.best_ms, ms);
        start = bench_cpu_ns();
        plan_check(plan, NULL);
        times.check_ms = MIN(times.check_ms, (bench_cpu_ns() - start) / 1e6);
    }
    return times;
}

static void time_one(unsigned which) {
    const char *flavour = flavours[which / G_N_ELEMENTS(networks)];
    unsigned i = which % G_N_ELEMENTS(networks);
    PlanStrategy strategy;
    plan_strategy_init(&strategy);
    plan_strategy_set(&strategy, "ranks", "512", NULL);
    plan_strategy_set(&strategy, "flavour", flavour, NULL);
    plan_strategy_set(&strategy, "checkpointing", "full", NULL);
    plan_strategy_set(&strategy, "param_dtype", "bf16", NULL);
    plan_strategy_set(&strategy, "reduce_dtype", "fp32", NULL);
    plan_strategy_settle(&strategy, NULL);
    g_autoptr(ModelNetwork) network =
        model_network_read(networks[i].text, strlen(networks[i].text), networks[i].name, NULL);
    Times times = time_builds(network, &strategy);
    printf("%-8s %-12s %6u %24" G_GUINT64_FORMAT " %10.2f %12" G_GUINT64_FORMAT
           " %10.2f %18.1f %10.2f %8.1f\n",
           flavour, networks[i].name, times.roles, times.rank0, times.first_ms, times.first_faults,
           times.best_ms, times.best_ms * 1e3 / ((double)times.all / 1e3), times.check_ms,
           (double)times.bytes / (1 << 20));
}

int main(int argc, char **argv) {
    turns = argc > 1 ? MAX(1, (unsigned)g_ascii_strtoull(argv[1], NULL, 10)) : 10;
    printf("flavour  network       roles  instructions of rank 0   first ms  page faults    best "
           "ms  us per 1000 of all   check ms      MiB\n");
    for (unsigned i = 0; i < G_N_ELEMENTS(flavours) * G_N_ELEMENTS(networks); i++) {
        bench_apart(time_one, i);
    }
    return 0;
}
