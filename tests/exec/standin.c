/* What a rehearsal makes up for the other ranks: small random numbers, neither zeros nor the rank's
 * own again, and none where its own belong. */
#include <math.h>
#include <string.h>

#include "exec/comm/rehearse.h"
#include "exec/convert.h"
#include "tests/plan/plans.h"

enum {
    RANKS = 8,
    RANK = 3,
    SLICE = 40000, /* the whole is longer than the table of numbers */
    ALL = RANKS * SLICE,
};

static const char *const dtype_words[] = {"fp32", "bf16", "fp16"};

static ExecComm open_rank(const Plan *plan) {
    ExecComm comm;
    g_autoptr(GError) error = NULL;
    g_assert_true(exec_rehearse_open(plan, RANK, &comm, &error));
    g_assert_no_error(error);
    g_assert_true(comm.rehearsed);
    return comm;
}

/* Uniform between -2^-5 and 2^-5; a rounded number may be the limit itself. */
static void are_small_and_random(const float *x, size_t n, const char *what) {
    double sum = 0, squares = 0;
    size_t zeros = 0;
    for (size_t i = 0; i < n; i++) {
        g_assert_cmpfloat(fabsf(x[i]), <=, 0x1p-5f); /* false for NaN */
        sum += (double)x[i];
        squares += (double)x[i] * (double)x[i];
        zeros += x[i] == 0;
    }
    double deviation = sqrt(squares / (double)n), uniform = 0x1p-5 / sqrt(3);
    g_test_message("%s: mean %.2g, standard deviation %.4g (%.4g), %zu zeros of %zu", what,
                   sum / (double)n, deviation, uniform, zeros, n);
    g_assert_cmpfloat(fabs(sum / (double)n), <, 5 * uniform / sqrt((double)n));
    g_assert_cmpfloat(fabs(deviation / uniform - 1), <, 0.02);
    g_assert_cmpuint(zeros, <, n / 1000);
}

static float *widened(gconstpointer x, size_t n, PlanDtype dtype) {
    float *wide = g_new(float, n);
    exec_convert(wide, PLAN_FP32, x, dtype, n);
    return wide;
}

static void gather(gconstpointer data) {
    PlanDtype dtype = (PlanDtype)GPOINTER_TO_INT(data);
    gsize size = plan_dtype_bytes(dtype);
    g_autoptr(Plan) plan = test_plan(GPT_TOY, "ranks=8");
    ExecComm comm = open_rank(plan);
    g_autofree char *own = g_malloc(SLICE * size), *first = g_malloc(ALL * size);
    g_autofree char *second = g_malloc(ALL * size);
    memset(own, 0x11, SLICE * size);
    memset(first, 0xff, ALL * size); /* NaN */
    memset(second, 0xff, ALL * size);
    memcpy(second + RANK * SLICE * size, own, SLICE * size);
    ExecCollective call = {.axis = PLAN_AXIS_SHARD, .dtype = dtype, .elements = ALL};
    call.given = own;
    call.taken = first;
    g_assert_true(comm.all_gather(comm.self, &call, NULL));
    call.given = NULL;
    call.taken = second;
    g_assert_true(comm.all_gather(comm.self, &call, NULL));
    g_assert_cmpmem(first + RANK * SLICE * size, SLICE * size, own, SLICE * size);
    g_assert_cmpmem(second + RANK * SLICE * size, SLICE * size, own, SLICE * size);
    g_assert_true(memcmp(first, second, SLICE * size) != 0); /* each call its own numbers */
    g_assert_true(memcmp(first, first + SLICE * size, SLICE * size) != 0);
    g_autofree float *wide = widened(first, ALL, dtype);
    are_small_and_random(wide, RANK * SLICE, "before the own slice");
    are_small_and_random(wide + (RANK + 1) * SLICE, (RANKS - RANK - 1) * SLICE, "behind it");
    comm.close(comm.self);
}

static void reduce(gconstpointer data) {
    PlanDtype dtype = (PlanDtype)GPOINTER_TO_INT(data);
    gsize size = plan_dtype_bytes(dtype);
    g_autoptr(Plan) plan = test_plan(GPT_TOY, "ranks=8");
    ExecComm comm = open_rank(plan);
    g_autofree char *packed = g_malloc0(ALL * size), *shard = g_malloc(SLICE * size);
    memset(shard, 0xff, SLICE * size);
    ExecCollective scatter = {.axis = PLAN_AXIS_SHARD,
                              .dtype = dtype,
                              .reduction = PLAN_REDUCTION_MEAN,
                              .elements = ALL,
                              .given = packed,
                              .taken = shard};
    g_assert_true(comm.reduce_scatter(comm.self, &scatter, NULL));
    g_autofree float *wide = widened(shard, SLICE, dtype);
    are_small_and_random(wide, SLICE, "what is left of zeros");
    float one[3] = {1.5f, 0, -2};
    exec_convert(shard, dtype, one, PLAN_FP32, 3);
    ExecCollective reduce = {.axis = PLAN_AXIS_SHARD, .dtype = dtype, .elements = 3};
    reduce.taken = shard;
    reduce.reduction = PLAN_REDUCTION_SUM;
    g_assert_true(comm.all_reduce(comm.self, &reduce, NULL));
    reduce.reduction = PLAN_REDUCTION_MEAN;
    g_assert_true(comm.all_reduce(comm.self, &reduce, NULL));
    g_autofree float *sums = widened(shard, 3, dtype);
    for (unsigned i = 0; i < 3; i++) {
        g_assert_cmpfloat(sums[i], ==, one[i] * RANKS);
    }
    comm.close(comm.self);
}

/* Of a stage in the middle: numbers come from either side, each time others; what is given stays as
 * it is. When others come, nobody asks: they are there. */
static void talk(gconstpointer data) {
    PlanDtype dtype = (PlanDtype)GPOINTER_TO_INT(data);
    gsize bytes = SLICE * plan_dtype_bytes(dtype);
    g_autoptr(Plan) plan =
        test_plan("[network]\nfamily=llama\nlayers=6\nwidth=16\nheads=2\nffn=32\nvocab=12\nseq=8\n",
                  "ranks=8 pipeline=4 accumulate=4"); /* rank 3's is the second stage */
    ExecComm comm = open_rank(plan);
    g_autofree char *given = g_malloc(bytes), *before = g_malloc(bytes), *again = g_malloc(bytes);
    memset(given, 0x11, bytes);
    memset(before, 0xff, bytes);
    memset(again, 0xff, bytes);
    ExecTalk receives = {.peer = 0, .dtype = dtype, .taken = before, .elements = SLICE};
    ExecTalk swaps = {.peer = 0,
                      .swaps = true,
                      .dtype = dtype,
                      .given = given,
                      .taken = again,
                      .elements = SLICE};
    ExecTalk sends = {.peer = 2, .behind = true, .dtype = dtype, .given = given, .elements = SLICE};
    g_assert_true(comm.talk(comm.self, &receives, NULL));
    receives.taken = again;
    g_assert_true(comm.talk(comm.self, &receives, NULL));
    g_assert_true(memcmp(before, again, bytes) != 0);
    g_assert_true(comm.talk(comm.self, &sends, NULL));
    g_assert_true(comm.talk(comm.self, &swaps, NULL));
    g_autofree float *wide = widened(before, SLICE, dtype), *swapped = widened(again, SLICE, dtype);
    are_small_and_random(wide, SLICE, "what comes");
    are_small_and_random(swapped, SLICE, "what comes for something");
    for (gsize i = 0; i < bytes; i++) {
        g_assert_cmpint(given[i], ==, 0x11);
    }
    int64_t ns = 7;
    g_assert_true(exec_comm_meet_to_talk(&comm, swaps, &ns, NULL));
    g_assert_cmpint(ns, ==, 7);
    comm.close(comm.self);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    for (PlanDtype dtype = PLAN_FP32; dtype <= PLAN_FP16; dtype++) {
        g_autofree char *gathers = g_strconcat("/exec/standin/gather ", dtype_words[dtype], NULL);
        g_autofree char *reduces = g_strconcat("/exec/standin/reduce ", dtype_words[dtype], NULL);
        g_autofree char *talks = g_strconcat("/exec/standin/talk ", dtype_words[dtype], NULL);
        g_test_add_data_func(talks, GINT_TO_POINTER(dtype), talk);
        g_test_add_data_func(gathers, GINT_TO_POINTER(dtype), gather);
        g_test_add_data_func(reduces, GINT_TO_POINTER(dtype), reduce);
    }
    return g_test_run();
}
