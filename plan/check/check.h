/* plan/check/check.h - whether a plan is sound, whoever wrote it.
 *
 * Rules: operands are as large as the shapes of their op say (op/shape.h); a buffer is allocated
 * before it is used and freed once; operands lie inside their buffers; every use that another
 * lane's work depends on is ordered by events, including the reuse of freed memory; an event is
 * recorded before it is waited for, at most once a section; at a section's end exactly the buffers
 * declared as carried live, and steady ends as it begins; collectives of one axis come in the same
 * order with the same sizes in every role. The steady section is walked twice in a row, so that
 * what one step leaves to the next is checked too; once, where it ends with every lane at rest
 * and otherwise as it began, for then the second walk would find what the first one found.
 */
#pragma once

#include "plan/plan.h"

/* PLAN_ERROR_CHECK with "role R, section S, instruction I: ..." */
bool plan_check(const Plan *plan, GError **error);
