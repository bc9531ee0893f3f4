#include "sim/device/op-rows.h"

enum {
    FEW = 1024 /* rows that are no trouble; a power of two */
};

void sim_op_rows_init(SimOpRows *rows) {
    *rows = (SimOpRows){.rows = g_new(SimOpRow, FEW), .mask = FEW - 1, .end = FEW};
}

void sim_op_rows_clear(SimOpRows *rows) {
    g_clear_pointer(&rows->rows, g_free);
}

static void forget(SimOpRows *rows) {
    uint32_t first = rows->first, next = rows->next;
    while (first != next && sim_op_row(rows, first)->end_ns != SIM_NEVER) {
        first++;
    }
    rows->end += first - rows->first;
    rows->first = first;
}

static void grow(SimOpRows *rows) {
    SimOpRows larger = *rows;
    uint32_t room = 2 * (rows->mask + 1);
    larger.mask = room - 1;
    larger.end = rows->first + room;
    larger.rows = g_new(SimOpRow, room);
    for (uint32_t number = rows->first; number != rows->next; number++) {
        *sim_op_row(&larger, number) = *sim_op_row(rows, number);
    }
    g_free(rows->rows);
    *rows = larger;
}

void sim_op_rows_make_room(SimOpRows *rows) {
    if (!rows->kept) {
        forget(rows);
    }
    if (rows->next == rows->end) {
        grow(rows);
    }
}

void sim_op_rows_shift(SimOpRows *rows, SimTime later_ns, SimTime busier_ns) {
    for (uint32_t number = rows->first; number != rows->next; number++) {
        SimOpRow *row = sim_op_row(rows, number);
        if (row->end_ns == SIM_NEVER) {
            row->issue_ns += later_ns;
            row->start_ns += later_ns;
            row->compute_busy_ns += busier_ns;
        }
    }
}
