/* plan/check/parts.h - the uses of a buffer whose parts are used by different lanes, as products
 * in parts do (autograd/shared/async.h). Two uses may overlap in time where their bytes do not
 * overlap, or where both read. Inside plan/ only.
 *
 * From the first use of a part on, every use of the buffer is kept in a list. A use of the whole
 * buffer by a lane that knows of all earlier ones replaces them: whoever has waited for it has
 * waited for them. */
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
/* Looks for an earlier use that conflicts with this one: both touch some byte, one of the two
 * writes, and the earlier one is beyond known[its lane], so that they may overlap in time. NULL:
 * there is none, and the use has been added. A use of all `bytes` of the buffer replaces the
 * earlier ones if they are all known. */
const PlanPartUse *plan_part_uses_meet(PlanPartUses *uses, uint32_t *list, PlanPartUse use,
                                       const uint32_t *known, uint64_t bytes);
