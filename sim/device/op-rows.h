/* sim/device/op-rows.h - the ops that a host has issued, in order.
 *
 * A row's number is the engine's tag of the op. For a trace all rows are kept; otherwise a row is
 * dropped once it and all before it have ended, so that a long play of many ranks stays small.
 *
 * Owns: its rows. Threads: one. Cost: O(1) a row, taken over many.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim/time.h"

typedef struct {
    int32_t step;
    uint32_t op, instruction, lane;
    bool evaluates;                     /* it is of an evaluation */
    SimTime issue_ns, start_ns, end_ns; /* end_ns: SIM_NEVER until it has ended */
    SimTime alone_ns;                   /* a kernel's own duration, this time */
    SimTime compute_busy_ns;            /* how long the compute lane had worked when it started */
} SimOpRow;

typedef struct {
    SimOpRow *rows; /* n of them; the first has the number base */
    uint32_t n, room, base;
    bool kept; /* no row is dropped once it has ended */
} SimOpRows;

void sim_op_rows_init(SimOpRows *rows);
void sim_op_rows_clear(SimOpRows *rows);
void sim_op_rows_make_room(SimOpRows *rows); /* for one more */
/* One more, for the caller to fill in. It is there until it and all before it have ended. */
static inline SimOpRow *sim_op_rows_add(SimOpRows *rows, uint32_t *ret_number) {
    if (rows->n == rows->room) {
        sim_op_rows_make_room(rows);
    }
    *ret_number = rows->base + rows->n;
    return &rows->rows[rows->n++];
}

/* Moves the times of the ops that have not ended. */
void sim_op_rows_shift(SimOpRows *rows, SimTime later_ns, SimTime busier_ns);

static inline SimOpRow *sim_op_row(const SimOpRows *rows, uint32_t number) {
    return &rows->rows[number - rows->base];
}
