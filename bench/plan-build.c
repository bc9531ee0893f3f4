/* bench/plan-build.c - how long it takes to build a plan, from a toy to a trillion parameters.
 *
 * Network to frozen and checked plan, FSDP2, unit a block, bf16 with fp32 reduction, 512 ranks; the
 * best of five, and the time per 1000 instructions of rank 0's role.
 */
#include <stdio.h>
#include <string.h>

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
    g_autoptr(PlanGraph) graph =
        model_network_emit(network, 1, 0, plan_strategy_param_dtype(strategy), false, NULL);
    return plan_build(graph, strategy, network->name, network->text, NULL);
}

int main(void) {
    PlanStrategy strategy;
    plan_strategy_init(&strategy);
    plan_strategy_set(&strategy, "ranks", "512", NULL);
    plan_strategy_set(&strategy, "param_dtype", "bf16", NULL);
    plan_strategy_set(&strategy, "reduce_dtype", "fp32", NULL);
    plan_strategy_settle(&strategy, NULL);
    printf("network       roles  instructions of rank 0   build ms   us per 1000 of all roles\n");
    for (unsigned i = 0; i < G_N_ELEMENTS(networks); i++) {
        g_autoptr(ModelNetwork) network =
            model_network_read(networks[i].text, strlen(networks[i].text), networks[i].name, NULL);
        gint64 best = G_MAXINT64;
        uint64_t rank0 = 0, all = 0;
        uint32_t roles = 0;
        for (unsigned turn = 0; turn < 5; turn++) {
            gint64 start = g_get_monotonic_time();
            g_autoptr(Plan) plan = build(network, &strategy);
            best = MIN(best, g_get_monotonic_time() - start);
            roles = plan->n_roles;
            rank0 = all = 0;
            for (uint32_t r = 0; r < roles; r++) {
                for (unsigned s = 0; s < PLAN_N_SECTIONS; s++) {
                    all += plan->roles[r].n_instrs[s];
                    rank0 += r == 0 ? plan->roles[r].n_instrs[s] : 0;
                }
            }
        }
        printf("%-12s %6u %24" G_GUINT64_FORMAT " %10.2f %10.1f\n", networks[i].name, roles, rank0,
               (double)best / 1e3, (double)best / ((double)all / 1e3));
    }
    return 0;
}
