#include "sim/ranks/representative.h"

#include "plan/player.h"
#include "sim/error.h"
#include "sim/ranks/task.h"
#include "sim/ranks/verdict.h"

/* ---- one program ---------------------------------------------------------------------------- */

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

/* ---- one play ------------------------------------------------------------------------------- */

static uint32_t role_of(const SimTask *task) {
    return plan_role_of_rank(task->plan, task->options->rank);
}

static SimOpCosts *costs_of(const SimTask *task) {
    SimNetworkPath paths[SIM_N_PATHS];
    for (unsigned axis = 0; axis < PLAN_N_AXES; axis++) {
        paths[axis] = sim_network_path(task->cluster, task->plan, (PlanAxis)axis);
    }
    for (unsigned behind = 0; behind < 2; behind++) {
        paths[SIM_PATH_BEFORE + behind] = sim_network_path_to(task->cluster, task->plan, 0, behind);
    }
    return sim_op_costs_new(task->plan, role_of(task), task->cluster, paths,
                            &task->prediction->unsupported_dtype);
}

static void read_steps(SimPrediction *prediction, SimDevice *device) {
    g_autofree SimTime *ends = g_new(SimTime, prediction->n_steps);
    for (uint32_t step = 0; step < prediction->n_steps; step++) {
        ends[step] = sim_account_step(sim_device_account(device), (int32_t)step)->end_ns;
    }
    sim_verdict_steps(prediction, sim_device_zero(device), ends);
}

static void read_flops(const SimTask *task) {
    const PlanRole *role = &task->plan->roles[role_of(task)];
    SimWork work = sim_work_of_step(role, task->cluster, SIM_WORK_ASKED);
    sim_verdict_flops(task->prediction, &work);
}

static void read_play(const SimTask *task, SimDevice *device) {
    SimPrediction *prediction = task->prediction;
    sim_verdict_memory(prediction, &task->plan->roles[role_of(task)], device);
    read_steps(prediction, device);
    sim_verdict_times(prediction, device);
    read_flops(task);
}

static PlanAnswer play_once(const SimTask *task, bool limited, Trace *trace, GError **error) {
    SimPrediction *prediction = task->prediction;
    g_autoptr(SimOpCosts) costs = costs_of(task);
    if (!costs) {
        return PLAN_STOPPED;
    }
    if (!sim_op_costs_check(costs, task->plan, task->options->steps, error)) {
        return PLAN_FAILED;
    }
    SimDeviceSetup setup = {.plan = task->plan,
                            .costs = costs,
                            .steps = task->options->steps,
                            .allocator_bytes = limited ? prediction->allocator_bytes : SIM_NO_LIMIT,
                            .allocator = task->options->allocator,
                            .no_sharing = task->options->no_sharing,
                            .arena = task->options->arena,
                            .calm = task->options->wanted == SIM_WANTED_CALM,
                            .repeats = !trace && task->cluster->device_lane_wake_us ==
                                                     0, /* else lanes' rest counts */
                            .slowdown = sim_task_slowdown(task)};
    g_autoptr(SimDevice) device = sim_device_new(&setup, error);
    if (!device) {
        return PLAN_FAILED;
    }
    if (task->options->unplayed) {
        read_flops(task);
        return PLAN_DONE;
    }
    if (trace) {
        sim_device_keep_rows(device);
        sim_memory_keep_answers(sim_device_memory(device), task->options->answers);
    }
    g_autoptr(PlanPlayer) player =
        plan_player_new(task->plan, role_of(task), task->options->steps, &sim_device, device);
    PlanAnswer answer = play(device, player, error);
    prediction->n_played =
        (uint32_t)plan_player_position(player)->step + (plan_player_position(player)->index > 0);
    prediction->n_passed_over = sim_device_passed_over(device);
    if (answer == PLAN_STOPPED) {
        sim_verdict_oom(prediction, &task->plan->roles[role_of(task)], device);
    } else if (answer == PLAN_DONE) {
        read_play(task, device);
    }
    if (trace && answer != PLAN_FAILED) {
        sim_device_write_rows(device, task->options->rank, SIM_NEVER, trace);
    }
    return answer;
}

/* ---- both plays ----------------------------------------------------------------------------- */

bool sim_play_representative(const Plan *plan, const ModelCluster *cluster,
                             const SimOptions *options, SimPrediction *prediction, Trace *trace,
                             GError **error) {
    const SimTask task = {plan, cluster, options, prediction, NULL};
    if (trace) {
        trace_add_rank(trace, options->rank, role_of(&task));
    }
    prediction->oom.rank = options->rank;
    prediction->memory_rank = prediction->time_rank = options->rank;
    return sim_task_play(&task, play_once, trace, error);
}
