/* sim/device/device-private.h - a device's parts, which three files share.
 *
 *     device.c        makes it, and reads what a play has left
 *     instructions.c  what each instruction of the program does with it: the PlanDevice "sim"
 *     watcher.c       what its lanes tell while they run
 */
#pragma once

#include "sim/device/device.h"
#include "sim/device/driver.h"
#include "sim/device/op-rows.h"
#include "sim/device/recordings.h"
#include "sim/device/repeat/pass-repeat.h"

struct _SimDevice {
    SimDeviceSetup setup;
    const Plan *plan;
    const PlanRole *role;
    const ModelCluster *cluster;
    const SimIssueCosts *issue;
    uint32_t first_number[PLAN_N_SECTIONS]; /* a trace's number of each section's instruction 0 */

    SimHostClock host;
    SimDriver driver;
    SimTime zero_ns;
    bool charged;       /* the instruction at hand has been paid for */
    uint32_t waits_for; /* recording that the host waits for */
    SimHostBook *books; /* construction, then each step */
    uint64_t n_retries; /* that are in them */
    SimPassRepeat passes;
    SimRepeat repeat;

    SimRecordings recordings;

    SimWatcher watcher;
    SimEngine *engine;
    bool waits[PLAN_MAX_LANES];     /* the collective that runs there waits for other ranks */
    SimTime met_ns[PLAN_MAX_LANES]; /* when the last of them came to it */
    SimAccount *account;
    SimTime evaluated_ns; /* the end of the last op of an evaluation on the compute lane; 0: none */
    SimMemory *memory;
    SimOpRows ops;
    GArray *memory_rows; /* TraceMemoryRow; NULL: not kept */
    PlanPosition failed_at;
    uint32_t failed_buffer;
};

static inline const SimOpCost *sim_device_cost(const SimDevice *device, uint32_t op) {
    return sim_op_cost(device->setup.costs, op);
}

/* A collective that other ranks take part in, and are asked about. */
static inline bool sim_device_meets_others(const SimDevice *device, const SimOpCost *cost,
                                           const PlanOp *op) {
    return device->setup.peers && cost->use.collective && device->plan->axes[op->axis] > 1;
}

SimWatcher sim_device_watcher(const SimDeviceSetup *setup); /* self: SimDevice */
