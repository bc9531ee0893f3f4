/* exec/host/device.h - the CPU as a device: lanes are threads, memory is mapped, kernels are real.
 *
 * Fills plan/player.h's table. Allocation and release happen on the host thread, when the player
 * asks; work runs later on its lane; reuse of memory is safe for the reasons it is safe on a GPU: a
 * pool serves its own lane, in order, and the plan's events order the others.
 *
 * The host may run ahead of a lane by EXEC_LANE_DEPTH ops (exec/host/lanes.h).
 *
 * Owns: lanes, segments, ledger. Borrows: plan, comm, trace. Threads: the host's.
 */
#pragma once

#include "exec/comm.h"
#include "exec/host/data.h"
#include "exec/pace.h"
#include "exec/weights.h"
#include "memory/ledger.h"
#include "plan/player.h"
#include "trace/trace.h"

typedef struct {
    uint64_t seed;
    uint64_t memory_limit_bytes; /* the modeled device's memory */
    bool keep_rows;              /* for a trace */
    const ExecWeights *weights;  /* borrowed; NULL: parameters begin at random */
    const ExecData *data;        /* borrowed; NULL: synthetic */
    const ExecPace *pace;        /* borrowed; NULL: collectives take what they take */
} ExecHostOptions;

typedef struct _ExecHost ExecHost;
extern const PlanDevice exec_host_device; /* self: ExecHost */

/* Fails when the plan asks for what the host cannot do. comm says which rank this is. */
ExecHost *exec_host_new(const Plan *plan, const ExecComm *comm, uint32_t steps,
                        const ExecHostOptions *options, GError **error);
void exec_host_free(ExecHost *host); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExecHost, exec_host_free)

/* Waits until all lanes are idle; fails with the first error of a lane. */
bool exec_host_drain(ExecHost *host, GError **error);
bool exec_host_healthy(ExecHost *host, GError **error); /* false with the first error of a lane */
/* Where a live buffer lies. Drain before looking. */
gpointer exec_host_pointer(const ExecHost *host, uint32_t buffer);
/* This rank's part of the weights as they are now. Drain before. */
bool exec_host_save(const ExecHost *host, ExecWeightsFile *file, GError **error);
/* Of each step played, this rank's; NaN where the plan names none. */
const double *exec_host_losses(const ExecHost *host);
bool exec_host_step_has_ended(const ExecHost *host, uint32_t step);
/* From the end of the step before (the start barrier for the first) to its own last op on lane
 * 0. */
double exec_host_step_ms(const ExecHost *host, uint32_t step);
/* Why the play stopped; NULL unless it ran out of memory. */
const char *exec_host_out_of_memory(const ExecHost *host);
MemoryLedger *exec_host_ledger(ExecHost *host);
uint64_t exec_host_mapped_bytes(const ExecHost *host);

/* This rank's rows, into a trace that trace_describe_plan() has filled. After the last drain. */
void exec_host_add_rows(const ExecHost *host, Trace *trace);
