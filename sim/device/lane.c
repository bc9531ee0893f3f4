/* sim/device/lane.c - the ring of commands behind a lane. */
#include "sim/device/lane.h"

void sim_lane_init(SimLane *lane) {
    *lane = (SimLane){.capacity = 64};
    lane->ring = g_new(SimCommand, lane->capacity);
}

void sim_lane_clear(SimLane *lane) {
    g_free(lane->ring);
    *lane = (SimLane){0};
}

void sim_lane_grow(SimLane *lane) {
    SimCommand *ring = g_new(SimCommand, (gsize)lane->capacity * 2);
    for (uint32_t i = 0; i < lane->n; i++) {
        ring[i] = lane->ring[(lane->head + i) & (lane->capacity - 1)];
    }
    g_free(lane->ring);
    lane->ring = ring;
    lane->capacity *= 2;
    lane->head = 0;
}
