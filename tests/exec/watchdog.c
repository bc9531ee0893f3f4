/* A process without a beat ends, and says so: in the time it has for its opening until the first
 * beat, in the watchdog's own after it; one that beats, or did not get to run, goes on. Each in a
 * child of its own.
 */
#include <glib.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/watch/watchdog.h"

enum {
    SECONDS = 1,
    OPENING_SECONDS = 3,
    TOO_LONG_S = 10 /* what no watchdog here allows */
};

static void explain(gpointer self, GString *text) {
    g_string_append(text, self);
}

static ExecWatchdog *watch(void) {
    return exec_watchdog_new(SECONDS, OPENING_SECONDS, "rank 7", explain, (gpointer) "it sleeps");
}

/* The child's end, in seconds, which must be a failure with these words. */
static double ends_with(const char *words) {
    gint64 start_us = g_get_monotonic_time();
    g_test_trap_subprocess(NULL, 0, (GTestSubprocessFlags)0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr(words);
    return (double)(g_get_monotonic_time() - start_us) / G_USEC_PER_SEC;
}

static void test_opening(void) {
    if (g_test_subprocess()) {
        watch();
        g_usleep(TOO_LONG_S * G_USEC_PER_SEC);
        return;
    }
    double seconds = ends_with("*rank 7: nothing has got on for 3 s: it sleeps;*");
    g_assert_cmpfloat(seconds, >=, OPENING_SECONDS);
}

static void test_after_a_beat(void) {
    if (g_test_subprocess()) {
        exec_watchdog_beat(watch());
        g_usleep(TOO_LONG_S * G_USEC_PER_SEC);
        return;
    }
    double seconds = ends_with("*rank 7: nothing has got on for 1 s: it sleeps;*");
    g_assert_cmpfloat(seconds, >=, SECONDS);
}

static void test_beats(void) {
    if (g_test_subprocess()) {
        ExecWatchdog *watchdog = watch();
        for (unsigned i = 0; i < 20; i++) {
            exec_watchdog_beat(watchdog);
            g_usleep(G_USEC_PER_SEC / 10);
        }
        exec_watchdog_free(watchdog);
        return;
    }
    g_test_trap_subprocess(NULL, 0, (GTestSubprocessFlags)0);
    g_test_trap_assert_passed();
    g_assert_null(exec_watchdog_new(0, OPENING_SECONDS, "rank 7", explain, NULL));
}

/* Its machine stands still for longer than is allowed, which nobody in it can help. */
static void test_stands_still(void) {
    if (g_test_subprocess()) {
        ExecWatchdog *watchdog = watch();
        exec_watchdog_beat(watchdog);
        g_usleep(2 * G_USEC_PER_SEC / 5); /* until it has been seen */
        pid_t machine = fork();
        if (machine == 0) {
            kill(getppid(), SIGSTOP);
            g_usleep(2 * SECONDS * G_USEC_PER_SEC);
            kill(getppid(), SIGCONT);
            g_usleep(G_USEC_PER_SEC / 10);
            _exit(0);
        }
        g_assert_cmpint(waitpid(machine, NULL, 0), ==, machine);
        exec_watchdog_beat(watchdog);
        exec_watchdog_free(watchdog);
        return;
    }
    g_test_trap_subprocess(NULL, 0, (GTestSubprocessFlags)0);
    g_test_trap_assert_passed();
}

/* Nobody reads what another thread writes, which therefore keeps its stream. */
static void test_stuck_output(void) {
    if (g_test_subprocess()) {
        exec_watchdog_beat(watch());
        flockfile(stdout);
        g_usleep(TOO_LONG_S * G_USEC_PER_SEC);
        return;
    }
    double seconds = ends_with("*rank 7: nothing has got on for 1 s: it sleeps;*");
    g_assert_cmpfloat(seconds, <, TOO_LONG_S / 2.0);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/exec/watchdog/opening", test_opening);
    g_test_add_func("/exec/watchdog/after a beat", test_after_a_beat);
    g_test_add_func("/exec/watchdog/beats", test_beats);
    g_test_add_func("/exec/watchdog/stands still", test_stands_still);
    g_test_add_func("/exec/watchdog/stuck output", test_stuck_output);
    return g_test_run();
}
