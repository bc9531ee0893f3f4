/* cli/plan/routing.h - how evenly a plan takes tokens to go to the ranks that share experts.
 *
 * Owns: nothing. Threads: any number.
 */
#pragma once

#include "plan/plan.h"

/* A line without its end; NULL where no ranks share experts. */
char *cli_routing_text(const Plan *plan);
