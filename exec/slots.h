/* exec/slots.h - the host's memory, where offloaded tensors wait: numbered slots.
 *
 * It lies outside the modeled device's memory: on CPU ranks it is a second pool that stands for the
 * host's side, beside a GPU it is pinned. A slot grows to what is put there and keeps its memory.
 *
 * Numbers lie there as PyTorch's do on the host: in the dtype of the tensor that comes and goes. A
 * parameter's gradient and moments are stored as the parameter is, so a 16-bit model's are of 16
 * bits. What never leaves the host (norms) is fp32.
 *
 * Owns: the slots' memory. Threads: any number; who uses one slot when is the plan's business.
 */
#pragma once

#include "plan/plan.h"

/* Where the memory comes from. A slot that grows is copied, so get() first waits for what still
 * reads or writes slots behind the host's back. */
typedef struct {
    gpointer (*get)(gsize bytes, GError **error); /* NULL with error: there is none */
    void (*give)(gpointer data);                  /* NULL is fine */
} ExecSlotMemory;

typedef struct _ExecSlots ExecSlots;

ExecSlots *exec_slots_new(const PlanRole *role,
                          const ExecSlotMemory *memory); /* NULL: of the process */
void exec_slots_free(ExecSlots *slots);                  /* NULL is fine */
PlanDtype exec_slots_dtype(const ExecSlots *slots, uint32_t slot);
/* So many numbers of it, zero where nothing was put; NULL with error. Valid until more of them are
 * asked for. */
gpointer exec_slots_at(ExecSlots *slots, uint32_t slot, gsize numbers, GError **error);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExecSlots, exec_slots_free)
/* Of all slots together. */
uint64_t exec_slots_bytes(ExecSlots *slots);

/* What an optimizer's step has in slots, from its op's on, and how many of them; 0: it is another
 * op. */
enum {
    EXEC_SLOT_GRADIENT,
    EXEC_SLOT_PARAMETER,
    EXEC_SLOT_MOMENTS,
    EXEC_MOST_OPTIMIZER_SLOTS = EXEC_SLOT_MOMENTS + 2 /* Adam's */
};
unsigned exec_slots_of_optimizer(const PlanRole *role, const PlanOp *op);
