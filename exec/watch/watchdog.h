/* exec/watch/watchdog.h - ends a process that does not get on.
 *
 * The thread that drives the play calls exec_watchdog_beat(); another thread looks on. When no beat
 * has come for so many seconds, the process says what it was doing and exits with status 1, and
 * whoever started the ranks (mpirun, or exec/comm/fork.h) ends the others. So a collective that one
 * rank never enters ends all of them.
 *
 * Threads: one calls, one of its own looks on.
 */
#pragma once

#include <glib.h>

typedef struct _ExecWatchdog ExecWatchdog;

/* seconds 0: returns NULL, which the other functions accept. Until the first beat, which comes when
 * the device has been opened, opening_seconds are allowed if that is more. The message begins with
 * rank; explain() appends to it. It is called in the watchdog's thread, so it may only read. */
ExecWatchdog *exec_watchdog_new(unsigned seconds, unsigned opening_seconds, const char *rank,
                                void (*explain)(gpointer self, GString *text), gpointer self);
void exec_watchdog_free(ExecWatchdog *watchdog);
void exec_watchdog_beat(ExecWatchdog *watchdog);
