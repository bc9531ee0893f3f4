#include "exec/offload/slots.h"

#include <string.h>

#include "exec/error.h"

typedef struct {
    gpointer data;
    gsize bytes;
} Slot;

struct _ExecSlots {
    GMutex mutex; /* of the table; a slot's memory has one user at a time */
    GHashTable *slots;
    const ExecSlotMemory *memory;
    GHashTable *dtypes;
};

PlanDtype exec_slots_dtype(const ExecSlots *slots, uint32_t slot) {
    return exec_slot_dtype_in(slots->dtypes, slot);
}

/* ---- memory --------------------------------------------------------------------------------- */

static gpointer get_plain(gsize bytes, GError **error) {
    gpointer data = g_try_malloc(bytes);
    if (!data) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED,
                    "the host has no room for a slot of %" G_GSIZE_FORMAT " bytes; train a smaller "
                    "network here",
                    bytes);
    }
    return data;
}

static const ExecSlotMemory plain = {get_plain, g_free};

ExecSlots *exec_slots_new(const PlanRole *role, const ExecSlotMemory *memory) {
    ExecSlots *slots = g_new0(ExecSlots, 1);
    g_mutex_init(&slots->mutex);
    slots->slots = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    slots->memory = memory ? memory : &plain;
    slots->dtypes = exec_slot_dtypes(role);
    return slots;
}

static void give_slot(gpointer number, gpointer data, gpointer memory) {
    ((const ExecSlotMemory *)memory)->give(((Slot *)data)->data);
}

void exec_slots_free(ExecSlots *slots) {
    if (slots) {
        g_hash_table_foreach(slots->slots, give_slot, (gpointer)slots->memory);
        g_hash_table_unref(slots->slots);
        g_hash_table_unref(slots->dtypes);
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

gpointer exec_slots_at(ExecSlots *slots, uint32_t number, gsize numbers, GError **error) {
    Slot *slot = slot_at(slots, number);
    gsize bytes = numbers * plan_dtype_bytes(exec_slots_dtype(slots, number));
    if (slot->bytes < bytes) {
        char *data = slots->memory->get(bytes, error);
        if (!data) {
            return NULL;
        }
        if (slot->bytes) {
            memcpy(data, slot->data, slot->bytes);
        }
        memset(data + slot->bytes, 0, bytes - slot->bytes);
        slots->memory->give(slot->data);
        slot->data = data;
        slot->bytes = bytes;
    }
    return slot->data;
}

uint64_t exec_slots_bytes(ExecSlots *slots) {
    uint64_t bytes = 0;
    GHashTableIter iter;
    gpointer slot;
    g_mutex_lock(&slots->mutex);
    g_hash_table_iter_init(&iter, slots->slots);
    while (g_hash_table_iter_next(&iter, NULL, &slot)) {
        bytes += ((const Slot *)slot)->bytes;
    }
    g_mutex_unlock(&slots->mutex);
    return bytes;
}
