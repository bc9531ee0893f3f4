/* tests/oracle/live.c - what of a plan's buffers lives, by category, and how much at most. */
#include "tests/oracle/live.h"

#include <string.h>

uint64_t oracle_rounded(uint64_t bytes) {
    return (bytes + 511) / 512 * 512;
}

uint64_t oracle_sum(const uint64_t *by_sub) {
    uint64_t total = 0;
    for (unsigned i = 0; i < PLAN_N_SUBCATEGORIES; i++) {
        total += by_sub[i];
    }
    return total;
}

static void reach(OraclePeak *peak, const uint64_t *now, const PlanInstr *instr) {
    if (!instr || oracle_sum(now) > peak->total) {
        *peak = (OraclePeak){.total = oracle_sum(now), .instr = instr};
        memcpy(peak->at, now, sizeof peak->at);
    }
}

void oracle_play(OracleLive *live, const PlanRole *role, PlanSection section) {
    for (unsigned r = 0; r < 2; r++) {
        reach(&live->of_step[r], live->now[r], NULL);
        reach(&live->of_evaluation[r], live->now[r], NULL);
    }
    for (uint32_t i = 0; i < role->n_instrs[section]; i++) {
        const PlanInstr *instr = &role->sections[section][i];
        if (instr->kind != PLAN_ALLOC && instr->kind != PLAN_FREE) {
            continue;
        }
        const PlanBuffer *b = &role->buffers[instr->arg];
        uint64_t sizes[] = {b->bytes, oracle_rounded(b->bytes)};
        for (unsigned r = 0; r < 2; r++) {
            live->now[r][b->sub] += instr->kind == PLAN_ALLOC ? sizes[r] : -sizes[r];
            reach(&live->of_step[r], live->now[r], instr);
            if (instr->phase == PLAN_PHASE_EVALUATION) {
                reach(&live->of_evaluation[r], live->now[r], instr);
            }
        }
    }
}
