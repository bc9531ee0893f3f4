#include "sim/device.h"

#include "plan/op-work.h"
#include "sim/cost-network.h"
#include "sim/engine.h"
#include "sim/predict.h"
#include "sim/sharing.h"
#include "trace/from-plan.h"

/* What an op of the role costs, worked out once. */
typedef struct {
    SimUse use;
    SimTime duration_ns;
    double bytes; /* of a collective's tensor */
    bool collective;
} OpCost;

/* An op that was issued; start and end come when it runs. */
typedef struct {
    int32_t step;
    uint32_t op, instruction, lane;
    SimTime issue_ns, start_ns, end_ns, compute_busy_ns;
} OpRow;

enum {
    REMEMBERED = PLAN_MAX_BEFORE + 1
};

struct _SimDevice {
    const Plan *plan;
    const PlanRole *role;
    const ModelCluster *cluster;
    SimNetworkPath paths[PLAN_N_AXES];
    OpCost *costs; /* by op of the role */
    SimTime issue_ns[PLAN_N_INSTRS], collective_issue_ns;
    SimTime segment_new_ns, segment_free_ns;
    uint32_t first_number[PLAN_N_SECTIONS]; /* a trace's number of each section's instruction 0 */

    SimTime host_ns, zero_ns;
    bool charged;       /* the instruction at hand has been paid for */
    uint32_t waits_for; /* recording that the host waits for */
    SimHostBook *books; /* construction, then each step */
    SimHostBook *book;  /* the present one */

    /* Each event's last recordings, one for each step that is remembered, and in which step they
     * were made. */
    uint32_t *recordings[REMEMBERED];
    int32_t *recorded_in[REMEMBERED];

    SimEngine *engine;
    SimAccount *account;
    SimMemory *memory;
    GArray *ops;         /* OpRow, in the order of issue */
    GArray *memory_rows; /* TraceMemoryRow; NULL: not kept */
    PlanPosition failed_at;
    uint32_t failed_buffer;
};

/* ---- the engine's watcher ---- */

static SimAccountOp account_op(const SimDevice *device, const OpRow *row) {
    const PlanOp *op = &device->role->ops[row->op];
    const OpCost *cost = &device->costs[row->op];
    return (SimAccountOp){
        .step = row->step,
        .kind = op->kind,
        .axis = op->axis,
        .bytes = cost->bytes,
        .cost = cost->collective ? NULL : &cost->use.compute,
    };
}

static void op_starts(gpointer self, uint32_t lane, const SimCommand *command, SimTime at) {
    SimDevice *device = self;
    OpRow *row = &g_array_index(device->ops, OpRow, command->tag);
    SimAccountOp op = account_op(device, row);
    row->compute_busy_ns = sim_account_starts(device->account, lane, &op, at);
}

static void op_ends(gpointer self, uint32_t lane, const SimCommand *command, SimTime start,
                    SimTime end) {
    SimDevice *device = self;
    OpRow *row = &g_array_index(device->ops, OpRow, command->tag);
    SimAccountOp op = account_op(device, row);
    row->start_ns = start;
    row->end_ns = end;
    sim_account_ends(device->account, lane, &op, start, end, row->compute_busy_ns);
}

static void share(gpointer self, const SimCommand *const *running, double *speeds) {
    const SimDevice *device = self;
    const SimUse *uses[PLAN_MAX_LANES];
    for (uint32_t lane = 0; lane < device->plan->n_lanes; lane++) {
        uses[lane] = NULL;
        if (running[lane]) {
            const OpRow *row = &g_array_index(device->ops, OpRow, running[lane]->tag);
            uses[lane] = &device->costs[row->op].use;
        }
    }
    sim_share(uses, device->plan->n_lanes, device->cluster->device_cores, speeds);
}

static const SimWatcher watcher = {op_starts, op_ends, share};
static const SimWatcher watcher_alone = {op_starts, op_ends, NULL};

/* ---- the host ---- */

static void spend(SimDevice *device, SimTime cost) {
    device->host_ns += cost;
    device->book->busy_ns += cost;
    sim_engine_advance(device->engine, device->host_ns);
}

/* The instruction at hand is paid for once, however often it is asked. */
static void charge(SimDevice *device, SimTime cost) {
    if (!device->charged) {
        device->charged = true;
        spend(device, cost);
    }
}

static PlanAnswer done(SimDevice *device) {
    device->charged = false;
    return PLAN_DONE;
}

static void catch_up(SimDevice *device) {
    SimTime now = sim_engine_now(device->engine);
    device->book->blocked_ns += now - device->host_ns;
    device->host_ns = now;
}

static void block_until(SimDevice *device, uint32_t recording) {
    while (!sim_engine_passed(device->engine, recording)) {
        bool more = sim_engine_step(device->engine);
        g_assert(more); /* a recording that was issued passes: nothing stalls */
    }
    catch_up(device);
}

static void block_until_idle(SimDevice *device) {
    while (sim_engine_step(device->engine)) {
    }
    catch_up(device);
}

/* A full launch queue holds the host: it can run ahead of a lane by only so many ops. */
static void block_until_room(SimDevice *device, uint32_t lane) {
    while (sim_engine_queued_ops(device->engine, lane) >= device->cluster->host_queue_depth) {
        bool more = sim_engine_step(device->engine);
        g_assert(more);
    }
    catch_up(device);
}

/* ---- what memory asks ---- */

static SimTime memory_now(gpointer self) {
    SimDevice *device = self;
    return device->host_ns;
}

static MemoryEvent memory_record(gpointer self, uint32_t lane) {
    SimDevice *device = self;
    return sim_engine_record(device->engine, lane);
}

static bool memory_query(gpointer self, MemoryEvent event) {
    SimDevice *device = self;
    return sim_engine_passed(device->engine, (uint32_t)event);
}

static void memory_sync(gpointer self, MemoryEvent event) {
    block_until(self, (uint32_t)event);
}

static void memory_stream_sync(gpointer self, uint32_t lane) {
    SimDevice *device = self;
    block_until(device, sim_engine_record(device->engine, lane));
}

/* cudaMalloc costs the same whether there is room or not; cudaFree returns when the whole device is
 * at rest. Mapping and unmapping pages is taken to cost as much. */
static void memory_acts(gpointer self, MemoryVirtualAct act, uint64_t bytes) {
    SimDevice *device = self;
    switch (act) {
    case MEMORY_VIRTUAL_SEGMENT_NEW:
    case MEMORY_VIRTUAL_SEGMENT_FAILED:
    case MEMORY_VIRTUAL_MAP:
    case MEMORY_VIRTUAL_MAP_FAILED:
        spend(device, device->segment_new_ns);
        return;
    case MEMORY_VIRTUAL_SEGMENT_FREE:
        block_until_idle(device);
        spend(device, device->segment_free_ns);
        return;
    case MEMORY_VIRTUAL_UNMAP:
        spend(device, device->segment_free_ns);
        return;
    }
}

static const SimMemoryHost memory_host = {
    .hooks = {memory_record, memory_query, memory_sync, memory_stream_sync, memory_acts},
    .now = memory_now,
};

/* ---- PlanDevice ---- */

static PlanAnswer section_begins(gpointer self, const PlanPosition *at, GError **error) {
    SimDevice *device = self;
    if (at->section == PLAN_SECTION_FIRST) {
        /* The barrier from which a trace counts its time. */
        block_until_idle(device);
        device->zero_ns = device->host_ns;
        sim_account_zero(device->account, device->zero_ns);
    }
    device->book = &device->books[at->step + 1];
    return PLAN_DONE;
}

static PlanAnswer section_ends(gpointer self, const PlanPosition *at, GError **error) {
    return PLAN_DONE;
}

static uint32_t number_of(const SimDevice *device, const PlanPosition *at) {
    return device->first_number[at->section] + at->index;
}

static void keep_memory_row(SimDevice *device, const PlanPosition *at, uint32_t buffer,
                            int64_t delta) {
    if (device->memory_rows) {
        const MemoryTotals *now = sim_memory_now(device->memory);
        TraceMemoryRow row = {
            .step = at->step,
            .instruction = number_of(device, at),
            .category = device->role->buffers[buffer].sub,
            .host_ns = device->host_ns,
            .delta = delta,
            .allocated = now->allocated_bytes,
            .active = now->active_bytes,
            .reserved = now->reserved_bytes,
        };
        g_array_append_val(device->memory_rows, row);
    }
}

static PlanAnswer alloc(gpointer self, const PlanPosition *at, uint32_t buffer, GError **error) {
    SimDevice *device = self;
    charge(device, device->issue_ns[PLAN_ALLOC]);
    SimMemoryPlace place = {at->step, at->section, at->index};
    uint64_t before = sim_memory_now(device->memory)->allocated_bytes;
    if (!sim_memory_alloc(device->memory, buffer, at->instr->lane, &place)) {
        device->failed_at = *at;
        device->failed_buffer = buffer;
        return PLAN_STOPPED;
    }
    uint64_t after = sim_memory_now(device->memory)->allocated_bytes;
    keep_memory_row(device, at, buffer, (int64_t)(after - before));
    return done(device);
}

static PlanAnswer free_buffer(gpointer self, const PlanPosition *at, uint32_t buffer,
                              GError **error) {
    SimDevice *device = self;
    charge(device, device->issue_ns[PLAN_FREE]);
    SimMemoryPlace place = {at->step, at->section, at->index};
    uint64_t before = sim_memory_now(device->memory)->allocated_bytes;
    sim_memory_release(device->memory, buffer, &place);
    uint64_t after = sim_memory_now(device->memory)->allocated_bytes;
    keep_memory_row(device, at, buffer, (int64_t)(after - before));
    return done(device);
}

static PlanAnswer mark(gpointer self, const PlanPosition *at, uint32_t buffer, uint32_t lane,
                       GError **error) {
    SimDevice *device = self;
    charge(device, device->issue_ns[PLAN_MARK]);
    sim_memory_mark(device->memory, buffer, lane);
    return done(device);
}

static PlanAnswer launch(gpointer self, const PlanPosition *at, const PlanOp *op, uint32_t lane,
                         GError **error) {
    SimDevice *device = self;
    uint32_t number = (uint32_t)(op - device->role->ops);
    const OpCost *cost = &device->costs[number];
    charge(device, cost->collective ? device->collective_issue_ns : device->issue_ns[PLAN_LAUNCH]);
    block_until_room(device, lane);
    OpRow row = {
        .step = at->step,
        .op = number,
        .instruction = number_of(device, at),
        .lane = lane,
        .issue_ns = device->host_ns,
    };
    g_array_append_val(device->ops, row);
    sim_engine_launch(device->engine, lane, cost->duration_ns,
                      cost->collective ? op->axis : SIM_NO_AXIS, device->ops->len - 1);
    return done(device);
}

/* Steps count from -1, which is construction. */
static unsigned slot_of(int32_t step) {
    return (unsigned)(step + 1) % REMEMBERED;
}

static PlanAnswer record(gpointer self, const PlanPosition *at, uint32_t event, uint32_t lane,
                         GError **error) {
    SimDevice *device = self;
    charge(device, device->issue_ns[PLAN_RECORD]);
    unsigned slot = slot_of(at->step);
    device->recordings[slot][event] = sim_engine_record(device->engine, lane);
    device->recorded_in[slot][event] = at->step;
    return done(device);
}

static bool find_recording(SimDevice *device, const PlanPosition *at, uint32_t event,
                           uint32_t steps_before, uint32_t *ret_recording, GError **error) {
    int32_t step = at->step - (int32_t)steps_before;
    if (step < -1 || device->recorded_in[slot_of(step)][event] != step) {
        g_set_error(error, SIM_ERROR, SIM_ERROR_PLAN,
                    "section %s, instruction %u waits for event %u of step %d, which was not "
                    "recorded then; the plan is broken, make it again",
                    plan_section_name(at->section), at->index, event, step);
        return false;
    }
    *ret_recording = device->recordings[slot_of(step)][event];
    return true;
}

static PlanAnswer wait(gpointer self, const PlanPosition *at, uint32_t event, uint32_t steps_before,
                       uint32_t lane, GError **error) {
    SimDevice *device = self;
    uint32_t recording;
    if (!find_recording(device, at, event, steps_before, &recording, error)) {
        return PLAN_FAILED;
    }
    charge(device, device->issue_ns[PLAN_WAIT]);
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
    charge(device, device->issue_ns[PLAN_HOST_WAIT]);
    if (!sim_engine_passed(device->engine, recording)) {
        device->waits_for = recording;
        return PLAN_NOT_YET;
    }
    return done(device);
}

static PlanAnswer host_op(gpointer self, const PlanPosition *at, const PlanOp *op, GError **error) {
    SimDevice *device = self;
    double bytes = plan_op_work(device->role, op).bytes;
    charge(device, device->issue_ns[PLAN_HOST_OP] +
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

static void set_issue_costs(SimDevice *device) {
    const ModelCluster *cluster = device->cluster;
    const double us[PLAN_N_INSTRS] = {
        [PLAN_ALLOC] = cluster->host_alloc_us,         [PLAN_FREE] = cluster->host_free_us,
        [PLAN_MARK] = cluster->host_mark_us,           [PLAN_LAUNCH] = cluster->host_launch_us,
        [PLAN_RECORD] = cluster->host_record_us,       [PLAN_WAIT] = cluster->host_wait_us,
        [PLAN_HOST_WAIT] = cluster->host_host_wait_us, [PLAN_HOST_OP] = cluster->host_host_op_us,
    };
    for (unsigned kind = 0; kind < PLAN_N_INSTRS; kind++) {
        device->issue_ns[kind] = sim_time_from_us(us[kind]);
    }
    device->collective_issue_ns = sim_time_from_us(cluster->host_collective_us);
    device->segment_new_ns = sim_time_from_us(cluster->allocator_segment_new_us);
    device->segment_free_ns = sim_time_from_us(cluster->allocator_segment_free_us);
}

static const char *set_op_costs(SimDevice *device) {
    const PlanRole *role = device->role;
    device->costs = g_new0(OpCost, role->n_ops);
    for (uint32_t i = 0; i < role->n_ops; i++) {
        const PlanOp *op = &role->ops[i];
        OpCost *cost = &device->costs[i];
        cost->collective = plan_op_is_collective(op->kind);
        if (cost->collective) {
            cost->bytes = plan_op_work(role, op).bytes;
            SimNetworkCost network =
                sim_network_cost(device->cluster, &device->paths[op->axis], op->kind, cost->bytes);
            cost->duration_ns = sim_network_time(&network);
            cost->use = (SimUse){.collective = true, .network = network};
            sim_use_shares(&cost->use, device->cluster, &device->paths[op->axis], op->kind,
                           cost->bytes);
        } else if (sim_compute_cost(device->cluster, role, op, &cost->use.compute)) {
            cost->duration_ns = sim_compute_time(&cost->use.compute);
        } else {
            return plan_dtype_name(op->dtype);
        }
    }
    return NULL;
}

static bool check_cluster(const Plan *plan, const ModelCluster *cluster, GError **error) {
    if (plan->world > model_cluster_ranks(cluster)) {
        g_set_error(error, SIM_ERROR, SIM_ERROR_CLUSTER,
                    "the plan is for %u ranks, but cluster %s has place for %" G_GUINT64_FORMAT
                    " (%" G_GUINT64_FORMAT " nodes of %" G_GUINT64_FORMAT
                    "); plan for fewer ranks or name a larger cluster",
                    plan->world, cluster->name, model_cluster_ranks(cluster),
                    cluster->topology_nodes, cluster->topology_gpus_per_node);
        return false;
    }
    return true;
}

static uint32_t compute_lane(const Plan *plan) {
    for (uint32_t lane = 0; lane < plan->n_lanes; lane++) {
        if (g_str_equal(plan->lanes[lane], "compute")) {
            return lane;
        }
    }
    return 0;
}

SimDevice *sim_device_new(const Plan *plan, uint32_t role, const ModelCluster *cluster,
                          uint32_t steps, uint64_t allocator_bytes, const MemoryOptions *allocator,
                          bool alone, bool arena, const char **ret_unsupported, GError **error) {
    if (!check_cluster(plan, cluster, error)) {
        return NULL;
    }
    g_autoptr(SimDevice) device = g_new0(SimDevice, 1);
    device->plan = plan;
    device->role = &plan->roles[role];
    device->cluster = cluster;
    for (unsigned axis = 0; axis < PLAN_N_AXES; axis++) {
        device->paths[axis] = sim_network_path(cluster, plan, axis);
    }
    set_issue_costs(device);
    const char *unsupported = set_op_costs(device);
    if (unsupported) {
        *ret_unsupported = unsupported;
        return NULL;
    }
    for (unsigned section = 0; section < PLAN_N_SECTIONS; section++) {
        device->first_number[section] = trace_instruction_number(device->role, section, 0);
    }
    device->books = g_new0(SimHostBook, steps + 1);
    device->book = device->books;
    for (unsigned slot = 0; slot < REMEMBERED; slot++) {
        device->recordings[slot] = g_new(uint32_t, device->role->n_events);
        device->recorded_in[slot] = g_new(int32_t, device->role->n_events);
        for (uint32_t event = 0; event < device->role->n_events; event++) {
            device->recorded_in[slot][event] = INT32_MIN;
        }
    }
    device->engine =
        sim_engine_new(plan->n_lanes, PLAN_N_AXES, alone ? &watcher_alone : &watcher, device);
    device->account = sim_account_new(steps, plan->n_lanes, compute_lane(plan));
    uint64_t total_bytes =
        allocator_bytes == UINT64_MAX ? UINT64_MAX : cluster->device_memory_bytes;
    device->memory = sim_memory_new(plan, device->role, total_bytes, allocator_bytes, allocator,
                                    arena, &memory_host, device, error);
    if (!device->memory) {
        return NULL;
    }
    device->ops = g_array_sized_new(FALSE, FALSE, sizeof(OpRow), device->role->n_ops * 2);
    return g_steal_pointer(&device);
}

void sim_device_free(SimDevice *device) {
    if (device) {
        sim_memory_free(device->memory); /* gives segments back, which costs time on the clock */
        sim_engine_free(device->engine);
        sim_account_free(device->account);
        for (unsigned slot = 0; slot < REMEMBERED; slot++) {
            g_free(device->recordings[slot]);
            g_free(device->recorded_in[slot]);
        }
        g_clear_pointer(&device->ops, g_array_unref);
        g_clear_pointer(&device->memory_rows, g_array_unref);
        g_free(device->costs);
        g_free(device->books);
        g_free(device);
    }
}

void sim_device_resume(SimDevice *device) {
    block_until(device, device->waits_for);
}

void sim_device_drain(SimDevice *device) {
    while (sim_engine_step(device->engine)) {
    }
}

uint32_t sim_device_compute_lane(const SimDevice *device) {
    return compute_lane(device->plan);
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
    *ret_host_ns = device->host_ns;
    *ret_buffer = device->failed_buffer;
    return &device->failed_at;
}

const char *sim_device_slowest_link(const SimDevice *device, PlanAxis axis) {
    return device->paths[axis].slowest;
}

void sim_device_keep_rows(SimDevice *device) {
    device->memory_rows = g_array_new(FALSE, FALSE, sizeof(TraceMemoryRow));
}

void sim_device_write_rows(const SimDevice *device, uint32_t rank, Trace *trace) {
    for (guint i = 0; i < device->ops->len; i++) {
        const OpRow *row = &g_array_index(device->ops, OpRow, i);
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
    for (guint i = 0; device->memory_rows && i < device->memory_rows->len; i++) {
        TraceMemoryRow row = g_array_index(device->memory_rows, TraceMemoryRow, i);
        row.rank = rank;
        row.host_ns -= device->zero_ns;
        trace_add_memory(trace, &row);
    }
}
