/* exec/host/lanes.h - lanes as worker threads: what a stream is on a GPU.
 *
 * Work given to a lane runs in order; lanes run beside each other. A moment is "all that this lane
 * has been given so far": it costs nothing to take, another lane can be told to wait for it, and so
 * can the host. A lane without work sleeps.
 *
 * An error in a lane's work stops it and every wait for it; exec_lanes_error() has the first one.
 *
 * Owns: threads and queued work. Threads: one host gives work; workers are inside.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct _ExecLanes ExecLanes;

/* Runs on the lane's thread; must not touch the lanes. False: the lane has failed. */
typedef bool (*ExecWork)(gpointer work, GError **error);

typedef struct {
    uint32_t lane;
    uint64_t position;
} ExecMoment;

ExecLanes *exec_lanes_new(uint32_t n_lanes);
void exec_lanes_free(ExecLanes *lanes); /* lets what runs end, drops the rest; NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExecLanes, exec_lanes_free)

/* How many pieces of work a lane may be behind the host, waits not counted; giving it more blocks
 * the host. A GPU allows about a thousand. Here it is small, so that memory over host time shows
 * the run and not only how it was issued. */
enum {
    EXEC_LANE_DEPTH = 8
};

/* work is freed with free_work after it has run or been dropped. */
void exec_lanes_give(ExecLanes *lanes, uint32_t lane, ExecWork run, gpointer work,
                     GDestroyNotify free_work);
ExecMoment exec_lanes_moment(const ExecLanes *lanes, uint32_t lane);
void exec_lanes_wait(ExecLanes *lanes, uint32_t lane,
                     ExecMoment moment); /* the lane, not the host */

/* The host: false when a lane has failed. */
bool exec_lanes_passed(ExecLanes *lanes, ExecMoment moment);
bool exec_lanes_host_wait(ExecLanes *lanes, ExecMoment moment);
bool exec_lanes_drain(ExecLanes *lanes); /* waits for everything */

/* A ticket lock, for work that must run in the order in which the host gave it, whatever lanes it
 * runs on, as the collectives of one communicator must. The host takes a ticket for each
 * (next_ticket++). The work calls exec_lanes_enter() with it, which waits until that ticket is
 * served, and then exec_lanes_leave(). */
typedef struct {
    uint64_t next_ticket, now_serving;
} ExecTickets;
bool exec_lanes_enter(ExecLanes *lanes, ExecTickets *tickets, uint64_t ticket); /* false: failed */
void exec_lanes_leave(ExecLanes *lanes, ExecTickets *tickets);

/* Called by work that is about to return false, so that others learn of the error at once. */
void exec_lanes_fail(ExecLanes *lanes, const GError *error);
bool exec_lanes_failed(ExecLanes *lanes);
/* Transfer full; NULL when nothing failed. */
GError *exec_lanes_error(ExecLanes *lanes);
