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
    SimOpRow *rows;            /* a ring: a number's row is at that number's last bits ... */
    uint32_t mask;             /* ... which are these */
    uint32_t first, next, end; /* numbers: of the rows there are, and the one that finds no room */
    bool kept;                 /* no row is dropped once it has ended */
} SimOpRows;

void sim_op_rows_init(SimOpRows *rows);
void sim_op_rows_clear(SimOpRows *rows);
void sim_op_rows_make_room(SimOpRows *rows); /* for one more */

static inline SimOpRow *sim_op_row(const SimOpRows *rows, uint32_t number) {
    return &rows->rows[number & rows->mask];
}

/* One more, for the caller to fill in. It is there until it and all before it have ended. */
static inline SimOpRow *sim_op_rows_add(SimOpRows *rows, uint32_t *ret_number) {
    if (rows->next == rows->end) {
        sim_op_rows_make_room(rows);
    }
    *ret_number = rows->next++;
    return sim_op_row(rows, *ret_number);
}

/* Moves the times of the ops that have not ended. */
void sim_op_rows_shift(SimOpRows *rows, SimTime later_ns, SimTime busier_ns);
