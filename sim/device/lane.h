/* sim/device/lane.h - a stream of one simulated rank: commands in the order in which the host
 * issued them.
 *
 * A lane is a queue of commands and the op that runs now. The engine moves it forward; the lane
 * itself knows no time. Of the op that runs, left_ns were left at since_ns, at speed 1.
 *
 * Owns: its ring of commands. Threads: one.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/time.h"

typedef enum {
    SIM_COMMAND_OP,
    SIM_COMMAND_RECORD,
    SIM_COMMAND_WAIT,
} SimCommandKind;

#define SIM_NO_AXIS UINT32_MAX

typedef struct {
    SimCommandKind kind;
    uint32_t recording;  /* RECORD, WAIT */
    uint32_t axis;       /* OP: the communicator it takes, or SIM_NO_AXIS */
    uint32_t tag;        /* OP: the caller's own number */
    uint64_t ticket;     /* OP on an axis: its turn there */
    SimTime duration_ns; /* OP */
} SimCommand;

typedef enum {
    SIM_LANE_IDLE,      /* nothing left to do */
    SIM_LANE_WAKES,     /* its first command is an op that could run, but the lane has rested */
    SIM_LANE_RUNS,      /* its first command is an op that runs */
    SIM_LANE_WAITS,     /* its first command waits for a recording */
    SIM_LANE_WAITS_AXIS /* its first command is a collective whose turn has not come */
} SimLaneState;

typedef struct {
    SimLaneState state;
    SimTime ended_ns; /* when the op before ended */
    SimTime start_ns; /* when the op that runs started */
    SimTime since_ns; /* when its speed was last set */
    double left_ns;   /* how much of it was left then, at speed 1 */
    double speed;
    SimCommand *ring;
    uint32_t capacity, head, n; /* capacity is a power of two */
    uint32_t n_ops;             /* ops among the n, the one that runs included */
} SimLane;

void sim_lane_init(SimLane *lane);
void sim_lane_clear(SimLane *lane);
void sim_lane_grow(SimLane *lane);

/* The place of one more command, for the caller to fill in. */
static inline SimCommand *sim_lane_push(SimLane *lane, SimCommandKind kind) {
    if (lane->n == lane->capacity) {
        sim_lane_grow(lane);
    }
    lane->n_ops += kind == SIM_COMMAND_OP;
    return &lane->ring[(lane->head + lane->n++) & (lane->capacity - 1)];
}

static inline const SimCommand *sim_lane_first(const SimLane *lane) { /* NULL when empty */
    return lane->n ? &lane->ring[lane->head] : NULL;
}

static inline SimCommand sim_lane_pop(SimLane *lane) {
    g_assert(lane->n > 0);
    SimCommand command = lane->ring[lane->head];
    lane->head = (lane->head + 1) & (lane->capacity - 1);
    lane->n--;
    lane->n_ops -= command.kind == SIM_COMMAND_OP;
    return command;
}
