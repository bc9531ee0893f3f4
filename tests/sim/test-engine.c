/* Lanes, recordings and communicators on small scripts; each answer is worked out by hand. */
#include <glib.h>

#include "sim/device/account.h"
#include "sim/device/engine.h"

typedef struct {
    SimEngine *engine;
    GString *log; /* "tag:start-end " in the order of ends */
} Fixture;

static void op_starts(gpointer self, uint32_t lane, const SimCommand *op, SimTime at) {
}

static void op_ends(gpointer self, uint32_t lane, const SimCommand *op, SimTime start,
                    SimTime end) {
    Fixture *fixture = self;
    g_string_append_printf(fixture->log, "%c:%" G_GINT64_FORMAT "-%" G_GINT64_FORMAT " ",
                           (char)op->tag, start, end);
}

static const SimWatcher watcher = {.op_starts = op_starts, .op_ends = op_ends};

static void set_up(Fixture *fixture, gconstpointer data) {
    fixture->log = g_string_new(NULL);
    fixture->engine = sim_engine_new(3, 2, &watcher, fixture);
}

static void tear_down(Fixture *fixture, gconstpointer data) {
    sim_engine_free(fixture->engine);
    g_string_free(fixture->log, TRUE);
}

static void assert_ends(Fixture *fixture, const char *expected) {
    while (sim_engine_step(fixture->engine)) {
    }
    g_assert_true(sim_engine_idle(fixture->engine));
    g_strchomp(fixture->log->str);
    g_assert_cmpstr(fixture->log->str, ==, expected);
}

static void launch(Fixture *fixture, uint32_t lane, SimTime duration, char tag) {
    sim_engine_launch(fixture->engine, lane, duration, SIM_NO_AXIS, (uint32_t)tag);
}

static void test_lane_in_order(Fixture *fixture, gconstpointer data) {
    launch(fixture, 0, 10, 'a');
    launch(fixture, 0, 5, 'b');
    launch(fixture, 1, 12, 'c');
    assert_ends(fixture, "a:0-10 c:0-12 b:10-15");
}

/* What is issued later starts no earlier than it is issued. */
static void test_issue_time(Fixture *fixture, gconstpointer data) {
    launch(fixture, 0, 10, 'a');
    sim_engine_advance(fixture->engine, 25);
    launch(fixture, 0, 5, 'b');
    assert_ends(fixture, "a:0-10 b:25-30");
}

static void test_recording(Fixture *fixture, gconstpointer data) {
    launch(fixture, 0, 10, 'a');
    uint32_t recording = sim_engine_record(fixture->engine, 0);
    launch(fixture, 0, 10, 'b');
    sim_engine_wait(fixture->engine, 1, recording);
    launch(fixture, 1, 3, 'c');
    g_assert_false(sim_engine_passed(fixture->engine, recording));
    sim_engine_advance(fixture->engine, 9);
    g_assert_false(sim_engine_passed(fixture->engine, recording));
    sim_engine_advance(fixture->engine, 10); /* up to and including */
    g_assert_true(sim_engine_passed(fixture->engine, recording));
    assert_ends(fixture, "a:0-10 c:10-13 b:10-20");
}

/* A chain over three lanes at one moment: each wakes the next. */
static void test_chain(Fixture *fixture, gconstpointer data) {
    launch(fixture, 0, 7, 'a');
    uint32_t first = sim_engine_record(fixture->engine, 0);
    sim_engine_wait(fixture->engine, 1, first);
    uint32_t second = sim_engine_record(fixture->engine, 1);
    sim_engine_wait(fixture->engine, 2, second);
    launch(fixture, 2, 1, 'b');
    sim_engine_wait(fixture->engine, 0, second);
    launch(fixture, 0, 2, 'c');
    assert_ends(fixture, "a:0-7 b:7-8 c:7-9");
}

/* Two collectives of one axis on two lanes run one after the other, in the order of issue, even
 * when the second could start first; one on another axis runs beside them. */
static void test_axis_in_issue_order(Fixture *fixture, gconstpointer data) {
    launch(fixture, 0, 20, 'a');
    uint32_t recording = sim_engine_record(fixture->engine, 0);
    sim_engine_wait(fixture->engine, 1, recording);
    sim_engine_launch(fixture->engine, 1, 10, 0, 'g');
    sim_engine_launch(fixture->engine, 2, 10, 0, 'r');
    sim_engine_launch(fixture->engine, 0, 4, 1, 'x');
    assert_ends(fixture, "a:0-20 x:20-24 g:20-30 r:30-40");
}

/* A lane that goes on at once has not rested: a is the first thing of all, b follows it; c was
 * waited for, x comes late, and g's turn comes when r, on another lane, ends. */
static void test_rested_lanes_wake(Fixture *fixture, gconstpointer data) {
    sim_engine_set_wake(fixture->engine, 3);
    launch(fixture, 0, 10, 'a');
    uint32_t recording = sim_engine_record(fixture->engine, 0);
    sim_engine_wait(fixture->engine, 1, recording);
    launch(fixture, 1, 4, 'c');
    launch(fixture, 0, 10, 'b');
    sim_engine_advance(fixture->engine, 25);
    launch(fixture, 0, 5, 'x');
    sim_engine_launch(fixture->engine, 1, 10, 0, 'r');
    sim_engine_launch(fixture->engine, 2, 10, 0, 'g');
    assert_ends(fixture, "a:0-10 c:13-17 b:10-20 x:28-33 r:28-38 g:41-51");
}

/* Random programs over lanes, recordings and axes always come to their end. */
static void test_nothing_stalls(Fixture *fixture, gconstpointer data) {
    g_autoptr(GRand) dice = g_rand_new_with_seed(3);
    g_autoptr(GArray) recordings = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (int i = 0; i < 20000; i++) {
        uint32_t lane = (uint32_t)g_rand_int_range(dice, 0, 3);
        switch (g_rand_int_range(dice, 0, 5)) {
        case 0: {
            uint32_t recording = sim_engine_record(fixture->engine, lane);
            g_array_append_val(recordings, recording);
            break;
        }
        case 1:
            if (recordings->len) {
                int recent = MIN((int)recordings->len, 20);
                int which = (int)recordings->len - 1 - g_rand_int_range(dice, 0, recent);
                sim_engine_wait(fixture->engine, lane, g_array_index(recordings, uint32_t, which));
            }
            break;
        case 2:
            sim_engine_launch(fixture->engine, lane, g_rand_int_range(dice, 0, 9),
                              (uint32_t)g_rand_int_range(dice, 0, 2), 'c');
            break;
        case 3:
            sim_engine_launch(fixture->engine, lane, g_rand_int_range(dice, 0, 9), SIM_NO_AXIS,
                              'k');
            break;
        case 4:
            sim_engine_advance(fixture->engine,
                               sim_engine_now(fixture->engine) + g_rand_int_range(dice, 0, 5));
            break;
        }
    }
    while (sim_engine_step(fixture->engine)) {
    }
    g_assert_true(sim_engine_idle(fixture->engine));
    for (guint i = 0; i < recordings->len; i++) {
        g_assert_true(sim_engine_passed(fixture->engine, g_array_index(recordings, uint32_t, i)));
    }
}

/* Many recordings pass while one old one does not: none is mixed up with another. */
static void test_many_recordings(Fixture *fixture, gconstpointer data) {
    launch(fixture, 2, 1000000, 's');
    uint32_t slow = sim_engine_record(fixture->engine, 2);
    for (int i = 0; i < 5000; i++) {
        launch(fixture, 0, 2, 'a');
        uint32_t fast = sim_engine_record(fixture->engine, 0);
        g_assert_false(sim_engine_passed(fixture->engine, fast));
        sim_engine_advance(fixture->engine, sim_engine_now(fixture->engine) + 2);
        g_assert_true(sim_engine_passed(fixture->engine, fast));
        g_assert_false(sim_engine_passed(fixture->engine, slow));
    }
    sim_engine_advance(fixture->engine, 1000000);
    g_assert_true(sim_engine_passed(fixture->engine, slow));
    for (int i = 0; i < 5000; i++) {
        launch(fixture, 0, 2, 'a');
        uint32_t fast = sim_engine_record(fixture->engine, 0);
        g_assert_false(sim_engine_passed(fixture->engine, fast));
        sim_engine_advance(fixture->engine, sim_engine_now(fixture->engine) + 2);
        g_assert_true(sim_engine_passed(fixture->engine, fast));
    }
    g_assert_true(sim_engine_passed(fixture->engine, slow));
}

/* Compute 0-10 and 20-30 on lane 0, a collective 5-25: exposed while lane 0 is idle, 10-20. */
static void test_account(void) {
    const SimComputeCost kernel = {.overhead_ns = 1, .flops_ns = 9, .bytes_ns = 2};
    const SimAccountOp compute = {
        .step = 0, .kind = PLAN_OP_LINEAR, .cost = &kernel, .alone_ns = 10};
    const SimAccountOp gather = {
        .step = 0, .kind = PLAN_OP_ALL_GATHER, .axis = PLAN_AXIS_SHARD, .bytes = 64};
    g_autoptr(SimAccount) account = sim_account_new(1, 2, 0);
    SimTime busy = sim_account_starts(account, 0, &compute, 0);
    SimTime gather_busy = sim_account_starts(account, 1, &gather, 5);
    g_assert_cmpint(gather_busy, ==, 5);
    sim_account_ends(account, 0, &compute, 0, 10, busy);
    busy = sim_account_starts(account, 0, &compute, 20);
    sim_account_ends(account, 1, &gather, 5, 25, gather_busy);
    sim_account_ends(account, 0, &compute, 20, 30, busy);
    busy = sim_account_starts(account, 0, &compute, 37);
    sim_account_ends(account, 0, &compute, 37, 47, busy);

    const SimStepBook *book = sim_account_step(account, 0);
    g_assert_cmpint(book->end_ns, ==, 47);
    g_assert_cmpint(book->collectives[PLAN_OP_ALL_GATHER].total_ns, ==, 20);
    g_assert_cmpint(book->collectives[PLAN_OP_ALL_GATHER].exposed_ns, ==, 10);
    g_assert_cmpfloat(book->collectives[PLAN_OP_ALL_GATHER].bytes, ==, 64);
    g_assert_cmpint(book->lane_busy_ns[0], ==, 30);
    g_assert_cmpint(book->lane_busy_ns[1], ==, 20);
    g_assert_cmpint(book->cause_ns[SIM_CAUSE_ARITHMETIC], ==, 27);
    g_assert_cmpint(book->cause_ns[SIM_CAUSE_OVERHEAD], ==, 3);
    g_assert_cmpint(book->cause_ns[SIM_CAUSE_NETWORK + PLAN_AXIS_SHARD], ==, 10);
    g_assert_cmpint(book->cause_ns[SIM_CAUSE_HOST], ==, 7);
    SimTime sum = 0;
    for (unsigned i = 0; i < SIM_N_CAUSES; i++) {
        sum += book->cause_ns[i];
    }
    g_assert_cmpint(sum, ==, 47);
}

/* A gather waits from 5 on, runs from 15 on and ends at 25; compute 0-10. Idle 10-15 is the other
 * ranks' doing, 15-25 the network's. A kernel that takes longer this time is not slowed. */
static void test_account_of_waiting(void) {
    const SimComputeCost kernel = {.overhead_ns = 1, .flops_ns = 6, .bytes_ns = 2};
    const SimAccountOp compute = {
        .step = 0, .kind = PLAN_OP_LINEAR, .cost = &kernel, .alone_ns = 10};
    SimAccountOp gather = {
        .step = 0, .kind = PLAN_OP_ALL_GATHER, .axis = PLAN_AXIS_SHARD, .bytes = 64, .waits = true};
    g_autoptr(SimAccount) account = sim_account_new(1, 2, 0);
    SimTime busy = sim_account_starts(account, 0, &compute, 0);
    SimTime gather_busy = sim_account_starts(account, 1, &gather, 5);
    sim_account_ends(account, 0, &compute, 0, 10, busy);
    sim_account_meets(account, &gather, 15);
    gather.waited_ns = 10;
    sim_account_ends(account, 1, &gather, 5, 25, gather_busy);
    busy = sim_account_starts(account, 0, &compute, 25);
    sim_account_ends(account, 0, &compute, 25, 35, busy);
    const SimStepBook *book = sim_account_step(account, 0);
    g_assert_cmpint(book->cause_ns[SIM_CAUSE_RANKS], ==, 5);
    g_assert_cmpint(book->cause_ns[SIM_CAUSE_NETWORK + PLAN_AXIS_SHARD], ==, 10);
    g_assert_cmpint(book->cause_ns[SIM_CAUSE_ARITHMETIC], ==, 18);
    g_assert_cmpint(book->cause_ns[SIM_CAUSE_OVERHEAD], ==, 2);
    g_assert_cmpint(book->cause_ns[SIM_CAUSE_SLOWED], ==, 0);
    g_assert_cmpint(book->collectives[PLAN_OP_ALL_GATHER].total_ns, ==, 20);
    g_assert_cmpint(book->collectives[PLAN_OP_ALL_GATHER].exposed_ns, ==, 15);
    g_assert_cmpint(book->lost_ns, ==, 10); /* had all been there at 5, it would have ended at 15 */
}

/* ---- ops whose end others decide ------------------------------------------------------------ */

typedef struct {
    SimEngine *engine;
    GString *log;
    SimTime said; /* when the op on lane 1 ends, once the engine wants to pass 50 */
} Other;

static void other_ends(gpointer self, uint32_t lane, const SimCommand *op, SimTime start,
                       SimTime end) {
    Other *other = self;
    g_string_append_printf(other->log, "%c:%" G_GINT64_FORMAT "-%" G_GINT64_FORMAT " ",
                           (char)op->tag, start, end);
}

static void other_changes(gpointer self, uint32_t lane, const SimCommand *op, SimTime at) {
    Other *other = self;
    g_string_append_printf(other->log, "%c!%" G_GINT64_FORMAT " ", (char)op->tag, at);
}

/* Nothing passes 50 before it has been said when the op ends. */
static bool other_holds(gpointer self, SimTime at, SimActs who) {
    Other *other = self;
    if (at < 50 || other->said) {
        return false;
    }
    other->said = 60;
    sim_engine_changes_at(other->engine, 1, 55);
    sim_engine_ends_at(other->engine, 1, other->said);
    return true;
}

static void test_others_decide(void) {
    static const SimWatcher other_watcher = {.op_starts = op_starts,
                                             .op_ends = other_ends,
                                             .op_changes = other_changes,
                                             .hold = other_holds};
    g_autoptr(GString) log = g_string_new(NULL);
    Other other = {.log = log};
    g_autoptr(SimEngine) engine = sim_engine_new(2, 1, &other_watcher, &other);
    other.engine = engine;
    sim_engine_launch(engine, 0, 30, SIM_NO_AXIS, 'a');
    sim_engine_launch(engine, 1, SIM_NEVER, 0, 'x');
    sim_engine_launch(engine, 0, 40, SIM_NO_AXIS, 'b');
    sim_engine_launch(engine, 1, 5, 0, 'y');
    while (sim_engine_step(engine)) {
    }
    g_assert_true(sim_engine_idle(engine));
    g_assert_cmpstr(log->str, ==, "a:0-30 x!55 x:0-60 y:60-65 b:30-70 ");
}

#define ADD(path, function) g_test_add(path, Fixture, NULL, set_up, function, tear_down)

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    ADD("/sim/engine/lane_runs_in_order", test_lane_in_order);
    ADD("/sim/engine/nothing_before_its_issue", test_issue_time);
    ADD("/sim/engine/recording_passes", test_recording);
    ADD("/sim/engine/chain_over_lanes", test_chain);
    ADD("/sim/engine/axis_in_issue_order", test_axis_in_issue_order);
    ADD("/sim/engine/rested lanes wake", test_rested_lanes_wake);
    ADD("/sim/engine/nothing_stalls", test_nothing_stalls);
    ADD("/sim/engine/many_recordings", test_many_recordings);
    g_test_add_func("/sim/account/every_nanosecond_once", test_account);
    g_test_add_func("/sim/account/waiting for other ranks", test_account_of_waiting);
    g_test_add_func("/sim/engine/others decide when an op ends", test_others_decide);
    return g_test_run();
}
