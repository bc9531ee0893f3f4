/* sim/device/device.h - the device "sim": one rank's host thread, lanes and memory under a virtual
 * clock.
 *
 * An instruction costs the host its issue time and takes effect when that is over, after everything
 * that happens on the lanes up to and including that moment. So the allocator sees events as of
 * host time, and memory is reused at lane time, as on a real machine. When the host has to wait for
 * a lane, the answer is PLAN_NOT_YET: the caller lets time pass (sim_device_resume) and steps its
 * player again. When the allocator waits (it gives memory back) or a lane's queue is full, time
 * passes inside the call.
 *
 * Without peers a device stands for all ranks, and a collective starts when this device is ready.
 * With peers each rank has a device: it tells them when it comes to a collective, is told through
 * its engine when all have come and when the collective ends, and lets time pass only as far as
 * they allow. It must then run in a fiber, because waiting for the others yields.
 *
 * Owns: engine, memory, books, rows. Borrows: plan and costs. Threads: one.
 */
#pragma once

#include "memory/options.h"
#include "models/cluster.h"
#include "plan/player.h"
#include "sim/costs/ops.h"
#include "sim/device/account.h"
#include "sim/device/engine.h"
#include "sim/device/host-clock.h"
#include "sim/device/memory.h"
#include "sim/device/repeat/passes.h"
#include "sim/device/repeat/repeat.h"
#include "sim/jitter.h"
#include "trace/trace.h"

extern const PlanDevice sim_device; /* self: SimDevice */

typedef struct _SimDevice SimDevice;

/* A rank that has come to a collective. */
typedef struct {
    int32_t step;
    uint32_t lane;
    const PlanOp *op;
    const SimOpCost *cost;
    SimTime at;
    bool behind; /* of stages: it is with the one behind */
} SimArrival;

typedef struct {
    void (*arrives)(gpointer self, uint32_t rank, const SimArrival *arrival);
    bool (*hold)(gpointer self, uint32_t rank, SimTime at, SimActs who); /* as SimWatcher's */
    /* All ranks are at the barrier before the first step: the moment of the last. */
    SimTime (*barrier)(gpointer self, uint32_t rank, SimTime at);
} SimPeers;

typedef struct {
    const Plan *plan;
    const SimOpCosts *costs; /* with the role and the cluster */
    uint32_t steps;
    uint64_t allocator_bytes; /* or SIM_NO_LIMIT */
    const MemoryOptions *allocator;
    bool no_sharing, arena;
    bool calm;    /* the play stops where the allocator gives memory back, as where there is none */
    bool repeats; /* steps and passes that repeat others need not be played */
    /* One of many; NULL: it stands for all. */
    const SimPeers *peers;
    gpointer peers_self;
    uint32_t rank;
    double slowdown; /* factor on the duration of its kernels; 0: none */
    SimJitter jitter;
} SimDeviceSetup;

/* NULL when the allocator refuses its options. */
SimDevice *sim_device_new(const SimDeviceSetup *setup, GError **error);
void sim_device_free(SimDevice *device); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimDevice, sim_device_free)

/* After PLAN_NOT_YET: lets time pass until the host can go on. */
void sim_device_resume(SimDevice *device);
/* The passes of the section that is played next; NULL: none can be leapt over. At the begin of each
 * pass but the first the caller calls sim_device_pass_begins(), which returns how many instructions
 * the device has leapt over because they repeat (sim/device/repeat/pass-repeat.h). */
const SimPasses *sim_device_passes(SimDevice *device, PlanSection section);
uint32_t sim_device_pass_begins(SimDevice *device, int32_t step, uint32_t pass);
uint32_t sim_device_passed_over(const SimDevice *device); /* passes, in all */
/* How many passes of the section that was played are not in the plan and were not leapt over
 * either. */
uint32_t sim_device_lacks(const SimDevice *device);
/* Asked at a moment of a step (sim_repeat_moment()). True: the rest of the step and all later steps
 * repeat the one before. Their books are written, and nothing more is to be played or drained. */
bool sim_device_repeats_at(SimDevice *device, const PlanPosition *at, unsigned moment);
/* After the last instruction: lets everything that was issued run. */
void sim_device_drain(SimDevice *device);

/* What a play leaves. */
SimEngine *sim_device_engine(SimDevice *device);
const SimOpCosts *sim_device_costs(const SimDevice *device);
uint32_t sim_device_compute_lane(const SimDevice *device);
SimTime sim_device_zero(const SimDevice *device); /* when the first step began */
/* From the end of the first step to that of the evaluation behind it; 0: there is none. */
SimTime sim_device_evaluation(const SimDevice *device);
const SimAccount *sim_device_account(const SimDevice *device);
SimMemory *sim_device_memory(SimDevice *device);
const SimHostBook *sim_device_host_book(const SimDevice *device, int32_t step);
const PlanPosition *sim_device_failed_at(const SimDevice *device, SimTime *ret_host_ns,
                                         uint32_t *ret_buffer); /* after PLAN_STOPPED */
bool sim_device_has_stages(const SimDevice *device);            /* beside its own */
/* What bounds collectives of an axis: "intra-node links" or "inter-node network". */
const char *sim_device_slowest_link(const SimDevice *device, PlanAxis axis);

/* From now on rows of ops and memory are kept for a trace. Before the first instruction. */
void sim_device_keep_rows(SimDevice *device);
/* Appends the rows of what had ended by `until`, as those of rank, to a trace that describes the
 * plan. */
void sim_device_write_rows(const SimDevice *device, uint32_t rank, SimTime until, Trace *trace);
