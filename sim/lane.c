/* sim/lane.c - the ring of commands behind a lane. */
#include "sim/lane.h"

void sim_lane_init(SimLane *lane) {
    *lane = (SimLane){.capacity = 64};
    lane->ring = g_new(SimCommand, lane->capacity);
}

void sim_lane_clear(SimLane *lane) {
    g_free(lane->ring);
    *lane = (SimLane){0};
}

static void grow(SimLane *lane) {
    SimCommand *ring = g_new(SimCommand, (gsize)lane->capacity * 2);
    for (uint32_t i = 0; i < lane->n; i++) {
        ring[i] = lane->ring[(lane->head + i) & (lane->capacity - 1)];
    }
    g_free(lane->ring);
    lane->ring = ring;
    lane->capacity *= 2;
    lane->head = 0;
}

void sim_lane_push(SimLane *lane, const SimCommand *command) {
    if (lane->n == lane->capacity) {
        grow(lane);
    }
    lane->ring[(lane->head + lane->n++) & (lane->capacity - 1)] = *command;
    lane->n_ops += command->kind == SIM_COMMAND_OP;
}

const SimCommand *sim_lane_first(const SimLane *lane) {
    return lane->n ? &lane->ring[lane->head] : NULL;
}

SimCommand sim_lane_pop(SimLane *lane) {
    g_assert(lane->n > 0);
    SimCommand command = lane->ring[lane->head];
    lane->head = (lane->head + 1) & (lane->capacity - 1);
    lane->n--;
    lane->n_ops -= command.kind == SIM_COMMAND_OP;
    return command;
}
