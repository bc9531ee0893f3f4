/* exec/slots.h - the host's memory, where offloaded tensors wait: numbered slots.
 *
 * It lies outside the modeled device's memory: on CPU ranks it is a second pool that stands for the
 * host's side, beside a GPU it is pinned. A slot grows to what is put there and keeps its memory.
 *
 * Owns: the slots' memory. Threads: any number; who uses one slot when is the plan's business.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

/* Where the memory comes from. A slot that grows is copied, so get() first waits for what still
 * reads or writes slots behind the host's back. */
typedef struct {
    gpointer (*get)(gsize bytes, GError **error); /* NULL with error: there is none */
    void (*give)(gpointer data);                  /* NULL is fine */
} ExecSlotMemory;

typedef struct _ExecSlots ExecSlots;

ExecSlots *exec_slots_new(const ExecSlotMemory *memory); /* NULL: of the process */
void exec_slots_free(ExecSlots *slots);                  /* NULL is fine */
/* So many bytes of it, zero where nothing was put; NULL with error. Valid until more of them are
 * asked for. */
gpointer exec_slots_at(ExecSlots *slots, uint32_t slot, gsize bytes, GError **error);
