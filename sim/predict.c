#include "sim/predict.h"

#include <stdlib.h>

#include "plan/op-work.h"
#include "plan/player.h"
#include "plan/strategy.h"
#include "sim/device.h"
#include "trace/from-plan.h"

G_DEFINE_QUARK(foreshard_sim_error, sim_error)

/* ---- what a play tells ---- */

static SimMoment moment(const PlanRole *role, const SimMemoryPlace *place, SimTime host_ns,
                        const MemoryTotals *now) {
    const PlanInstr *instr = &role->sections[place->section][place->index];
    return (SimMoment){
        .step = place->step,
        .section = place->section,
        .index = place->index,
        .phase = instr->phase,
        .unit = instr->unit,
        .host_ns = host_ns,
        .allocated_bytes = now->allocated_bytes,
        .active_bytes = now->active_bytes,
        .reserved_bytes = now->reserved_bytes,
    };
}

static void read_memory(SimPrediction *prediction, const PlanRole *role, SimDevice *device) {
    SimMemory *memory = sim_device_memory(device);
    SimMemoryPeak peak = sim_memory_peak(memory);
    SimMemoryStats stats = sim_memory_stats(memory);
    prediction->peak.at =
        moment(role, &peak.place, peak.host_ns - sim_device_zero(device), &peak.then);
    for (unsigned sub = 0; sub < PLAN_N_SUBCATEGORIES; sub++) {
        prediction->peak.by_sub[sub] = peak.by_sub[sub];
    }
    for (uint32_t unit = 0; unit <= prediction->n_units; unit++) {
        prediction->peak.by_unit[unit] = peak.by_unit[unit];
    }
    prediction->peak_active_bytes = stats.peak_active_bytes;
    prediction->peak_reserved_bytes = stats.peak_reserved_bytes;
    prediction->alloc_retries = stats.alloc_retries;
    prediction->segment_allocs = stats.segment_allocs;
    prediction->segment_frees = stats.segment_frees;
}

static void read_oom(SimPrediction *prediction, const PlanRole *role, SimDevice *device) {
    SimTime host_ns;
    uint32_t buffer;
    const PlanPosition *at = sim_device_failed_at(device, &host_ns, &buffer);
    SimMemoryPlace place = {at->step, at->section, at->index};
    const MemoryTotals *now = sim_memory_now(sim_device_memory(device));
    prediction->fits = false;
    prediction->oom.at = moment(role, &place, host_ns - sim_device_zero(device), now);
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

/* A step's time is the interval between the ends of the last compute-lane op of two successive
 * steps; the first one's begins at the barrier. */
static void read_step_times(SimPrediction *prediction, SimDevice *device) {
    const SimAccount *account = sim_device_account(device);
    SimTime before = sim_device_zero(device);
    for (uint32_t step = 0; step < prediction->n_steps; step++) {
        SimTime end = sim_account_step(account, (int32_t)step)->end_ns;
        end = end == SIM_NEVER ? before : end; /* a program without compute takes no time */
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
    for (unsigned share = 0; share < SIM_N_SHARES; share++) {
        prediction->shares_ns[share] /= n;
    }
    prediction->host_ns /= n;
    prediction->host_blocked_ns /= n;
}

/* The shares of the steady steps: what the last one's end shows more than the end before the
 * first. */
static void read_shares(SimPrediction *prediction, const SimAccount *account) {
    int32_t last = (int32_t)prediction->n_steps - 1;
    int32_t before = last - (int32_t)prediction->n_steady;
    const SimStepBook *from = sim_account_step(account, before);
    const SimStepBook *to = sim_account_step(account, last);
    for (unsigned share = 0; share < SIM_N_SHARES; share++) {
        prediction->shares_ns[share] = to->shares_ns[share] - from->shares_ns[share];
    }
}

static void name_shares(SimPrediction *prediction, SimDevice *device) {
    prediction->share_names[SIM_SHARE_ARITHMETIC] = "arithmetic";
    prediction->share_names[SIM_SHARE_MEMORY] = "memory bandwidth";
    prediction->share_names[SIM_SHARE_OVERHEAD] = "launch overhead";
    prediction->share_names[SIM_SHARE_SLOWED] = "kernels slowed by collectives";
    for (unsigned axis = 0; axis < PLAN_N_AXES; axis++) {
        prediction->share_names[SIM_SHARE_NETWORK + axis] =
            sim_device_slowest_link(device, (PlanAxis)axis);
    }
    prediction->share_names[SIM_SHARE_BESIDE] = "kernels of other lanes";
    prediction->share_names[SIM_SHARE_HOST] = "host";
    unsigned largest = 0;
    for (unsigned share = 1; share < SIM_N_SHARES; share++) {
        largest = prediction->shares_ns[share] > prediction->shares_ns[largest] ? share : largest;
    }
    prediction->bound_by = prediction->share_names[largest];
}

static void read_times(SimPrediction *prediction, SimDevice *device) {
    const SimAccount *account = sim_device_account(device);
    read_step_times(prediction, device);
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
    read_shares(prediction, account);
    divide_by_steps(prediction);
    name_shares(prediction, device);
    prediction->compute_ns = prediction->lane_busy_ns[sim_device_compute_lane(device)];
}

/* Arithmetic that the model asks for: what is done a second time (recomputed activations; the
 * scores that attention's backward makes again, one of its five products) is left out. */
static void count_flops(SimPrediction *prediction, const PlanRole *role,
                        const ModelCluster *cluster) {
    PlanSection section = PLAN_SECTION_STEADY;
    double least_seconds = 0;
    for (uint32_t i = 0; i < role->n_instrs[section]; i++) {
        const PlanInstr *instr = &role->sections[section][i];
        if (instr->kind != PLAN_LAUNCH || instr->phase == PLAN_PHASE_RECOMPUTE) {
            continue;
        }
        const PlanOp *op = &role->ops[instr->arg];
        double flops = plan_op_work(role, op).flops;
        flops *= op->kind == PLAN_OP_ATTENTION_BACKWARD ? 4.0 / 5.0 : 1.0;
        if (flops > 0) {
            prediction->flops += flops;
            least_seconds += flops / model_cluster_peak_flops(cluster, op->dtype);
        }
    }
    if (prediction->median_step_ns > 0) {
        prediction->mfu = least_seconds * 1e9 / (double)prediction->median_step_ns;
    }
}

/* ---- playing ---- */

static PlanAnswer play(SimDevice *device, PlanPlayer *player, GError **error) {
    PlanAnswer answer = plan_player_run(player, error);
    while (answer == PLAN_NOT_YET) {
        sim_device_resume(device);
        answer = plan_player_run(player, error);
    }
    sim_device_drain(device);
    return answer;
}

typedef struct {
    const Plan *plan;
    const ModelCluster *cluster;
    const SimOptions *options;
    uint32_t role;
    SimPrediction *prediction;
} Task;

/* One play with so much memory. Rows go to the trace when the play is the one to keep: the limited
 * one, whether it fits or not. */
static PlanAnswer play_once(const Task *task, uint64_t allocator_bytes, Trace *trace,
                            GError **error) {
    SimPrediction *prediction = task->prediction;
    const PlanRole *role = &task->plan->roles[task->role];
    g_autoptr(SimDevice) device =
        sim_device_new(task->plan, task->role, task->cluster, task->options->steps, allocator_bytes,
                       task->options->allocator, task->options->alone, task->options->arena,
                       &prediction->unsupported_dtype, error);
    if (!device) {
        return prediction->unsupported_dtype ? PLAN_STOPPED : PLAN_FAILED;
    }
    if (trace) {
        sim_device_keep_rows(device);
    }
    g_autoptr(PlanPlayer) player =
        plan_player_new(task->plan, task->role, task->options->steps, &sim_device, device);
    PlanAnswer answer = play(device, player, error);
    if (answer == PLAN_STOPPED) {
        read_oom(prediction, role, device);
    } else if (answer == PLAN_DONE) {
        read_memory(prediction, role, device);
        read_times(prediction, device);
        count_flops(prediction, role, task->cluster);
    }
    if (trace && answer != PLAN_FAILED) {
        sim_device_write_rows(device, 0, trace);
    }
    return answer;
}

static void describe(Trace *trace, const Task *task) {
    trace_describe_plan(trace, task->plan);
    trace_set(trace, "side", "predicted");
    trace_set(trace, "device", "sim");
    trace_set(trace, "cluster", task->cluster->name);
    if (task->cluster->digest) { /* of a file */
        trace_set(trace, "cluster_digest", task->cluster->digest);
    }
    trace_set_uint(trace, "steps", task->options->steps);
    trace_set_uint(trace, "allocator_bytes", task->prediction->allocator_bytes);
    trace_set_uint(trace, "outside_allocator_bytes", task->prediction->outside_allocator_bytes);
    trace_add_rank(trace, 0, task->role);
}

static SimPrediction *prediction_new(const Plan *plan, const ModelCluster *cluster,
                                     uint32_t steps) {
    SimPrediction *prediction = g_new0(SimPrediction, 1);
    prediction->fits = true;
    prediction->memory_bytes = cluster->device_memory_bytes;
    prediction->outside_allocator_bytes = cluster->device_outside_allocator_bytes;
    prediction->allocator_bytes = model_cluster_allocator_bytes(cluster);
    prediction->n_steps = steps;
    prediction->n_steady = steps > 2 ? steps - 2 : steps;
    prediction->step_ns = g_new0(SimTime, steps);
    prediction->n_lanes = plan->n_lanes;
    prediction->lane_busy_ns = g_new0(SimTime, plan->n_lanes);
    prediction->n_units = plan->n_units;
    prediction->peak.by_unit = g_new0(uint64_t, (gsize)plan->n_units + 1);
    return prediction;
}

SimPrediction *sim_predict(const Plan *plan, const ModelCluster *cluster, const SimOptions *options,
                           Trace *trace, GError **error) {
    g_assert(options->steps >= 1);
    g_autoptr(SimPrediction) prediction = prediction_new(plan, cluster, options->steps);
    MemoryOptions asked; /* by the strategy */
    SimOptions own = *options;
    if (!own.allocator) {
        const char *conf = plan_allocator_conf(plan->strategy);
        own.allocator = &asked;
        own.arena |= !conf;
        if (!memory_options_parse(conf, &asked, error)) {
            return NULL;
        }
    }
    Task task = {plan, cluster, &own, plan_role_of_rank(plan, 0), prediction};
    if (trace) {
        describe(trace, &task);
    }
    PlanAnswer answer = play_once(&task, prediction->allocator_bytes, trace, error);
    if (answer == PLAN_STOPPED && !prediction->unsupported_dtype) {
        answer = play_once(&task, UINT64_MAX, NULL, error);
        g_assert(answer != PLAN_STOPPED);
    }
    return answer == PLAN_FAILED ? NULL : g_steal_pointer(&prediction);
}

void sim_prediction_free(SimPrediction *prediction) {
    if (prediction) {
        g_free(prediction->step_ns);
        g_free(prediction->lane_busy_ns);
        g_free(prediction->peak.by_unit);
        g_free(prediction);
    }
}
