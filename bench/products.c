/* bench/products.c - forward and backward of one rank, against their matrix products alone.
 *
 *     foreshard plan NETWORK -n 1 --sharding none --micro-batch 4 -o one.plan
 *     bench-products one.plan [PAIRS]
 *
 * Plays a plan of one rank and, after each step, calls the same matrix products (those of linear
 * layers, and those inside attention, block by block) on as much memory. Wall time, and the
 * process's CPU time, which a busy machine disturbs less; medians of pairs, and every kind of op's
 * share of the step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "exec/device.h"
#include "kernels/host/products/matmul.h"
#include "kernels/host/runtime.h"
#include "plan/op/names.h"
#include "plan/text/text.h"
#include "trace/from-plan.h"
#include "trace/quantile.h"

typedef struct {
    double wall_s, cpu_s;
} Times;

static double clock_s(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static Times now(void) {
    return (Times){clock_s(CLOCK_MONOTONIC), clock_s(CLOCK_PROCESS_CPUTIME_ID)};
}

static Times since(Times start) {
    Times end = now();
    return (Times){end.wall_s - start.wall_s, end.cpu_s - start.cpu_s};
}

/* ---- products alone ------------------------------------------------------------------------- */

/* Operands lie one after the other in a large piece of memory, as a step's do, and begin again at
 * its start when it is used up. */
typedef struct {
    float *memory;
    size_t size, used; /* floats */
} Arena;

static float *take(Arena *arena, size_t n) {
    if (arena->used + n > arena->size) {
        arena->used = 0;
    }
    arena->used += n;
    return arena->memory + arena->used - n;
}

static void linear(Arena *arena, PlanOpKind kind, const int64_t *dims) {
    size_t m = (size_t)dims[LINEAR_M], n = (size_t)dims[LINEAR_N], k = (size_t)dims[LINEAR_K];
    float *x = take(arena, m * k), *w = take(arena, n * k), *y = take(arena, m * n);
    if (kind == PLAN_OP_LINEAR || kind == PLAN_OP_LINEAR_GELU) {
        kernel_linear_forward_f32(y, x, w, NULL, m, n, k);
    } else if (kind == PLAN_OP_LINEAR_DX || kind == PLAN_OP_LINEAR_DX_GELU) {
        kernel_linear_backward_input_f32(x, y, w, m, n, k);
    } else {
        kernel_linear_backward_weight_f32(w, y, x, m, n, k);
    }
}

/* The blocks of kernels/host/attention/attention.c. */
enum {
    BLOCK = 128
};

static void attention_block(PlanOpKind kind, float *const at[5], size_t q, size_t kv, size_t d) {
    const KernelTranspose no = KERNEL_NO_TRANSPOSE, yes = KERNEL_TRANSPOSE;
    float *scores = at[4];
    kernel_gemm_f32(no, yes, q, kv, d, 1, at[0], d, at[1], d, 0, scores, kv);
    kernel_gemm_f32(no, no, q, d, kv, 1, scores, kv, at[2], d, 1, at[3], d);
    if (kind != PLAN_OP_ATTENTION) {
        kernel_gemm_f32(no, yes, q, kv, d, 1, at[3], d, at[2], d, 0, scores, kv);
        kernel_gemm_f32(yes, no, kv, d, q, 1, scores, kv, at[3], d, 1, at[2], d);
        kernel_gemm_f32(yes, no, kv, d, q, 1, scores, kv, at[0], d, 1, at[1], d);
    }
}

static void attention(Arena *arena, PlanOpKind kind, const int64_t *dims) {
    size_t seq = (size_t)dims[ATTENTION_SEQ], d = (size_t)dims[ATTENTION_HEAD_DIM];
    float *scores = take(arena, BLOCK * BLOCK);
    for (int64_t head = 0; head < dims[ATTENTION_BATCH] * dims[ATTENTION_HEADS]; head++) {
        float *q = take(arena, seq * d), *k = take(arena, seq * d), *v = take(arena, seq * d),
              *o = take(arena, seq * d);
        for (size_t i = 0; i < seq; i += BLOCK) {
            for (size_t j = 0; j < (dims[ATTENTION_CAUSAL] ? i + BLOCK : seq) && j < seq;
                 j += BLOCK) {
                float *const at[5] = {q + i * d, k + j * d, v + j * d, o + i * d, scores};
                attention_block(kind, at, MIN(BLOCK, seq - i), MIN(BLOCK, seq - j), d);
            }
        }
    }
}

static Times products_alone(const PlanRole *role, Arena *arena) {
    PlanSection s = PLAN_SECTION_STEADY;
    Times start = now();
    for (uint32_t i = 0; i < role->n_instrs[s]; i++) {
        const PlanInstr *instr = &role->sections[s][i];
        if (instr->kind != PLAN_LAUNCH) {
            continue;
        }
        const PlanOp *op = &role->ops[instr->arg];
        PlanOpKind kind = (PlanOpKind)op->kind;
        const int64_t *dims = plan_op_dims(role, op);
        PlanOpClass op_class = plan_op_info(kind)->op_class;
        if (op_class == PLAN_CLASS_MATMUL && kind != PLAN_OP_HEADS_MATMUL &&
            kind != PLAN_OP_CHUNKED_LOSS) {
            linear(arena, kind, dims);
        } else if (op_class == PLAN_CLASS_ATTENTION) {
            attention(arena, kind, dims);
        }
    }
    return since(start);
}

/* ---- a step --------------------------------------------------------------------------------- */

static void fail(const GError *error) {
    fprintf(stderr, "bench-products: %s\n", error->message);
    exit(1);
}

/* Plays on until the optimizer's part begins (before: false) or has ended, and all lanes are
 * idle. */
static Times play_until(PlanPlayer *player, ExecPlay *play, bool ended) {
    Times start = now();
    g_autoptr(GError) error = NULL;
    const PlanPosition *at = plan_player_position(player);
    int32_t step = at->step;
    while (!plan_player_at_end(player)) {
        bool optimizes = at->instr && at->instr->phase == PLAN_PHASE_OPTIMIZER;
        if (ended ? at->step != step : optimizes) {
            break;
        }
        if (plan_player_step(player, &error) != PLAN_DONE) {
            fail(error);
        }
    }
    if (!exec_host.drain(play, &error)) {
        fail(error);
    }
    return since(start);
}

/* Of the last step's forward and backward: seconds of each kind of op, the longest first. */
static void print_shares(const Plan *plan, const ExecPlay *play, int32_t step) {
    const PlanRole *role = &plan->roles[0];
    double seconds[PLAN_N_OP_KINDS] = {0}, total = 0;
    for (guint i = 0; i < play->op_rows->len; i++) {
        const TraceOpRow *row = play->op_rows->pdata[i];
        uint32_t first = trace_instruction_number(role, PLAN_SECTION_STEADY, 0);
        if (row->step != step || row->instruction < first) {
            continue;
        }
        const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][row->instruction - first];
        if (instr->phase != PLAN_PHASE_OPTIMIZER) {
            double s = (double)(row->end_ns - row->start_ns) * 1e-9;
            seconds[role->ops[instr->arg].kind] += s;
            total += s;
        }
    }
    for (;;) {
        unsigned most = 0;
        for (unsigned kind = 1; kind < PLAN_N_OP_KINDS; kind++) {
            most = seconds[kind] > seconds[most] ? kind : most;
        }
        if (seconds[most] < 0.002 * total) {
            break;
        }
        printf("  %-24s %8.1f ms %5.1f %%\n", plan_op_info((PlanOpKind)most)->name,
               1e3 * seconds[most], 100 * seconds[most] / total);
        seconds[most] = 0;
    }
}

static void bench(const Plan *plan, unsigned pairs) {
    g_autoptr(GError) error = NULL;
    ExecOptions options = {.seed = 1, .memory_limit_bytes = UINT64_C(1) << 42, .keep_rows = true};
    g_autoptr(ExecPlay) play = exec_host.open(plan, &exec_comm_alone, pairs + 2, &options, &error);
    if (!play) {
        fail(error);
    }
    g_autoptr(PlanPlayer) player =
        plan_player_new(plan, 0, pairs + 2, exec_host.instructions, play);
    Arena arena = {.size = (size_t)3 << 28};
    arena.memory = g_malloc0_n(arena.size, sizeof(float));
    for (size_t i = 0; i < arena.size; i++) { /* ordinary numbers, in pages of its own */
        arena.memory[i] = (float)(i % 17) * 0.01f;
    }
    g_autofree double *wall = g_new(double, pairs), *cpu = g_new(double, pairs);
    for (unsigned i = 0; i < 3; i++) { /* construction, and the first two steps */
        play_until(player, play, true);
    }
    for (unsigned i = 0; i < pairs; i++) {
        Times step = play_until(player, play, false);
        play_until(player, play, true);
        Times products = products_alone(&plan->roles[0], &arena);
        wall[i] = step.wall_s / products.wall_s;
        cpu[i] = step.cpu_s / products.cpu_s;
        printf("forward and backward %8.1f ms (CPU %8.1f), products alone %8.1f ms (CPU %8.1f): "
               "%.3f times (CPU %.3f)\n",
               1e3 * step.wall_s, 1e3 * step.cpu_s, 1e3 * products.wall_s, 1e3 * products.cpu_s,
               wall[i], cpu[i]);
        fflush(stdout);
    }
    print_shares(plan, play, (int32_t)pairs + 1);
    printf("forward and backward take %.3f times their matrix products alone (CPU time %.3f; "
           "medians of %u pairs)\n",
           trace_median(wall, pairs), trace_median(cpu, pairs), pairs);
    g_free(arena.memory);
}

int main(int argc, char **argv) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = argc > 1 ? plan_read_file(argv[1], &error) : NULL;
    unsigned pairs = argc > 2 ? (unsigned)atoi(argv[2]) : 7;
    if (!plan || plan->world != 1 || pairs < 1) {
        fprintf(stderr, "usage: bench-products PLAN [PAIRS], a plan of one rank%s%s\n",
                error ? "; " : "", error ? error->message : "");
        return 2;
    }
    kernel_set_threads(1);
    bench(plan, pairs);
    return 0;
}
