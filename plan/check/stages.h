/* plan/check/stages.h - what stages give each other. Inside plan/ only.
 *
 * Whatever a stage sends its neighbour receives, as many numbers of one dtype, in one order on each
 * lane; and they come to their exchanges in one order, and to what all stages do together. Roles of
 * one stage do the same (check.c), so one of each is asked. That they do not wait for each other
 * for ever is for a play to say.
 */
#pragma once

#include "plan/plan.h"

bool plan_check_stages(const Plan *plan, GError **error);
