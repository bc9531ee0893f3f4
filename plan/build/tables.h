/* plan/build/tables.h - the tables that all roles of a plan share: modules, units, parameters and
 * lanes. Inside plan/ only. */
#pragma once

#include "plan/autograd/tensor.h"

/* Where a stage's modules, units and parameters begin in the tables. */
typedef struct {
    uint32_t module, unit, parameter;
} PlanStageBegins;

/* run: the first stage's. Returns where each stage begins, and, as one entry more, where the last
 * one ends. Transfer full. */
PlanStageBegins *plan_fill_tables(Plan *plan, const PlanRun *run);
/* A role is written with its stage's own numbers of modules, units and parameters. This makes them
 * the numbers of the plan's tables. */
void plan_number_as_in_tables(PlanRole *role, const PlanStageBegins *begins);
