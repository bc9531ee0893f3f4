#include "plan/mesh.h"
#include "sim/ranks/every-private.h"

/* ---- ranks that are ready to run ------------------------------------------------------------- */

static void add_ready(SimEvery *every, uint32_t rank) {
    SimReady *ready = &every->ready;
    g_assert(ready->n < ready->room);
    ready->ranks[(ready->first + ready->n++) % ready->room] = rank;
}

static uint32_t take_ready(SimEvery *every) {
    SimReady *ready = &every->ready;
    ready->n--;
    if (every->task.options->reversed) {
        return ready->ranks[(ready->first + ready->n) % ready->room];
    }
    uint32_t rank = ready->ranks[ready->first];
    ready->first = (ready->first + 1) % ready->room;
    return rank;
}

/* ---- the order of events at one moment ------------------------------------------------------- */

/* A turn is a moment and who acts in it: at one moment lanes act before hosts, and collectives that
 * are due before both. */
static SimTime turn_of(SimTime at, SimActs who) {
    return at == SIM_NEVER ? SIM_NEVER : 2 * at + (who == SIM_ACTS_HOST);
}

/* The last turn of a play in which a rank ran out of memory; SIM_NEVER: none has so far. */
static SimTime last_turn(const SimEvery *every) {
    return every->short_of_memory ? turn_of(every->short_at, SIM_ACTS_HOST) : SIM_NEVER;
}

/* True if no other rank can affect this one before `at`, and the play lasts that long. The play's
 * end does not matter to a rank with nothing due (SIM_NEVER). */
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
        add_ready(every, rank);
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
    for (uint32_t other = 0; other < every->task.plan->world; other++) {
        if (other != rank && sim_every_plays(every, other)) {
            add_ready(every, other);
        }
    }
    return every->barrier_ns;
}

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

static void run(gpointer self) {
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

static const SimEveryActs acts = {
    .peers = {arrives, hold, barrier}, .hooks = {meets, ends}, .run = run};

static void report(const SimEvery *every) {
    if (every->task.options->progress) {
        const PlanPosition *at = plan_player_position(every->members[every->first].player);
        uint32_t n = MAX(1, at->role->n_instrs[at->section]);
        double steps = at->step + 1 + (double)at->index / n;
        every->task.options->progress(every->task.options->progress_self,
                                      MIN(1, steps / (every->task.options->steps + 1)));
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
    while (every->ready.n) {
        resume(every, take_ready(every));
    }
}

/* No rank is free, so the event that is due first happens; false if there is none. If a rank ran
 * out of memory, the play ends once all others have reached that moment. */
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
    for (uint32_t rank = 0; rank < every->task.plan->world; rank++) {
        if (sim_every_plays(every, rank)) {
            add_ready(every, rank);
        }
    }
    bool more = true;
    while (!every->over && every->n_ended < every->n_played && more) {
        run_ready(every);
        more = every->over || every->n_ended == every->n_played || do_next(every) || every->ready.n;
    }
    if (!more) {
        g_autofree char *who = sim_meetings_who_waits(every->meetings);
        g_set_error(error, SIM_ERROR, SIM_ERROR_PLAN, "%s; the plan is broken, make it again",
                    who ? who : "the ranks wait for each other");
    }
    every->over = true;
    return more;
}

/* ---- all ------------------------------------------------------------------------------------ */

/* A play that ends for want of memory ends for all at that moment. */
static void write_rows(const SimEvery *every, Trace *trace) {
    SimTime until = every->short_of_memory ? every->short_at : SIM_NEVER;
    for (uint32_t rank = 0; rank < every->task.plan->world; rank++) {
        if (sim_every_traces(every, rank, trace)) {
            trace_add_rank(trace, rank, every->members[rank].role);
            sim_device_write_rows(every->members[rank].device, rank, until, trace);
        }
    }
}

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

static PlanAnswer play_once(const SimTask *task, bool limited, Trace *trace, GError **error) {
    SimEvery *every = sim_every_new(task, &acts);
    PlanAnswer answer = PLAN_DONE;
    for (uint32_t rank = 0; rank < task->plan->world && answer == PLAN_DONE; rank++) {
        if (sim_every_plays(every, rank) && !sim_every_add(every, rank, limited, trace, error)) {
            answer = task->prediction->unsupported_dtype ? PLAN_STOPPED : PLAN_FAILED;
        }
    }
    if (answer == PLAN_DONE && task->options->unplayed) {
        sim_every_read_flops(every);
    } else if (answer == PLAN_DONE) {
        answer = play(every, error) ? read_end(every, trace, error) : PLAN_FAILED;
    }
    every->over = true;
    sim_every_free(every);
    return answer;
}

bool sim_play_every(const Plan *plan, const ModelCluster *cluster, const SimOptions *options,
                    SimPrediction *prediction, Trace *trace, GError **error) {
    const SimTask all = {plan, cluster, options, prediction, NULL};
    return sim_task_play(&all, play_once, trace, error);
}

/* Adds those of the rank's pipeline. */
static void add_pipeline(const Plan *plan, uint32_t of, bool *played) {
    uint32_t group = plan_group_of_rank(plan, of, PLAN_AXIS_PIPELINE);
    for (uint32_t rank = 0; rank < plan->world; rank++) {
        played[rank] |= plan_group_of_rank(plan, rank, PLAN_AXIS_PIPELINE) == group;
    }
}

bool sim_play_stages(const Plan *plan, const ModelCluster *cluster, const SimOptions *options,
                     SimPrediction *prediction, Trace *trace, GError **error) {
    g_autofree bool *played = g_new0(bool, plan->world);
    add_pipeline(plan, options->rank, played);
    const SimTask one_of_each = {plan, cluster, options, prediction, played};
    return sim_task_play(&one_of_each, play_once, trace, error);
}

static const ModelCluster *node_of(const ModelCluster *cluster, uint32_t rank) {
    return model_cluster_node(cluster, rank / cluster->topology_gpus_per_node);
}

/* Whether one of its stage on such a node is played. */
static bool is_stood_for(const Plan *plan, const ModelCluster *cluster, uint32_t rank,
                         const bool *played) {
    uint32_t n = plan_ranks_of_stage(plan), first = rank / n * n;
    bool is = false;
    for (uint32_t other = first; other < first + n && !is; other++) {
        is = played[other] && node_of(cluster, other) == node_of(cluster, rank);
    }
    return is;
}

bool sim_play_one_of_each(const Plan *plan, const ModelCluster *cluster, const SimOptions *options,
                          SimPrediction *prediction, Trace *trace, GError **error) {
    g_autofree bool *played = g_new0(bool, plan->world);
    for (uint32_t rank = 0; rank < plan->world; rank++) {
        if (!is_stood_for(plan, cluster, rank, played)) {
            add_pipeline(plan, rank, played);
        }
    }
    const SimTask one_of_each = {plan, cluster, options, prediction, played};
    return sim_task_play(&one_of_each, play_once, trace, error);
}
