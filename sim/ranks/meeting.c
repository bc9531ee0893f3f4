#include "sim/ranks/meeting.h"

#include <math.h>
#include <string.h>

#include "sim/error.h"
#include "sim/links/fair.h"
#include "sim/queue.h"

typedef enum {
    GATHERS, /* not all ranks have come */
    MET,     /* all have; it starts at last_ns */
    RUNS
} State;

/* The slots of a rank, one for each communicator it belongs to: one an axis, and for each way in
 * which stages transfer one with the stage behind (even) and one with the stage before. */
enum {
    TO_BEHIND,
    TO_BEFORE,
    BOTH_WAYS,
    N_WAYS,
    N_SLOTS = PLAN_N_AXES + 2 * N_WAYS
};

typedef struct {
    uint32_t slots[2]; /* of its ranks; of stages, of the first and of the second */
    uint32_t *ranks, n_ranks;
    uint32_t *lanes; /* of each that is there */
    SimTime *came;   /* likewise, when */
    GArray *links;   /* uint32_t: of its ring */
    double most;     /* share of its links when nobody else uses them: 1, or less if one is slow */
    bool exclusive;  /* nobody else ever uses its links, or sharing is turned off */

    State state;
    uint32_t n_came, last_rank;
    SimTime last_ns, second_ns;
    PlanOpKind kind;
    double bytes;
    int32_t step;
    uint32_t n_met; /* so many before it */
    SimNetworkCost cost;

    uint32_t user; /* of the links */
    double left_ns, speed;
    SimTime since_ns, earliest_end_ns;
} Communicator;

struct _SimMeetings {
    SimMeetingsSetup setup;
    Communicator *communicators;
    uint32_t n_communicators;
    uint32_t *of_rank[N_SLOTS]; /* its communicator's number */
    bool *there[N_SLOTS];       /* it has come to the collective that is open there */
    SimFair *fair;
    GArray *by_user;  /* uint32_t: the communicator that is fair's user */
    SimQueue *events; /* a slot a communicator: its start, then its end */
    SimMeetingsBook *books;
};

/* ---- groups and their rings ----------------------------------------------------------------- */

static void add_hop(Communicator *communicator, const SimFabric *fabric, uint32_t from,
                    uint32_t to) {
    uint32_t path[SIM_FABRIC_LONGEST], n = sim_fabric_hop(fabric, from, to, path);
    g_array_append_vals(communicator->links, path, n);
}

/* Within a node the fabric's ring. Over several nodes a ring for each NIC, to the NIC of the same
 * place in the group's next node; as many rings as the node with fewest ranks has NICs. */
static void lay_ring(Communicator *communicator, const SimFabric *fabric) {
    const uint32_t *ranks = communicator->ranks;
    uint32_t n = communicator->n_ranks, a_node = fabric->shape.ranks_a_node;
    if (ranks[0] / a_node == ranks[n - 1] / a_node) {
        sim_fabric_ring(fabric, ranks, n, communicator->links);
        return;
    }
    g_autoptr(GArray) starts = g_array_new(FALSE, FALSE, sizeof(uint32_t)); /* of each node */
    uint32_t rings = n, begin = 0;
    for (uint32_t i = 0; i <= n; i++) {
        if (i == n || ranks[i] / a_node != ranks[begin] / a_node) {
            g_array_append_val(starts, begin);
            rings = MIN(rings, i - begin);
            begin = i;
        }
    }
    for (guint node = 0; node < starts->len; node++) {
        uint32_t from = g_array_index(starts, uint32_t, node);
        uint32_t to = g_array_index(starts, uint32_t, (node + 1) % starts->len);
        for (uint32_t ring = 0; ring < rings; ring++) {
            add_hop(communicator, fabric, ranks[from + ring], ranks[to + ring]);
        }
    }
}

/* A ring that uses a link twice gets half of it. */
static double most_of(const Communicator *communicator, const SimFabric *fabric,
                      uint32_t *scratch) {
    double most = INFINITY;
    for (guint i = 0; i < communicator->links->len; i++) {
        scratch[g_array_index(communicator->links, uint32_t, i)]++;
    }
    for (guint i = 0; i < communicator->links->len; i++) {
        uint32_t link = g_array_index(communicator->links, uint32_t, i);
        most = fmin(most, fabric->capacities[link] / scratch[link]);
    }
    for (guint i = 0; i < communicator->links->len; i++) {
        scratch[g_array_index(communicator->links, uint32_t, i)] = 0;
    }
    return fmin(most, 1);
}

static Communicator communicator_new(uint32_t slot, uint32_t other_slot, uint32_t most) {
    return (Communicator){
        .slots = {slot, other_slot},
        .ranks = g_new(uint32_t, most),
        .lanes = g_new(uint32_t, most),
        .came = g_new(SimTime, most),
        .links = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
    };
}

/* The ring was laid over all ranks; from now on only those that are played count. */
static void keep_played(Communicator *communicator, const bool *played) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < communicator->n_ranks; i++) {
        if (!played || played[communicator->ranks[i]]) {
            communicator->ranks[n++] = communicator->ranks[i];
        }
    }
    communicator->n_ranks = n;
}

static void add_slot(SimMeetings *meetings, uint32_t slot) {
    uint32_t world = meetings->setup.plan->world;
    meetings->of_rank[slot] = g_new(uint32_t, world);
    memset(meetings->of_rank[slot], 0xff, world * sizeof(uint32_t)); /* none */
    meetings->there[slot] = g_new0(bool, world);
}

static void add_axis(SimMeetings *meetings, PlanAxis axis, uint32_t *scratch) {
    const Plan *plan = meetings->setup.plan;
    const SimFabric *fabric = meetings->setup.fabric;
    uint32_t size = plan->axes[axis], first = meetings->n_communicators;
    meetings->n_communicators += plan->world / size;
    for (uint32_t i = first; i < meetings->n_communicators; i++) {
        meetings->communicators[i] = communicator_new(axis, axis, size);
    }
    add_slot(meetings, axis);
    for (uint32_t rank = 0; rank < plan->world; rank++) {
        uint32_t number = first + plan_group_of_rank(plan, rank, axis);
        Communicator *communicator = &meetings->communicators[number];
        communicator->ranks[communicator->n_ranks++] = rank;
        meetings->of_rank[axis][rank] = number;
    }
    for (uint32_t i = first; i < meetings->n_communicators; i++) {
        lay_ring(&meetings->communicators[i], fabric);
        meetings->communicators[i].most = most_of(&meetings->communicators[i], fabric, scratch);
        keep_played(&meetings->communicators[i], meetings->setup.played);
    }
}

static uint32_t slot_of_way(unsigned way, bool behind) {
    return PLAN_N_AXES + 2 * way + !behind;
}

/* A rank and the one of the stage behind that has its place there. */
static void add_way(SimMeetings *meetings, unsigned way, uint32_t rank, uint32_t behind,
                    uint32_t *scratch) {
    const SimFabric *fabric = meetings->setup.fabric;
    uint32_t number = meetings->n_communicators++, slot = slot_of_way(way, true);
    Communicator *communicator = &meetings->communicators[number];
    *communicator = communicator_new(slot, slot + 1, 2);
    communicator->ranks[communicator->n_ranks++] = MIN(rank, behind);
    communicator->ranks[communicator->n_ranks++] = MAX(rank, behind);
    if (way != TO_BEFORE) {
        add_hop(communicator, fabric, rank, behind);
    }
    if (way != TO_BEHIND) {
        add_hop(communicator, fabric, behind, rank);
    }
    meetings->of_rank[slot][rank] = meetings->of_rank[slot + 1][behind] = number;
    communicator->most = most_of(communicator, fabric, scratch);
    keep_played(communicator, meetings->setup.played);
}

/* Whether the last place also transfers to the first, as with several stages a rank. */
static bool sends_around(const Plan *plan) {
    return plan->axes[PLAN_AXIS_PIPELINE] > 2 && plan_stages_of_rank(plan) > 1;
}

static void add_stages(SimMeetings *meetings, uint32_t *scratch) {
    const Plan *plan = meetings->setup.plan;
    uint32_t stride = plan_axis_stride(plan, PLAN_AXIS_PIPELINE);
    for (unsigned way = 0; way < N_WAYS; way++) {
        add_slot(meetings, slot_of_way(way, true));
        add_slot(meetings, slot_of_way(way, false));
        for (uint32_t rank = 0; rank + stride < plan->world; rank++) {
            add_way(meetings, way, rank, rank + stride, scratch);
        }
        for (uint32_t rank = 0; rank < stride && sends_around(plan); rank++) {
            add_way(meetings, way, plan->world - stride + rank, rank, scratch);
        }
    }
}

/* How many communicators an axis has. */
static uint32_t count_communicators(const Plan *plan, PlanAxis axis) {
    uint32_t size = plan->axes[axis];
    uint32_t of_ways = axis == PLAN_AXIS_PIPELINE ? N_WAYS * plan->world : 0;
    return size < 2 ? 0 : plan->world / size + of_ways;
}

/* Stages that only send to neighbours need no communicator of them all, which would share the
 * links. */
static bool has_collectives(const Plan *plan, PlanAxis axis) {
    const PlanRole *role = &plan->roles[0];
    for (uint32_t i = 0; i < role->n_ops; i++) {
        PlanOpKind kind = (PlanOpKind)role->ops[i].kind;
        if (role->ops[i].axis == axis && plan_op_is_collective(kind) &&
            !plan_op_is_of_stages(kind)) {
            return true;
        }
    }
    return false;
}

/* Communicators whose links are nobody else's. */
static void find_exclusive(SimMeetings *meetings, uint32_t *owners) {
    bool no_sharing = meetings->setup.no_sharing;
    for (uint32_t i = 0; i < meetings->n_communicators; i++) {
        Communicator *communicator = &meetings->communicators[i];
        communicator->exclusive = true;
        for (guint k = 0; !no_sharing && k < communicator->links->len; k++) {
            uint32_t *owner = &owners[g_array_index(communicator->links, uint32_t, k)];
            if (*owner != 0 && *owner != i + 1) {
                communicator->exclusive = meetings->communicators[*owner - 1].exclusive = false;
            }
            *owner = i + 1;
        }
    }
}

SimMeetings *sim_meetings_new(const SimMeetingsSetup *setup) {
    const Plan *plan = setup->plan;
    const SimFabric *fabric = setup->fabric;
    SimMeetings *meetings = g_new0(SimMeetings, 1);
    meetings->setup = *setup;
    uint32_t most = 0;
    for (unsigned axis = 0; axis < PLAN_N_AXES; axis++) {
        most += count_communicators(plan, (PlanAxis)axis);
    }
    meetings->communicators = g_new0(Communicator, most);
    g_autofree uint32_t *scratch = g_new0(uint32_t, fabric->n_links);
    for (unsigned axis = 0; axis < PLAN_N_AXES; axis++) {
        bool is_of_stages = axis == PLAN_AXIS_PIPELINE;
        if (plan->axes[axis] > 1 && is_of_stages) {
            add_stages(meetings, scratch);
        }
        if (plan->axes[axis] > 1 && (!is_of_stages || has_collectives(plan, (PlanAxis)axis))) {
            add_axis(meetings, (PlanAxis)axis, scratch);
        }
    }
    find_exclusive(meetings, scratch);
    meetings->fair = sim_fair_new(fabric->capacities, fabric->n_links);
    meetings->by_user = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    meetings->events = sim_queue_new(meetings->n_communicators);
    meetings->books = g_new0(SimMeetingsBook, plan->world);
    return meetings;
}

void sim_meetings_free(SimMeetings *meetings) {
    if (meetings) {
        for (uint32_t i = 0; i < meetings->n_communicators; i++) {
            g_free(meetings->communicators[i].ranks);
            g_free(meetings->communicators[i].lanes);
            g_free(meetings->communicators[i].came);
            g_array_unref(meetings->communicators[i].links);
        }
        for (unsigned slot = 0; slot < N_SLOTS; slot++) {
            g_free(meetings->of_rank[slot]);
            g_free(meetings->there[slot]);
        }
        g_free(meetings->communicators);
        sim_fair_free(meetings->fair);
        g_array_unref(meetings->by_user);
        sim_queue_free(meetings->events);
        g_free(meetings->books);
        g_free(meetings);
    }
}

/* ---- coming --------------------------------------------------------------------------------- */

static uint32_t place_of(const Communicator *communicator, uint32_t rank) {
    uint32_t low = 0, high = communicator->n_ranks;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        *(communicator->ranks[middle] <= rank ? &low : &high) = middle;
    }
    return low;
}

/* A receive meets the other end's send, so both have one kind. */
static PlanOpKind kind_of(const SimArrival *arrival) {
    PlanOpKind kind = (PlanOpKind)arrival->op->kind;
    return kind == PLAN_OP_RECEIVE ? PLAN_OP_SEND : kind;
}

static bool is_the_same(const Communicator *communicator, const SimArrival *arrival) {
    return communicator->kind == kind_of(arrival) && communicator->bytes == arrival->cost->bytes;
}

static uint32_t slot_of(const SimArrival *arrival) {
    PlanOpKind kind = (PlanOpKind)arrival->op->kind;
    bool sends = kind == PLAN_OP_SEND;
    return !plan_op_is_of_stages(kind) ? arrival->op->axis
                                       : slot_of_way(kind == PLAN_OP_EXCHANGE   ? BOTH_WAYS
                                                     : sends == arrival->behind ? TO_BEHIND
                                                                                : TO_BEFORE,
                                                     arrival->behind);
}

/* Of the rank at a place: the second of two stages that are neighbours is the one behind. */
static uint32_t slot_at(const SimMeetings *meetings, const Communicator *communicator,
                        uint32_t rank) {
    uint32_t number = (uint32_t)(communicator - meetings->communicators);
    return communicator->slots[meetings->of_rank[communicator->slots[0]][rank] != number];
}

static void open_collective(Communicator *communicator, const SimArrival *arrival) {
    communicator->kind = kind_of(arrival);
    communicator->bytes = arrival->cost->bytes;
    communicator->step = arrival->step;
    communicator->cost = (SimNetworkCost){0};
    communicator->last_ns = communicator->second_ns = INT64_MIN;
}

static void note_time(Communicator *communicator, uint32_t rank, SimTime at) {
    if (at > communicator->last_ns) {
        communicator->second_ns = communicator->last_ns;
        communicator->last_ns = at;
        communicator->last_rank = rank;
    } else {
        communicator->second_ns = MAX(communicator->second_ns, at);
    }
}

/* Books who waited and who came last. A rank that is played alone for its group waits for
 * nobody. */
static void count(SimMeetings *meetings, const Communicator *communicator) {
    if (communicator->step < meetings->setup.first_counted) {
        return;
    }
    for (uint32_t i = 0; i < communicator->n_ranks; i++) {
        SimMeetingsBook *book = &meetings->books[communicator->ranks[i]];
        book->waited_ns += communicator->last_ns - communicator->came[i];
    }
    if (communicator->n_ranks > 1 && communicator->last_ns > communicator->second_ns) {
        SimMeetingsBook *book = &meetings->books[communicator->last_rank];
        book->n_last++;
        book->held_ns += communicator->last_ns - communicator->second_ns;
    }
}

static void close_collective(SimMeetings *meetings, Communicator *communicator) {
    communicator->state = GATHERS;
    communicator->n_came = 0;
    for (uint32_t i = 0; i < communicator->n_ranks; i++) {
        uint32_t rank = communicator->ranks[i];
        meetings->there[slot_at(meetings, communicator, rank)][rank] = false;
    }
}

static void tell(SimMeetings *meetings, const Communicator *communicator,
                 void (*told)(gpointer, uint32_t, uint32_t, SimTime), SimTime at) {
    for (uint32_t i = 0; i < communicator->n_ranks; i++) {
        told(meetings->setup.self, communicator->ranks[i], communicator->lanes[i], at);
    }
}

/* All have come. Its duration at full speed gives the earliest end. If nobody can slow it, that is
 * its end, and the ranks are told at once. */
static void meet(SimMeetings *meetings, uint32_t number) {
    Communicator *communicator = &meetings->communicators[number];
    double speed = sim_collective_speed(&communicator->cost, communicator->most);
    double factor = sim_jitter_factor(meetings->setup.jitter, SIM_JITTER_LINK, number,
                                      communicator->step, communicator->n_met++);
    communicator->left_ns = (double)sim_network_time(&communicator->cost) * factor;
    communicator->earliest_end_ns =
        communicator->last_ns + sim_time_from_ns(communicator->left_ns / speed);
    count(meetings, communicator);
    if (communicator->exclusive) {
        close_collective(meetings, communicator);
        tell(meetings, communicator, meetings->setup.hooks->meets, communicator->last_ns);
        tell(meetings, communicator, meetings->setup.hooks->ends, communicator->earliest_end_ns);
        return;
    }
    communicator->state = MET;
    sim_queue_set(meetings->events, number, communicator->last_ns);
    tell(meetings, communicator, meetings->setup.hooks->meets, communicator->last_ns);
}

bool sim_meetings_arrive(SimMeetings *meetings, uint32_t rank, const SimArrival *arrival,
                         GError **error) {
    uint32_t slot = slot_of(arrival), number = meetings->of_rank[slot][rank];
    Communicator *communicator = &meetings->communicators[number];
    uint32_t place = place_of(communicator, rank);
    g_assert(communicator->state == GATHERS && !meetings->there[slot][rank]);
    if (communicator->n_came == 0) {
        open_collective(communicator, arrival);
    } else if (!is_the_same(communicator, arrival)) {
        g_set_error(error, SIM_ERROR, SIM_ERROR_PLAN,
                    "rank %u comes to %s of %.0f bytes where rank %u comes to %s of %.0f bytes; "
                    "the plan is broken, make it again",
                    rank, plan_op_info(arrival->op->kind)->name, arrival->cost->bytes,
                    communicator->last_rank, plan_op_info(communicator->kind)->name,
                    communicator->bytes);
        return false;
    }
    const SimNetworkCost *cost = &arrival->cost->use.network;
    if (sim_network_time(cost) > sim_network_time(&communicator->cost)) {
        communicator->cost = *cost; /* both terms of one kind of node: they are one choice */
    }
    communicator->lanes[place] = arrival->lane;
    communicator->came[place] = arrival->at;
    communicator->n_came++;
    meetings->there[slot][rank] = true;
    note_time(communicator, rank, arrival->at);
    if (communicator->n_came == communicator->n_ranks) {
        meet(meetings, number);
    }
    return true;
}

SimTime sim_meetings_bound(const SimMeetings *meetings, uint32_t rank) {
    SimTime bound = SIM_NEVER;
    for (unsigned slot = 0; slot < N_SLOTS; slot++) {
        if (meetings->there[slot] && meetings->there[slot][rank]) {
            const Communicator *open = &meetings->communicators[meetings->of_rank[slot][rank]];
            bound = MIN(bound, open->state == GATHERS ? open->last_ns : open->earliest_end_ns);
        }
    }
    return bound;
}

/* ---- running -------------------------------------------------------------------------------- */

/* Sets the speed for a share of the links. Ranks may have run up to the earliest end that they were
 * told, so rounding must not bring it forward. */
static void set_share(SimMeetings *meetings, uint32_t number, double share, SimTime now) {
    Communicator *communicator = &meetings->communicators[number];
    double most = sim_collective_speed(&communicator->cost, communicator->most);
    communicator->left_ns -= (double)(now - communicator->since_ns) * communicator->speed;
    communicator->left_ns = MAX(0, communicator->left_ns);
    communicator->since_ns = now;
    communicator->speed = sim_collective_speed(&communicator->cost, share);
    SimTime earliest = now + sim_time_from_ns(communicator->left_ns / most);
    SimTime end = now + sim_time_from_ns(communicator->left_ns / communicator->speed);
    communicator->earliest_end_ns = MAX(communicator->earliest_end_ns, earliest);
    sim_queue_set(meetings->events, number, MAX(communicator->earliest_end_ns, end));
}

/* Works out the shares of all, and changes the speed of those whose share has changed. */
static void share_links(SimMeetings *meetings, SimTime now) {
    const uint32_t *changed;
    uint32_t n = sim_fair_solve(meetings->fair, &changed);
    for (uint32_t i = 0; i < n; i++) {
        double share = MIN(1, sim_fair_rate(meetings->fair, changed[i]));
        set_share(meetings, g_array_index(meetings->by_user, uint32_t, changed[i]), share, now);
    }
}

static void start(SimMeetings *meetings, uint32_t number, SimTime now) {
    Communicator *communicator = &meetings->communicators[number];
    communicator->state = RUNS;
    communicator->since_ns = now;
    communicator->speed = 0;
    communicator->user =
        sim_fair_add(meetings->fair, (const uint32_t *)(gconstpointer)communicator->links->data,
                     communicator->links->len);
    if (communicator->user >= meetings->by_user->len) {
        g_array_set_size(meetings->by_user, communicator->user + 1);
    }
    g_array_index(meetings->by_user, uint32_t, communicator->user) = number;
    share_links(meetings, now);
}

static void end(SimMeetings *meetings, uint32_t number, SimTime now) {
    Communicator *communicator = &meetings->communicators[number];
    sim_fair_remove(meetings->fair, communicator->user);
    share_links(meetings, now);
    close_collective(meetings, communicator);
    tell(meetings, communicator, meetings->setup.hooks->ends, now);
}

SimTime sim_meetings_next(const SimMeetings *meetings) {
    return sim_queue_next(meetings->events);
}

void sim_meetings_step(SimMeetings *meetings) {
    uint32_t number;
    SimTime now;
    bool any = sim_queue_pop(meetings->events, &number, &now);
    g_assert(any);
    if (meetings->communicators[number].state == MET) {
        start(meetings, number, now);
    } else {
        end(meetings, number, now);
    }
}

const SimMeetingsBook *sim_meetings_book(const SimMeetings *meetings, uint32_t rank) {
    return &meetings->books[rank];
}

char *sim_meetings_who_waits(const SimMeetings *meetings) {
    for (uint32_t i = 0; i < meetings->n_communicators; i++) {
        const Communicator *open = &meetings->communicators[i];
        for (uint32_t place = 0; open->n_came > 0 && place < open->n_ranks; place++) {
            uint32_t rank = open->ranks[place];
            if (!meetings->there[slot_at(meetings, open, rank)][rank]) {
                return g_strdup_printf("rank %u waits in step %d at %s for rank %u, which never "
                                       "comes",
                                       open->last_rank, open->step, plan_op_info(open->kind)->name,
                                       open->ranks[place]);
            }
        }
    }
    return NULL;
}
