#include "plan/check/parts.h"

#include <stddef.h>

void plan_part_uses_clear(PlanPartUses *uses) {
    plan_vector_clear(&uses->nodes);
}

static uint32_t new_node(PlanPartUses *uses) {
    if (!uses->nodes.len) {
        plan_vector_push(&uses->nodes, (PlanPartNode){0});
    }
    if (!uses->spare) {
        plan_vector_push(&uses->nodes, (PlanPartNode){0});
        return uses->nodes.len - 1;
    }
    uint32_t node = uses->spare;
    uses->spare = uses->nodes.items[node].next;
    return node;
}

void plan_part_uses_add(PlanPartUses *uses, uint32_t *list, PlanPartUse use) {
    uint32_t node = new_node(uses);
    uses->nodes.items[node] = (PlanPartNode){use, *list};
    *list = node;
}

void plan_part_uses_drop(PlanPartUses *uses, uint32_t *list) {
    while (*list) {
        uint32_t node = *list;
        *list = uses->nodes.items[node].next;
        uses->nodes.items[node].next = uses->spare;
        uses->spare = node;
    }
}

static bool meets(const PlanPartUse *a, const PlanPartUse *b) {
    return a->first < b->end && b->first < a->end && (a->writes || b->writes);
}

const PlanPartUse *plan_part_uses_meet(PlanPartUses *uses, uint32_t *list, PlanPartUse use,
                                       const uint32_t *known, uint64_t bytes) {
    bool all_known = true, wrote = use.writes;
    for (uint32_t i = *list; i; i = uses->nodes.items[i].next) {
        const PlanPartUse *other = &uses->nodes.items[i].use;
        bool is_known = known[other->lane] >= other->at;
        if (!is_known && meets(other, &use)) {
            return other;
        }
        all_known &= is_known;
        wrote |= other->writes;
    }
    if (all_known && use.first == 0 && use.end == bytes) {
        plan_part_uses_drop(uses, list);
        use.writes = wrote;
    }
    plan_part_uses_add(uses, list, use);
    return NULL;
}
