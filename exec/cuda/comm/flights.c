#include "exec/cuda/comm/flights.h"

#include "exec/cuda/calls.h"

void exec_cuda_flights_init(ExecCudaFlights *flights) {
    g_queue_init(&flights->all);
    flights->idle = g_ptr_array_new();
}

static void put_back(ExecCudaFlights *flights, ExecCudaFlight *flight) {
    if (flight->end) {
        g_ptr_array_add(flights->idle, flight->end);
    }
    g_free(flight);
}

void exec_cuda_flights_clear(ExecCudaFlights *flights) {
    for (ExecCudaFlight *flight; (flight = g_queue_pop_head(&flights->all));) {
        put_back(flights, flight);
    }
    for (guint i = 0; i < flights->idle->len; i++) {
        cudaEventDestroy(flights->idle->pdata[i]);
    }
    g_ptr_array_unref(flights->idle);
}

bool exec_cuda_flights_add(ExecCudaFlights *flights, int32_t step, const PlanOp *op, uint32_t unit,
                           cudaStream_t stream, GError **error) {
    exec_cuda_flights_forget(flights); /* a host that never waits asks of none */
    ExecCudaFlight *flight = g_new0(ExecCudaFlight, 1);
    guint n = flights->idle->len;
    *flight = (ExecCudaFlight){step, unit, op, NULL};
    flight->end = n ? g_ptr_array_steal_index(flights->idle, n - 1) : NULL;
    g_queue_push_tail(&flights->all, flight);
    return (flight->end ||
            exec_cuda_ok(cudaEventCreateWithFlags(&flight->end, cudaEventDisableTiming),
                         "cudaEventCreateWithFlags", error)) &&
           exec_cuda_ok(cudaEventRecord(flight->end, stream), "cudaEventRecord", error);
}

void exec_cuda_flights_forget(ExecCudaFlights *flights) {
    for (ExecCudaFlight *flight; (flight = g_queue_peek_head(&flights->all));) {
        if (flight->end && cudaEventQuery(flight->end) == cudaErrorNotReady) {
            cudaGetLastError(); /* or the next launch would take it for its own */
            return;
        }
        put_back(flights, g_queue_pop_head(&flights->all));
    }
}

const ExecCudaFlight *exec_cuda_flights_oldest(const ExecCudaFlights *flights) {
    return g_queue_peek_head((GQueue *)&flights->all);
}
