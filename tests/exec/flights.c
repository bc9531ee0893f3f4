/* exec/cuda/comm/flights.h on an emulated GPU, where streams come to an end as late as they may. */
#include "exec/cuda/comm/flights.h"

#include <cuda_runtime_api.h>

#include "tests/emulator/emulator.h"

enum {
    MANY = 1000,
    BEHIND = 3 /* collectives that the GPU may be behind the host */
};

typedef struct {
    ExecCudaFlights flights;
    cudaStream_t stream;
} Fixture;

static void begin(Fixture *f, gconstpointer unused) {
    exec_cuda_flights_init(&f->flights);
    g_assert_cmpint(cudaStreamCreateWithFlags(&f->stream, cudaStreamNonBlocking), ==, cudaSuccess);
}

static void end(Fixture *f, gconstpointer unused) {
    exec_cuda_flights_clear(&f->flights);
    cudaStreamDestroy(f->stream);
    g_assert_cmpuint(emulator_live().events, ==, 0);
}

static void add(Fixture *f, int32_t step, const PlanOp *op) {
    g_autoptr(GError) error = NULL;
    g_assert_true(exec_cuda_flights_add(&f->flights, step, op, PLAN_NONE, f->stream, &error));
    g_assert_no_error(error);
}

/* A host that is slower than its GPU waits for nothing, however long it trains. */
static void those_that_ended_are_forgotten(Fixture *f, gconstpointer unused) {
    PlanOp op = {0};
    for (int32_t step = 0; step < MANY; step++) {
        add(f, step, &op);
        if (step % BEHIND == 0) {
            g_assert_cmpint(cudaStreamSynchronize(f->stream), ==, cudaSuccess);
        }
        g_assert_cmpuint(emulator_live().events, <=, BEHIND + 1);
    }
}

/* And those that have not are told of, the oldest first. */
static void the_oldest_is_told_of(Fixture *f, gconstpointer unused) {
    PlanOp first = {0}, second = {0};
    g_assert_null(exec_cuda_flights_oldest(&f->flights));
    add(f, 7, &first);
    add(f, 8, &second);
    const ExecCudaFlight *oldest = exec_cuda_flights_oldest(&f->flights);
    g_assert_true(oldest->op == &first || oldest->op == &second); /* a question is a turn */
    g_assert_cmpint(oldest->step, ==, oldest->op == &first ? 7 : 8);
    g_assert_cmpint(cudaStreamSynchronize(f->stream), ==, cudaSuccess);
    exec_cuda_flights_forget(&f->flights);
    g_assert_null(exec_cuda_flights_oldest(&f->flights));
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add("/exec/flights/those that ended are forgotten", Fixture, NULL, begin,
               those_that_ended_are_forgotten, end);
    g_test_add("/exec/flights/the oldest is told of", Fixture, NULL, begin, the_oldest_is_told_of,
               end);
    return g_test_run();
}
