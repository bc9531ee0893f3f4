/* exec/watch/patience.h - waiting for another rank without spinning.
 *
 * Ranks share cores, and one that spins slows the rank it waits for. Between looks the thread
 * yields its core at first, since most waits are short, and then sleeps, longer each time, up to
 * 100 us. exec_patience_mind() makes sleeps exact.
 */
#pragma once

#include <glib.h>
#include <sched.h>
#include <time.h>

typedef struct {
    unsigned looks;
    long sleep_ns;
} ExecPatience; /* of zeros at first */

/* By default Linux may let a sleep last 50 us longer, as long as a small collective; not after this
 * call. Threads and processes that are started later inherit it. */
void exec_patience_mind(void);
/* Asks for short time slices for this thread. Without, a thread that wakes up on a core where
 * another computes may have to wait for the end of that one's slice, which can take milliseconds.
 * (Linux 6.12 and later; older ones ignore it.) */
void exec_patience_hurry(void);

static inline void exec_patience_pause(ExecPatience *patience) {
    enum {
        YIELDS = 300,
        SLEEP_LEAST_NS = 5000,
        SLEEP_MOST_NS = 100000
    };
    if (patience->looks < YIELDS) {
        patience->looks++;
        sched_yield();
        return;
    }
    patience->sleep_ns = CLAMP(2 * patience->sleep_ns, SLEEP_LEAST_NS, SLEEP_MOST_NS);
    nanosleep(&(struct timespec){0, patience->sleep_ns}, NULL);
}
