/* plan/check/parts.h - a buffer of which lanes use parts by turns, as products in parts do
 * (autograd/shared/async.h): two uses may be at once where their parts have nothing in common, or
 * both read. Inside plan/ only.
 *
 * Uses of a buffer are held one by one, from its first by parts on. One of the whole buffer that
 * knows of all that came before stands for these: who knows of it knows of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "plan/vector.h"

typedef struct {
    uint64_t first, end; /* bytes of the buffer */
    uint32_t at;         /* the lane's own count of launches */
    uint8_t lane;
    bool writes;
} PlanPartUse;

typedef struct {
    PlanPartUse use;
    uint32_t next; /* 0: none */
} PlanPartNode;

/* Lists of uses; the first node is nobody's. */
typedef struct {
    PLAN_VECTOR(PlanPartNode) nodes;
    uint32_t spare;
} PlanPartUses;

void plan_part_uses_clear(PlanPartUses *uses);
void plan_part_uses_add(PlanPartUses *uses, uint32_t *list, PlanPartUse use);
void plan_part_uses_drop(PlanPartUses *uses, uint32_t *list);
/* One that may be at the same time, of which known[its lane] does not know; NULL: none. Of a whole
 * buffer's bytes, those before are forgotten where all are known, and the use is added. */
const PlanPartUse *plan_part_uses_meet(PlanPartUses *uses, uint32_t *list, PlanPartUse use,
                                       const uint32_t *known, uint64_t bytes);
