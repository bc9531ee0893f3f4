/* sim/ranks/every-read.c - what an every-rank play tells. */
#include "plan/mesh.h"
#include "plan/op/work.h"
#include "sim/ranks/every-private.h"
#include "sim/ranks/verdict.h"

static SimTime end_of_step(const SimMember *member, int32_t step) {
    return sim_account_step(sim_device_account(member->device), step)->end_ns;
}

/* A step ends with its last rank's. */
static void read_steps(SimEvery *every) {
    SimPrediction *prediction = every->task.prediction;
    g_autofree SimTime *last = g_new(SimTime, prediction->n_steps);
    for (uint32_t step = 0; step < prediction->n_steps; step++) {
        last[step] = 0;
        for (uint32_t rank = 0; rank < every->task.plan->world; rank++) {
            if (sim_every_plays(every, rank)) {
                last[step] = MAX(last[step], end_of_step(&every->members[rank], (int32_t)step));
            }
        }
    }
    sim_verdict_steps(prediction, every->barrier_ns, last);
}

static double slowest_pace(const SimEvery *every) {
    double slowest = 0;
    for (uint32_t rank = 0; rank < every->task.plan->world; rank++) {
        slowest = MAX(slowest, sim_every_pace(every->task.options, rank));
    }
    return slowest;
}

static SimTime works_for(const SimMember *member, int32_t after, int32_t last) {
    const SimAccount *account = sim_device_account(member->device);
    const SimTime *from = sim_account_step(account, after)->cause_ns;
    const SimTime *to = sim_account_step(account, last)->cause_ns;
    return to[SIM_CAUSE_ARITHMETIC] - from[SIM_CAUSE_ARITHMETIC] + to[SIM_CAUSE_MEMORY] -
           from[SIM_CAUSE_MEMORY];
}

/* slowest: the pace of that GPU, of those without trouble. That others wait for it is no loss here,
 * as where one rank that is as slow stands for all. */
static SimRankBook read_rank(const SimEvery *every, const SimMember *member, double slowest) {
    const SimPrediction *prediction = every->task.prediction;
    const SimMeetingsBook *book = sim_meetings_book(every->meetings, member->rank);
    uint32_t n = prediction->n_steady, lane = sim_device_compute_lane(member->device);
    int32_t last = (int32_t)prediction->n_steps - 1;
    SimTime from = n == prediction->n_steps ? sim_device_zero(member->device)
                                            : end_of_step(member, last - (int32_t)n);
    SimTime to = end_of_step(member, last), compute = 0, lost = 0, exposed = 0;
    for (int32_t step = last - (int32_t)n + 1; step <= last; step++) {
        const SimStepBook *own = sim_account_step(sim_device_account(member->device), step);
        compute += own->lane_busy_ns[lane];
        lost += own->lost_ns;
        for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
            exposed += own->collectives[kind].exposed_ns;
        }
    }
    double works = slowest / member->pace * (double)works_for(member, last - (int32_t)n, last);
    SimTime all = to == SIM_NEVER || from == SIM_NEVER ? 0 : to - from;
    SimMemoryStats memory = sim_memory_stats(sim_device_memory(member->device));
    return (SimRankBook){
        .node_kind = member->cluster == every->task.cluster ? every->task.cluster->model
                                                            : member->cluster->name,
        .step_ns = all / n,
        .compute_ns = compute / n,
        .works_ns = (SimTime)MIN(works, (double)all) / n,
        .exposed_ns = exposed / n,
        .lost_ns = lost / n,
        .waited_ns = book->waited_ns / n,
        .held_ns = book->held_ns / n,
        .n_last = (double)book->n_last / n,
        .peak_reserved_bytes = memory.peak_reserved_bytes,
        .alloc_retries = memory.alloc_retries,
    };
}

/* The mean of all ranks: kinds of node have other peaks, and the last shard may be smaller. */
void sim_every_read_flops(SimEvery *every) {
    SimWork mean = {0};
    g_autofree uint32_t *n_of = g_new0(uint32_t, every->costs->len);
    for (uint32_t rank = 0; rank < every->task.plan->world; rank++) {
        if (sim_every_plays(every, rank)) {
            const SimOpCosts *costs = sim_device_costs(every->members[rank].device);
            guint place;
            g_ptr_array_find(every->costs, costs, &place);
            n_of[place]++;
        }
    }
    for (guint i = 0; i < every->costs->len; i++) {
        const SimOpCosts *costs = g_ptr_array_index(every->costs, i);
        SimWork work =
            sim_work_of_step(&every->task.plan->roles[costs->role], costs->cluster, SIM_WORK_ASKED);
        double share = (double)n_of[i] / every->n_played;
        mean.flops += share * work.flops;
        mean.least_seconds += share * work.least_seconds;
    }
    sim_verdict_flops(every->task.prediction, &mean);
}

/* The first rank of the stage that was asked for. */
static uint32_t rank_of_memory(const SimEvery *every, uint32_t fullest) {
    const Plan *plan = every->task.plan;
    switch (every->task.options->memory_of) {
    case SIM_MEMORY_OF_FULLEST:
        return fullest;
    case SIM_MEMORY_OF_FIRST:
        return every->first;
    case SIM_MEMORY_OF_LAST:
        return every->first + (plan->axes[PLAN_AXIS_PIPELINE] - 1) * plan_ranks_of_stage(plan);
    }
    g_assert_not_reached();
}

/* Memory is that of the rank fullest relative to its own capacity, or of a stage if that was
 * asked; if one ran out, the capacity shown is its own. Times are of the rank that loses least to
 * others. */
void sim_every_read(SimEvery *every) {
    SimPrediction *prediction = every->task.prediction;
    prediction->n_ranks = every->task.played ? 0 : every->task.plan->world;
    g_autofree SimRankBook *books = g_new0(SimRankBook, every->task.plan->world);
    uint32_t fullest = every->first, pace = every->first;
    double most = 0, slowest = slowest_pace(every);
    for (uint32_t rank = every->first; rank < every->task.plan->world; rank++) {
        if (!sim_every_plays(every, rank)) {
            continue;
        }
        const SimMember *member = &every->members[rank];
        SimRankBook *book = &books[rank];
        *book = read_rank(every, member, slowest);
        double full = (double)book->peak_reserved_bytes /
                      (double)sim_allocator_bytes(every->task.plan, member->cluster);
        fullest = full > most ? rank : fullest;
        most = MAX(most, full);
        pace = book->lost_ns < books[pace].lost_ns ? rank : pace;
    }
    fullest = rank_of_memory(every, fullest);
    prediction->ranks = every->task.played ? NULL : g_steal_pointer(&books);
    prediction->memory_rank = fullest;
    prediction->time_rank = pace;
    SimMember *shown = &every->members[fullest];
    if (prediction->fits) {
        sim_prediction_set_memory(prediction, every->task.plan, shown->cluster);
    }
    sim_verdict_memory(prediction, &every->task.plan->roles[shown->role], shown->device);
    read_steps(every);
    sim_verdict_times(prediction, every->members[pace].device);
    sim_every_read_flops(every);
}

void sim_every_read_oom(SimEvery *every) {
    const SimMember *member = every->short_of_memory;
    sim_prediction_set_memory(every->task.prediction, every->task.plan, member->cluster);
    every->task.prediction->oom.rank = member->rank;
    sim_verdict_oom(every->task.prediction, &every->task.plan->roles[member->role], member->device);
}
