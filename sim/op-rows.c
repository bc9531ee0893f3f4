#include "sim/op-rows.h"

enum {
    FEW = 1024 /* rows that are no trouble */
};

void sim_op_rows_init(SimOpRows *rows) {
    *rows = (SimOpRows){.rows = g_array_new(FALSE, FALSE, sizeof(SimOpRow))};
}

void sim_op_rows_clear(SimOpRows *rows) {
    g_clear_pointer(&rows->rows, g_array_unref);
}

/* Forgets the oldest rows when they are at least half of all: what is moved is at most what was
 * forgotten. */
static void make_room(SimOpRows *rows) {
    guint old = 0;
    while (old < rows->rows->len && g_array_index(rows->rows, SimOpRow, old).end_ns != SIM_NEVER) {
        old++;
    }
    if (old >= rows->rows->len / 2) {
        g_array_remove_range(rows->rows, 0, old);
        rows->base += old;
    }
}

uint32_t sim_op_rows_add(SimOpRows *rows, const SimOpRow *row) {
    guint n = rows->rows->len;
    if (!rows->kept && n >= FEW && (n & (n - 1)) == 0) {
        make_room(rows);
    }
    g_array_append_vals(rows->rows, row, 1);
    return rows->base + rows->rows->len - 1;
}
