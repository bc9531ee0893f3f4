#include "sim/ranks/verdict.h"

#include <stdlib.h>

#include "plan/fold.h"
#include "sim/figures.h"

/* As if all passes were written. */
static uint32_t whole_index(const PlanRole *role, const SimMemoryPosition *position) {
    PlanFold fold;
    bool is_behind = plan_fold_find(role, position->section, &fold) && position->index >= fold.end;
    return position->index + (is_behind ? role->n_folded * (fold.end - fold.begin) : 0);
}

static SimMoment moment(const PlanRole *role, const SimMemoryPosition *position, SimTime host_ns,
                        const MemoryTotals *now) {
    const PlanInstr *instr = &role->sections[position->section][position->index];
    return (SimMoment){
        .step = position->step,
        .section = position->section,
        .index = whole_index(role, position),
        .phase = instr->phase,
        .unit = instr->unit,
        .host_ns = host_ns,
        .allocated_bytes = now->allocated_bytes,
        .active_bytes = now->active_bytes,
        .reserved_bytes = now->reserved_bytes,
    };
}

static double retries_per_step(const SimPrediction *prediction, SimDevice *device) {
    uint32_t first = prediction->n_steps / 2;
    uint64_t n = 0;
    for (uint32_t step = first; step < prediction->n_steps; step++) {
        n += sim_device_host_book(device, (int32_t)step)->n_retries;
    }
    return (double)n / (prediction->n_steps - first);
}

void sim_verdict_memory(SimPrediction *prediction, const PlanRole *role, SimDevice *device) {
    SimMemory *memory = sim_device_memory(device);
    SimMemoryPeak peak = sim_memory_peak(memory);
    SimMemoryStats stats = sim_memory_stats(memory);
    prediction->peak.at =
        moment(role, &peak.position, peak.host_ns - sim_device_zero(device), &peak.then);
    for (unsigned sub = 0; sub < PLAN_N_SUBCATEGORIES; sub++) {
        prediction->peak.by_sub[sub] = peak.by_sub[sub];
    }
    for (uint32_t unit = 0; unit <= prediction->n_units; unit++) {
        prediction->peak.by_unit[unit] = peak.by_unit[unit];
    }
    prediction->peak_active_bytes = stats.peak_active_bytes;
    prediction->peak_reserved_bytes = stats.peak_reserved_bytes;
    prediction->alloc_retries = stats.alloc_retries;
    prediction->retries_per_step = retries_per_step(prediction, device);
    prediction->segment_allocs = stats.segment_allocs;
    prediction->segment_frees = stats.segment_frees;
    SimMemoryEvaluation evaluation = sim_memory_evaluation(memory);
    prediction->evaluation_allocated_bytes = evaluation.most_allocated_bytes;
    prediction->evaluation_reserved_bytes = evaluation.last.reserved_bytes;
}

void sim_verdict_oom(SimPrediction *prediction, const PlanRole *role, SimDevice *device) {
    SimTime host_ns;
    uint32_t buffer;
    const PlanPosition *at = sim_device_failed_at(device, &host_ns, &buffer);
    SimMemoryPosition position = {at->step, at->section, at->index};
    const MemoryTotals *now = sim_memory_now(sim_device_memory(device));
    prediction->fits = false;
    prediction->oom.at = moment(role, &position, host_ns - sim_device_zero(device), now);
    prediction->oom.buffer = role->buffers[buffer].name;
    prediction->oom.bytes = role->buffers[buffer].bytes;
    prediction->oom.sub = role->buffers[buffer].sub;
    const uint64_t *held = sim_memory_held(sim_device_memory(device));
    for (unsigned sub = 0; sub < PLAN_N_SUBCATEGORIES; sub++) {
        prediction->oom.by_sub[sub] = held[sub];
    }
}

static int compare_times(gconstpointer a, gconstpointer b) {
    SimTime x = *(const SimTime *)a, y = *(const SimTime *)b;
    return (x > y) - (x < y);
}

void sim_verdict_steps(SimPrediction *prediction, SimTime zero, const SimTime *ends) {
    SimTime before = zero;
    for (uint32_t step = 0; step < prediction->n_steps; step++) {
        SimTime end = ends[step] == SIM_NEVER ? before : ends[step];
        prediction->step_ns[step] = end - before;
        before = end;
    }
    uint32_t n = prediction->n_steady;
    g_autofree SimTime *steady = g_new(SimTime, n);
    for (uint32_t i = 0; i < n; i++) {
        steady[i] = prediction->step_ns[prediction->n_steps - n + i];
    }
    qsort(steady, n, sizeof(SimTime), compare_times);
    prediction->median_step_ns = (steady[(n - 1) / 2] + steady[n / 2]) / 2;
    prediction->least_step_ns = steady[0];
    prediction->most_step_ns = steady[n - 1];
}

static void add_collectives(SimPrediction *prediction, const SimStepBook *book) {
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        prediction->collectives[kind].count += book->collectives[kind].count;
        prediction->collectives[kind].bytes += book->collectives[kind].bytes;
        prediction->collectives[kind].total_ns += book->collectives[kind].total_ns;
        prediction->collectives[kind].exposed_ns += book->collectives[kind].exposed_ns;
    }
}

static void divide_by_steps(SimPrediction *prediction) {
    uint32_t n = prediction->n_steady;
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        prediction->collectives[kind].count /= n;
        prediction->collectives[kind].bytes /= n;
        prediction->collectives[kind].total_ns /= n;
        prediction->collectives[kind].exposed_ns /= n;
    }
    for (uint32_t lane = 0; lane < prediction->n_lanes; lane++) {
        prediction->lane_busy_ns[lane] /= n;
    }
    for (unsigned cause = 0; cause < SIM_N_CAUSES; cause++) {
        prediction->cause_ns[cause] /= n;
    }
    prediction->host_ns /= n;
    prediction->host_blocked_ns /= n;
}

/* Shares at the end of the last step, less those before the first steady step. */
static void read_causes(SimPrediction *prediction, const SimAccount *account) {
    int32_t last = (int32_t)prediction->n_steps - 1;
    int32_t before = last - (int32_t)prediction->n_steady;
    const SimStepBook *from = sim_account_step(account, before);
    const SimStepBook *to = sim_account_step(account, last);
    for (unsigned cause = 0; cause < SIM_N_CAUSES; cause++) {
        prediction->cause_ns[cause] = to->cause_ns[cause] - from->cause_ns[cause];
    }
}

static void name_causes(SimPrediction *prediction, SimDevice *device) {
    prediction->cause_names[SIM_CAUSE_ARITHMETIC] = "arithmetic";
    prediction->cause_names[SIM_CAUSE_MEMORY] = "memory bandwidth";
    prediction->cause_names[SIM_CAUSE_OVERHEAD] = "launch overhead";
    prediction->cause_names[SIM_CAUSE_SLOWED] = "kernels slowed by collectives";
    for (unsigned axis = 0; axis < PLAN_N_AXES; axis++) {
        prediction->cause_names[SIM_CAUSE_NETWORK + axis] =
            sim_device_slowest_link(device, (PlanAxis)axis);
    }
    prediction->cause_names[SIM_CAUSE_NETWORK + PLAN_AXIS_PIPELINE] = "links between stages";
    prediction->cause_names[SIM_CAUSE_RANKS] =
        sim_device_has_stages(device) ? "pipeline bubbles" : "other ranks";
    prediction->cause_names[SIM_CAUSE_BESIDE] = "kernels of other lanes";
    prediction->cause_names[SIM_CAUSE_HOST] = "host";
    prediction->bound_by =
        prediction->cause_names[sim_is_host_bound(prediction)
                                    ? SIM_CAUSE_HOST
                                    : sim_prediction_largest_cause(prediction, 0)];
}

void sim_verdict_times(SimPrediction *prediction, SimDevice *device) {
    const SimAccount *account = sim_device_account(device);
    uint32_t first = prediction->n_steps - prediction->n_steady;
    for (uint32_t step = first; step < prediction->n_steps; step++) {
        const SimStepBook *book = sim_account_step(account, (int32_t)step);
        add_collectives(prediction, book);
        for (uint32_t lane = 0; lane < prediction->n_lanes; lane++) {
            prediction->lane_busy_ns[lane] += book->lane_busy_ns[lane];
        }
        prediction->host_ns += sim_device_host_book(device, (int32_t)step)->busy_ns;
        prediction->host_blocked_ns += sim_device_host_book(device, (int32_t)step)->blocked_ns;
    }
    read_causes(prediction, account);
    divide_by_steps(prediction);
    prediction->compute_ns = prediction->lane_busy_ns[sim_device_compute_lane(device)];
    name_causes(prediction, device);
    prediction->evaluation_ns = sim_device_evaluation(device);
}

void sim_verdict_flops(SimPrediction *prediction, const SimWork *work) {
    prediction->flops = work->flops;
    if (prediction->median_step_ns > 0) {
        prediction->mfu = work->least_seconds * 1e9 / (double)prediction->median_step_ns;
    }
}
