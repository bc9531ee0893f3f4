/* cli/predict/precision.h - in what a plan computes where nobody said it.
 *
 * One rule: without a dtype what PyTorch does is planned, which is fp32, and each command that
 * predicts says so where a GPU is faster in 16 bits. choose alone, whose work is to pick settings,
 * picks bf16, and says that (cli/choose/range.c).
 *
 * Owns: nothing. Threads: any number; a note is printed by one.
 */
#pragma once

#include "cli/source/plan-source.h"
#include "models/cluster.h"
#include "plan/plan.h"

/* A line without its end, of the plan that the source gave; NULL: the source was told a dtype, or
 * the plan is in 16 bits, or those are no faster there. Transfer full. */
char *cli_precision_text(const CliPlanSource *source, const Plan *plan,
                         const ModelCluster *cluster);
/* The same on standard error, for commands whose output is a picture or a number. */
void cli_precision_note(const CliPlanSource *source, const Plan *plan, const ModelCluster *cluster);
