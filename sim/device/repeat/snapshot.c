#include "sim/device/repeat/snapshot.h"

enum {
    ROOM = 18 << 10 /* words, of a large network: what nobody touches costs less than copying */
};

static void append_run(const SimParts *parts, const SimOpRow *row, bool runs, MemoryWords *state) {
    if (runs) {
        SimTime busy_ns = sim_account_compute_busy(parts->account);
        memory_words_add(state, (uint64_t)(busy_ns - row->compute_busy_ns));
    }
}

/* Two steps have the same ops, and an op always the same row of costs. */
static void append_op_of_step(gpointer self, uint32_t tag, bool runs, MemoryWords *state) {
    const SimParts *parts = self;
    const SimOpRow *row = sim_op_row(parts->ops, tag);
    memory_words_add(state, parts->costs->row_of_op[row->op]);
    append_run(parts, row, runs, state);
}

/* Each pass has ops of its own, and two rows may say the same. */
static void append_op_of_pass(gpointer self, uint32_t tag, bool runs, MemoryWords *state) {
    const SimParts *parts = self;
    const SimOpRow *row = sim_op_row(parts->ops, tag);
    const SimOpCost *cost = sim_op_cost(parts->costs, row->op);
    memory_words_add_bytes(state, cost, sizeof *cost);
    append_run(parts, row, runs, state);
}

void sim_snapshot_take(SimSnapshot *snapshot, const SimParts *parts, int32_t step,
                       const bool *unnamed) {
    const SimEngine *engine = parts->host->engine;
    MemoryWords *state = &snapshot->state;
    SimTime now = sim_engine_now(engine);
    state->n = 0;
    memory_words_reserve(state, ROOM);
    memory_words_add(state, (uint64_t)(parts->host->now_ns - now));
    sim_engine_append_state(engine, state, unnamed ? append_op_of_pass : append_op_of_step,
                            (gpointer)parts);
    sim_account_append_state(parts->account, now, state);
    snapshot->is_known = sim_memory_append_state(parts->memory, unnamed, state);
    sim_memory_append_waits(parts->memory, sim_engine_count_recordings(engine), state);
    snapshot->step = step;
    snapshot->now_ns = parts->host->now_ns;
    snapshot->host = *parts->host->book;
    snapshot->n_acts = parts->driver->n_acts;
    sim_account_snapshot(parts->account, step, &snapshot->account);
}

bool sim_snapshot_equal(const SimSnapshot *a, const SimSnapshot *b) {
    return a->is_known && b->is_known && a->n_acts == b->n_acts &&
           memory_words_equal(&a->state, &b->state);
}

void sim_snapshot_clear(SimSnapshot *snapshot) {
    memory_words_clear(&snapshot->state);
    snapshot->is_known = false;
}
