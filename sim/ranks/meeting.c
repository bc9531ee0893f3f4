#include "sim/ranks/meeting.h"

#include "sim/error.h"
#include "sim/links/fair.h"
#include "sim/queue.h"
#include "sim/ranks/communicators.h"

typedef enum {
    GATHERS, /* not all ranks have come */
    MET,     /* all have; it starts at last_ns */
    RUNS
} State;

/* What a communicator is about: the collective that is open there. */
typedef struct {
    const SimCommunicator *among;
    uint32_t number; /* the communicator's */
    State state;
    uint32_t n_came, last_rank;
    uint32_t *lanes; /* by place of a rank that has come, the lane on which */
    SimTime *came;   /* likewise, when */
    SimTime last_ns, second_ns;
    PlanOpKind kind;
    double bytes;
    int32_t step;
    uint32_t n_met; /* collectives that have met here so far */
    SimNetworkCost cost;

    uint32_t user; /* its number among those that share links (fair.h) */
    double left_ns, speed;
    SimTime since_ns, earliest_end_ns;
} Meeting;

struct _SimMeetings {
    SimMeetingsSetup setup;
    SimCommunicators communicators;
    Meeting *meetings;        /* by communicator */
    bool *there[SIM_N_SLOTS]; /* by rank: it has come to the collective that is open there */
    SimFair *fair;
    GArray *by_user;  /* uint32_t: the communicator that is fair's user */
    SimQueue *events; /* a slot a communicator: its start, then its end */
    SimMeetingsBook *books;
};

SimMeetings *sim_meetings_new(const SimMeetingsSetup *setup) {
    const Plan *plan = setup->plan;
    SimMeetings *meetings = g_new0(SimMeetings, 1);
    meetings->setup = *setup;
    sim_communicators_init(&meetings->communicators, plan, setup->fabric, setup->played,
                           setup->no_sharing);
    uint32_t n = meetings->communicators.n;
    meetings->meetings = g_new0(Meeting, n);
    for (uint32_t i = 0; i < n; i++) {
        const SimCommunicator *among = &meetings->communicators.all[i];
        meetings->meetings[i] = (Meeting){.among = among,
                                          .number = i,
                                          .lanes = g_new(uint32_t, among->n_ranks),
                                          .came = g_new(SimTime, among->n_ranks)};
    }
    for (unsigned slot = 0; slot < SIM_N_SLOTS; slot++) {
        if (meetings->communicators.of_rank[slot]) {
            meetings->there[slot] = g_new0(bool, plan->world);
        }
    }
    meetings->fair =
        sim_fair_new(meetings->communicators.capacities, meetings->communicators.n_links);
    meetings->by_user = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    meetings->events = sim_queue_new(n);
    meetings->books = g_new0(SimMeetingsBook, plan->world);
    return meetings;
}

void sim_meetings_free(SimMeetings *meetings) {
    if (meetings) {
        for (uint32_t i = 0; i < meetings->communicators.n; i++) {
            g_free(meetings->meetings[i].lanes);
            g_free(meetings->meetings[i].came);
        }
        for (unsigned slot = 0; slot < SIM_N_SLOTS; slot++) {
            g_free(meetings->there[slot]);
        }
        g_free(meetings->meetings);
        sim_communicators_clear(&meetings->communicators);
        sim_fair_free(meetings->fair);
        g_array_unref(meetings->by_user);
        sim_queue_free(meetings->events);
        g_free(meetings->books);
        g_free(meetings);
    }
}

/* ---- arriving ------------------------------------------------------------------------------- */

/* The meeting of a rank's communicator in that slot; NULL: it has no such communicator. */
static Meeting *meeting_of(const SimMeetings *meetings, uint32_t slot, uint32_t rank) {
    const uint32_t *of_rank = meetings->communicators.of_rank[slot];
    bool is_there = of_rank && of_rank[rank] != SIM_NO_COMMUNICATOR;
    return is_there ? &meetings->meetings[of_rank[rank]] : NULL;
}

/* A receive meets the other end's send, so both have one kind. */
static PlanOpKind kind_of(const SimArrival *arrival) {
    PlanOpKind kind = (PlanOpKind)arrival->op->kind;
    return kind == PLAN_OP_RECEIVE ? PLAN_OP_SEND : kind;
}

static bool is_the_same(const Meeting *meeting, const SimArrival *arrival) {
    return meeting->kind == kind_of(arrival) && meeting->bytes == arrival->cost->bytes;
}

static uint32_t slot_of(const SimArrival *arrival) {
    PlanOpKind kind = (PlanOpKind)arrival->op->kind;
    bool sends = kind == PLAN_OP_SEND;
    if (!plan_op_is_of_stages(kind)) {
        return arrival->op->axis;
    }
    SimWay way = kind == PLAN_OP_EXCHANGE   ? SIM_WAY_BOTH
                 : sends == arrival->behind ? SIM_WAY_TO_BEHIND
                                            : SIM_WAY_TO_BEFORE;
    return sim_slot_of_way(way, arrival->behind);
}

static void open_collective(Meeting *meeting, const SimArrival *arrival) {
    meeting->kind = kind_of(arrival);
    meeting->bytes = arrival->cost->bytes;
    meeting->step = arrival->step;
    meeting->cost = (SimNetworkCost){0};
    meeting->last_ns = meeting->second_ns = INT64_MIN;
}

static void note_time(Meeting *meeting, uint32_t rank, SimTime at) {
    if (at > meeting->last_ns) {
        meeting->second_ns = meeting->last_ns;
        meeting->last_ns = at;
        meeting->last_rank = rank;
    } else {
        meeting->second_ns = MAX(meeting->second_ns, at);
    }
}

/* Books how long each rank waited, and who arrived last. A rank that stands for its whole group
 * never waits. */
static void count(SimMeetings *meetings, const Meeting *meeting) {
    if (meeting->step < meetings->setup.first_counted) {
        return;
    }
    for (uint32_t i = 0; i < meeting->among->n_ranks; i++) {
        SimMeetingsBook *book = &meetings->books[meeting->among->ranks[i]];
        book->waited_ns += meeting->last_ns - meeting->came[i];
    }
    if (meeting->among->n_ranks > 1 && meeting->last_ns > meeting->second_ns) {
        SimMeetingsBook *book = &meetings->books[meeting->last_rank];
        book->n_last++;
        book->held_ns += meeting->last_ns - meeting->second_ns;
    }
}

static void close_collective(SimMeetings *meetings, Meeting *meeting) {
    meeting->state = GATHERS;
    meeting->n_came = 0;
    for (uint32_t i = 0; i < meeting->among->n_ranks; i++) {
        uint32_t rank = meeting->among->ranks[i];
        uint32_t slot = sim_communicator_slot(&meetings->communicators, meeting->number, rank);
        meetings->there[slot][rank] = false;
    }
}

static void tell(SimMeetings *meetings, const Meeting *meeting,
                 void (*told)(gpointer, uint32_t, uint32_t, SimTime), SimTime at) {
    for (uint32_t i = 0; i < meeting->among->n_ranks; i++) {
        told(meetings->setup.self, meeting->among->ranks[i], meeting->lanes[i], at);
    }
}

/* All ranks have arrived, so the collective starts. At full speed it ends at earliest_end_ns; if no
 * other collective can slow it, that is final, and the ranks are told at once. */
static void meet(SimMeetings *meetings, Meeting *meeting) {
    double speed = sim_collective_speed(&meeting->cost, meeting->among->most);
    double factor = sim_jitter_factor(meetings->setup.jitter, SIM_JITTER_LINK, meeting->number,
                                      meeting->step, meeting->n_met++);
    meeting->left_ns = (double)sim_network_time(&meeting->cost) * factor;
    meeting->earliest_end_ns = meeting->last_ns + sim_time_from_ns(meeting->left_ns / speed);
    count(meetings, meeting);
    if (meeting->among->exclusive) {
        close_collective(meetings, meeting);
        tell(meetings, meeting, meetings->setup.hooks->meets, meeting->last_ns);
        tell(meetings, meeting, meetings->setup.hooks->ends, meeting->earliest_end_ns);
        return;
    }
    meeting->state = MET;
    sim_queue_set(meetings->events, meeting->number, meeting->last_ns);
    tell(meetings, meeting, meetings->setup.hooks->meets, meeting->last_ns);
}

bool sim_meetings_arrive(SimMeetings *meetings, uint32_t rank, const SimArrival *arrival,
                         GError **error) {
    uint32_t slot = slot_of(arrival);
    Meeting *meeting = meeting_of(meetings, slot, rank);
    if (!meeting || meetings->there[slot][rank]) {
        g_set_error(error, SIM_ERROR, SIM_ERROR_PLAN,
                    "rank %u comes to %s %s; the plan is broken, make it again", rank,
                    plan_op_info(arrival->op->kind)->name,
                    meeting ? "while it waits at another in the same place"
                            : "in a place where no other rank can come");
        return false;
    }
    uint32_t place = sim_communicator_place(meeting->among, rank);
    g_assert(meeting->state == GATHERS);
    if (meeting->n_came == 0) {
        open_collective(meeting, arrival);
    } else if (!is_the_same(meeting, arrival)) {
        g_set_error(error, SIM_ERROR, SIM_ERROR_PLAN,
                    "rank %u comes to %s of %.0f bytes where rank %u comes to %s of %.0f bytes; "
                    "the plan is broken, make it again",
                    rank, plan_op_info(arrival->op->kind)->name, arrival->cost->bytes,
                    meeting->last_rank, plan_op_info(meeting->kind)->name, meeting->bytes);
        return false;
    }
    const SimNetworkCost *cost = &arrival->cost->use.network;
    if (sim_network_time(cost) > sim_network_time(&meeting->cost)) {
        meeting->cost = *cost; /* both terms of one kind of node: they are one choice */
    }
    meeting->lanes[place] = arrival->lane;
    meeting->came[place] = arrival->at;
    meeting->n_came++;
    meetings->there[slot][rank] = true;
    note_time(meeting, rank, arrival->at);
    if (meeting->n_came == meeting->among->n_ranks) {
        meet(meetings, meeting);
    }
    return true;
}

SimTime sim_meetings_bound(const SimMeetings *meetings, uint32_t rank) {
    SimTime bound = SIM_NEVER;
    for (unsigned slot = 0; slot < SIM_N_SLOTS; slot++) {
        if (meetings->there[slot] && meetings->there[slot][rank]) {
            const Meeting *open = meeting_of(meetings, slot, rank);
            bound = MIN(bound, open->state == GATHERS ? open->last_ns : open->earliest_end_ns);
        }
    }
    return bound;
}

/* ---- running -------------------------------------------------------------------------------- */

/* Sets the speed for a share of the links. Ranks may have run up to the earliest end that they were
 * told, so rounding must not bring it forward. */
static void set_share(SimMeetings *meetings, Meeting *meeting, double share, SimTime now) {
    double most = sim_collective_speed(&meeting->cost, meeting->among->most);
    meeting->left_ns -= (double)(now - meeting->since_ns) * meeting->speed;
    meeting->left_ns = MAX(0, meeting->left_ns);
    meeting->since_ns = now;
    meeting->speed = sim_collective_speed(&meeting->cost, share);
    SimTime earliest = now + sim_time_from_ns(meeting->left_ns / most);
    SimTime end = now + sim_time_from_ns(meeting->left_ns / meeting->speed);
    meeting->earliest_end_ns = MAX(meeting->earliest_end_ns, earliest);
    sim_queue_set(meetings->events, meeting->number, MAX(meeting->earliest_end_ns, end));
}

/* Divides the links among all running collectives, and changes the speed of those whose share
 * changed. */
static void share_links(SimMeetings *meetings, SimTime now) {
    const uint32_t *changed;
    uint32_t n = sim_fair_solve(meetings->fair, &changed);
    for (uint32_t i = 0; i < n; i++) {
        double share = MIN(1, sim_fair_rate(meetings->fair, changed[i]));
        uint32_t number = g_array_index(meetings->by_user, uint32_t, changed[i]);
        set_share(meetings, &meetings->meetings[number], share, now);
    }
}

static void start(SimMeetings *meetings, Meeting *meeting, SimTime now) {
    meeting->state = RUNS;
    meeting->since_ns = now;
    meeting->speed = 0;
    meeting->user =
        sim_fair_add(meetings->fair, (const uint32_t *)(gconstpointer)meeting->among->links->data,
                     meeting->among->links->len);
    if (meeting->user >= meetings->by_user->len) {
        g_array_set_size(meetings->by_user, meeting->user + 1);
    }
    g_array_index(meetings->by_user, uint32_t, meeting->user) = meeting->number;
    share_links(meetings, now);
}

static void end(SimMeetings *meetings, Meeting *meeting, SimTime now) {
    sim_fair_remove(meetings->fair, meeting->user);
    share_links(meetings, now);
    close_collective(meetings, meeting);
    tell(meetings, meeting, meetings->setup.hooks->ends, now);
}

SimTime sim_meetings_next(const SimMeetings *meetings) {
    return sim_queue_next(meetings->events);
}

void sim_meetings_step(SimMeetings *meetings) {
    uint32_t number;
    SimTime now;
    bool any = sim_queue_pop(meetings->events, &number, &now);
    g_assert(any);
    Meeting *meeting = &meetings->meetings[number];
    if (meeting->state == MET) {
        start(meetings, meeting, now);
    } else {
        end(meetings, meeting, now);
    }
}

const SimMeetingsBook *sim_meetings_book(const SimMeetings *meetings, uint32_t rank) {
    return &meetings->books[rank];
}

char *sim_meetings_who_waits(const SimMeetings *meetings) {
    const SimCommunicators *communicators = &meetings->communicators;
    for (uint32_t i = 0; i < communicators->n; i++) {
        const Meeting *open = &meetings->meetings[i];
        for (uint32_t place = 0; open->n_came > 0 && place < open->among->n_ranks; place++) {
            uint32_t rank = open->among->ranks[place];
            if (!meetings->there[sim_communicator_slot(communicators, i, rank)][rank]) {
                return g_strdup_printf("rank %u waits in step %d at %s for rank %u, which never "
                                       "comes",
                                       open->last_rank, open->step, plan_op_info(open->kind)->name,
                                       rank);
            }
        }
    }
    return NULL;
}
