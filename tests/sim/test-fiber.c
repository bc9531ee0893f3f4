/* sim/fiber: who runs when, and what stays on its stack. */
#include <glib.h>
#include <string.h>

#include "sim/ranks/fiber.h"

typedef struct {
    SimFiber *fiber;
    GString *log;
    char name;
    unsigned n;
} Runner;

/* Deep inside calls, as an allocator would be. */
static unsigned deep(Runner *runner, unsigned depth) {
    char local[64];
    memset(local, runner->name, sizeof local);
    if (depth > 0) {
        unsigned below = deep(runner, depth - 1);
        g_assert_cmpint(local[depth], ==, runner->name);
        return below + 1;
    }
    g_string_append_printf(runner->log, "%c%u ", runner->name, runner->n);
    sim_fiber_yield(runner->fiber);
    g_assert_cmpint(local[63], ==, runner->name);
    return 1;
}

static void run(gpointer self) {
    Runner *runner = self;
    for (runner->n = 0; runner->n < 3; runner->n++) {
        g_assert_cmpuint(deep(runner, 20), ==, 21);
    }
    g_string_append_printf(runner->log, "%c. ", runner->name);
}

static void test_interleaved(void) {
    g_autoptr(GString) log = g_string_new(NULL);
    Runner runners[3];
    for (unsigned i = 0; i < 3; i++) {
        runners[i] = (Runner){.log = log, .name = (char)('a' + i)};
        runners[i].fiber = sim_fiber_new(run, &runners[i]);
    }
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < 3; i++) {
            sim_fiber_resume(runners[i].fiber);
        }
    }
    for (unsigned i = 0; i < 3; i++) {
        sim_fiber_free(runners[i].fiber);
    }
    g_assert_cmpstr(log->str, ==, "a0 b0 c0 a1 b1 c1 a2 b2 c2 a. b. c. ");
}

/* One that never ended, and one that never began, are given back. */
static void test_given_up(void) {
    g_autoptr(GString) log = g_string_new(NULL);
    Runner runner = {.log = log, .name = 'x'};
    runner.fiber = sim_fiber_new(run, &runner);
    sim_fiber_resume(runner.fiber);
    sim_fiber_free(runner.fiber);
    sim_fiber_free(sim_fiber_new(run, &runner));
    g_assert_cmpstr(log->str, ==, "x0 ");
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/fiber/interleaved", test_interleaved);
    g_test_add_func("/sim/fiber/given up", test_given_up);
    return g_test_run();
}
