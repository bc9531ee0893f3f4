#include "sim/ranks/communicators.h"

#include <math.h>

#include "plan/mesh.h"
#include "sim/ranks/binding-links.h"

/* What is needed while they are made. */
typedef struct {
    SimCommunicators *made;
    const Plan *plan;
    const SimFabric *fabric;
    const bool *played;
    uint32_t *uses; /* by link; zero between two uses */
} Maker;

/* ---- the ring of one ------------------------------------------------------------------------ */

static void add_hop(SimCommunicator *communicator, const SimFabric *fabric, uint32_t from,
                    uint32_t to) {
    uint32_t path[SIM_FABRIC_LONGEST], n = sim_fabric_hop(fabric, from, to, path);
    g_array_append_vals(communicator->links, path, n);
}

/* Within a node the fabric's ring. Over several nodes a ring for each NIC, to the NIC of the same
 * place in the group's next node; as many rings as the node with fewest ranks has NICs. */
static void lay_ring(SimCommunicator *communicator, const SimFabric *fabric) {
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
static double most_of(const SimCommunicator *communicator, const Maker *maker) {
    const GArray *links = communicator->links;
    double most = INFINITY;
    for (guint i = 0; i < links->len; i++) {
        maker->uses[g_array_index(links, uint32_t, i)]++;
    }
    for (guint i = 0; i < links->len; i++) {
        uint32_t link = g_array_index(links, uint32_t, i);
        most = fmin(most, maker->fabric->capacities[link] / maker->uses[link]);
    }
    for (guint i = 0; i < links->len; i++) {
        maker->uses[g_array_index(links, uint32_t, i)] = 0;
    }
    return fmin(most, 1);
}

/* Adds a communicator without ranks and links. most: how many ranks it may come to have. */
static SimCommunicator *add_communicator(Maker *maker, uint32_t slot, uint32_t other_slot,
                                         uint32_t most) {
    SimCommunicator *communicator = &maker->made->all[maker->made->n++];
    *communicator = (SimCommunicator){
        .slots = {slot, other_slot},
        .ranks = g_new(uint32_t, most),
        .links = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
    };
    return communicator;
}

/* Its ring is laid, over all of its ranks; from now on only those that are played count. */
static void finish(SimCommunicator *communicator, const Maker *maker) {
    uint32_t n = 0;
    communicator->most = most_of(communicator, maker);
    for (uint32_t i = 0; i < communicator->n_ranks; i++) {
        if (!maker->played || maker->played[communicator->ranks[i]]) {
            communicator->ranks[n++] = communicator->ranks[i];
        }
    }
    communicator->n_ranks = n;
}

static void add_slot(Maker *maker, uint32_t slot) {
    maker->made->of_rank[slot] = g_new(uint32_t, maker->plan->world);
    for (uint32_t rank = 0; rank < maker->plan->world; rank++) {
        maker->made->of_rank[slot][rank] = SIM_NO_COMMUNICATOR;
    }
}

/* ---- of an axis ----------------------------------------------------------------------------- */

static void add_axis(Maker *maker, PlanAxis axis) {
    const Plan *plan = maker->plan;
    uint32_t size = plan->axes[axis], first = maker->made->n;
    for (uint32_t group = 0; group < plan->world / size; group++) {
        add_communicator(maker, axis, axis, size);
    }
    add_slot(maker, axis);
    for (uint32_t rank = 0; rank < plan->world; rank++) {
        uint32_t number = first + plan_group_of_rank(plan, rank, axis);
        SimCommunicator *communicator = &maker->made->all[number];
        communicator->ranks[communicator->n_ranks++] = rank;
        maker->made->of_rank[axis][rank] = number;
    }
    for (uint32_t i = first; i < maker->made->n; i++) {
        lay_ring(&maker->made->all[i], maker->fabric);
        finish(&maker->made->all[i], maker);
    }
}

/* ---- of stages ------------------------------------------------------------------------------ */

/* A rank and the one of the stage behind that has its place there; none if neither is played. */
static void add_pair(Maker *maker, SimWay way, uint32_t rank, uint32_t behind) {
    if (maker->played && !maker->played[rank] && !maker->played[behind]) {
        return;
    }
    uint32_t slot = sim_slot_of_way(way, true), other_slot = sim_slot_of_way(way, false);
    uint32_t number = maker->made->n;
    SimCommunicator *communicator = add_communicator(maker, slot, other_slot, 2);
    communicator->ranks[communicator->n_ranks++] = MIN(rank, behind);
    communicator->ranks[communicator->n_ranks++] = MAX(rank, behind);
    if (way != SIM_WAY_TO_BEFORE) {
        add_hop(communicator, maker->fabric, rank, behind);
    }
    if (way != SIM_WAY_TO_BEHIND) {
        add_hop(communicator, maker->fabric, behind, rank);
    }
    maker->made->of_rank[slot][rank] = maker->made->of_rank[other_slot][behind] = number;
    finish(communicator, maker);
}

/* Whether the last place also transfers to the first, as with several stages a rank. */
static bool sends_around(const Plan *plan) {
    return plan->axes[PLAN_AXIS_PIPELINE] > 2 && plan_stages_of_rank(plan) > 1;
}

static void add_stages(Maker *maker) {
    const Plan *plan = maker->plan;
    uint32_t stride = plan_axis_stride(plan, PLAN_AXIS_PIPELINE);
    for (SimWay way = 0; way < SIM_N_WAYS; way++) {
        add_slot(maker, sim_slot_of_way(way, true));
        add_slot(maker, sim_slot_of_way(way, false));
        for (uint32_t rank = 0; rank + stride < plan->world; rank++) {
            add_pair(maker, way, rank, rank + stride);
        }
        for (uint32_t rank = 0; rank < stride && sends_around(plan); rank++) {
            add_pair(maker, way, plan->world - stride + rank, rank);
        }
    }
}

/* Stages that only send to neighbours need no communicator of them all, which would share the
 * links. */
static bool has_collectives(const PlanRole *role, PlanAxis axis) {
    for (uint32_t i = 0; i < role->n_ops; i++) {
        PlanOpKind kind = (PlanOpKind)role->ops[i].kind;
        if (role->ops[i].axis == axis && plan_op_is_collective(kind) &&
            !plan_op_is_of_stages(kind)) {
            return true;
        }
    }
    return false;
}

static bool any_has_collectives(const Plan *plan, PlanAxis axis) {
    bool any = false;
    for (uint32_t role = 0; role < plan->n_roles; role++) {
        any = any || has_collectives(&plan->roles[role], axis);
    }
    return any;
}

/* ---- all ------------------------------------------------------------------------------------ */

/* How many an axis has at the most. */
static uint32_t count_most(const Plan *plan, PlanAxis axis) {
    uint32_t size = plan->axes[axis];
    uint32_t of_ways = axis == PLAN_AXIS_PIPELINE ? SIM_N_WAYS * plan->world : 0;
    return size < 2 ? 0 : plan->world / size + of_ways;
}

/* Those of which nobody is played send nothing. */
static void empty_unplayed(SimCommunicators *made) {
    for (uint32_t i = 0; i < made->n; i++) {
        if (made->all[i].n_ranks == 0) {
            g_array_set_size(made->all[i].links, 0);
        }
    }
}

/* Marks communicators that share no link with another. */
static void find_exclusive(SimCommunicators *made, bool no_sharing) {
    /* By link, a communicator's number + 1; 0: none yet. */
    g_autofree uint32_t *owners = g_new0(uint32_t, made->n_links);
    for (uint32_t i = 0; i < made->n; i++) {
        SimCommunicator *communicator = &made->all[i];
        communicator->exclusive = true;
        for (guint k = 0; !no_sharing && k < communicator->links->len; k++) {
            uint32_t *owner = &owners[g_array_index(communicator->links, uint32_t, k)];
            if (*owner != 0 && *owner != i + 1) {
                communicator->exclusive = made->all[*owner - 1].exclusive = false;
            }
            *owner = i + 1;
        }
    }
}

void sim_communicators_init(SimCommunicators *communicators, const Plan *plan,
                            const SimFabric *fabric, const bool *played, bool no_sharing) {
    g_autofree uint32_t *of_links = g_new0(uint32_t, fabric->n_links);
    Maker maker = {communicators, plan, fabric, played, of_links};
    uint32_t most = 0;
    for (PlanAxis axis = 0; axis < PLAN_N_AXES; axis++) {
        most += count_most(plan, axis);
    }
    *communicators = (SimCommunicators){.all = g_new0(SimCommunicator, most)};
    for (PlanAxis axis = 0; axis < PLAN_N_AXES; axis++) {
        bool is_of_stages = axis == PLAN_AXIS_PIPELINE;
        if (plan->axes[axis] > 1 && is_of_stages) {
            add_stages(&maker);
        }
        if (plan->axes[axis] > 1 && (!is_of_stages || any_has_collectives(plan, axis))) {
            add_axis(&maker, axis);
        }
    }
    empty_unplayed(communicators);
    sim_keep_binding_links(communicators, fabric);
    find_exclusive(communicators, no_sharing);
}

void sim_communicators_clear(SimCommunicators *communicators) {
    for (uint32_t i = 0; i < communicators->n; i++) {
        g_free(communicators->all[i].ranks);
        g_array_unref(communicators->all[i].links);
    }
    for (unsigned slot = 0; slot < SIM_N_SLOTS; slot++) {
        g_free(communicators->of_rank[slot]);
    }
    g_free(communicators->all);
    g_free(communicators->capacities);
    *communicators = (SimCommunicators){0};
}

uint32_t sim_communicator_place(const SimCommunicator *communicator, uint32_t rank) {
    uint32_t low = 0, high = communicator->n_ranks;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        *(communicator->ranks[middle] <= rank ? &low : &high) = middle;
    }
    return low;
}

/* A rank's slot of a communicator. One between two stages has two slots; the rank of the later
 * stage has the second. */
uint32_t sim_communicator_slot(const SimCommunicators *communicators, uint32_t number,
                               uint32_t rank) {
    const uint32_t *slots = communicators->all[number].slots;
    return slots[communicators->of_rank[slots[0]][rank] != number];
}
