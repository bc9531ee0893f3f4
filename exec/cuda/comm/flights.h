/* exec/cuda/comm/flights.h - collectives that streams were given and that have not been seen to end
 * yet, so that a message can name the one that hangs.
 *
 * Owns: an event each, which are used again. Borrows: the ops. Threads: the host's; another may
 * look at the oldest while that one hangs.
 */
#pragma once

#include <cuda_runtime_api.h>
#include <glib.h>
#include <stdbool.h>

#include "plan/plan.h"

typedef struct {
    int32_t step;
    uint32_t unit;
    const PlanOp *op;
    cudaEvent_t end;
} ExecCudaFlight;

typedef struct {
    GQueue all;      /* ExecCudaFlight, as issued */
    GPtrArray *idle; /* cudaEvent_t */
} ExecCudaFlights;

void exec_cuda_flights_init(ExecCudaFlights *flights);
void exec_cuda_flights_clear(ExecCudaFlights *flights);
/* Notes the collective that the stream was given last. First forgets those that have ended, so that
 * the list stays as short as what is under way. */
bool exec_cuda_flights_add(ExecCudaFlights *flights, int32_t step, const PlanOp *op, uint32_t unit,
                           cudaStream_t stream, GError **error);
/* Those that have ended, from the oldest on, are forgotten. */
void exec_cuda_flights_forget(ExecCudaFlights *flights);
/* NULL: there is none. */
const ExecCudaFlight *exec_cuda_flights_oldest(const ExecCudaFlights *flights);
