#include "sim/device/device.h"

#include "plan/op/work.h"
#include "sim/costs/issue.h"
#include "sim/device/driver.h"
#include "sim/device/op-rows.h"
#include "sim/device/recordings.h"
#include "sim/device/repeat/pass-repeat.h"
#include "sim/error.h"
#include "trace/from-plan.h"

struct _SimDevice {
    SimDeviceSetup setup;
    const Plan *plan;
    const PlanRole *role;
    const ModelCluster *cluster;
    SimIssueCosts *issue;
    uint32_t first_number[PLAN_N_SECTIONS]; /* a trace's number of each section's instruction 0 */

    SimHostClock host;
    SimDriver driver;
    SimTime zero_ns;
    bool charged;       /* the instruction at hand has been paid for */
    uint32_t waits_for; /* recording that the host waits for */
    SimHostBook *books; /* construction, then each step */
    SimPassRepeat passes;
    SimRepeat repeat;

    SimRecordings recordings;

    SimWatcher watcher;
    SimEngine *engine;
    bool waits[PLAN_MAX_LANES];     /* the collective that runs there waits for other ranks */
    SimTime met_ns[PLAN_MAX_LANES]; /* and has done so until */
    SimAccount *account;
    SimMemory *memory;
    SimOpRows ops;
    GArray *memory_rows; /* TraceMemoryRow; NULL: not kept */
    PlanPosition failed_at;
    uint32_t failed_buffer;
};

/* ---- the engine's watcher ---- */

static const SimOpCost *cost_of(const SimDevice *device, uint32_t op) {
    return sim_op_cost(device->setup.costs, op);
}

/* A collective that other ranks take part in, and are asked about. */
static bool meets_others(const SimDevice *device, const SimOpCost *cost, const PlanOp *op) {
    return device->setup.peers && cost->use.collective && device->plan->axes[op->axis] > 1;
}

static SimAccountOp account_op(const SimDevice *device, const SimOpRow *row) {
    const PlanOp *op = &device->role->ops[row->op];
    const SimOpCost *cost = cost_of(device, row->op);
    return (SimAccountOp){
        .cost = cost->use.collective ? NULL : &cost->use.compute,
        .bytes = cost->bytes,
        .alone_ns = row->alone_ns,
        .waited_ns = 0,
        .step = row->step,
        .kind = op->kind,
        .axis = op->axis,
        .waits = meets_others(device, cost, op),
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
            row->step, lane, &device->role->ops[row->op], cost_of(device, row->op), at, false};
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
    sim_account_ends(device->account, lane, &op, start, end, row->compute_busy_ns);
}

/* A collective that waits holds its multiprocessors and draws nothing from memory. */
static void share(gpointer self, const SimCommand *const *running, uint32_t n_running,
                  double *speeds) {
    const SimDevice *device = self;
    double cores = device->cluster->device_cores;
    const SimUse *uses[PLAN_MAX_LANES] = {NULL};
    SimUse waiting[PLAN_MAX_LANES];
    uint32_t lanes[PLAN_MAX_LANES], n = 0; /* that run something */
    for (uint32_t lane = 0; n < n_running; lane++) {
        if (running[lane]) {
            const SimOpRow *row = sim_op_row(&device->ops, running[lane]->tag);
            uses[n] = &cost_of(device, row->op)->use;
            if (device->waits[lane]) {
                waiting[n] = *uses[n];
                waiting[n].memory_share = 0;
                uses[n] = &waiting[n];
            }
            lanes[n++] = lane;
        }
    }
    double speeds_of_uses[PLAN_MAX_LANES];
    sim_share(uses, n, cores, speeds_of_uses);
    for (uint32_t i = 0; i < n; i++) {
        speeds[lanes[i]] = speeds_of_uses[i];
    }
}

static bool hold(gpointer self, SimTime at, SimActs who) {
    SimDevice *device = self;
    return device->setup.peers->hold(device->setup.peers_self, device->setup.rank, at, who);
}

/* ---- what instructions cost the host ---- */

static uint32_t number_of(const SimDevice *device, const PlanPosition *at) {
    return device->first_number[at->section] + at->index;
}

static SimTime with_host_jitter(const SimDevice *device, const PlanPosition *at, SimTime cost) {
    double factor = sim_jitter_factor(&device->setup.jitter, SIM_JITTER_HOST, device->setup.rank,
                                      at->step, number_of(device, at));
    return sim_time_from_ns((double)cost * factor);
}

static void pay_instr(SimDevice *device, const PlanPosition *at, SimTime cost) {
    bool jitters = device->setup.jitter.shares[SIM_JITTER_HOST] > 0;
    sim_host_pay(&device->host, jitters ? with_host_jitter(device, at, cost) : cost);
}

/* The instruction at hand is paid for once, however often it is asked. */
static void charge(SimDevice *device, const PlanPosition *at, SimTime cost) {
    if (!device->charged) {
        device->charged = true;
        pay_instr(device, at, cost);
        sim_host_let_pass(&device->host);
    }
}

/* Of what is asked of the allocator alone: the lanes stay behind until somebody looks at them.
 * Other ranks look at any time. */
static void charge_memory(SimDevice *device, const PlanPosition *at) {
    pay_instr(device, at, device->issue->ns[at->instr->kind]);
    if (device->setup.peers) {
        sim_host_let_pass(&device->host);
    }
}

static PlanAnswer done(SimDevice *device) {
    device->charged = false;
    return PLAN_DONE;
}

/* ---- PlanDevice ---- */

static PlanAnswer section_begins(gpointer self, const PlanPosition *at, GError **error) {
    SimDevice *device = self;
    if (at->section == PLAN_SECTION_FIRST) {
        /* The barrier from which a trace counts its time. */
        sim_host_wait_until_idle(&device->host);
        if (device->setup.peers) {
            device->host.now_ns = device->setup.peers->barrier(
                device->setup.peers_self, device->setup.rank, device->host.now_ns);
            sim_engine_advance(device->engine, device->host.now_ns);
        }
        device->zero_ns = device->host.now_ns;
        sim_account_zero(device->account, device->zero_ns);
    }
    device->host.book = &device->books[at->step + 1];
    return PLAN_DONE;
}

static PlanAnswer section_ends(gpointer self, const PlanPosition *at, GError **error) {
    return PLAN_DONE;
}

/* Each change of what is allocated has its row. */
static void keep_memory_row(SimDevice *device, const PlanPosition *at, uint32_t buffer) {
    GArray *rows = device->memory_rows;
    const MemoryTotals *now = sim_memory_now(device->memory);
    uint64_t before = rows->len ? g_array_index(rows, TraceMemoryRow, rows->len - 1).allocated : 0;
    TraceMemoryRow row = {
        .step = at->step,
        .instruction = number_of(device, at),
        .category = device->role->buffers[buffer].sub,
        .host_ns = device->host.now_ns,
        .delta = (int64_t)(now->allocated_bytes - before),
        .allocated = now->allocated_bytes,
        .active = now->active_bytes,
        .reserved = now->reserved_bytes,
    };
    g_array_append_val(rows, row);
}

static PlanAnswer alloc(gpointer self, const PlanPosition *at, uint32_t buffer, GError **error) {
    SimDevice *device = self;
    charge_memory(device, at);
    if (!sim_memory_alloc(device->memory, buffer, at->instr->lane, at)) {
        device->failed_at = *at;
        device->failed_buffer = buffer;
        return PLAN_STOPPED;
    }
    if (device->memory_rows) {
        keep_memory_row(device, at, buffer);
    }
    return PLAN_DONE;
}

static PlanAnswer free_buffer(gpointer self, const PlanPosition *at, uint32_t buffer,
                              GError **error) {
    SimDevice *device = self;
    charge_memory(device, at);
    sim_memory_release(device->memory, buffer, at);
    if (device->memory_rows) {
        keep_memory_row(device, at, buffer);
    }
    return PLAN_DONE;
}

static PlanAnswer mark(gpointer self, const PlanPosition *at, uint32_t buffer, uint32_t lane,
                       GError **error) {
    SimDevice *device = self;
    charge_memory(device, at);
    sim_memory_mark(device->memory, buffer, lane);
    return PLAN_DONE;
}

/* What a kernel takes this time; SIM_NEVER for what ends when other ranks let it. */
static SimTime duration_of(const SimDevice *device, const SimOpCost *cost, const PlanOp *op,
                           const SimOpRow *row) {
    const SimDeviceSetup *setup = &device->setup;
    if (meets_others(device, cost, op)) {
        return SIM_NEVER;
    }
    if (cost->use.collective) {
        return cost->duration_ns;
    }
    double factor = sim_jitter_factor(&setup->jitter, SIM_JITTER_KERNEL, setup->rank, row->step,
                                      row->instruction);
    return sim_time_from_ns((double)cost->duration_ns * factor * setup->slowdown);
}

static PlanAnswer launch(gpointer self, const PlanPosition *at, const PlanOp *op, uint32_t lane,
                         GError **error) {
    SimDevice *device = self;
    uint32_t number = (uint32_t)(op - device->role->ops);
    const SimOpCost *cost = cost_of(device, number);
    bool collective = cost->use.collective;
    charge(device, at, sim_issue_cost(device->issue, at->instr));
    /* A full launch queue holds the host: it can run ahead of a lane by only so many ops. */
    sim_host_wait_for_room(&device->host, lane, device->cluster->host_queue_depth);
    uint32_t tag;
    SimOpRow *row = sim_op_rows_add(&device->ops, &tag);
    *row = (SimOpRow){
        .step = at->step,
        .op = number,
        .instruction = number_of(device, at),
        .lane = lane,
        .issue_ns = device->host.now_ns,
        .end_ns = SIM_NEVER,
    };
    row->alone_ns = duration_of(device, cost, op, row);
    /* Stages have a communicator for each of their lanes. */
    bool has_axis = collective && !plan_op_is_of_stages((PlanOpKind)op->kind);
    sim_engine_launch(device->engine, lane, row->alone_ns, has_axis ? op->axis : SIM_NO_AXIS, tag);
    SimTime further = sim_issue_further_cost(device->issue, op->kind, cost->use.compute.kernels);
    if (further > 0) {
        pay_instr(device, at, further);
        sim_host_let_pass(&device->host);
    }
    return done(device);
}

static PlanAnswer record(gpointer self, const PlanPosition *at, uint32_t event, uint32_t lane,
                         GError **error) {
    SimDevice *device = self;
    charge(device, at, sim_issue_cost(device->issue, at->instr));
    sim_recordings_note(&device->recordings, event, at->step,
                        sim_engine_record(device->engine, lane));
    return done(device);
}

static bool find_recording(SimDevice *device, const PlanPosition *at, uint32_t event,
                           uint32_t steps_before, uint32_t *ret_recording, GError **error) {
    int32_t step = at->step - (int32_t)steps_before;
    if (!sim_recordings_find(&device->recordings, event, step, ret_recording)) {
        g_set_error(error, SIM_ERROR, SIM_ERROR_PLAN,
                    "section %s, instruction %u waits for event %u of step %d, which was not "
                    "recorded then; the plan is broken, make it again",
                    plan_section_name(at->section), at->index, event, step);
        return false;
    }
    return true;
}

static PlanAnswer wait(gpointer self, const PlanPosition *at, uint32_t event, uint32_t steps_before,
                       uint32_t lane, GError **error) {
    SimDevice *device = self;
    uint32_t recording;
    if (!find_recording(device, at, event, steps_before, &recording, error)) {
        return PLAN_FAILED;
    }
    charge(device, at, sim_issue_cost(device->issue, at->instr));
    sim_engine_wait(device->engine, lane, recording);
    return done(device);
}

static PlanAnswer host_wait(gpointer self, const PlanPosition *at, uint32_t event,
                            uint32_t steps_before, GError **error) {
    SimDevice *device = self;
    uint32_t recording;
    if (!find_recording(device, at, event, steps_before, &recording, error)) {
        return PLAN_FAILED;
    }
    charge(device, at, sim_issue_cost(device->issue, at->instr));
    if (!sim_engine_passed(device->engine, recording)) {
        device->waits_for = recording;
        return PLAN_NOT_YET;
    }
    return done(device);
}

static PlanAnswer host_op(gpointer self, const PlanPosition *at, const PlanOp *op, GError **error) {
    SimDevice *device = self;
    double bytes = plan_op_work(device->role, op).bytes;
    bool meets = op->kind == PLAN_OP_HOST_ALL_REDUCE;
    SimTime network_ns =
        meets ? cost_of(device, (uint32_t)(op - device->role->ops))->duration_ns : 0;
    charge(device, at,
           sim_issue_cost(device->issue, at->instr) + network_ns +
               sim_time_from_ns(bytes / device->cluster->host_memory_gb_per_s));
    return done(device);
}

const PlanDevice sim_device = {
    .name = "sim",
    .section_begins = section_begins,
    .section_ends = section_ends,
    .alloc = alloc,
    .free = free_buffer,
    .mark = mark,
    .launch = launch,
    .record = record,
    .wait = wait,
    .host_wait = host_wait,
    .host_op = host_op,
};

/* ---- making one ---- */

/* What runs alone has all there is, unless that is less than a core. */
static SimWatcher watcher_for(const SimDeviceSetup *setup) {
    double cores = setup->costs->cluster->device_cores;
    return (SimWatcher){.op_starts = op_starts,
                        .op_ends = op_ends,
                        .op_changes = op_changes,
                        .share = setup->no_sharing ? NULL : share,
                        .hold = setup->peers ? hold : NULL,
                        .asks_alone = cores > 0 && cores < 1};
}

/* Memory without limit has no share to keep to either, so that every play in it ends. */
static SimMemory *memory_for(SimDevice *device, const SimDeviceSetup *setup, GError **error) {
    MemoryOptions options;
    if (setup->allocator) {
        options = *setup->allocator;
    } else {
        memory_options_init(&options);
    }
    uint64_t total_bytes = device->cluster->device_memory_bytes;
    if (setup->allocator_bytes == SIM_NO_LIMIT) {
        total_bytes = SIM_NO_LIMIT;
        options.memory_fraction = 1;
        options.throw_on_cudamalloc_oom = false;
    }
    const SimMemorySetup asked = {
        setup->plan,  device->role, total_bytes,     setup->allocator_bytes, &options,
        setup->arena, &sim_driver,  &device->driver, &device->host.now_ns};
    return sim_memory_new(&asked, error);
}

SimDevice *sim_device_new(const SimDeviceSetup *setup, GError **error) {
    const Plan *plan = setup->plan;
    g_autoptr(SimDevice) device = g_new0(SimDevice, 1);
    device->setup = *setup;
    device->setup.slowdown = setup->slowdown > 0 ? setup->slowdown : 1;
    device->plan = plan;
    device->role = &plan->roles[setup->costs->role];
    device->cluster = setup->costs->cluster;
    device->issue = sim_issue_costs_new(plan, device->role, device->cluster);
    for (unsigned section = 0; section < PLAN_N_SECTIONS; section++) {
        device->first_number[section] = trace_instruction_number(device->role, section, 0);
    }
    device->books = g_new0(SimHostBook, setup->steps + 1);
    sim_recordings_init(&device->recordings, device->role->n_events);
    sim_op_rows_init(&device->ops);
    device->watcher = watcher_for(setup);
    device->engine = sim_engine_new(plan->n_lanes, PLAN_N_AXES, &device->watcher, device);
    device->host = (SimHostClock){
        .engine = device->engine, .book = device->books, .has_peers = setup->peers != NULL};
    sim_driver_init(&device->driver, &device->host, device->cluster, setup->allocator_bytes);
    sim_engine_set_wake(device->engine, sim_time_from_us(device->cluster->device_lane_wake_us));
    device->account = sim_account_new(setup->steps, plan->n_lanes, plan_compute_lane(plan));
    device->memory = memory_for(device, setup, error);
    const SimParts parts = {device->role,        setup->costs,    &device->host,  &device->driver,
                            &device->recordings, device->account, device->memory, &device->ops};
    sim_repeat_init(&device->repeat, &parts, setup->steps, device->books);
    sim_pass_repeat_init(&device->passes, &parts);
    return device->memory ? g_steal_pointer(&device) : NULL;
}

void sim_device_free(SimDevice *device) {
    if (device) {
        sim_memory_free(device->memory);
        sim_engine_free(device->engine);
        sim_account_free(device->account);
        sim_recordings_clear(&device->recordings);
        sim_op_rows_clear(&device->ops);
        g_clear_pointer(&device->memory_rows, g_array_unref);
        sim_issue_costs_free(device->issue);
        g_free(device->books);
        sim_repeat_clear(&device->repeat);
        sim_pass_repeat_clear(&device->passes);
        g_free(device);
    }
}

void sim_device_resume(SimDevice *device) {
    sim_host_wait_for(&device->host, device->waits_for);
}

const SimPasses *sim_device_passes(SimDevice *device, PlanSection section) {
    return device->setup.repeats ? sim_pass_repeat_section(&device->passes, section) : NULL;
}

uint32_t sim_device_pass_begins(SimDevice *device, int32_t step, uint32_t pass) {
    return sim_pass_repeat_begins(&device->passes, step, pass);
}

uint32_t sim_device_passed_over(const SimDevice *device) {
    return device->passes.n_passed_over;
}

uint32_t sim_device_lacks(const SimDevice *device) {
    return device->passes.n_folded;
}

bool sim_device_repeats_at(SimDevice *device, const PlanPosition *at, unsigned moment) {
    return device->setup.repeats && sim_repeat_at(&device->repeat, at, moment);
}

void sim_device_drain(SimDevice *device) {
    while (sim_engine_step(device->engine)) {
    }
}

SimEngine *sim_device_engine(SimDevice *device) {
    return device->engine;
}

const SimOpCosts *sim_device_costs(const SimDevice *device) {
    return device->setup.costs;
}

uint32_t sim_device_compute_lane(const SimDevice *device) {
    return plan_compute_lane(device->plan);
}

SimTime sim_device_zero(const SimDevice *device) {
    return device->zero_ns;
}

const SimAccount *sim_device_account(const SimDevice *device) {
    return device->account;
}

SimMemory *sim_device_memory(SimDevice *device) {
    return device->memory;
}

const SimHostBook *sim_device_host_book(const SimDevice *device, int32_t step) {
    return &device->books[step + 1];
}

const PlanPosition *sim_device_failed_at(const SimDevice *device, SimTime *ret_host_ns,
                                         uint32_t *ret_buffer) {
    *ret_host_ns = device->host.now_ns;
    *ret_buffer = device->failed_buffer;
    return &device->failed_at;
}

bool sim_device_has_stages(const SimDevice *device) {
    return device->plan->axes[PLAN_AXIS_PIPELINE] > 1;
}

const char *sim_device_slowest_link(const SimDevice *device, PlanAxis axis) {
    return device->setup.costs->paths[axis].slowest;
}

void sim_device_keep_rows(SimDevice *device) {
    device->ops.kept = true;
    device->memory_rows = g_array_new(FALSE, FALSE, sizeof(TraceMemoryRow));
}

static void write_op(const SimDevice *device, uint32_t rank, const SimOpRow *row, Trace *trace) {
    TraceOpRow op = {
        .rank = rank,
        .step = row->step,
        .instruction = row->instruction,
        .lane = row->lane,
        .host_issue_ns = row->issue_ns - device->zero_ns,
        .start_ns = row->start_ns - device->zero_ns,
        .end_ns = row->end_ns - device->zero_ns,
    };
    trace_add_op(trace, &op);
}

void sim_device_write_rows(const SimDevice *device, uint32_t rank, SimTime until, Trace *trace) {
    for (uint32_t i = 0; i < device->ops.n; i++) {
        const SimOpRow *row = sim_op_row(&device->ops, i);
        if (row->end_ns <= until) {
            write_op(device, rank, row, trace);
        }
    }
    for (guint i = 0; device->memory_rows && i < device->memory_rows->len; i++) {
        TraceMemoryRow row = g_array_index(device->memory_rows, TraceMemoryRow, i);
        if (row.host_ns <= until) {
            row.rank = rank;
            row.host_ns -= device->zero_ns;
            trace_add_memory(trace, &row);
        }
    }
}
