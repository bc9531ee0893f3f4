/* exec/offload/slots.h - numbered slots in the host's memory, for offloaded tensors.
 *
 * They are not part of the modeled device's memory: on CPU ranks they stand for the host's side,
 * and beside a GPU they are pinned. A slot grows to what is put there and keeps its memory.
 *
 * Numbers have the dtype of the tensor that is moved, as in PyTorch. A parameter's gradient and
 * moments are stored in the parameter's dtype. What never leaves the host (norms) is fp32.
 *
 * Owns: the slots' memory. Threads: any number, but one at a time for each slot, which the plan
 * ensures.
 */
#pragma once

#include "exec/offload/slot-plan.h"

/* Where the memory comes from. A slot that grows is copied, so get() must first wait for copies of
 * a GPU that are still under way. */
typedef struct {
    gpointer (*get)(gsize bytes, GError **error); /* NULL with error: there is none */
    void (*give)(gpointer data);                  /* NULL is fine */
} ExecSlotMemory;

typedef struct _ExecSlots ExecSlots;

ExecSlots *exec_slots_new(const PlanRole *role,
                          const ExecSlotMemory *memory); /* NULL: of the process */
void exec_slots_free(ExecSlots *slots);                  /* NULL is fine */
PlanDtype exec_slots_dtype(const ExecSlots *slots, uint32_t slot);
/* A pointer to that many numbers of the slot, zero where nothing was stored; NULL with error. Valid
 * until the slot is asked for more. */
gpointer exec_slots_at(ExecSlots *slots, uint32_t slot, gsize numbers, GError **error);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExecSlots, exec_slots_free)
/* The bytes of all slots together. */
uint64_t exec_slots_bytes(ExecSlots *slots);
