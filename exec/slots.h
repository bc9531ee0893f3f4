/* exec/slots.h - the host's memory, where offloaded tensors wait: numbered slots.
 *
 * On CPU ranks it is a second pool that stands for the host's side; it lies outside the modeled
 * device's memory. A slot grows to what is put there and keeps its memory.
 *
 * Owns: the slots' memory. Threads: any number; who uses one slot when is the plan's business.
 */
#pragma once

#include <glib.h>
#include <stdint.h>

typedef struct _ExecSlots ExecSlots;

ExecSlots *exec_slots_new(void);
void exec_slots_free(ExecSlots *slots); /* NULL is fine */
void exec_slots_put(ExecSlots *slots, uint32_t slot, gconstpointer from, gsize bytes);
/* So many bytes of it, zero where nothing was put. Valid until more of them are asked for. */
gpointer exec_slots_at(ExecSlots *slots, uint32_t slot, gsize bytes);
/* What was put there last, which were as many bytes. */
void exec_slots_get(ExecSlots *slots, uint32_t slot, gpointer to, gsize bytes);
