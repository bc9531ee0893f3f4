#include "sim/predict.h"

#include "plan/op-work.h"
#include "plan/player.h"
#include "plan/strategy.h"
#include "sim/every.h"
#include "sim/settings.h"
#include "sim/verdict.h"
#include "trace/ended.h"
#include "trace/from-plan.h"

/* ---- playing ---- */

#define SECTION_END UINT32_MAX

static PlanAnswer play_to(SimDevice *device, PlanPlayer *player, uint32_t index, GError **error) {
    while (true) {
        PlanAnswer answer = index == SECTION_END ? plan_player_run_section(player, error)
                                                 : plan_player_run_to(player, index, error);
        if (answer != PLAN_NOT_YET) {
            return answer;
        }
        sim_device_resume(device);
    }
}

/* Up to where it is known that nothing more need be played, or to the last moment to ask. */
static PlanAnswer play_moments(SimDevice *device, PlanPlayer *player, unsigned n, bool *ret_repeats,
                               GError **error) {
    const PlanPosition *at = plan_player_position(player);
    PlanAnswer answer = PLAN_DONE;
    for (unsigned i = 0; i < n && answer == PLAN_DONE && !*ret_repeats; i++) {
        uint32_t index = sim_repeat_moment(at->role, at->section, i);
        answer = play_to(device, player, index, error);
        *ret_repeats = answer == PLAN_DONE && sim_device_repeats_at(device, at, i);
    }
    return answer;
}

static PlanAnswer play_passes(SimDevice *device, PlanPlayer *player, const SimPasses *passes,
                              GError **error) {
    const PlanPosition *at = plan_player_position(player);
    PlanAnswer answer = PLAN_DONE;
    for (uint32_t pass = 1; pass < passes->n && answer == PLAN_DONE; pass++) {
        if (passes->begins[pass] >= at->index) {
            answer = play_to(device, player, passes->begins[pass], error);
            uint32_t n = answer == PLAN_DONE ? sim_device_pass_begins(device, at->step, pass) : 0;
            plan_player_pass_over(player, n);
        }
    }
    return answer;
}

static PlanAnswer play(SimDevice *device, PlanPlayer *player, GError **error) {
    const PlanPosition *at = plan_player_position(player);
    PlanAnswer answer = PLAN_DONE;
    bool repeats = false;
    while (answer == PLAN_DONE && !plan_player_at_end(player) && !repeats) {
        const SimPasses *passes = sim_device_passes(device, at->section);
        bool accumulates = passes && passes->n > 0;
        answer = play_moments(device, player, accumulates ? 1 : SIM_N_MOMENTS, &repeats, error);
        if (answer == PLAN_DONE && !repeats && accumulates) {
            answer = play_passes(device, player, passes, error);
        }
        if (answer == PLAN_DONE && !repeats && sim_device_lacks(device) > 0) {
            g_set_error(error, SIM_ERROR, SIM_ERROR_FOLDED,
                        "%u passes of step %d are not written and do not repeat those that are",
                        sim_device_lacks(device), at->step);
            return PLAN_FAILED;
        }
        if (answer == PLAN_DONE && !repeats) {
            answer = play_to(device, player, SECTION_END, error);
        }
    }
    if (!repeats) {
        sim_device_drain(device);
    }
    return answer;
}

typedef struct {
    const Plan *plan;
    const ModelCluster *cluster;
    const SimOptions *options;
    uint32_t role;
    SimPrediction *prediction;
} Task;

static SimOpCosts *costs_of(const Task *task) {
    SimNetworkPath paths[SIM_N_PATHS];
    for (unsigned axis = 0; axis < PLAN_N_AXES; axis++) {
        paths[axis] = sim_network_path(task->cluster, task->plan, (PlanAxis)axis);
    }
    for (unsigned behind = 0; behind < 2; behind++) {
        paths[SIM_PATH_BEFORE + behind] = sim_network_path_to(task->cluster, task->plan, 0, behind);
    }
    return sim_op_costs_new(task->plan, task->role, task->cluster, paths,
                            &task->prediction->unsupported_dtype);
}

static void read_steps(SimPrediction *prediction, SimDevice *device) {
    g_autofree SimTime *ends = g_new(SimTime, prediction->n_steps);
    for (uint32_t step = 0; step < prediction->n_steps; step++) {
        ends[step] = sim_account_step(sim_device_account(device), (int32_t)step)->end_ns;
    }
    sim_verdict_steps(prediction, sim_device_zero(device), ends);
}

static void read_play(const Task *task, SimDevice *device) {
    SimPrediction *prediction = task->prediction;
    const PlanRole *role = &task->plan->roles[task->role];
    sim_verdict_memory(prediction, role, device);
    read_steps(prediction, device);
    sim_verdict_times(prediction, device);
    SimWork work = sim_work_of_step(role, task->cluster, SIM_WORK_ASKED);
    sim_verdict_flops(prediction, &work);
}

/* One play with so much memory. Rows go to the trace when the play is the one to keep: the limited
 * one, whether it fits or not. */
static PlanAnswer play_once(const Task *task, uint64_t allocator_bytes, Trace *trace,
                            GError **error) {
    SimPrediction *prediction = task->prediction;
    g_autoptr(SimOpCosts) costs = costs_of(task);
    if (!costs) {
        return PLAN_STOPPED;
    }
    if (!sim_op_costs_check(costs, task->plan, task->options->steps, error)) {
        return PLAN_FAILED;
    }
    SimDeviceSetup setup = {
        .plan = task->plan,
        .costs = costs,
        .steps = task->options->steps,
        .allocator_bytes = allocator_bytes,
        .allocator = task->options->allocator,
        .no_sharing = task->options->no_sharing,
        .arena = task->options->arena,
        .repeats = !trace && task->cluster->device_lane_wake_us == 0, /* else lanes' rest counts */
        .slowdown = sim_jitter_slowest(task->cluster->jitter_gpu_percent / 100, task->plan->world)};
    g_autoptr(SimDevice) device = sim_device_new(&setup, error);
    if (!device) {
        return PLAN_FAILED;
    }
    if (trace) {
        sim_device_keep_rows(device);
        sim_memory_keep_answers(sim_device_memory(device), task->options->answers);
    }
    g_autoptr(PlanPlayer) player =
        plan_player_new(task->plan, task->role, task->options->steps, &sim_device, device);
    PlanAnswer answer = play(device, player, error);
    prediction->n_played =
        (uint32_t)plan_player_position(player)->step + (plan_player_position(player)->index > 0);
    prediction->n_passed_over = sim_device_passed_over(device);
    if (answer == PLAN_STOPPED) {
        sim_verdict_oom(prediction, &task->plan->roles[task->role], device);
    } else if (answer == PLAN_DONE) {
        read_play(task, device);
    }
    if (trace && answer != PLAN_FAILED) {
        sim_device_write_rows(device, task->options->rank, SIM_NEVER, trace);
    }
    return answer;
}

/* Both plays, the one with the memory there is and, where that does not do, one without limit. */
static bool play_alone(const Task *task, Trace *trace, GError **error) {
    if (trace) {
        trace_add_rank(trace, task->options->rank, task->role);
    }
    task->prediction->oom.rank = task->options->rank;
    task->prediction->memory_rank = task->prediction->time_rank = task->options->rank;
    PlanAnswer answer = play_once(task, task->prediction->allocator_bytes, trace, error);
    if (answer == PLAN_STOPPED && !task->prediction->unsupported_dtype) {
        answer = play_once(task, UINT64_MAX, NULL, error);
        if (answer == PLAN_STOPPED) {
            return sim_verdict_refuse_oom(task->prediction, error);
        }
    }
    return answer != PLAN_FAILED;
}

/* ---- all ---- */

/* What apart ranks would have apart, one rank cannot stand for. */
static bool check_alike(const Plan *plan, const ModelCluster *cluster, GError **error) {
    uint64_t a_node = cluster->topology_gpus_per_node;
    uint64_t nodes = (plan->world + a_node - 1) / a_node;
    const char *what = NULL;
    for (uint64_t node = 0; node < nodes; node++) {
        what = model_cluster_node(cluster, node) != cluster ? "nodes of several kinds" : what;
    }
    if (cluster->inter_node_oversubscription > 1 && cluster->inter_node_nodes_per_leaf > 0 &&
        nodes > cluster->inter_node_nodes_per_leaf) {
        what = "an oversubscribed spine between these nodes";
    }
    if (what) {
        g_set_error(error, SIM_ERROR, SIM_ERROR_CLUSTER,
                    "cluster %s has %s, for which no one rank can stand; play each: add "
                    "--every-rank to foreshard predict",
                    cluster->name, what);
    }
    return !what;
}

/* Symmetric memory is of GPUs that can read each other's. */
static bool check_peers(const Plan *plan, const ModelCluster *cluster, GError **error) {
    bool asks = plan_workspace_bytes(&plan->roles[0]) > 0;
    SimNetworkPath path = sim_network_path(cluster, plan, PLAN_AXIS_TENSOR);
    if (asks && path.nodes > 1) {
        g_set_error(error, SIM_ERROR, SIM_ERROR_CLUSTER,
                    "async_tensor=yes copies within a node, and the %u ranks that share layers lie "
                    "on %u nodes of cluster %s; set tensor to what divides %" G_GUINT64_FORMAT
                    ", or async_tensor=no",
                    path.ranks, path.nodes, cluster->name, cluster->topology_gpus_per_node);
        return false;
    }
    return true;
}

/* Only who leaps over passes can play those that are not written. */
static bool check_folded(const Plan *plan, const ModelCluster *cluster, const SimOptions *options,
                         GError **error) {
    bool leaps = cluster->device_lane_wake_us == 0 && !options->arena;
    if (plan->roles[0].n_folded > 0 && !leaps) {
        g_set_error(error, SIM_ERROR, SIM_ERROR_FOLDED,
                    "all passes are played on cluster %s, or all placed; build the plan whole",
                    cluster->name);
        return false;
    }
    return true;
}

static bool check_cluster(const Plan *plan, const ModelCluster *cluster, GError **error) {
    if (plan->world > model_cluster_ranks(cluster)) {
        g_set_error(
            error, SIM_ERROR, SIM_ERROR_CLUSTER,
            "the plan is for %u ranks, but cluster %s has place for %" G_GUINT64_FORMAT
            " (%" G_GUINT64_FORMAT " node%s of %" G_GUINT64_FORMAT
            "); plan for fewer ranks, name a larger cluster, or the same one with more nodes "
            "(NAME:NODES)",
            plan->world, cluster->name, model_cluster_ranks(cluster), cluster->topology_nodes,
            cluster->topology_nodes == 1 ? "" : "s", cluster->topology_gpus_per_node);
        return false;
    }
    return true;
}

static bool check_every(const Plan *plan, const SimOptions *options, GError **error) {
    if (plan->world > SIM_MOST_RANKS) {
        g_set_error(error, SIM_ERROR, SIM_ERROR_PLAN,
                    "%u ranks are too many to play each (%d at most); plan for fewer, or leave "
                    "--every-rank out: one rank then stands for all",
                    plan->world, SIM_MOST_RANKS);
        return false;
    }
    for (uint32_t i = 0; i < options->n_troubles; i++) {
        if (options->troubles[i].last_rank >= plan->world) {
            g_set_error(error, SIM_ERROR, SIM_ERROR_PLAN,
                        "rank %u is to have a trouble, but the plan has %u ranks, counted from 0; "
                        "predict it anew with troubles of its own ranks",
                        options->troubles[i].last_rank, plan->world);
            return false;
        }
    }
    return true;
}

static void describe(Trace *trace, const Task *task) {
    trace_describe_plan(trace, task->plan);
    trace_set(trace, "side", "predicted");
    trace_set(trace, "device", "sim");
    trace_set(trace, "cluster", task->cluster->name);
    if (task->cluster->digest) { /* of a file */
        trace_set(trace, "cluster_digest", task->cluster->digest);
    }
    sim_settings_write(trace, task->cluster, task->options);
    trace_set_uint(trace, "allocator_bytes", task->prediction->allocator_bytes);
    trace_set_uint(trace, "outside_allocator_bytes", task->prediction->outside_allocator_bytes);
}

/* Where its rows end. */
static void describe_oom(Trace *trace, const Plan *plan, const SimPrediction *prediction) {
    const SimMoment *at = &prediction->oom.at;
    const PlanRole *role = &plan->roles[plan_role_of_rank(plan, prediction->oom.rank)];
    TraceOom oom = {.rank = prediction->oom.rank,
                    .step = at->step,
                    .instruction = trace_instruction_number(role, at->section, at->index),
                    .buffer = prediction->oom.buffer};
    trace_set_oom(trace, &oom);
}

uint64_t sim_allocator_bytes(const Plan *plan, const ModelCluster *cluster) {
    uint64_t left = model_cluster_allocator_bytes(cluster);
    uint64_t shared = plan_workspace_bytes(&plan->roles[0]);
    return left > shared ? left - shared : 0;
}

static SimPrediction *prediction_new(const Plan *plan, const ModelCluster *cluster,
                                     uint32_t steps) {
    SimPrediction *prediction = g_new0(SimPrediction, 1);
    prediction->fits = true;
    prediction->memory_bytes = cluster->device_memory_bytes;
    uint64_t shared = plan_workspace_bytes(&plan->roles[0]);
    prediction->outside_allocator_bytes = cluster->device_outside_allocator_bytes + shared;
    prediction->allocator_bytes = sim_allocator_bytes(plan, cluster);
    prediction->workspace_bytes = model_cluster_workspace_bytes(cluster);
    prediction->unsupported_on = cluster->model;
    prediction->n_steps = prediction->n_played = steps;
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
    g_assert(options->steps >= 1 && options->steps <= SIM_MOST_STEPS);
    g_assert(options->rank < plan->world);
    g_assert(!plan->for_one || (!options->every_rank && options->rank == 0));
    g_assert(plan->roles[0].n_folded == 0 || trace == NULL);
    g_autoptr(SimPrediction) prediction = prediction_new(plan, cluster, options->steps);
    MemoryOptions asked; /* by the strategy */
    SimOptions own = *options;
    if (!own.allocator) {
        const char *conf;
        if (!plan_allocator_conf(plan->strategy, &conf, error) ||
            !memory_options_parse(conf, &asked, error)) {
            return NULL;
        }
        own.allocator = &asked;
        own.arena |= !conf;
    }
    if (!check_cluster(plan, cluster, error) || !check_peers(plan, cluster, error) ||
        !check_folded(plan, cluster, &own, error) ||
        !(own.every_rank ? check_every(plan, &own, error) : check_alike(plan, cluster, error))) {
        return NULL;
    }
    Task task = {plan, cluster, &own, plan_role_of_rank(plan, own.rank), prediction};
    if (trace) {
        describe(trace, &task);
    }
    bool stages = plan->axes[PLAN_AXIS_PIPELINE] > 1;
    bool done = own.every_rank ? sim_play_every(plan, cluster, &own, prediction, trace, error)
                : stages       ? sim_play_stages(plan, cluster, &own, prediction, trace, error)
                               : play_alone(&task, trace, error);
    if (done && trace && !prediction->fits) {
        describe_oom(trace, plan, prediction);
    }
    return done ? g_steal_pointer(&prediction) : NULL;
}

void sim_prediction_free(SimPrediction *prediction) {
    if (prediction) {
        g_free(prediction->step_ns);
        g_free(prediction->lane_busy_ns);
        g_free(prediction->peak.by_unit);
        g_free(prediction->ranks);
        g_free(prediction);
    }
}
