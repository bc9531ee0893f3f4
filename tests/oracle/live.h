/* tests/oracle/live.h - what of a plan's buffers lives, by category, and how much at most.
 *
 * Owns: nothing. Borrows: the role, and instructions of it. Threads: one.
 */
#pragma once

#include "plan/plan.h"

typedef uint64_t OracleBytes[PLAN_N_SUBCATEGORIES];

typedef struct {
    uint64_t total;
    OracleBytes at;
    const PlanInstr *instr; /* NULL: where it begins */
} OraclePeak;

/* Exact, and with each buffer rounded to 512 bytes. */
typedef struct {
    OracleBytes now[2];
    OraclePeak of_step[2], of_evaluation[2]; /* of the section played last */
} OracleLive;

uint64_t oracle_rounded(uint64_t bytes);
uint64_t oracle_sum(const uint64_t *by_sub);
/* Plays a section's allocations; what it starts with is already live. */
void oracle_play(OracleLive *live, const PlanRole *role, PlanSection section);
