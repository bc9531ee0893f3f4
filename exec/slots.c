#include "exec/slots.h"

#include <string.h>

typedef struct {
    gpointer data;
    gsize bytes;
} Slot;

struct _ExecSlots {
    GMutex mutex; /* of the table; a slot's memory has one user at a time */
    GHashTable *slots;
};

static void free_slot(gpointer data) {
    Slot *slot = data;
    g_free(slot->data);
    g_free(slot);
}

ExecSlots *exec_slots_new(void) {
    ExecSlots *slots = g_new0(ExecSlots, 1);
    g_mutex_init(&slots->mutex);
    slots->slots = g_hash_table_new_full(NULL, NULL, NULL, free_slot);
    return slots;
}

void exec_slots_free(ExecSlots *slots) {
    if (slots) {
        g_hash_table_unref(slots->slots);
        g_mutex_clear(&slots->mutex);
        g_free(slots);
    }
}

static Slot *slot_at(ExecSlots *slots, uint32_t number) {
    g_mutex_lock(&slots->mutex);
    Slot *slot = g_hash_table_lookup(slots->slots, GUINT_TO_POINTER(number));
    if (!slot) {
        slot = g_new0(Slot, 1);
        g_hash_table_insert(slots->slots, GUINT_TO_POINTER(number), slot);
    }
    g_mutex_unlock(&slots->mutex);
    return slot;
}

gpointer exec_slots_at(ExecSlots *slots, uint32_t number, gsize bytes) {
    Slot *slot = slot_at(slots, number);
    if (slot->bytes < bytes) {
        slot->data = g_realloc(slot->data, bytes);
        memset((char *)slot->data + slot->bytes, 0, bytes - slot->bytes);
        slot->bytes = bytes;
    }
    return slot->data;
}

void exec_slots_put(ExecSlots *slots, uint32_t number, gconstpointer from, gsize bytes) {
    gpointer to = exec_slots_at(slots, number, bytes);
    if (bytes) {
        memcpy(to, from, bytes);
    }
}

/* An edited plan may ask for more than was put there: the rest is zero. */
void exec_slots_get(ExecSlots *slots, uint32_t number, gpointer to, gsize bytes) {
    const Slot *slot = slot_at(slots, number);
    gsize there = MIN(bytes, slot->bytes);
    if (there) {
        memcpy(to, slot->data, there);
    }
    memset((char *)to + there, 0, bytes - there);
}
