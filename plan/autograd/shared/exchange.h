/* plan/autograd/shared/exchange.h - experts that the ranks of the expert axis share, as
 * torchtitan's ExpertParallel has it (torchtitan/distributed/expert_parallel.py and
 * torchtitan/models/common/moe/utils.py at 03a13843, 2026; recorded: tests/oracle/, *-expert-*).
 *
 * Each rank has experts / ranks of them, in order. Rows that a rank's tokens make lie in order of
 * all experts; how many go to each rank, and come from each, the host reads, and waits for that.
 * Then rows are sent, put in order of this rank's experts, and behind these sent back. What is sent
 * last is waited for where it is first used, so that shared experts hide it.
 *
 * Sizes are those of even routing, as many rows as a rank sends it takes; or those of the rank to
 * which most rows come, `overload` times as many in every block. Collectives have a lane of their
 * own, and what they read is held until they are waited for, as NCCL's process group
 * does. Inside plan/ only.
 */
#pragma once

#include "plan/autograd/backward.h"

extern const char *const plan_exchange_lanes[]; /* behind the flavour's; ends with NULL */

void plan_exchange_forward(PlanRun *run, const PlanGraphOp *op);
/* The same in a block that is computed again. What other ranks sent was kept, so only the sums of
 * rows by rank are made again. */
void plan_exchange_again(PlanRun *run, const PlanGraphOp *op);
void plan_exchange_backward(const PlanBackward *b);
