#include "sim/device/device.h"

#include "sim/device/device-private.h"
#include "trace/from-plan.h"

/* ---- making one ----------------------------------------------------------------------------- */

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
    device->issue = setup->costs->issue;
    for (unsigned section = 0; section < PLAN_N_SECTIONS; section++) {
        device->first_number[section] = trace_instruction_number(device->role, section, 0);
    }
    device->books = g_new0(SimHostBook, setup->steps + 1);
    sim_recordings_init(&device->recordings, device->role->n_events);
    sim_op_rows_init(&device->ops);
    device->watcher = sim_device_watcher(setup);
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
        g_free(device->books);
        sim_repeat_clear(&device->repeat);
        sim_pass_repeat_clear(&device->passes);
        g_free(device);
    }
}

/* ---- playing it ----------------------------------------------------------------------------- */

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

/* ---- what a play leaves --------------------------------------------------------------------- */

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

SimTime sim_device_evaluation(const SimDevice *device) {
    return device->evaluated_ns
               ? device->evaluated_ns - sim_account_step(device->account, 0)->end_ns
               : 0;
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
    for (uint32_t i = 0; i < device->ops.next; i++) {
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
