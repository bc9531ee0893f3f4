#include "sim/device/engine.h"

#include <string.h>

#include "sim/queue.h"

typedef struct {
    uint64_t issued, done; /* tickets given out, tickets finished */
    bool busy;
} Axis;

struct _SimEngine {
    SimTime now;
    SimTime wake_ns;
    /* Two slots a lane: the end of the op that runs there, or its start if the lane wakes; n_lanes
     * on: a change. */
    SimQueue *queue;
    SimLane *lanes;
    uint32_t n_lanes;
    Axis *axes;
    uint32_t n_axes;
    /* Recordings base and on; earlier ones have all passed. */
    bool *passed;
    uint32_t base, n_recordings, capacity;
    const SimWatcher *watcher;
    gpointer self;
    uint64_t runs;              /* lanes on which an op does, a bit each */
    const SimCommand **running; /* by lane, for set_speeds() */
    double *speeds;
    bool changed; /* what runs, since speeds were last asked for */
};

static void advance_lane(SimEngine *engine, uint32_t index);

SimEngine *sim_engine_new(uint32_t n_lanes, uint32_t n_axes, const SimWatcher *watcher,
                          gpointer self) {
    SimEngine *engine = g_new0(SimEngine, 1);
    engine->queue = sim_queue_new(2 * n_lanes);
    engine->lanes = g_new0(SimLane, n_lanes);
    g_assert(n_lanes <= 64); /* the bits of runs */
    engine->n_lanes = n_lanes;
    for (uint32_t i = 0; i < n_lanes; i++) {
        sim_lane_init(&engine->lanes[i]);
    }
    engine->axes = g_new0(Axis, n_axes);
    engine->n_axes = n_axes;
    engine->capacity = 1024;
    engine->passed = g_new0(bool, engine->capacity);
    engine->watcher = watcher;
    engine->self = self;
    engine->running = g_new0(const SimCommand *, n_lanes);
    engine->speeds = g_new0(double, n_lanes);
    return engine;
}

void sim_engine_free(SimEngine *engine) {
    if (engine) {
        sim_queue_free(engine->queue);
        for (uint32_t i = 0; i < engine->n_lanes; i++) {
            sim_lane_clear(&engine->lanes[i]);
        }
        g_free(engine->lanes);
        g_free(engine->axes);
        g_free(engine->passed);
        g_free(engine->running);
        g_free(engine->speeds);
        g_free(engine);
    }
}

void sim_engine_set_wake(SimEngine *engine, SimTime wake_ns) {
    g_assert(wake_ns >= 0);
    engine->wake_ns = wake_ns;
}

SimTime sim_engine_now(const SimEngine *engine) {
    return engine->now;
}

bool sim_engine_passed(const SimEngine *engine, uint32_t recording) {
    g_assert(recording < engine->n_recordings);
    return recording < engine->base || engine->passed[recording - engine->base];
}

/* Drops the oldest recordings once all of them have passed, so that a long play stays small. Moves
 * at most as many as it drops. */
static void make_room(SimEngine *engine) {
    uint32_t kept = engine->n_recordings - engine->base, old = 0;
    while (old < kept && engine->passed[old]) {
        old++;
    }
    if (old >= kept / 2 && old > 0) {
        memmove(engine->passed, engine->passed + old, (kept - old) * sizeof(bool));
        engine->base += old;
    } else {
        engine->capacity *= 2;
        engine->passed = g_renew(bool, engine->passed, engine->capacity);
    }
}

static void pass(SimEngine *engine, uint32_t recording) {
    engine->passed[recording - engine->base] = true;
    for (uint32_t i = 0; i < engine->n_lanes; i++) {
        SimLane *lane = &engine->lanes[i];
        if (lane->state == SIM_LANE_WAITS && sim_lane_first(lane)->recording == recording) {
            lane->state = SIM_LANE_IDLE;
            advance_lane(engine, i);
        }
    }
}

/* Takes the axis for the lane's first op, if it needs one. False: the lane now waits for its
 * turn. */
static bool take_axis(SimEngine *engine, SimLane *lane, const SimCommand *op) {
    if (op->axis == SIM_NO_AXIS) {
        return true;
    }
    Axis *axis = &engine->axes[op->axis];
    if (axis->busy || axis->done != op->ticket) {
        lane->state = SIM_LANE_WAITS_AXIS;
        return false;
    }
    axis->busy = true;
    return true;
}

static void leave_axis(SimEngine *engine, uint32_t axis_index) {
    Axis *axis = &engine->axes[axis_index];
    axis->busy = false;
    axis->done++;
    for (uint32_t i = 0; i < engine->n_lanes; i++) {
        SimLane *lane = &engine->lanes[i];
        if (lane->state == SIM_LANE_WAITS_AXIS && sim_lane_first(lane)->axis == axis_index &&
            sim_lane_first(lane)->ticket == axis->done) {
            lane->state = SIM_LANE_IDLE;
            advance_lane(engine, i);
            return;
        }
    }
}

static void start_op(SimEngine *engine, uint32_t index) {
    SimLane *lane = &engine->lanes[index];
    const SimCommand *op = sim_lane_first(lane);
    SimTime duration = op->duration_ns;
    lane->state = SIM_LANE_RUNS;
    engine->runs |= UINT64_C(1) << index;
    lane->start_ns = lane->since_ns = engine->now;
    lane->left_ns = (double)duration;
    lane->speed = 1;
    engine->changed = true;
    if (duration != SIM_NEVER) {
        sim_queue_set(engine->queue, index, engine->now + duration);
    }
    engine->watcher->op_starts(engine->self, index, op, engine->now);
}

static void wake_or_start(SimEngine *engine, uint32_t index) {
    SimLane *lane = &engine->lanes[index];
    if (engine->wake_ns > 0 && lane->ended_ns < engine->now) {
        lane->state = SIM_LANE_WAKES;
        sim_queue_set(engine->queue, index, engine->now + engine->wake_ns);
    } else {
        start_op(engine, index);
    }
}

/* Runs the commands of a lane until one has to wait. A lane that this wakes cannot wake this one
 * again, so the recursion is no deeper than there are lanes. */
static void advance_lane(SimEngine *engine, uint32_t index) {
    SimLane *lane = &engine->lanes[index];
    while (lane->state == SIM_LANE_IDLE && lane->n) {
        const SimCommand *first = sim_lane_first(lane);
        switch (first->kind) {
        case SIM_COMMAND_OP:
            if (take_axis(engine, lane, first)) {
                wake_or_start(engine, index);
            }
            break;
        case SIM_COMMAND_RECORD:
            pass(engine, sim_lane_pop(lane).recording);
            break;
        case SIM_COMMAND_WAIT:
            if (sim_engine_passed(engine, first->recording)) {
                sim_lane_pop(lane);
            } else {
                lane->state = SIM_LANE_WAITS;
            }
            break;
        }
    }
}

/* Moves the end of an op whose speed has changed. */
static void set_speed(SimEngine *engine, uint32_t index, double speed) {
    SimLane *lane = &engine->lanes[index];
    g_assert(speed > 0);
    if (speed != lane->speed) {
        lane->left_ns -= (double)(engine->now - lane->since_ns) * lane->speed;
        lane->since_ns = engine->now;
        lane->speed = speed;
        SimTime left = sim_time_from_ns(MAX(0, lane->left_ns) / speed);
        sim_queue_set(engine->queue, index, engine->now + left);
    }
}

static void ask_speeds(SimEngine *engine) {
    uint32_t n_running = 0;
    for (uint64_t left = engine->runs; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctzll(left);
        engine->running[lane] = sim_lane_first(&engine->lanes[lane]);
        engine->speeds[lane] = 1;
        n_running++;
    }
    engine->watcher->set_speeds(engine->self, engine->running, n_running, engine->speeds);
    for (uint64_t left = engine->runs; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctzll(left);
        if (engine->running[lane]->duration_ns != SIM_NEVER) {
            set_speed(engine, lane, engine->speeds[lane]);
        }
    }
}

static void update_speeds(SimEngine *engine) {
    if (!engine->changed || !engine->watcher->set_speeds) {
        return;
    }
    engine->changed = false;
    bool several = engine->runs & (engine->runs - 1);
    if (several || engine->watcher->asks_alone) {
        ask_speeds(engine);
    } else if (engine->runs) {
        uint32_t lane = (uint32_t)__builtin_ctzll(engine->runs);
        if (sim_lane_first(&engine->lanes[lane])->duration_ns != SIM_NEVER) {
            set_speed(engine, lane, 1);
        }
    }
}

static void finish_op(SimEngine *engine, uint32_t index) {
    SimLane *lane = &engine->lanes[index];
    SimCommand op = sim_lane_pop(lane);
    lane->state = SIM_LANE_IDLE;
    lane->ended_ns = engine->now;
    engine->runs &= ~(UINT64_C(1) << index);
    engine->running[index] = NULL;
    engine->changed = true;
    engine->watcher->op_ends(engine->self, index, &op, lane->start_ns, engine->now);
    if (op.axis != SIM_NO_AXIS) {
        leave_axis(engine, op.axis);
    }
    advance_lane(engine, index);
}

static void change_op(SimEngine *engine, uint32_t lane) {
    engine->changed = true;
    engine->watcher->op_changes(engine->self, lane, sim_lane_first(&engine->lanes[lane]),
                                engine->now);
}

/* Does the next thing that is due. False: there is none. */
static bool do_next(SimEngine *engine) {
    uint32_t slot;
    SimTime at;
    if (!sim_queue_pop(engine->queue, &slot, &at)) {
        return false;
    }
    engine->now = at;
    if (slot >= engine->n_lanes) {
        change_op(engine, slot - engine->n_lanes);
    } else if (engine->lanes[slot].state == SIM_LANE_WAKES) {
        start_op(engine, slot);
    } else {
        finish_op(engine, slot);
    }
    update_speeds(engine);
    return true;
}

static bool holds(SimEngine *engine, SimTime at, SimActs who) {
    return engine->watcher->hold(engine->self, at, who);
}

bool sim_engine_step(SimEngine *engine) {
    while (engine->watcher->hold && holds(engine, sim_queue_next(engine->queue), SIM_ACTS_LANE)) {
    }
    return do_next(engine);
}

/* Does what is due up to `until`, and asks the watcher before each moment, the last one too. */
static void advance_held(SimEngine *engine, SimTime until) {
    for (;;) {
        SimTime next = sim_queue_next(engine->queue);
        bool lane_acts = next <= until;
        if (!holds(engine, lane_acts ? next : until, lane_acts ? SIM_ACTS_LANE : SIM_ACTS_HOST)) {
            if (!lane_acts) {
                break;
            }
            do_next(engine);
        }
    }
}

void sim_engine_advance(SimEngine *engine, SimTime until) {
    if (engine->watcher->hold) {
        advance_held(engine, until);
    } else {
        while (sim_queue_next(engine->queue) <= until) {
            do_next(engine);
        }
    }
    if (engine->now < until) {
        engine->now = until;
    }
}

bool sim_engine_idle(const SimEngine *engine) {
    for (uint32_t i = 0; i < engine->n_lanes; i++) {
        if (engine->lanes[i].n) {
            return false;
        }
    }
    return true;
}

static SimCommand *place_for(SimEngine *engine, uint32_t lane, SimCommandKind kind) {
    g_assert(lane < engine->n_lanes);
    return sim_lane_push(&engine->lanes[lane], kind);
}

/* To be called when a command has been put in its place. */
static void given(SimEngine *engine, uint32_t lane) {
    if (engine->lanes[lane].state == SIM_LANE_IDLE) {
        advance_lane(engine, lane);
        update_speeds(engine);
    }
}

uint32_t sim_engine_queued_ops(const SimEngine *engine, uint32_t lane) {
    g_assert(lane < engine->n_lanes);
    return engine->lanes[lane].n_ops;
}

void sim_engine_launch(SimEngine *engine, uint32_t lane, SimTime duration, uint32_t axis,
                       uint32_t tag) {
    g_assert(duration >= 0 && (axis == SIM_NO_AXIS || axis < engine->n_axes));
    *place_for(engine, lane, SIM_COMMAND_OP) = (SimCommand){
        .kind = SIM_COMMAND_OP,
        .axis = axis,
        .tag = tag,
        .ticket = axis == SIM_NO_AXIS ? 0 : engine->axes[axis].issued++,
        .duration_ns = duration,
    };
    given(engine, lane);
}

void sim_engine_ends_at(SimEngine *engine, uint32_t lane, SimTime at) {
    g_assert(engine->lanes[lane].state == SIM_LANE_RUNS && at >= engine->now);
    sim_queue_set(engine->queue, lane, at);
}

void sim_engine_changes_at(SimEngine *engine, uint32_t lane, SimTime at) {
    g_assert(engine->lanes[lane].state == SIM_LANE_RUNS && at >= engine->now);
    sim_queue_set(engine->queue, engine->n_lanes + lane, at);
}

uint32_t sim_engine_record(SimEngine *engine, uint32_t lane) {
    if (engine->n_recordings - engine->base == engine->capacity) {
        make_room(engine);
    }
    uint32_t recording = engine->n_recordings++;
    engine->passed[recording - engine->base] = false;
    *place_for(engine, lane, SIM_COMMAND_RECORD) =
        (SimCommand){.kind = SIM_COMMAND_RECORD, .recording = recording};
    given(engine, lane);
    return recording;
}

void sim_engine_wait(SimEngine *engine, uint32_t lane, uint32_t recording) {
    if (sim_engine_passed(engine, recording) && engine->lanes[lane].n == 0) {
        return;
    }
    *place_for(engine, lane, SIM_COMMAND_WAIT) =
        (SimCommand){.kind = SIM_COMMAND_WAIT, .recording = recording};
    given(engine, lane);
}

uint32_t sim_engine_count_recordings(const SimEngine *engine) {
    return engine->n_recordings;
}

void sim_engine_shift(SimEngine *engine, SimTime by) {
    engine->now += by;
    sim_queue_shift(engine->queue, by);
    for (uint32_t i = 0; i < engine->n_lanes; i++) {
        engine->lanes[i].start_ns += by;
        engine->lanes[i].since_ns += by;
        engine->lanes[i].ended_ns += by;
    }
}

typedef struct {
    void (*append_op)(gpointer self, uint32_t tag, bool runs, MemoryWords *state);
    gpointer self;
} OpAppender;

static void append_command(const SimEngine *engine, const SimCommand *command, bool runs,
                           const OpAppender *appender, MemoryWords *state) {
    memory_words_add(state, command->kind);
    switch (command->kind) {
    case SIM_COMMAND_OP:
        memory_words_add(state, (uint64_t)(command->duration_ns));
        memory_words_add(state, command->axis);
        if (command->axis != SIM_NO_AXIS) {
            memory_words_add(state, command->ticket - engine->axes[command->axis].done);
        }
        appender->append_op(appender->self, command->tag, runs, state);
        return;
    case SIM_COMMAND_RECORD:
        memory_words_add(state, engine->n_recordings - command->recording);
        return;
    case SIM_COMMAND_WAIT: {
        bool passed = sim_engine_passed(engine, command->recording);
        memory_words_add(state, passed ? 0 : engine->n_recordings - command->recording);
        return;
    }
    }
}

static void append_lane(const SimEngine *engine, const SimLane *lane, const OpAppender *appender,
                        MemoryWords *state) {
    bool runs = lane->state == SIM_LANE_RUNS;
    memory_words_add(state, lane->state);
    memory_words_add(state, lane->n);
    if (runs) {
        memory_words_add(state, (uint64_t)(lane->start_ns - engine->now));
        memory_words_add(state, (uint64_t)(lane->since_ns - engine->now));
        memory_words_add_bytes(state, &lane->left_ns, sizeof lane->left_ns);
        memory_words_add_bytes(state, &lane->speed, sizeof lane->speed);
    }
    for (uint32_t i = 0; i < lane->n; i++) {
        const SimCommand *command = &lane->ring[(lane->head + i) & (lane->capacity - 1)];
        append_command(engine, command, runs && i == 0, appender, state);
    }
}

void sim_engine_append_state(const SimEngine *engine, MemoryWords *state,
                             void (*append_op)(gpointer self, uint32_t tag, bool runs,
                                               MemoryWords *state),
                             gpointer self) {
    g_assert(engine->wake_ns == 0);
    const OpAppender appender = {append_op, self};
    sim_queue_append_state(engine->queue, engine->now, state);
    for (uint32_t i = 0; i < engine->n_lanes; i++) {
        append_lane(engine, &engine->lanes[i], &appender, state);
    }
    for (uint32_t i = 0; i < engine->n_axes; i++) {
        memory_words_add(state, engine->axes[i].issued - engine->axes[i].done);
        memory_words_add(state, engine->axes[i].busy);
    }
}
