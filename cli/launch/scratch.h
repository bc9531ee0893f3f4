/* cli/launch/scratch.h - a folder of its own with what foreshard-exec reads: the plan, and a pace
 * if any; and a black box, in which its ranks note what they are doing.
 *
 * Owns: the folder; it is gone after cli_scratch_clear().
 */
#pragma once

#include "models/cluster.h"
#include "plan/plan.h"

typedef struct {
    char *folder, *plan, *pace, *black_box; /* paths; pace NULL: none */
} CliScratch;

/* pace: the cluster as whose collectives those of the play shall last; NULL: none. */
bool cli_scratch_make(CliScratch *ret_scratch, const Plan *plan, const ModelCluster *pace,
                      GError **error);
void cli_scratch_clear(CliScratch *scratch); /* of zeros is fine */
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(CliScratch, cli_scratch_clear)
