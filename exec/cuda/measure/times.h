/* exec/cuda/measure/times.h - when ops began and ended on the GPU, and when steps did.
 *
 * An event before and one after each op; their distance to a base event, whose time on the host's
 * clock is known, places them. Bases follow one another by the end of each step, so that distances
 * stay short: CUDA gives them as a float of milliseconds, and in a second 60 ns are lost. An event
 * costs the host a call and the stream about a microsecond; without op times only steps have them.
 *
 * The first base is taken with the device idle: times of the GPU lag the host's clock by what that
 * one wait took to return (some 10 us).
 *
 * Owns: events. Borrows: rows, until they are settled. Threads: the host's.
 */
#pragma once

#include <cuda_runtime_api.h>

#include "exec/play.h"

typedef struct _ExecCudaTimes ExecCudaTimes;

ExecCudaTimes *exec_cuda_times_new(bool of_ops);
void exec_cuda_times_free(ExecCudaTimes *times); /* NULL is fine */

/* With the device idle: a base, and its time on the host's clock. */
bool exec_cuda_times_start(ExecCudaTimes *times, cudaStream_t stream, int64_t *ret_ns,
                           GError **error);
/* Around an op whose row is to be filled in; row NULL: nothing is done. */
bool exec_cuda_times_op_begins(ExecCudaTimes *times, TraceOpRow *row, cudaStream_t stream,
                               GError **error);
bool exec_cuda_times_op_ends(ExecCudaTimes *times, const TraceOpRow *row, cudaStream_t stream,
                             GError **error);
bool exec_cuda_times_step_ends(ExecCudaTimes *times, int32_t step, cudaStream_t stream,
                               GError **error);

/* What recording an event has cost the host, on the average. */
uint64_t exec_cuda_times_record_ns(const ExecCudaTimes *times);

/* Fills in the rows that have ended, and the ends of steps; waits for nothing. False with error
 * when the device has broken. */
bool exec_cuda_times_settle(ExecCudaTimes *times, ExecPlay *play, GError **error);
