/* bench/plan-build.c - how long it takes to build a plan, from a toy to a trillion parameters.
 *
 * Network to frozen and checked plan, unit a block, each block checkpointed, bf16 with fp32
 * reduction, 512 ranks, FSDP2 and FSDP1; the best of N (10, or the first argument), the time per
 * 1000 instructions, and the bytes that the plan holds. Times are the process's own, so that what
 * else runs on the machine counts little.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "models/network.h"
#include "plan/build.h"

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

static Plan *build(const ModelNetwork *network, const PlanStrategy *strategy) {
    g_autoptr(PlanGraph) graph = model_network_emit_for(network, strategy, NULL);
    return plan_build(graph, strategy, network->name, network->text, NULL);
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
                 role->n_operands * sizeof(PlanOperand) + role->n_dims * sizeof(int64_t) +
                 role->n_attrs * sizeof(double);
    }
    return bytes;
}

static double cpu_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void time_one(const char *flavour, unsigned i, unsigned turns) {
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
    double best = G_MAXDOUBLE;
    uint64_t rank0 = 0, all = 0, bytes = 0;
    uint32_t roles = 0;
    for (unsigned turn = 0; turn < turns; turn++) {
        double start = cpu_ms();
        g_autoptr(Plan) plan = build(network, &strategy);
        best = MIN(best, cpu_ms() - start);
        roles = plan->n_roles;
        bytes = bytes_of(plan);
        rank0 = all = 0;
        for (uint32_t r = 0; r < roles; r++) {
            for (unsigned s = 0; s < PLAN_N_SECTIONS; s++) {
                all += plan->roles[r].n_instrs[s];
                rank0 += r == 0 ? plan->roles[r].n_instrs[s] : 0;
            }
        }
    }
    printf("%-8s %-12s %6u %24" G_GUINT64_FORMAT " %10.2f %10.1f %26.1f\n", flavour,
           networks[i].name, roles, rank0, best, best * 1e3 / ((double)all / 1e3),
           (double)bytes / (1 << 20));
}

int main(int argc, char **argv) {
    static const char *const flavours[] = {"fsdp2", "fsdp1"};
    unsigned turns = argc > 1 ? (unsigned)g_ascii_strtoull(argv[1], NULL, 10) : 10;
    printf("flavour  network       roles  instructions of rank 0   build ms   "
           "us per 1000 of all roles   MiB\n");
    for (unsigned f = 0; f < G_N_ELEMENTS(flavours); f++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(networks); i++) {
            time_one(flavours[f], i, MAX(1, turns));
        }
    }
    return 0;
}
