/* bench/plans.h - plans of networks that come with the project, and the process's own time.
 *
 * Time of the process, not of the wall: what else runs on the machine counts for less. */
#pragma once

#include "plan/plan.h"

/* strategy: "ranks=512 flavour=fsdp1 ...". */
Plan *bench_plan(const char *network, const char *strategy);
Plan *bench_plan_for_one(const char *network, const char *strategy); /* PLAN_FORM_FOR_ONE */
double bench_cpu_ns(void);
uint64_t bench_page_faults(void); /* of the process so far, those that read no file */
/* In a process of its own, whose memory nobody has used before, and whose heap is as the command's
 * (cli/host/heap.h). */
void bench_apart(void (*run)(unsigned i), unsigned i);
