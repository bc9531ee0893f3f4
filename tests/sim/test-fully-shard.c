/* Two of PyTorch's own tests of fully_shard, held against a prediction: what they demand of a GPU's
 * memory and of overlap (test_fully_shard_memory.py and test_fully_shard_overlap.py there). */
#include <glib.h>

#include "sim/predict.h"
#include "tests/sim/toy.h"

static void play(const Plan *plan, const ModelCluster *cluster, uint32_t steps, Trace *trace) {
    const SimOptions options = {.steps = steps};
    g_autoptr(GError) error = NULL;
    g_autoptr(SimPrediction) prediction = sim_predict(plan, cluster, &options, trace, &error);
    g_assert_no_error(error);
    g_assert_true(prediction->fits);
}

static PlanPhase phase_of(const Trace *trace, uint32_t instruction) {
    return (PlanPhase)trace_instruction(trace, 0, instruction)->phase;
}

/* ---- memory --------------------------------------------------------------------------------- */

enum {
    LAYERS = 3,
    WIDTH = 768,
    VOCAB = 32,
    SEQ = 4,
    MIB = 1 << 20
};

/* Elements of the transformer, fp32. */
static const double BLOCK = 12.0 * WIDTH * WIDTH + 13 * WIDTH;
static const double REST = (2.0 * VOCAB + SEQ + 2) * WIDTH;

static Plan *transformer(const char *more) {
    static const char ini[] = "[network]\nfamily = gpt\nlayers = 3\nwidth = 768\nheads = 12\n"
                              "vocab = 32\nseq = 4\ntied = no\n";
    g_autofree char *strategy =
        g_strconcat("ranks=2 sharding=full optimizer=adam optimizer_kernel=loop ", more, NULL);
    return toy_written_plan(ini, strategy);
}

/* What the first step holds at most, in bytes that are allocated or wait for an event, by phase;
 * END: when it is over. */
enum {
    END = PLAN_N_PHASES,
    N_MOMENTS
};

static void read_active(const Trace *trace, double active[N_MOMENTS]) {
    for (guint i = 0; i < trace->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(trace, i);
        if (row->step == 0) {
            double *most = &active[phase_of(trace, row->instruction)];
            *most = MAX(*most, (double)row->active);
            active[END] = (double)row->active;
        }
    }
}

/* The same of the plan alone: bytes between their allocation and their free, none rounded. */
static void read_alive(const Plan *plan, double alive[N_MOMENTS]) {
    const PlanRole *role = &plan->roles[0];
    double now = 0;
    for (unsigned section = PLAN_SECTION_CONSTRUCT; section <= PLAN_SECTION_FIRST; section++) {
        for (uint32_t i = 0; i < role->n_instrs[section]; i++) {
            const PlanInstr *instr = &role->sections[section][i];
            double bytes = (double)role->buffers[instr->arg].bytes;
            if (instr->kind == PLAN_ALLOC || instr->kind == PLAN_FREE) {
                now += instr->kind == PLAN_ALLOC ? bytes : -bytes;
                if (section == PLAN_SECTION_FIRST) {
                    alive[instr->phase] = MAX(alive[instr->phase], now);
                }
            }
        }
    }
    alive[END] = now;
}

typedef struct {
    const char *strategy;
    double forward, backward; /* PyTorch's bounds from above, in elements; 16 MB come on top */
    double forward_least, backward_least;
} MemoryCase;

/* PyTorch writes one block, not two, for the forward that does not reshard, and never feels it: it
 * takes off what the case before left in memory (its peak is reset before that is freed), 128 MB.
 * In its program, recorded event by event (tests/oracle), the gathered parameters of the block
 * before live until those of the last have been copied out.
 *
 * From below: what must be whole at once. Resharded: the root and the block that computes; and in
 * backward the block's gradients beside it. Not resharded: all, once forward is through. */
static void test_memory(void) {
    static const double SLACK = 16e6;
    const double whole = LAYERS * BLOCK + REST, shard = whole / 2;
    const MemoryCase cases[] = {
        {"reshard_after_forward=default", shard + 3 * BLOCK + REST, 2 * shard + 3 * BLOCK + REST,
         shard + BLOCK + REST, shard + 2 * BLOCK + REST},
        {"reshard_after_forward=no", shard + whole + 2 * BLOCK, shard + whole + 1.5 * BLOCK,
         shard + whole, shard + whole},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        const MemoryCase *c = &cases[i];
        g_autoptr(Plan) plan = transformer(c->strategy);
        g_autoptr(Trace) trace = trace_new();
        double active[N_MOMENTS] = {0}, alive[N_MOMENTS] = {0};
        const double most[N_MOMENTS] = {[PLAN_PHASE_FORWARD] = c->forward,
                                        [PLAN_PHASE_BACKWARD] = c->backward,
                                        [PLAN_PHASE_OPTIMIZER] = 4 * shard,
                                        [END] = 3 * shard};
        const double least[N_MOMENTS] = {[PLAN_PHASE_FORWARD] = c->forward_least,
                                         [PLAN_PHASE_BACKWARD] = c->backward_least,
                                         [PLAN_PHASE_OPTIMIZER] = 4 * shard,
                                         [END] = 3 * shard};
        ModelCluster cluster = toy_cluster;
        cluster.device_memory_bytes = UINT64_C(4) << 30;
        play(plan, &cluster, 1, trace);
        read_active(trace, active);
        read_alive(plan, alive);
        for (unsigned moment = PLAN_PHASE_FORWARD; moment < N_MOMENTS; moment++) {
            if (most[moment] > 0) {
                g_test_message(
                    "%s, %s: at least %.1f and %.1f MB, predicted %.1f, at most %.1f", c->strategy,
                    moment == END ? "after zero_grad" : plan_phase_name((PlanPhase)moment),
                    4 * least[moment] / 1e6, alive[moment] / 1e6, active[moment] / 1e6,
                    (4 * most[moment] + SLACK) / 1e6);
                g_assert_cmpfloat(alive[moment], >=, 4 * least[moment]);
                g_assert_cmpfloat(active[moment], >=, alive[moment]);
                g_assert_cmpfloat(active[moment], <=, 4 * most[moment] + SLACK);
            }
        }
    }
}

/* ---- overlap -------------------------------------------------------------------------------- */

/* Three linear layers of 25 ms forward and twice that backward, collectives of 10 ms. */
static ModelCluster slow_cluster(void) {
    static const double PRODUCT_FLOPS = 2.0 * 128 * 64 * 64;
    ModelCluster cluster = toy_cluster;
    cluster.device_matmul_fp32_tflops = PRODUCT_FLOPS / 25e-3 / 1e12;
    cluster.device_memory_gb_per_s = 1e6;
    cluster.intra_node_bus_gb_per_s = cluster.intra_node_reduce_bus_gb_per_s = 1e6;
    cluster.collectives_base_latency_us = 10e3;
    return cluster;
}

static bool is_collective(const Trace *trace, const TraceOpRow *row) {
    return plan_op_info(trace_instruction(trace, 0, row->instruction)->kind)->ring_steps > 0;
}

/* Of a phase: from its first op, or collective, to the end of its last. */
static double phase_ms(const Trace *trace, PlanPhase phase) {
    int64_t first = INT64_MAX, last = 0;
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(trace, i);
        if (row->step == 2 && phase_of(trace, row->instruction) == phase) {
            first = MIN(first, row->start_ns);
            last = MAX(last, row->end_ns);
        }
    }
    return (double)(last - first) / 1e6;
}

static double collectives_ms(const Trace *trace, PlanPhase phase) {
    int64_t sum = 0;
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(trace, i);
        if (row->step == 2 && phase_of(trace, row->instruction) == phase &&
            is_collective(trace, row)) {
            sum += row->end_ns - row->start_ns;
        }
    }
    return (double)sum / 1e6;
}

static void test_overlap(void) {
    const ModelCluster cluster = slow_cluster();
    g_autoptr(Plan) plan = toy_network_plan("mlp-toy", "ranks=2 sharding=full wrap=linear");
    g_autoptr(Trace) trace = trace_new();
    play(plan, &cluster, 3, trace);
    double forward = phase_ms(trace, PLAN_PHASE_FORWARD);
    double backward = phase_ms(trace, PLAN_PHASE_BACKWARD);
    g_test_message(
        "forward %.2f ms, of at most 10 + 75 + 2; backward %.2f, of at most 20 + 150 + 4", forward,
        backward);
    g_assert_cmpfloat(forward, >=, 10 + 75);
    g_assert_cmpfloat(forward, <=, 10 + 75 + 2);
    g_assert_cmpfloat(backward, >=, 10 + 125); /* nobody wants the first layer's input gradient */
    g_assert_cmpfloat(backward, <=, 20 + 150 + 4);
    g_assert_cmpfloat(collectives_ms(trace, PLAN_PHASE_FORWARD), >=, 30);
    g_assert_cmpfloat(collectives_ms(trace, PLAN_PHASE_BACKWARD), >=, 50);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/fully-shard/memory", test_memory);
    g_test_add_func("/sim/fully-shard/overlap", test_overlap);
    return g_test_run();
}
