/* sim/device/engine.h - the simulated device: lanes, recorded events and communicators, in time.
 *
 * Whoever plays the host gives commands to lanes at the engine's present moment and lets time pass.
 * Commands of one lane run in order; lanes run beside each other; collectives of one axis run one
 * at a time, in the order in which they were issued, whatever their lanes (one communicator an
 * axis).
 *
 * A command depends only on what was issued before it: its lane, its axis, existing recordings. So
 * nothing can deadlock: when sim_engine_step() finds nothing more to do, all lanes are empty.
 *
 * The end of an op may be decided outside, for a collective of several ranks: it is launched with
 * duration SIM_NEVER, and its lane waits until sim_engine_ends_at() is called. So that this never
 * comes too late, the watcher is asked (hold) before time passes.
 *
 * A recording is one passing of a lane by a mark: what an event of a plan names in one step, and
 * what the allocator asks about. Recordings are numbered from 0 as they are made.
 *
 * Owns: lanes and queue. Borrows: the watcher. Threads: one. Cost: O(log lanes) a command.
 */
#pragma once

#include "memory/words.h"
#include "sim/device/lane.h"
#include "sim/time.h"

typedef struct _SimEngine SimEngine;

/* What acts at a moment. */
typedef enum {
    SIM_ACTS_LANE,
    SIM_ACTS_HOST
} SimActs;

/* op_starts and op_ends are called for each op; op_changes as sim_engine_changes_at() says.
 *
 * set_speeds is called whenever what runs has changed, to set the speeds of the n_running ops;
 * running[lane] is NULL where none runs. Speeds are preset to 1, at which an op takes its own
 * duration. Unless asks_alone, set_speeds is not called for a single op. NULL: all run at speed 1.
 *
 * hold is called before time passes to a moment (SIM_NEVER: nothing is due) at which lanes act or,
 * after them, the host. True: things may have changed meanwhile, look again. NULL: no op's end is
 * decided outside. */
typedef struct {
    void (*op_starts)(gpointer self, uint32_t lane, const SimCommand *op, SimTime at);
    void (*op_ends)(gpointer self, uint32_t lane, const SimCommand *op, SimTime start, SimTime end);
    void (*set_speeds)(gpointer self, const SimCommand *const *running, uint32_t n_running,
                       double *speeds);
    bool (*hold)(gpointer self, SimTime at, SimActs who);
    void (*op_changes)(gpointer self, uint32_t lane, const SimCommand *op, SimTime at);
    bool asks_alone;
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
/* An op on a lane that was idle or waiting starts so much later than it could (default 0): a lane
 * of a CPU rank is a thread, which is asleep by then. */
void sim_engine_set_wake(SimEngine *engine, SimTime wake_ns);
/* Nothing runs and nothing is queued. */
bool sim_engine_idle(const SimEngine *engine);

/* Ops that a lane has been given and that have not ended. */
uint32_t sim_engine_queued_ops(const SimEngine *engine, uint32_t lane);
/* duration: SIM_NEVER when sim_engine_ends_at() will say it. */
void sim_engine_launch(SimEngine *engine, uint32_t lane, SimTime duration, uint32_t axis,
                       uint32_t tag);
/* Sets the end of the op that runs on the lane, launched with SIM_NEVER; at: not before now. */
void sim_engine_ends_at(SimEngine *engine, uint32_t lane, SimTime at);
/* At that moment op_changes is called for the op that runs on the lane, and then set_speeds. */
void sim_engine_changes_at(SimEngine *engine, uint32_t lane, SimTime at);
/* Moves the clock and all that is under way by as much. */
void sim_engine_shift(SimEngine *engine, SimTime by);
/* Appends what the lanes have been given and where they are in it, with times as so long after now,
 * recordings as so many before the newest, and each op as append_op() does. No lane may wake. */
void sim_engine_append_state(const SimEngine *engine, MemoryWords *state,
                             void (*append_op)(gpointer self, uint32_t tag, bool runs,
                                               MemoryWords *state),
                             gpointer self);
uint32_t sim_engine_count_recordings(const SimEngine *engine);

uint32_t sim_engine_record(SimEngine *engine, uint32_t lane);
void sim_engine_wait(SimEngine *engine, uint32_t lane, uint32_t recording);
bool sim_engine_passed(const SimEngine *engine, uint32_t recording);
