/* Ops on operands stored in bf16 and fp16 against double precision.
 *
 * Inputs are rounded to the storage first, so what remains is the op's own error: that of fp32
 * arithmetic inside, and half a unit in the last place of what is written.
 */
#include "exec/convert.h"

#include <math.h>
#include <string.h>

#include "exec/host/launch.h"

enum {
    MAX_OPERANDS = 8,
    GUARD = 16
};

/* One op with its operands, each in a buffer of its own unless it is told to share. */
typedef struct {
    PlanDtype dtype;
    PlanBuffer buffers[MAX_OPERANDS];
    PlanOperand parts[MAX_OPERANDS];
    PlanRef operands[MAX_OPERANDS];
    gpointer pointers[MAX_OPERANDS];
    double *values[MAX_OPERANDS]; /* what is stored, exactly */
    int64_t dims[PLAN_MAX_DIMS];
    double attrs[PLAN_MAX_ATTRS];
    PlanOp op;
    PlanRole role;
    ExecSlots *slots; /* NULL: the op uses none */
    GRand *rand;
} Bench;

static double unit_roundoff(PlanDtype dtype) {
    return dtype == PLAN_BF16 ? 0x1p-8 : 0x1p-11;
}

static void begin(Bench *b, PlanDtype dtype, PlanOpKind kind) {
    *b = (Bench){.dtype = dtype, .op = {.kind = kind, .dtype = (uint8_t)dtype}};
    b->rand = g_rand_new_with_seed(kind);
}

static void end(Bench *b) {
    for (unsigned i = 0; i < b->op.n_operands; i++) {
        if (b->parts[i].buffer == i) {
            g_free(b->pointers[i]);
            g_free(b->values[i]);
        }
    }
    g_rand_free(b->rand);
}

static void set_operand(Bench *b, unsigned i, PlanOperand operand) {
    b->operands[i] = PLAN_PART + i;
    b->parts[i] = operand;
}

static unsigned add_operand(Bench *b, PlanDtype dtype, uint64_t elements, double low, double high) {
    unsigned i = b->op.n_operands++;
    uint64_t bytes = (elements + GUARD) * plan_dtype_bytes(dtype);
    g_autofree float *numbers = g_new(float, elements);
    for (uint64_t e = 0; e < elements; e++) {
        numbers[e] = (float)g_rand_double_range(b->rand, low, high);
    }
    b->buffers[i] = (PlanBuffer){.bytes = bytes, .dtype = (uint8_t)dtype};
    set_operand(b, i, (PlanOperand){.buffer = i, .elements = elements});
    b->pointers[i] = g_malloc(bytes);
    memset(b->pointers[i], 0xff, bytes); /* NaN */
    exec_convert(b->pointers[i], dtype, numbers, PLAN_FP32, elements);
    exec_convert(numbers, PLAN_FP32, b->pointers[i], dtype, elements);
    b->values[i] = g_new(double, elements);
    for (uint64_t e = 0; e < elements; e++) {
        b->values[i][e] = (double)numbers[e];
    }
    return i;
}

static unsigned input(Bench *b, uint64_t elements) {
    return add_operand(b, b->dtype, elements, -1, 1);
}

static unsigned output(Bench *b, uint64_t elements) {
    return add_operand(b, b->dtype, elements, 7, 9);
}

/* Another operand in the same buffer, `offset` elements on. */
static void share(Bench *b, unsigned with, uint64_t offset, uint64_t elements) {
    unsigned i = b->op.n_operands++;
    uint64_t offset_bytes = offset * plan_dtype_bytes(b->dtype);
    set_operand(b, i,
                (PlanOperand){.buffer = with, .offset_bytes = offset_bytes, .elements = elements});
    b->pointers[i] = (char *)b->pointers[with] + offset_bytes;
}

static void run(Bench *b) {
    b->role = (PlanRole){.buffers = b->buffers,
                         .operands = b->operands,
                         .n_operands = b->op.n_operands,
                         .parts = b->parts,
                         .dims = b->dims,
                         .attrs = b->attrs,
                         .ops = &b->op};
    ExecContext context = {.role = &b->role, .comm = &exec_comm_alone, .slots = b->slots};
    ExecTask task = {.context = &context, .op = &b->op, .pointers = b->pointers};
    g_autoptr(GError) error = NULL;
    g_assert_true(exec_host_run(&task, &error));
    g_assert_no_error(error);
}

static float stored(const Bench *b, unsigned i, uint64_t element) {
    float number;
    PlanDtype dtype = (PlanDtype)b->buffers[i].dtype;
    exec_convert(&number, PLAN_FP32, (char *)b->pointers[i] + element * plan_dtype_bytes(dtype),
                 dtype, 1);
    return number;
}

/* inside: what the fp32 arithmetic may add to the rounding of the result. */
static void check(const Bench *b, unsigned i, const double *want, double inside) {
    uint64_t n = b->parts[i].elements;
    double worst = 0;
    for (uint64_t e = 0; e < n; e++) {
        double error = fabs((double)stored(b, i, e) - want[e]);
        double allowed = unit_roundoff(b->dtype) * fabs(want[e]) + inside + 0x1p-25;
        worst = fmax(worst, error / allowed);
    }
    g_test_message("%s in %s: error at most %.2f of what is allowed",
                   plan_op_info((PlanOpKind)b->op.kind)->name, plan_dtype_name(b->dtype), worst);
    g_assert_cmpfloat(worst, <=, 1);
    for (unsigned e = 0; e < GUARD; e++) {
        g_assert_true(isnan(stored(b, i, n + e)));
    }
}

/* k is so long that sums kept in 16 bits would miss the bound many times over. */
static void linear(PlanDtype dtype) {
    enum {
        M = 5,
        N = 7,
        K = 2000
    };
    Bench b;
    begin(&b, dtype, PLAN_OP_LINEAR);
    memcpy(b.dims, (int64_t[]){M, N, K}, 3 * sizeof *b.dims);
    unsigned x = input(&b, M * K), w = input(&b, N * K), bias = input(&b, N);
    unsigned y = output(&b, M * N);
    double want[M * N];
    run(&b);
    for (unsigned i = 0; i < M * N; i++) {
        want[i] = b.values[bias][i % N];
        for (unsigned k = 0; k < K; k++) {
            want[i] += b.values[x][i / N * K + k] * b.values[w][i % N * K + k];
        }
    }
    check(&b, y, want, 1e-7 * K);
    end(&b);
}

/* Mean and reciprocal deviation are stored in 16 bits too. */
static void layernorm(PlanDtype dtype) {
    enum {
        ROWS = 3,
        WIDTH = 100
    };
    Bench b;
    begin(&b, dtype, PLAN_OP_LAYERNORM);
    memcpy(b.dims, (int64_t[]){ROWS, WIDTH}, 2 * sizeof *b.dims);
    b.attrs[0] = 1e-5;
    unsigned x = input(&b, ROWS * WIDTH), w = input(&b, WIDTH), bias = input(&b, WIDTH);
    unsigned y = output(&b, ROWS * WIDTH), mean = output(&b, ROWS), rstd = output(&b, ROWS);
    double want[ROWS * WIDTH], want_mean[ROWS] = {0}, want_rstd[ROWS] = {0};
    run(&b);
    for (unsigned i = 0; i < ROWS * WIDTH; i++) {
        want_mean[i / WIDTH] += b.values[x][i] / WIDTH;
    }
    for (unsigned i = 0; i < ROWS * WIDTH; i++) {
        want_rstd[i / WIDTH] += pow(b.values[x][i] - want_mean[i / WIDTH], 2) / WIDTH;
    }
    for (unsigned r = 0; r < ROWS; r++) {
        want_rstd[r] = 1 / sqrt(want_rstd[r] + 1e-5);
    }
    for (unsigned i = 0; i < ROWS * WIDTH; i++) {
        want[i] = (b.values[x][i] - want_mean[i / WIDTH]) * want_rstd[i / WIDTH] *
                      b.values[w][i % WIDTH] +
                  b.values[bias][i % WIDTH];
    }
    check(&b, y, want, 2e-6);
    check(&b, mean, want_mean, 1e-7);
    check(&b, rstd, want_rstd, 1e-6);
    end(&b);
}

/* q, k and v are columns of one matrix: parts of one buffer that overlap. */
static void attention(PlanDtype dtype) {
    enum {
        SEQ = 9,
        DIM = 4,
        ROW = 3 * DIM
    };
    Bench b;
    begin(&b, dtype, PLAN_OP_ATTENTION);
    memcpy(b.dims, (int64_t[]){1, 1, 1, SEQ, DIM, ROW, ROW, SEQ, 1, 0, ROW}, 11 * sizeof *b.dims);
    b.attrs[0] = 0.5;
    unsigned q = input(&b, SEQ * ROW);
    share(&b, q, DIM, SEQ * DIM);
    share(&b, q, 2 * DIM, SEQ * DIM);
    b.operands[b.op.n_operands++] = PLAN_NONE; /* no bias */
    unsigned o = output(&b, SEQ * DIM);
    add_operand(&b, PLAN_FP32, SEQ, 7, 9);
    for (unsigned i = 0; i < 2; i++) { /* the state of random numbers */
        unsigned state = b.op.n_operands++;
        b.buffers[state] = (PlanBuffer){.bytes = sizeof(int64_t), .dtype = PLAN_INT64};
        set_operand(&b, state, (PlanOperand){.buffer = state, .elements = 1});
        b.pointers[state] = g_new0(int64_t, 1);
    }
    double want[SEQ * DIM] = {0};
    run(&b);
    const double *row = b.values[q];
    for (unsigned s = 0; s < SEQ; s++) {
        double weight[SEQ], sum = 0;
        for (unsigned r = 0; r <= s; r++) {
            double dot = 0;
            for (unsigned d = 0; d < DIM; d++) {
                dot += row[s * ROW + d] * row[r * ROW + DIM + d];
            }
            sum += weight[r] = exp(0.5 * dot);
        }
        for (unsigned i = 0; i < (s + 1) * DIM; i++) {
            want[s * DIM + i % DIM] +=
                weight[i / DIM] / sum * row[i / DIM * ROW + 2 * DIM + i % DIM];
        }
    }
    check(&b, o, want, 1e-6);
    end(&b);
}

/* A list of gradients in 16 bits on a list of sums in fp32, as PyTorch's optimizer never has it but
 * a plan might: each operand is stored as its own buffer says. */
static void mixed_lists(PlanDtype dtype) {
    enum {
        N = 33
    };
    Bench b;
    begin(&b, dtype, PLAN_OP_SGD_UPDATE);
    b.attrs[0] = 0.25;
    unsigned gradient[] = {input(&b, N), input(&b, 1)};
    unsigned parameter[] = {add_operand(&b, PLAN_FP32, N, -1, 1), input(&b, 1)};
    double want[N];
    run(&b);
    for (unsigned i = 0; i < N; i++) {
        want[i] = b.values[parameter[0]][i] - 0.25 * b.values[gradient[0]][i];
        g_assert_cmpfloat(fabs((double)stored(&b, parameter[0], i) - want[i]), <=, 1e-7);
    }
    want[0] = b.values[parameter[1]][0] - 0.25 * b.values[gradient[1]][0];
    check(&b, parameter[1], want, 1e-7);
    end(&b);
}

/* What is rounded on the way to the other kind of half is rounded once. */
static void casts(PlanDtype dtype) {
    enum {
        N = 3000
    };
    static const PlanDtype others[] = {PLAN_FP32, PLAN_BF16, PLAN_FP16};
    for (unsigned i = 0; i < G_N_ELEMENTS(others); i++) {
        Bench b;
        begin(&b, others[i], PLAN_OP_CAST);
        b.dims[0] = N;
        unsigned x = add_operand(&b, dtype, N, -1, 1), y = output(&b, N);
        run(&b);
        for (unsigned e = 0; e < N && others[i] == PLAN_FP32; e++) {
            g_assert_true((double)stored(&b, y, e) == b.values[x][e]);
        }
        if (others[i] != PLAN_FP32) {
            check(&b, y, b.values[x], 0);
        }
        end(&b);
    }
}

/* Whoever reads what deterministic algorithms fill before it is written shall see it: not a number,
 * to the last. */
static void fill(PlanDtype dtype) {
    enum {
        N = 33
    };
    Bench b;
    begin(&b, dtype, PLAN_OP_LINEAR); /* leaves numbers in the thread's scratch */
    memcpy(b.dims, (int64_t[]){N, 1, N}, 3 * sizeof *b.dims);
    input(&b, N * N);
    input(&b, N);
    input(&b, 1);
    output(&b, N);
    run(&b);
    end(&b);
    begin(&b, dtype, PLAN_OP_FILL_EMPTY);
    b.dims[0] = N;
    unsigned y = output(&b, N);
    run(&b);
    for (unsigned i = 0; i < N; i++) {
        g_assert_true(isnan(stored(&b, y, i)));
    }
    end(&b);
}

/* A norm that is no number is clipped to none, as PyTorch does, on the device and on the host. */
static void clipping_keeps_nan(PlanDtype dtype) {
    static const struct {
        PlanOpKind kind;
        float of_2, of_half;
    } bounds[] = {{PLAN_OP_AT_MOST, 1, 0.5f}, {PLAN_OP_AT_LEAST, 2, 1}};
    Bench b;
    for (unsigned i = 0; i < G_N_ELEMENTS(bounds); i++) {
        begin(&b, dtype, bounds[i].kind);
        b.dims[0] = 3;
        b.attrs[0] = 1;
        unsigned x = input(&b, 3), y = output(&b, 3);
        exec_convert(b.pointers[x], dtype, (const float[]){NAN, 2, 0.5f}, PLAN_FP32, 3);
        run(&b);
        g_assert_true(isnan(stored(&b, y, 0)));
        g_assert_cmpfloat(stored(&b, y, 1), ==, bounds[i].of_2);
        g_assert_cmpfloat(stored(&b, y, 2), ==, bounds[i].of_half);
        end(&b);
    }
    static const float norms[] = {NAN, 4, 0.5f}, wanted[] = {NAN, 0.5f, 2};
    for (unsigned i = 0; i < G_N_ELEMENTS(norms); i++) {
        enum {
            GRADIENT,
            NORM
        };
        g_autoptr(ExecSlots) slots = exec_slots_new(&(PlanRole){0}, NULL);
        *(float *)exec_slots_at(slots, GRADIENT, 1, NULL) = 2;
        *(float *)exec_slots_at(slots, NORM, 1, NULL) = norms[i];
        begin(&b, PLAN_FP32, PLAN_OP_HOST_CLIP);
        memcpy(b.dims, (int64_t[]){1, GRADIENT, 0, NORM}, 4 * sizeof *b.dims);
        b.attrs[0] = 1;
        b.slots = slots;
        run(&b);
        float clipped = *(float *)exec_slots_at(slots, GRADIENT, 1, NULL);
        g_assert_true(isnan(wanted[i]) ? isnan(clipped) : clipped == wanted[i]);
        end(&b);
    }
}

static void in_both(gconstpointer test) {
    void (*run_test)(PlanDtype) = (void (*)(PlanDtype))test;
    run_test(PLAN_BF16);
    run_test(PLAN_FP16);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/exec/half/linear", (gconstpointer)linear, in_both);
    g_test_add_data_func("/exec/half/layernorm", (gconstpointer)layernorm, in_both);
    g_test_add_data_func("/exec/half/attention", (gconstpointer)attention, in_both);
    g_test_add_data_func("/exec/half/lists", (gconstpointer)mixed_lists, in_both);
    g_test_add_data_func("/exec/half/fill", (gconstpointer)fill, in_both);
    g_test_add_data_func("/exec/half/clipping keeps NaN", (gconstpointer)clipping_keeps_nan,
                         in_both);
    g_test_add_data_func("/exec/half/casts", (gconstpointer)casts, in_both);
    return g_test_run();
}
