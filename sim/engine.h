/* sim/engine.h - the virtual machine below the host: lanes, recordings and communicators in time.
 *
 * Whoever plays the host gives commands to lanes at the engine's present moment and lets time pass.
 * Commands of one lane run in order; lanes run beside each other; collectives of one axis run one
 * at a time, in the order in which they were issued, whatever their lanes (one communicator an
 * axis).
 *
 * A command depends only on what was issued before it: its lane, its axis, recordings that exist.
 * So nothing ever stalls: when sim_engine_step() finds nothing more to happen, all lanes are empty.
 *
 * A recording is one passing of a lane by a mark: what an event of a plan names in one step, and
 * what the allocator asks about. Recordings are numbered from 0 as they are made.
 *
 * Owns: lanes and queue. Borrows: the watcher. Threads: one. Cost: O(log lanes) a command.
 */
#pragma once

#include "sim/lane.h"
#include "sim/time.h"

typedef struct _SimEngine SimEngine;

/* Told of each op as it starts and as it ends. Asked, whenever what runs has changed, how fast the
 * ops run that run: running[lane] is NULL where none does, and a speed of 1 is the op's own
 * duration. NULL: all run as if alone. */
typedef struct {
    void (*op_starts)(gpointer self, uint32_t lane, const SimCommand *op, SimTime at);
    void (*op_ends)(gpointer self, uint32_t lane, const SimCommand *op, SimTime start, SimTime end);
    void (*share)(gpointer self, const SimCommand *const *running, double *speeds);
} SimWatcher;

SimEngine *sim_engine_new(uint32_t n_lanes, uint32_t n_axes, const SimWatcher *watcher,
                          gpointer self);
void sim_engine_free(SimEngine *engine); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimEngine, sim_engine_free)

SimTime sim_engine_now(const SimEngine *engine);
/* Lets time pass until, and everything happen up to and including that moment. */
void sim_engine_advance(SimEngine *engine, SimTime until);
/* Lets time pass to the next thing that happens; false when nothing will. */
bool sim_engine_step(SimEngine *engine);
/* Nothing runs and nothing is queued. */
bool sim_engine_idle(const SimEngine *engine);

/* Ops that a lane has been given and that have not ended. */
uint32_t sim_engine_queued_ops(const SimEngine *engine, uint32_t lane);
void sim_engine_launch(SimEngine *engine, uint32_t lane, SimTime duration, uint32_t axis,
                       uint32_t tag);
uint32_t sim_engine_record(SimEngine *engine, uint32_t lane);
void sim_engine_wait(SimEngine *engine, uint32_t lane, uint32_t recording);
bool sim_engine_passed(const SimEngine *engine, uint32_t recording);
