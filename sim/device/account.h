/* sim/device/account.h - where the time of a simulated rank goes.
 *
 * Told of each op as it starts and ends, it keeps two sets of books:
 *   causes  every nanosecond of the compute lane, under exactly one cause (SimCause): what it works
 *           at, or what it waits for
 *   steps   of each step's own ops: time by lane, and per collective kind total and exposed time;
 *           exposed is the part of a collective's time in which the compute lane runs nothing
 * A step ends with its last op on the compute lane; the times by cause stand as they did then.
 *
 * Owns: its books. Threads: one.
 */
#pragma once

#include "memory/words.h"
#include "plan/plan.h"
#include "sim/costs/compute.h"
#include "sim/time.h"

typedef enum {
    /* It runs a kernel: */
    SIM_CAUSE_ARITHMETIC, /* bound by arithmetic */
    SIM_CAUSE_MEMORY,     /* bound by memory traffic */
    SIM_CAUSE_OVERHEAD,   /* the gap before a kernel */
    SIM_CAUSE_SLOWED,     /* the time by which what runs beside a kernel prolongs it */
    /* It is idle: */
    SIM_CAUSE_NETWORK, /* a collective runs. One for each axis, this one for PLAN_AXIS_NONE */
    SIM_CAUSE_RANKS = SIM_CAUSE_NETWORK + PLAN_N_AXES, /* a collective waits for other ranks */
    SIM_CAUSE_BESIDE,                                  /* another lane's kernel runs */
    SIM_CAUSE_HOST,                                    /* nothing runs: the host is late */
    SIM_N_CAUSES
} SimCause;

typedef struct {
    uint32_t count;
    double bytes;                 /* of the whole tensors */
    SimTime total_ns, exposed_ns; /* waiting for other ranks included */
} SimCollectiveSum;

typedef struct {
    SimTime end_ns;                 /* of the last op on the compute lane; SIM_NEVER when none */
    SimTime cause_ns[SIM_N_CAUSES]; /* since the beginning, at end_ns */
    SimCollectiveSum collectives[PLAN_N_OP_KINDS]; /* zero for kinds that are none */
    SimTime lost_ns; /* to other ranks: what collectives waited, as far as they were exposed */
    SimTime *lane_busy_ns; /* n_lanes */
} SimStepBook;

/* What the books need to know of an op. */
typedef struct {
    const SimComputeCost *cost; /* of a kernel; NULL for a collective */
    double bytes;               /* of a collective */
    SimTime alone_ns;           /* of a kernel: its own duration, this time */
    SimTime waited_ns;          /* of a collective, for other ranks; known when it ends */
    int32_t step;
    PlanOpKind kind;
    PlanAxis axis; /* of a collective */
    bool waits;    /* a collective that starts by waiting for other ranks */
} SimAccountOp;

typedef struct _SimAccount SimAccount;

SimAccount *sim_account_new(uint32_t n_steps, uint32_t n_lanes, uint32_t compute_lane);
void sim_account_free(SimAccount *account); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimAccount, sim_account_free)

/* Returns the compute lane's busy time so far, to be handed back when the op ends. */
SimTime sim_account_starts(SimAccount *account, uint32_t lane, const SimAccountOp *op, SimTime at);
void sim_account_ends(SimAccount *account, uint32_t lane, const SimAccountOp *op, SimTime start,
                      SimTime end, SimTime compute_busy_at_start);

/* The other ranks are there: the collective that waited for them runs. */
void sim_account_meets(SimAccount *account, const SimAccountOp *op, SimTime at);

/* The barrier before the first step: construction ends here. */
void sim_account_zero(SimAccount *account, SimTime at);
/* What has been booked for a step up to a moment within it. */
typedef struct {
    SimTime compute_busy_ns, lost_ns;
    SimTime cause_ns[SIM_N_CAUSES], lane_busy_ns[PLAN_MAX_LANES];
    SimCollectiveSum collectives[PLAN_N_OP_KINDS];
} SimAccountSnapshot;

void sim_account_snapshot(const SimAccount *account, int32_t step,
                          SimAccountSnapshot *ret_snapshot);
/* The compute lane's busy time, of ops that have ended. */
SimTime sim_account_compute_busy(const SimAccount *account);
/* Appends what runs, with times as so long after now. */
void sim_account_append_state(const SimAccount *account, SimTime now, MemoryWords *state);
/* Books what was recorded since the snapshot `times` more times, and shifts what runs by later_ns.
 * Returns the growth of compute_busy_ns. */
SimTime sim_account_again(SimAccount *account, int32_t step, const SimAccountSnapshot *since,
                          uint32_t times, SimTime later_ns);

/* Completes the books of this step, and writes those of all later ones, as copies of the step
 * before, period_ns later each. */
void sim_account_repeat(SimAccount *account, int32_t step, const SimAccountSnapshot *before,
                        SimTime period_ns);

/* step -1: construction. */
const SimStepBook *sim_account_step(const SimAccount *account, int32_t step);
