/* sim/device/watcher.c - what the lanes of a device tell while they run: ops that start, end and
 * run beside each other. */
#include "sim/device/device-private.h"

static SimAccountOp account_op(const SimDevice *device, const SimOpRow *row) {
    const PlanOp *op = &device->role->ops[row->op];
    const SimOpCost *cost = sim_device_cost(device, row->op);
    return (SimAccountOp){
        .cost = cost->use.collective ? NULL : &cost->use.compute,
        .bytes = cost->bytes,
        .alone_ns = row->alone_ns,
        .waited_ns = 0,
        .step = row->step,
        .kind = op->kind,
        .axis = op->axis,
        .waits = sim_device_meets_others(device, cost, op),
    };
}

static void op_starts(gpointer self, uint32_t lane, const SimCommand *command, SimTime at) {
    SimDevice *device = self;
    SimOpRow *row = sim_op_row(&device->ops, command->tag);
    SimAccountOp op = account_op(device, row);
    row->compute_busy_ns = sim_account_starts(device->account, lane, &op, at);
    device->waits[lane] = op.waits;
    if (op.waits) {
        SimArrival arrival = {
            row->step, lane, &device->role->ops[row->op], sim_device_cost(device, row->op),
            at,        false};
        arrival.behind = sim_is_behind(device->plan, device->role, arrival.op);
        device->setup.peers->arrives(device->setup.peers_self, device->setup.rank, &arrival);
    }
}

static void op_changes(gpointer self, uint32_t lane, const SimCommand *command, SimTime at) {
    SimDevice *device = self;
    SimAccountOp op = account_op(device, sim_op_row(&device->ops, command->tag));
    device->waits[lane] = false;
    device->met_ns[lane] = at;
    sim_account_meets(device->account, &op, at);
}

static void op_ends(gpointer self, uint32_t lane, const SimCommand *command, SimTime start,
                    SimTime end) {
    SimDevice *device = self;
    SimOpRow *row = sim_op_row(&device->ops, command->tag);
    SimAccountOp op = account_op(device, row);
    op.waited_ns = op.waits ? device->met_ns[lane] - start : 0;
    row->start_ns = start;
    row->end_ns = end;
    if (row->evaluates && lane == plan_compute_lane(device->plan)) {
        device->evaluated_ns = end;
    }
    sim_account_ends(device->account, lane, &op, start, end, row->compute_busy_ns);
}

/* A collective that waits holds its multiprocessors and draws nothing from memory. */
static void set_speeds(gpointer self, const SimCommand *const *running, uint32_t n_running,
                       double *speeds) {
    const SimDevice *device = self;
    double cores = device->cluster->device_cores;
    const SimUse *uses[PLAN_MAX_LANES] = {NULL};
    SimUse waiting[PLAN_MAX_LANES];
    uint32_t lanes[PLAN_MAX_LANES], n = 0; /* that run something */
    for (uint32_t lane = 0; n < n_running; lane++) {
        if (running[lane]) {
            const SimOpRow *row = sim_op_row(&device->ops, running[lane]->tag);
            uses[n] = &sim_device_cost(device, row->op)->use;
            if (device->waits[lane]) {
                waiting[n] = *uses[n];
                waiting[n].memory_share = 0;
                uses[n] = &waiting[n];
            }
            lanes[n++] = lane;
        }
    }
    double speeds_of_uses[PLAN_MAX_LANES];
    sim_sharing_speeds(uses, n, cores, speeds_of_uses);
    for (uint32_t i = 0; i < n; i++) {
        speeds[lanes[i]] = speeds_of_uses[i];
    }
}

static bool hold(gpointer self, SimTime at, SimActs who) {
    SimDevice *device = self;
    return device->setup.peers->hold(device->setup.peers_self, device->setup.rank, at, who);
}

/* What runs alone has all there is, unless that is less than a core. */
SimWatcher sim_device_watcher(const SimDeviceSetup *setup) {
    double cores = setup->costs->cluster->device_cores;
    return (SimWatcher){.op_starts = op_starts,
                        .op_ends = op_ends,
                        .op_changes = op_changes,
                        .set_speeds = setup->no_sharing ? NULL : set_speeds,
                        .hold = setup->peers ? hold : NULL,
                        .asks_alone = cores > 0 && cores < 1};
}
