/* tests/exec/one-rank.h - one rank on the host device, played instruction by instruction. */
#pragma once

#include "exec/device.h"
#include "tests/plan/plans.h"

typedef struct {
    Plan *plan;
    ExecPlay *host;
    PlanPlayer *player;
} OneRank;

OneRank one_rank_begin(Plan *plan, uint32_t steps);
void one_rank_end(OneRank *play);
/* Plays until the instruction at hand is the launch of this op kind, and all lanes are idle. Of
 * fills only the loss's gradient's, which has one number, counts. */
const PlanOp *one_rank_until(OneRank *play, PlanSection section, PlanOpKind kind);
/* Where an operand's numbers lie. */
float *one_rank_pointer(const OneRank *play, PlanOperand operand);
