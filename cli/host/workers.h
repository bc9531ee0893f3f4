/* cli/host/workers.h - jobs done on several cores: begun in the order in which they are given,
 * waited for one by one.
 *
 * A job's owner puts CliJob first into a struct of its own, gives it, and leaves it alone until it
 * has waited for it.
 *
 * Owns: threads. Borrows: the jobs, which outlive it. Threads: one gives, waits and frees.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct {
    bool is_done; /* guarded; after a wait it is true */
} CliJob;

/* In a thread of its own, beside those of other jobs. */
typedef void CliJobRun(CliJob *job, gpointer self);

typedef struct _CliWorkers CliWorkers;

CliWorkers *cli_workers_new(guint threads, CliJobRun *run, gpointer self);
/* Waits for the jobs that are under way; the others are never begun. NULL is fine. */
void cli_workers_free(CliWorkers *workers);

void cli_workers_give(CliWorkers *workers, CliJob *job);
void cli_workers_wait(CliWorkers *workers, CliJob *job);
