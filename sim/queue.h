/* sim/queue.h - what happens next: a priority queue with one moment for each slot.
 *
 * A slot (a lane, a host) waits for at most one thing. Its moment can be moved at any time, which
 * is how the duration of a running op changes. The slot with the earliest moment leaves first; of
 * equal moments the one that was set first, so that a run is a function of its plan.
 *
 * Owns: its heap. Threads: one. Cost: O(log slots) to set and pop, O(1) to look.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory/words.h"
#include "sim/time.h"

typedef struct _SimQueue SimQueue;

SimQueue *sim_queue_new(uint32_t n_slots);
void sim_queue_free(SimQueue *queue); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimQueue, sim_queue_free)
/* Makes n_slots of them; never fewer than before. */
void sim_queue_grow(SimQueue *queue, uint32_t n_slots);

/* Sets, or moves, the slot's moment; its turn among equals is the newest. */
void sim_queue_set(SimQueue *queue, uint32_t slot, SimTime at);
void sim_queue_unset(SimQueue *queue, uint32_t slot); /* one that is not set is fine */
bool sim_queue_is_set(const SimQueue *queue, uint32_t slot);
SimTime sim_queue_next(const SimQueue *queue); /* SIM_NEVER when empty */
/* Moves all moments by as much. */
void sim_queue_shift(SimQueue *queue, SimTime by);
/* Appends the slots that are set, earliest first, each with its time after now. */
void sim_queue_append_state(const SimQueue *queue, SimTime now, MemoryWords *state);
/* Takes the earliest slot out; false when empty. */
bool sim_queue_pop(SimQueue *queue, uint32_t *ret_slot, SimTime *ret_at);
