/* exec/costs.h - what the executor itself costs on this machine: for `foreshard calibrate`.
 *
 * Every rank measures at once, as every rank works at once; numbers are means over ranks. Lines are
 * "name us", of the host's calls, lanes and segments, "COLLECTIVE bytes us", and what else a device
 * has to say (exec/cuda/measure/costs.c).
 */
#pragma once

#include <stdio.h>

#include "exec/comm/comm.h"
#include "exec/watch/watchdog.h"
#include "memory/source.h"

typedef struct {
    const ExecComm *comm;   /* whose shard axis holds all ranks */
    const char *between;    /* as in ExecOptions */
    GString *lines;         /* that there are so far */
    FILE *say;              /* who reads each as soon as it is known; NULL: nobody */
    ExecWatchdog *watchdog; /* beats at each line; NULL: none */
} ExecCosts;

/* Appends a line. */
void exec_costs_add(const ExecCosts *costs, const char *format, ...) G_GNUC_PRINTF(2, 3);
/* Appends "name us", the mean over ranks. */
bool exec_costs_report(const ExecCosts *costs, const char *name, double us, GError **error);
/* Segments of the source, and blocks of the caching allocator over it. */
bool exec_costs_of_memory(const ExecCosts *costs, const MemorySource *source, gpointer self,
                          GError **error);
