/* plan/check/stages.h - whether pipeline stages fit together. Inside plan/ only.
 *
 * What a stage sends, its neighbour receives: as many numbers, of the same dtype, in the same order
 * on each lane. Exchanges between neighbours, and collectives of all stages, come in the same order
 * too. check.c has found that all roles of a stage do the same, so only the first of each is looked
 * at. Whether the stages could wait for each other for ever is not checked here; playing the plan
 * (player.h) shows it.
 */
#pragma once

#include "plan/plan.h"

bool plan_check_stages(const Plan *plan, GError **error);
