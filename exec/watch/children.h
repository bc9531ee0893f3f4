/* exec/watch/children.h - ranks that this process has forked, and waits for: when one dies or
 * fails, it is reported, and the others are ended. Threads: the one that forked.
 */
#pragma once

#include <stdatomic.h>
#include <sys/types.h>

#include "exec/watch/black-box.h"

/* Those of n that are still there; 0: one that is not. */
void exec_children_end(const pid_t *pids, unsigned n, int signal);
/* Until all have ended, whose places then are 0. *ret_gone: the first that ended badly, as soon as
 * that is known, for those who wait for it. doing and plan_path: as exec_warden_speak() has them.
 * Returns the status with which this program should end. */
int exec_children_watch(pid_t *pids, unsigned n, const ExecDoing *doing, const char *plan_path,
                        atomic_int *ret_gone);
