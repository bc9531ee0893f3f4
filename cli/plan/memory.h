/* cli/plan/memory.h - prints where the bytes at the peak of a steady step come from. */
#pragma once

#include "plan/plan.h"

void cli_print_memory(const Plan *plan);
