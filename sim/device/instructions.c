/* sim/device/instructions.c - the PlanDevice "sim": what each instruction costs the host, and does
 * to lanes and memory. */
#include "plan/op/work.h"
#include "sim/device/device-private.h"
#include "sim/error.h"
#include "trace/from-plan.h"

/* ---- what instructions cost the host -------------------------------------------------------- */

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

/* Charges the host for an instruction of the allocator. Lanes need not catch up with the host until
 * they are looked at; where several ranks are played, others may look at any time. */
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

/* ---- PlanDevice ----------------------------------------------------------------------------- */

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
    if (at->section != PLAN_SECTION_CONSTRUCT) {
        sim_host_pay(&device->host, device->issue->loop_ns);
    }
    return PLAN_DONE;
}

/* Adds a row for each change of the allocated bytes. */
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

/* The allocator retries only where the driver has refused it memory. */
static void book_retries(SimDevice *device, uint64_t n_acts) {
    if (device->driver.n_acts != n_acts) {
        uint64_t n_retries = sim_memory_stats(device->memory).alloc_retries;
        device->host.book->n_retries += n_retries - device->n_retries;
        device->n_retries = n_retries;
    }
}

static PlanAnswer alloc(gpointer self, const PlanPosition *at, uint32_t buffer, GError **error) {
    SimDevice *device = self;
    uint64_t n_acts = device->driver.n_acts;
    charge_memory(device, at);
    bool has_room = sim_memory_alloc(device->memory, buffer, at->instr->lane, at);
    book_retries(device, n_acts);
    if (!has_room || (device->setup.calm && device->n_retries > 0)) {
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
    if (sim_device_meets_others(device, cost, op)) {
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
    const SimOpCost *cost = sim_device_cost(device, number);
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
        .evaluates = at->instr->phase == PLAN_PHASE_EVALUATION,
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
        meets ? sim_device_cost(device, (uint32_t)(op - device->role->ops))->duration_ns : 0;
    charge(device, at,
           sim_issue_cost(device->issue, at->instr) + network_ns +
               sim_time_from_ns(bytes / device->cluster->host_memory_gb_per_s));
    return done(device);
}

const PlanDevice sim_device = {
    .name = "sim",
    .section_begins = section_begins,
    .alloc = alloc,
    .free = free_buffer,
    .mark = mark,
    .launch = launch,
    .record = record,
    .wait = wait,
    .host_wait = host_wait,
    .host_op = host_op,
};
