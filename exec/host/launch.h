/* exec/host/launch.h - one op of a plan becomes calls of kernels/host.
 *
 * By the time an op runs, the host may have freed and given away the buffers it names; so pointers
 * are resolved when it is issued and travel with it.
 */
#pragma once

#include "exec/comm.h"
#include "exec/host/data.h"
#include "exec/host/slots.h"
#include "exec/weights.h"
#include "plan/plan.h"

typedef struct {
    const Plan *plan;
    const PlanRole *role;
    const ExecComm *comm;
    uint64_t seed;
    const ExecWeights *weights; /* that parameters begin with; NULL: random ones */
    const ExecData *data;       /* NULL: synthetic */
    ExecSlots *slots;           /* the host's memory */
} ExecContext;

typedef struct {
    const ExecContext *context;
    const PlanOp *op;
    int32_t step;       /* -1 in construction */
    uint64_t turn;      /* of all passes since training began */
    gpointer *pointers; /* one per operand; NULL where it is missing */
} ExecTask;

/* False with error: the host cannot do this op. Asked before a play begins. */
bool exec_host_knows(const ExecContext *context, const PlanOp *op, GError **error);
/* Runs it; blocks until it is done. */
bool exec_host_run(const ExecTask *task, GError **error);
/* The number that the op's first written operand begins with (a loss). */
double exec_host_first_output(const ExecTask *task);
