/* exec/watch/watchdog.h - ends a process that does not get on.
 *
 * Whoever drives a play beats; a thread looks on. When no beat has come for so many seconds, the
 * process says what it was doing and ends with status 1, and whoever started the ranks (mpirun, or
 * exec/comm/fork.h) ends the others. So a collective that one rank never enters ends all of them.
 *
 * Threads: one beats.
 */
#pragma once

#include <glib.h>

typedef struct _ExecWatchdog ExecWatchdog;

/* seconds 0: no watch is kept, and NULL is returned, which is fine below. The first beat has
 * opening_seconds where those are more: it comes when the device has been opened. rank begins
 * the message; explain adds what is known to it, from another thread: it only reads. */
ExecWatchdog *exec_watchdog_new(unsigned seconds, unsigned opening_seconds, const char *rank,
                                void (*explain)(gpointer self, GString *text), gpointer self);
void exec_watchdog_free(ExecWatchdog *watchdog);
void exec_watchdog_beat(ExecWatchdog *watchdog);
