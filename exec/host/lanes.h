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

/* The host may be ahead of a lane by so much work, waits not counted; then giving more blocks it. A
 * GPU has such a depth too, about a thousand. Here it is small, so that memory over host time shows
 * the run and not just its issuing. */
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

/* Turns: work that must run in the order in which the host gave it, whatever its lane (collectives
 * of one communicator). The host takes a ticket; the work enters with it and leaves. */
typedef struct {
    uint64_t next_ticket, now_serving;
} ExecTurns;
bool exec_lanes_enter(ExecLanes *lanes, ExecTurns *turns, uint64_t ticket); /* false: stop */
void exec_lanes_leave(ExecLanes *lanes, ExecTurns *turns);

/* For work that is about to return false: the error is known from now on. */
void exec_lanes_fail(ExecLanes *lanes, const GError *error);
bool exec_lanes_failed(ExecLanes *lanes);
/* Transfer full; NULL when nothing failed. */
GError *exec_lanes_error(ExecLanes *lanes);
