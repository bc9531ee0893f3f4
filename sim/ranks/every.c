#include "sim/ranks/every-private.h"
#include "sim/ranks/verdict.h"

/* ---- turns ---------------------------------------------------------------------------------- */

/* At one moment lanes act before hosts; collectives that are due then come before both. */
static SimTime turn_of(SimTime at, SimActs who) {
    return at == SIM_NEVER ? SIM_NEVER : 2 * at + (who == SIM_ACTS_HOST);
}

/* The turn with which the play ends for want of memory, as far as is known. */
static SimTime last_turn(const SimEvery *every) {
    return every->short_of_memory ? turn_of(every->short_at, SIM_ACTS_HOST) : SIM_NEVER;
}

/* Nothing can come to the rank from others before it does this, and the play goes on so far. That
 * nothing is due is for it to know at any time. */
static bool is_free(const SimEvery *every, uint32_t rank, SimTime at, SimActs who) {
    SimTime bound = sim_meetings_bound(every->meetings, rank);
    bool comes = at == SIM_NEVER || turn_of(at, who) <= last_turn(every);
    return comes && (who == SIM_ACTS_HOST ? at < bound : at <= bound);
}

static bool hold(gpointer self, uint32_t rank, SimTime at, SimActs who) {
    SimEvery *every = self;
    SimMember *member = &every->members[rank];
    if (every->over && every->inside) {
        sim_fiber_yield(member->fiber); /* for good */
    }
    if (every->over || turn_of(at, who) <= every->granted || is_free(every, rank, at, who)) {
        return false;
    }
    member->wants = at;
    member->who = who;
    sim_queue_set(every->waiting, rank, turn_of(at, who));
    sim_fiber_yield(member->fiber);
    return true;
}

/* News for a rank that waits: something of its own is due at that moment, which may be before what
 * it would have gone on to. */
static void wake(SimEvery *every, uint32_t rank, SimTime at) {
    SimMember *member = &every->members[rank];
    if (!sim_queue_is_set(every->waiting, rank)) {
        return;
    }
    if (turn_of(at, SIM_ACTS_LANE) < turn_of(member->wants, member->who)) {
        member->wants = at;
        member->who = SIM_ACTS_LANE;
    }
    if (is_free(every, rank, member->wants, member->who)) {
        sim_queue_unset(every->waiting, rank);
        g_array_append_val(every->ready, rank);
    } else {
        sim_queue_set(every->waiting, rank, turn_of(member->wants, member->who));
    }
}

static void meets(gpointer self, uint32_t rank, uint32_t lane, SimTime at) {
    SimEvery *every = self;
    sim_engine_changes_at(sim_device_engine(every->members[rank].device), lane, at);
    every->granted = -1; /* it was, up to the next thing that was due, and that is this one now */
    wake(every, rank, at);
}

static void ends(gpointer self, uint32_t rank, uint32_t lane, SimTime at) {
    SimEvery *every = self;
    sim_engine_ends_at(sim_device_engine(every->members[rank].device), lane, at);
    wake(every, rank, at);
}

static const SimMeetingsHooks hooks = {meets, ends};

/* ---- peers, as a device sees them ----------------------------------------------------------- */

static void fails(SimEvery *every, SimMember *member) {
    every->failed = member;
    every->over = true;
}

static void arrives(gpointer self, uint32_t rank, const SimArrival *arrival) {
    SimEvery *every = self;
    if (every->over) { /* a device that is freed lets what it was given run: others may be gone */
        return;
    }
    SimMember *member = &every->members[rank];
    if (!sim_meetings_arrive(every->meetings, rank, arrival, &member->error)) {
        fails(every, member);
    }
}

static SimTime barrier(gpointer self, uint32_t rank, SimTime at) {
    SimEvery *every = self;
    every->barrier_ns = MAX(every->barrier_ns, at);
    if (++every->n_at_barrier < every->n_played) {
        sim_fiber_yield(every->members[rank].fiber);
        return every->barrier_ns;
    }
    for (uint32_t other = 0; other < every->plan->world; other++) {
        if (other != rank && sim_every_plays(every, other)) {
            g_array_append_val(every->ready, other);
        }
    }
    return every->barrier_ns;
}

static const SimPeers peers = {arrives, hold, barrier};

/* ---- one play ------------------------------------------------------------------------------- */

/* Ranks that are behind it in time may yet run out before it; at one moment the lowest does. */
static void runs_out(SimEvery *every, SimMember *member) {
    SimTime at;
    uint32_t buffer;
    sim_device_failed_at(member->device, &at, &buffer);
    bool first = !every->short_of_memory || at < every->short_at ||
                 (at == every->short_at && member->rank < every->short_of_memory->rank);
    if (first) {
        every->short_of_memory = member;
        every->short_at = at;
    }
}

static void run_member(gpointer self) {
    SimMember *member = self;
    SimEvery *every = member->every;
    PlanAnswer answer = plan_player_run(member->player, &member->error);
    while (answer == PLAN_NOT_YET) {
        sim_device_resume(member->device);
        answer = plan_player_run(member->player, &member->error);
    }
    if (answer == PLAN_DONE) {
        sim_device_drain(member->device);
        every->n_ended++;
    } else if (answer == PLAN_STOPPED) {
        runs_out(every, member);
    } else {
        fails(every, member);
    }
}

static void report(const SimEvery *every) {
    if (every->options->progress) {
        const PlanPosition *at = plan_player_position(every->members[every->first].player);
        uint32_t n = MAX(1, at->role->n_instrs[at->section]);
        double steps = at->step + 1 + (double)at->index / n;
        every->options->progress(every->options->progress_self,
                                 MIN(1, steps / (every->options->steps + 1)));
    }
}

static void resume(SimEvery *every, uint32_t rank) {
    if (!every->over) {
        every->inside = true;
        sim_fiber_resume(every->members[rank].fiber);
        every->inside = false;
    }
    if (++every->n_resumed % 256 == 0) {
        report(every);
    }
}

static void run_ready(SimEvery *every) {
    while (every->ready->len) {
        guint next = every->options->reversed ? every->ready->len - 1 : 0;
        uint32_t rank = g_array_index(every->ready, uint32_t, next);
        g_array_remove_index(every->ready, next);
        resume(every, rank);
    }
}

/* Nobody is free: what is due first happens. False when nothing is. With a rank that ran out of
 * memory the play ends when all the others have come to that moment. */
static bool do_next(SimEvery *every) {
    SimTime collective = turn_of(sim_meetings_next(every->meetings), SIM_ACTS_LANE);
    SimTime turn = sim_queue_next(every->waiting);
    uint32_t rank;
    SimTime at;
    if (every->short_of_memory &&
        (MIN(turn, collective) == SIM_NEVER || MIN(turn, collective) > last_turn(every))) {
        every->over = true;
        return true;
    }
    if (collective != SIM_NEVER && collective <= turn) {
        sim_meetings_step(every->meetings);
        return true;
    }
    if (turn == SIM_NEVER) {
        return false;
    }
    sim_queue_pop(every->waiting, &rank, &at);
    SimTime others = MIN(collective, sim_queue_next(every->waiting)) - 1;
    every->granted = MAX(turn, MIN(others, last_turn(every)));
    resume(every, rank);
    every->granted = -1;
    return true;
}

static bool play(SimEvery *every, GError **error) {
    for (uint32_t rank = 0; rank < every->plan->world; rank++) {
        if (sim_every_plays(every, rank)) {
            g_array_append_val(every->ready, rank);
        }
    }
    bool more = true;
    while (!every->over && every->n_ended < every->n_played && more) {
        run_ready(every);
        more =
            every->over || every->n_ended == every->n_played || do_next(every) || every->ready->len;
    }
    if (!more) {
        g_autofree char *who = sim_meetings_who_waits(every->meetings);
        g_set_error(error, SIM_ERROR, SIM_ERROR_PLAN, "%s; the plan is broken, make it again",
                    who ? who : "the ranks wait for each other");
    }
    every->over = true;
    return more;
}

/* ---- who takes part ------------------------------------------------------------------------- */

static bool lies_alike(const SimNetworkPath *a, const SimNetworkPath *b) {
    for (unsigned i = 0; i < SIM_N_PATHS; i++) {
        if (a[i].nodes != b[i].nodes || a[i].ranks_a_node != b[i].ranks_a_node ||
            a[i].least_a_node != b[i].least_a_node || a[i].node_channels != b[i].node_channels ||
            a[i].links != b[i].links) {
            return false;
        }
    }
    return true;
}

/* Its own; of a rank that stands for its stage, the slowest of the stage. */
static void find_paths(const SimEvery *every, const SimMember *member,
                       SimNetworkPath paths[SIM_N_PATHS]) {
    const ModelCluster *cluster = member->cluster;
    const Plan *plan = every->plan;
    bool stands = every->played != NULL;
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
            lies_alike(costs->paths, paths)) {
            return costs;
        }
    }
    SimOpCosts *costs = sim_op_costs_new(every->plan, member->role, member->cluster, paths,
                                         &every->prediction->unsupported_dtype);
    if (costs) {
        g_ptr_array_add(every->costs, costs);
    } else {
        every->prediction->unsupported_on = member->cluster->model;
    }
    bool ends = !costs || sim_op_costs_check(costs, every->plan, every->options->steps, error);
    return ends ? costs : NULL;
}

static bool has_trouble(const SimTrouble *trouble, SimTroubleKind kind, uint32_t rank) {
    return trouble->kind == kind && rank >= trouble->first_rank && rank <= trouble->last_rank;
}

/* A rank's own pace is a draw outside all steps. */
static double slowdown_of(const SimOptions *options, uint32_t rank) {
    double slowdown = sim_jitter_factor(&options->jitter, SIM_JITTER_GPU, rank, INT32_MIN, 0);
    for (uint32_t i = 0; i < options->n_troubles; i++) {
        if (has_trouble(&options->troubles[i], SIM_TROUBLE_SLOW, rank)) {
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

static bool is_traced(const SimEvery *every, uint32_t rank, const Trace *trace) {
    return trace && sim_every_plays(every, rank) &&
           (!every->options->traced || every->options->traced[rank]);
}

static bool add_member(SimEvery *every, uint32_t rank, bool limited, const Trace *trace,
                       GError **error) {
    SimMember *member = &every->members[rank];
    const SimOptions *options = every->options;
    *member = (SimMember){
        .every = every,
        .rank = rank,
        .role = plan_role_of_rank(every->plan, rank),
        .cluster =
            model_cluster_node(every->cluster, rank / every->cluster->topology_gpus_per_node),
    };
    SimDeviceSetup setup = {
        .plan = every->plan,
        .costs = costs_for(every, member, error),
        .steps = options->steps,
        .allocator_bytes = limited ? sim_allocator_bytes(every->plan, member->cluster) : UINT64_MAX,
        .allocator = options->allocator,
        .no_sharing = options->no_sharing,
        .arena = options->arena,
        .peers = &peers,
        .peers_self = every,
        .rank = rank,
        .slowdown = every->played ? sim_jitter_slowest(every->cluster->jitter_gpu_percent / 100,
                                                       every->plan->world)
                                  : slowdown_of(options, rank),
        .jitter = every->played ? (SimJitter){0} : options->jitter,
    };
    member->device = setup.costs ? sim_device_new(&setup, error) : NULL;
    if (!member->device) {
        return false;
    }
    if (is_traced(every, rank, trace)) {
        sim_device_keep_rows(member->device);
    }
    member->player =
        plan_player_new(every->plan, member->role, options->steps, &sim_device, member->device);
    member->fiber = sim_fiber_new(run_member, member);
    return true;
}

static void every_free(SimEvery *every) {
    for (uint32_t rank = 0; rank < every->plan->world; rank++) {
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
    g_array_unref(every->ready);
    g_free(every);
}

/* asked: a play of which no more is set than what it is of. */
static SimEvery *every_new(const SimEvery *asked) {
    const Plan *plan = asked->plan;
    const SimPrediction *prediction = asked->prediction;
    SimEvery *every = g_memdup2(asked, sizeof *asked);
    every->first = plan->world;
    for (uint32_t rank = plan->world; rank-- > 0;) {
        if (sim_every_plays(every, rank)) {
            every->first = rank;
            every->n_played++;
        }
    }
    every->costs = g_ptr_array_new_with_free_func((GDestroyNotify)sim_op_costs_free);
    every->fabric = fabric_for(plan, asked->cluster, asked->options);
    int32_t first_steady = (int32_t)(prediction->n_steps - prediction->n_steady);
    const SimMeetingsSetup meetings = {
        .plan = plan,
        .fabric = every->fabric,
        .played = asked->played,
        .no_sharing = asked->options->no_sharing,
        .first_counted = first_steady,
        .jitter = &asked->options->jitter,
        .hooks = &hooks,
        .self = every,
    };
    every->meetings = sim_meetings_new(&meetings);
    every->members = g_new0(SimMember, plan->world);
    every->waiting = sim_queue_new(plan->world);
    every->ready = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    every->granted = -1;
    return every;
}

/* A play that ends for want of memory ends for all at that moment. */
static void write_rows(const SimEvery *every, Trace *trace) {
    SimTime until = every->short_of_memory ? every->short_at : SIM_NEVER;
    for (uint32_t rank = 0; rank < every->plan->world; rank++) {
        if (is_traced(every, rank, trace)) {
            trace_add_rank(trace, rank, every->members[rank].role);
            sim_device_write_rows(every->members[rank].device, rank, until, trace);
        }
    }
}

/* ---- all ------------------------------------------------------------------------------------ */

static PlanAnswer read_end(SimEvery *every, Trace *trace, GError **error) {
    if (every->failed) {
        g_propagate_error(error, g_steal_pointer(&every->failed->error));
        return PLAN_FAILED;
    }
    if (every->short_of_memory) {
        sim_every_read_oom(every);
    } else {
        sim_every_read(every);
    }
    if (trace) {
        write_rows(every, trace);
    }
    return every->short_of_memory ? PLAN_STOPPED : PLAN_DONE;
}

/* limited: by the memory that there is. */
static PlanAnswer play_once(const SimEvery *asked, bool limited, Trace *trace, GError **error) {
    SimEvery *every = every_new(asked);
    PlanAnswer answer = PLAN_DONE;
    for (uint32_t rank = 0; rank < asked->plan->world && answer == PLAN_DONE; rank++) {
        if (sim_every_plays(every, rank) && !add_member(every, rank, limited, trace, error)) {
            answer = asked->prediction->unsupported_dtype ? PLAN_STOPPED : PLAN_FAILED;
        }
    }
    if (answer == PLAN_DONE && asked->options->unplayed) {
        sim_every_read_flops(every);
    } else if (answer == PLAN_DONE) {
        answer = play(every, error) ? read_end(every, trace, error) : PLAN_FAILED;
    }
    every->over = true;
    every_free(every);
    return answer;
}

static bool play_asked(const SimEvery *asked, Trace *trace, GError **error) {
    PlanAnswer answer = play_once(asked, true, trace, error);
    bool again = !asked->prediction->unsupported_dtype && !asked->options->fit_only;
    if (answer == PLAN_STOPPED && again) {
        answer = play_once(asked, false, NULL, error);
        if (answer == PLAN_STOPPED) {
            return sim_verdict_refuse_oom(asked->prediction, error);
        }
    }
    return answer != PLAN_FAILED;
}

bool sim_play_every(const Plan *plan, const ModelCluster *cluster, const SimOptions *options,
                    SimPrediction *prediction, Trace *trace, GError **error) {
    const SimEvery all = {plan, cluster, options, NULL, prediction};
    return play_asked(&all, trace, error);
}

bool sim_play_stages(const Plan *plan, const ModelCluster *cluster, const SimOptions *options,
                     SimPrediction *prediction, Trace *trace, GError **error) {
    g_autofree bool *played = g_new0(bool, plan->world);
    uint32_t group = plan_group_of_rank(plan, options->rank, PLAN_AXIS_PIPELINE);
    for (uint32_t rank = 0; rank < plan->world; rank++) {
        played[rank] = plan_group_of_rank(plan, rank, PLAN_AXIS_PIPELINE) == group;
    }
    const SimEvery one_of_each = {plan, cluster, options, played, prediction};
    return play_asked(&one_of_each, trace, error);
}
