/* exec/offload/slot-plan.h - the sizes and dtypes of the host's slots (exec/offload/slots.h), found
 * in the plan before any slot is there.
 *
 * An op that moves a tensor to or from a slot tells that slot's size and dtype. The optimizer's
 * other slots are like the parameter's, which always moves. No op reaches beyond what is put in a
 * slot, unless a plan was edited.
 *
 * Threads: any. Cost: a walk over the role's ops.
 */
#pragma once

#include "plan/plan.h"

/* The slots of an optimizer's step, counted from the one that its op names. The function says how
 * many the op has; 0: it is no such op. */
enum {
    EXEC_SLOT_GRADIENT,
    EXEC_SLOT_PARAMETER,
    EXEC_SLOT_MOMENTS,
    EXEC_MOST_OPTIMIZER_SLOTS = EXEC_SLOT_MOMENTS + 2 /* Adam's */
};
unsigned exec_slots_of_optimizer(const PlanRole *role, const PlanOp *op);

/* Slot: PlanDtype, of those in which something moves or steps. g_hash_table_unref(). */
GHashTable *exec_slot_dtypes(const PlanRole *role);
/* A slot's dtype in such a table; fp32 for a slot that it does not have. */
PlanDtype exec_slot_dtype_in(GHashTable *dtypes, uint32_t slot);

/* False with error: the op has a slot that cannot be, or more elements of one than any tensor of
 * the plan, so that nobody put them there. */
bool exec_slots_are_bounded(const PlanRole *role, const PlanOp *op, GError **error);

typedef struct {
    double bytes; /* of all slots, once each is as large as it gets */
    double largest_bytes;
    uint32_t largest; /* slot; of several the lowest */
} ExecSlotSizes;

ExecSlotSizes exec_slot_sizes(const PlanRole *role);
