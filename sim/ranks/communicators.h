/* sim/ranks/communicators.h - who comes to a collective together, and which links its ring goes
 * over.
 *
 * A communicator joins the ranks of one group of one axis. Neighbours of a pipeline have three: of
 * what goes to the stage behind, of what goes to the one before, and of exchanges; all stages have
 * one of their axis where they add something up, as do the groups of any other axis. Each is one of
 * a rank's slots.
 *
 * Owns: its arrays. Borrows: plan and fabric while it is made. Threads: const once made, so any
 * number. Cost: O(links of all rings) to make.
 */
#pragma once

#include "plan/plan.h"
#include "sim/links/fabric.h"

/* The slots of a rank, one for each communicator it belongs to: one an axis, and for each way in
 * which stages transfer one with the stage behind (even) and one with the stage before. */
typedef enum {
    SIM_WAY_TO_BEHIND,
    SIM_WAY_TO_BEFORE,
    SIM_WAY_BOTH,
    SIM_N_WAYS
} SimWay;

enum {
    SIM_N_SLOTS = PLAN_N_AXES + 2 * SIM_N_WAYS
};

/* behind: the rank's slot with the stage behind it. */
static inline uint32_t sim_slot_of_way(SimWay way, bool behind) {
    return PLAN_N_AXES + 2 * way + !behind;
}

#define SIM_NO_COMMUNICATOR UINT32_MAX

typedef struct {
    uint32_t slots[2];        /* of its ranks; of stages, of the first and of the second */
    uint32_t *ranks, n_ranks; /* that are played, rising */
    GArray *links;            /* uint32_t: of its ring, those that can be short */
    double most;    /* share of its links when nobody else uses them: 1, or less if one is slow */
    bool exclusive; /* no other communicator uses its links, or links are not shared (no_sharing) */
} SimCommunicator;

typedef struct {
    SimCommunicator *all;
    uint32_t n;
    double *capacities; /* by link; the fabric's links that can be short (binding-links.h) */
    uint32_t n_links;
    /* By rank, its communicator's number or SIM_NO_COMMUNICATOR; NULL: no rank has one. */
    uint32_t *of_rank[SIM_N_SLOTS];
} SimCommunicators;

/* played: by rank, who is; NULL: all. Rings are laid over all ranks. */
void sim_communicators_init(SimCommunicators *communicators, const Plan *plan,
                            const SimFabric *fabric, const bool *played, bool no_sharing);
void sim_communicators_clear(SimCommunicators *communicators);

/* The place of a rank among those of a communicator. */
uint32_t sim_communicator_place(const SimCommunicator *communicator, uint32_t rank);
/* The slot that a communicator is to one of its ranks. */
uint32_t sim_communicator_slot(const SimCommunicators *communicators, uint32_t number,
                               uint32_t rank);
