/* exec/watch/patience.h - waiting for another rank without spinning.
 *
 * Ranks share cores, and one that spins slows the very one it waits for. Between looks the core is
 * given away: at first to whoever wants it, since most waits are short, then by sleeping, longer
 * each time, up to 100 us. exec_patience_mind() makes such sleeps as short as they are asked for.
 */
#pragma once

#include <glib.h>
#include <sched.h>
#include <time.h>

typedef struct {
    unsigned looks;
    long sleep_ns;
} ExecPatience; /* of zeros at first */

/* Linux may let a sleep last 50 us longer, which is as long as a small collective, unless a thread
 * minds; threads and forked ranks inherit that it does. */
void exec_patience_mind(void);
/* A thread that wakes where another computes may get the core only when that one's slice is over,
 * milliseconds later, unless its own slices are shorter; this thread's are from now on. (Linux 6.12
 * and later; an older one takes no notice.) */
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
