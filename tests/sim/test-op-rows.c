/* sim/op-rows and sim/recordings: what is kept, what is forgotten. */
#include <glib.h>

#include "sim/device/op-rows.h"
#include "sim/device/recordings.h"

enum {
    ROWS = 100000,
    QUEUED = 700 /* issued and not ended */
};

static void play(SimOpRows *rows, guint *ret_most) {
    *ret_most = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        uint32_t number;
        *sim_op_rows_add(rows, &number) = (SimOpRow){.op = i, .end_ns = SIM_NEVER};
        g_assert_cmpuint(number, ==, i);
        if (i >= QUEUED) {
            g_assert_cmpuint(sim_op_row(rows, i - QUEUED)->op, ==, i - QUEUED);
            sim_op_row(rows, i - QUEUED)->end_ns = i;
        }
        *ret_most = MAX(*ret_most, rows->next - rows->first);
    }
}

static void test_forgets_what_has_ended(void) {
    SimOpRows rows;
    guint most;
    sim_op_rows_init(&rows);
    play(&rows, &most);
    g_assert_cmpuint(most, <, 4 * QUEUED);
    g_assert_cmpuint(sim_op_row(&rows, ROWS - 1)->op, ==, ROWS - 1);
    sim_op_rows_clear(&rows);
}

static void test_keeps_all_for_a_trace(void) {
    SimOpRows rows;
    guint most;
    sim_op_rows_init(&rows);
    rows.kept = true;
    play(&rows, &most);
    g_assert_cmpuint(most, ==, ROWS);
    g_assert_cmpuint(sim_op_row(&rows, 0)->op, ==, 0);
    sim_op_rows_clear(&rows);
}

static void assert_found(const SimRecordings *recordings, int32_t step, uint32_t expected) {
    uint32_t recording = 0;
    g_assert_true(sim_recordings_find(recordings, 1, step, &recording));
    g_assert_cmpuint(recording, ==, expected);
}

static void test_recordings(void) {
    SimRecordings recordings;
    uint32_t recording = 7;
    sim_recordings_init(&recordings, 2);
    g_assert_false(sim_recordings_find(&recordings, 1, -1, &recording));
    for (int32_t step = -1; step < 6; step++) {
        sim_recordings_note(&recordings, 1, step, (uint32_t)(100 + step));
    }
    assert_found(&recordings, 5, 105);
    assert_found(&recordings, 4, 104);
    assert_found(&recordings, 3, 103); /* two steps before: PLAN_MAX_BEFORE */
    g_assert_false(sim_recordings_find(&recordings, 1, 2, &recording));
    g_assert_false(sim_recordings_find(&recordings, 0, 5, &recording));
    g_assert_false(sim_recordings_find(&recordings, 1, -2, &recording));
    g_assert_cmpuint(recording, ==, 7);
    sim_recordings_clear(&recordings);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/op-rows/forgets what has ended", test_forgets_what_has_ended);
    g_test_add_func("/sim/op-rows/keeps all for a trace", test_keeps_all_for_a_trace);
    g_test_add_func("/sim/recordings/three steps back", test_recordings);
    return g_test_run();
}
