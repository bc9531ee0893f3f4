/* sim/ranks/meeting.h - collectives to which every rank of a group comes.
 *
 * A communicator (communicators.h) holds one collective at a time. Its ranks come to it, each in
 * its own time; with the last it starts, and it goes as fast as the links of its ring let it beside
 * the rings of other communicators (fair.h over fabric.h): latency +
 * transfer / share of the links, a capacity of 1 being what the collective reaches undisturbed. It
 * takes what its slowest rank's kind of node takes, times the jitter of links.
 *
 * Ranks may be played ahead of each other, so a rank must not go past sim_meetings_bound(): before
 * that moment nothing can come to it from others, whatever they do. What is due at a moment
 * (sim_meetings_next) is done when no rank can act before it any more (sim_meetings_step). Where
 * nobody else uses the links of a ring, its end is known, and told, as soon as all have come.
 *
 * A rank may wait at several at once: at one of each of its axes and stages beside it.
 *
 * Owns: communicators. Borrows: plan, fabric, jitter, hooks. Threads: one. Cost: O(1) to come,
 * O(ranks of the group) to meet and to end.
 */
#pragma once

#include "sim/device/device.h"
#include "sim/links/fabric.h"

typedef struct _SimMeetings SimMeetings;

/* Called once for each rank of each collective; `at` is never in the past. */
typedef struct {
    void (*meets)(gpointer self, uint32_t rank, uint32_t lane, SimTime at);
    void (*ends)(gpointer self, uint32_t rank, uint32_t lane, SimTime at);
} SimMeetingsHooks;

/* How a rank fared, over the collectives of step first_counted and later. */
typedef struct {
    SimTime waited_ns; /* for others, whether it computed meanwhile or not */
    SimTime held_ns;   /* by so much it, the last to come, was behind the second last */
    uint32_t n_last;   /* how often that was so */
} SimMeetingsBook;

typedef struct {
    const Plan *plan;
    const SimFabric *fabric;
    const bool *played; /* by rank, who is; NULL: all. The others of a group do what those do. */
    bool no_sharing;    /* of links */
    int32_t first_counted;
    const SimJitter *jitter;
    const SimMeetingsHooks *hooks;
    gpointer self; /* the hooks' */
} SimMeetingsSetup;

SimMeetings *sim_meetings_new(const SimMeetingsSetup *setup);
void sim_meetings_free(SimMeetings *meetings); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimMeetings, sim_meetings_free)

/* False when the ranks of a group come to different collectives: the plan is broken. */
bool sim_meetings_arrive(SimMeetings *meetings, uint32_t rank, const SimArrival *arrival,
                         GError **error);
SimTime sim_meetings_bound(const SimMeetings *meetings, uint32_t rank); /* SIM_NEVER: free */
SimTime sim_meetings_next(const SimMeetings *meetings);                 /* SIM_NEVER: nothing */
void sim_meetings_step(SimMeetings *meetings);
const SimMeetingsBook *sim_meetings_book(const SimMeetings *meetings, uint32_t rank);
/* For a play that stands still: a rank that waits and what for, in words; NULL when none does. */
char *sim_meetings_who_waits(const SimMeetings *meetings);
