/* plan/optimizer/steps.h - one optimizer a file: its state, and its step. Inside plan/ only. */
#pragma once

#include "plan/optimizer/over.h"

void plan_adam_first(const PlanOver *all); /* makes its state */
void plan_adam_step(const PlanOver *all);
void plan_sgd_first(const PlanOver *all);
void plan_sgd_step(const PlanOver *all);
/* Muon has group 0, the matrices (plan_muon_takes()); AdamW has group 1. */
void plan_muon_first(const PlanOver *all);
void plan_muon_step(const PlanOver *all);
void plan_eight_bit_step(const PlanOver *all); /* makes its state, too */
