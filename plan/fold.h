/* plan/fold.h - a step of many passes, of which few are written.
 *
 * The first passes of a step differ, and its last one does; those between are one program, and a
 * step that accumulates may have thousands of them. plan_build_folded() writes some, and where the
 * last pass begins role->n_folded more would stand, each as the one before it. Whoever walks such a
 * program counts that one so many times more.
 */
#pragma once

#include "plan/plan.h"

/* Instructions of a section. */
typedef struct {
    uint32_t begin, end; /* the pass that stands for those that are not written; the last one's
                            begin is its end */
} PlanFold;

/* false: all of the section is written. */
bool plan_fold_find(const PlanRole *role, PlanSection section, PlanFold *ret_fold);
