/* plan/fold.h - a step that accumulates gradients over many passes, of which few are written out.
 *
 * The first passes of a step differ from each other, and the last one differs; all those between
 * have the same program, and there may be thousands. PLAN_FORM_FOLDED (build/build.h) writes only
 * some of these. The last of them stands for role->n_folded more, which would come right behind it;
 * whoever adds up such a program counts that pass 1 + n_folded times.
 */
#pragma once

#include "plan/plan.h"

/* The instructions [begin, end) of the pass that stands for those that are not written. The step's
 * last pass begins at end. */
typedef struct {
    uint32_t begin, end;
} PlanFold;

/* False: all of the section is written. */
bool plan_fold_find(const PlanRole *role, PlanSection section, PlanFold *ret_fold);
