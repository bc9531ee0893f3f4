#include "sim/device/op-rows.h"

#include <string.h>

enum {
    FEW = 1024 /* rows that are no trouble */
};

void sim_op_rows_init(SimOpRows *rows) {
    *rows = (SimOpRows){.rows = g_new(SimOpRow, FEW), .room = FEW};
}

void sim_op_rows_clear(SimOpRows *rows) {
    g_clear_pointer(&rows->rows, g_free);
}

/* Forgets the oldest rows when they are at least half of all: what is moved is at most what was
 * forgotten. */
static void forget(SimOpRows *rows) {
    uint32_t old = 0;
    while (old < rows->n && rows->rows[old].end_ns != SIM_NEVER) {
        old++;
    }
    if (old >= rows->n / 2) {
        memmove(rows->rows, rows->rows + old, (rows->n - old) * sizeof *rows->rows);
        rows->n -= old;
        rows->base += old;
    }
}

void sim_op_rows_make_room(SimOpRows *rows) {
    if (!rows->kept) {
        forget(rows);
    }
    if (rows->n == rows->room) {
        rows->room *= 2;
        rows->rows = g_renew(SimOpRow, rows->rows, rows->room);
    }
}

void sim_op_rows_shift(SimOpRows *rows, SimTime later_ns, SimTime busier_ns) {
    for (uint32_t i = 0; i < rows->n; i++) {
        if (rows->rows[i].end_ns == SIM_NEVER) {
            rows->rows[i].issue_ns += later_ns;
            rows->rows[i].start_ns += later_ns;
            rows->rows[i].compute_busy_ns += busier_ns;
        }
    }
}
