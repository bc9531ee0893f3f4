/* sim/device/engine.h - the virtual machine below the host: lanes, recordings and communicators in
 * time.
 *
 * Whoever plays the host gives commands to lanes at the engine's present moment and lets time pass.
 * Commands of one lane run in order; lanes run beside each other; collectives of one axis run one
 * at a time, in the order in which they were issued, whatever their lanes (one communicator an
 * axis).
 *
 * A command depends only on what was issued before it: its lane, its axis, recordings that exist.
 * So nothing ever stalls: when sim_engine_step() finds nothing more to happen, all lanes are empty.
 *
 * An op may be one whose end others decide: a collective that several ranks hold up together. It
 * starts when it is there, and its lane waits until sim_engine_ends_at() says when it ends. Before
 * time passes the watcher may hold it (hold): so that it is never too late to say so.
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

/* Told of each op as it starts and as it ends. Asked, whenever what runs has changed, how fast the
 * n_running ops run: running[lane] is NULL where none does, and a speed of 1, which all are given
 * with, is the op's own duration. Of an op that runs alone only where asks_alone. NULL: all run as
 * if alone.
 *
 * hold is asked before time passes to a moment (SIM_NEVER: nothing is known to happen any more) at
 * which lanes act or, after them, the host. True: things may stand otherwise now, look again.
 * NULL: nobody decides ends but the engine. */
typedef enum {
    SIM_ACTS_LANE,
    SIM_ACTS_HOST
} SimActs;

typedef struct {
    void (*op_starts)(gpointer self, uint32_t lane, const SimCommand *op, SimTime at);
    void (*op_ends)(gpointer self, uint32_t lane, const SimCommand *op, SimTime start, SimTime end);
    void (*share)(gpointer self, const SimCommand *const *running, uint32_t n_running,
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
/* An op on a lane that has rested, be it for lack of commands or waiting, starts so much later than
 * it could (0 at first): a CPU rank's lane is a thread, and asleep by then. */
void sim_engine_set_wake(SimEngine *engine, SimTime wake_ns);
/* Nothing runs and nothing is queued. */
bool sim_engine_idle(const SimEngine *engine);

/* Ops that a lane has been given and that have not ended. */
uint32_t sim_engine_queued_ops(const SimEngine *engine, uint32_t lane);
/* duration: SIM_NEVER when sim_engine_ends_at() will say it. */
void sim_engine_launch(SimEngine *engine, uint32_t lane, SimTime duration, uint32_t axis,
                       uint32_t tag);
/* Of the op that runs on the lane, launched with duration SIM_NEVER; at: not before now. */
void sim_engine_ends_at(SimEngine *engine, uint32_t lane, SimTime at);
/* From then on it shares otherwise: op_changes is told, and share asked, at that moment. */
void sim_engine_changes_at(SimEngine *engine, uint32_t lane, SimTime at);
/* All that is under way happens so much later; what was recorded, and whose turn it is, stays. */
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
