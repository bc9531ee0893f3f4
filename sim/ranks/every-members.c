/* sim/ranks/every-members.c - who takes part in an every-rank play, and over which links. */
#include "sim/ranks/every-private.h"

static bool lie_alike(const SimNetworkPath *a, const SimNetworkPath *b) {
    bool alike = true;
    for (unsigned i = 0; alike && i < SIM_N_PATHS; i++) {
        alike = sim_network_paths_equal(&a[i], &b[i]);
    }
    return alike;
}

/* Its own; of a rank that stands for its stage, the slowest of the stage. */
static void find_paths(const SimEvery *every, const SimMember *member,
                       SimNetworkPath paths[SIM_N_PATHS]) {
    const ModelCluster *cluster = member->cluster;
    const Plan *plan = every->task.plan;
    bool stands = every->task.played != NULL;
    for (PlanAxis axis = 0; axis < PLAN_N_AXES; axis++) {
        paths[axis] = stands ? sim_network_path_of_stage(cluster, plan, axis, member->rank)
                             : sim_network_path_of(cluster, plan, axis, member->rank);
    }
    for (unsigned behind = 0; behind < 2; behind++) {
        paths[SIM_PATH_BEFORE + behind] =
            stands ? sim_network_path_to_stage(cluster, plan, member->rank, behind)
                   : sim_network_path_to(cluster, plan, member->rank, behind);
    }
}

/* NULL and the prediction's unsupported_dtype set when the rank's GPU lacks one; or with error. */
static const SimOpCosts *costs_for(SimEvery *every, const SimMember *member, GError **error) {
    SimNetworkPath paths[SIM_N_PATHS];
    find_paths(every, member, paths);
    for (guint i = 0; i < every->costs->len; i++) {
        const SimOpCosts *costs = g_ptr_array_index(every->costs, i);
        if (costs->role == member->role && costs->cluster == member->cluster &&
            lie_alike(costs->paths, paths)) {
            return costs;
        }
    }
    SimOpCosts *costs = sim_op_costs_new(every->task.plan, member->role, member->cluster, paths,
                                         &every->task.prediction->unsupported_dtype);
    if (costs) {
        g_ptr_array_add(every->costs, costs);
    } else {
        every->task.prediction->unsupported_on = member->cluster->model;
    }
    bool ends =
        !costs || sim_op_costs_check(costs, every->task.plan, every->task.options->steps, error);
    return ends ? costs : NULL;
}

static bool has_trouble(const SimTrouble *trouble, SimTroubleKind kind, uint32_t rank) {
    return trouble->kind == kind && rank >= trouble->first_rank && rank <= trouble->last_rank;
}

static double slowest_of_kind(const SimEvery *every, const SimMember *member) {
    const SimTask *task = &every->task;
    uint64_t a_node = task->cluster->topology_gpus_per_node;
    uint32_t n = plan_ranks_of_stage(task->plan), first = member->rank / n * n;
    double slowest = 0;
    for (uint32_t rank = first; rank < first + n; rank++) {
        if (model_cluster_node(task->cluster, rank / a_node) == member->cluster) {
            slowest = MAX(slowest, sim_every_pace(task->options, rank));
        }
    }
    return slowest;
}

/* Those of a stage that one rank plays are as slow as the slowest is expected to be. */
static double slowdown_of(const SimEvery *every, const SimMember *member) {
    const SimOptions *options = every->task.options;
    if (every->task.played && !options->one_of_each) {
        return sim_task_slowdown(&every->task);
    }
    double slowdown = member->pace;
    for (uint32_t i = 0; i < options->n_troubles; i++) {
        if (has_trouble(&options->troubles[i], SIM_TROUBLE_SLOW, member->rank)) {
            slowdown *= options->troubles[i].factor;
        }
    }
    return slowdown;
}

/* A capacity of 1 is what a collective reaches of a rank's links undisturbed; where its NIC is a
 * slower kind's, that is in the collective's cost already. */
static SimFabric *fabric_for(const Plan *plan, const ModelCluster *cluster,
                             const SimOptions *options) {
    bool has_spine = cluster->inter_node_oversubscription > 1;
    SimFabricShape shape = {
        .ranks = plan->world,
        .ranks_a_node = (uint32_t)cluster->topology_gpus_per_node,
        .nodes_a_leaf = has_spine ? (uint32_t)cluster->inter_node_nodes_per_leaf : 0,
        .nvlink = 1,
        .nic = 1,
        .uplink = (double)cluster->inter_node_nodes_per_leaf / cluster->inter_node_oversubscription,
        .pairs = cluster->has_nvlinks ? cluster : NULL,
    };
    SimFabric *fabric = sim_fabric_new(&shape);
    for (uint32_t i = 0; i < options->n_troubles; i++) {
        const SimTrouble *trouble = &options->troubles[i];
        for (uint32_t rank = trouble->first_rank; rank <= trouble->last_rank; rank++) {
            if (trouble->kind == SIM_TROUBLE_NVLINK) {
                sim_fabric_scale_nvlink(fabric, rank, trouble->factor);
            } else if (trouble->kind == SIM_TROUBLE_NIC) {
                sim_fabric_scale_nic(fabric, rank, trouble->factor);
            }
        }
    }
    return fabric;
}

bool sim_every_traces(const SimEvery *every, uint32_t rank, const Trace *trace) {
    return trace && sim_every_plays(every, rank) &&
           (!every->task.options->traced || every->task.options->traced[rank]);
}

bool sim_every_add(SimEvery *every, uint32_t rank, bool limited, const Trace *trace,
                   GError **error) {
    SimMember *member = &every->members[rank];
    const SimOptions *options = every->task.options;
    *member = (SimMember){
        .every = every,
        .rank = rank,
        .role = plan_role_of_rank(every->task.plan, rank),
        .cluster = model_cluster_node(every->task.cluster,
                                      rank / every->task.cluster->topology_gpus_per_node),
    };
    member->pace = every->task.played && options->one_of_each ? slowest_of_kind(every, member)
                                                              : sim_every_pace(options, rank);
    SimDeviceSetup setup = {
        .plan = every->task.plan,
        .costs = costs_for(every, member, error),
        .steps = options->steps,
        .allocator_bytes =
            limited ? sim_allocator_bytes(every->task.plan, member->cluster) : SIM_NO_LIMIT,
        .allocator = options->allocator,
        .no_sharing = options->no_sharing,
        .calm = options->wanted == SIM_WANTED_CALM,
        .arena = options->arena,
        .peers = &every->acts->peers,
        .peers_self = every,
        .rank = rank,
        .slowdown = slowdown_of(every, member),
        .jitter = every->task.played ? (SimJitter){0} : options->jitter,
    };
    member->device = setup.costs ? sim_device_new(&setup, error) : NULL;
    if (!member->device) {
        return false;
    }
    if (sim_every_traces(every, rank, trace)) {
        sim_device_keep_rows(member->device);
    }
    member->player = plan_player_new(every->task.plan, member->role, options->steps, &sim_device,
                                     member->device);
    member->fiber = sim_fiber_new(every->acts->run, member);
    return true;
}

void sim_every_free(SimEvery *every) {
    for (uint32_t rank = 0; rank < every->task.plan->world; rank++) {
        SimMember *member = &every->members[rank];
        sim_device_free(member->device);
        plan_player_free(member->player);
        sim_fiber_free(member->fiber);
        g_clear_error(&member->error);
    }
    g_free(every->members);
    g_ptr_array_unref(every->costs);
    sim_fabric_free(every->fabric);
    sim_meetings_free(every->meetings);
    sim_queue_free(every->waiting);
    g_free(every->ready.ranks);
    g_free(every);
}

SimEvery *sim_every_new(const SimTask *task, const SimEveryActs *acts) {
    const Plan *plan = task->plan;
    SimEvery *every = g_new0(SimEvery, 1);
    every->task = *task;
    every->acts = acts;
    every->first = plan->world;
    for (uint32_t rank = plan->world; rank-- > 0;) {
        if (sim_every_plays(every, rank)) {
            every->first = rank;
            every->n_played++;
        }
    }
    every->costs = g_ptr_array_new_with_free_func((GDestroyNotify)sim_op_costs_free);
    every->fabric = fabric_for(plan, task->cluster, task->options);
    const SimMeetingsSetup meetings = {
        .plan = plan,
        .fabric = every->fabric,
        .played = task->played,
        .no_sharing = task->options->no_sharing,
        .first_counted = (int32_t)(task->prediction->n_steps - task->prediction->n_steady),
        .jitter = &task->options->jitter,
        .hooks = &acts->hooks,
        .self = every,
    };
    every->meetings = sim_meetings_new(&meetings);
    every->members = g_new0(SimMember, plan->world);
    every->waiting = sim_queue_new(plan->world);
    every->ready = (SimReady){.ranks = g_new(uint32_t, plan->world), .room = plan->world};
    every->granted = -1;
    return every;
}
