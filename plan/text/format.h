/* plan/text/format.h - what the writer and the reader of a plan's text agree on. Inside plan/text/
 * only. */
#pragma once

#include "plan/plan.h"

#define PLAN_TEXT_MAGIC   "foreshard-plan" /* the first word of the first line; then the version */
#define PLAN_TEXT_CARRIED "cfst"           /* a letter for each section that carries a buffer */

#define PLAN_TEXT_VERSION 1

/* What a mesh names, in the order of PlanAxis. */
#define PLAN_TEXT_FIRST_AXIS PLAN_AXIS_REPLICATE
#define PLAN_TEXT_LAST_AXIS  PLAN_AXIS_EXPERT

/* The others are there where they have several ranks. */
static inline bool plan_text_always_has(PlanAxis axis) {
    return axis < PLAN_AXIS_TENSOR;
}
