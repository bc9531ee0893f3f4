#include "exec/slots.h"

#include <string.h>

typedef struct {
    gpointer data;
    gsize bytes;
} Slot;

struct _ExecSlots {
    GMutex mutex; /* of the table; a slot's memory has one user at a time */
    GHashTable *slots;
    const ExecSlotMemory *memory;
    GHashTable *dtypes; /* by slot; of those in which something moves or steps */
};

/* ---- an optimizer's ------------------------------------------------------------------------- */

unsigned exec_slots_of_optimizer(const PlanRole *role, const PlanOp *op) {
    if (op->kind == PLAN_OP_HOST_ADAM) {
        return EXEC_MOST_OPTIMIZER_SLOTS;
    }
    if (op->kind == PLAN_OP_HOST_SGD) {
        bool has_momentum = plan_op_attrs(role, op)[1] != 0;
        return has_momentum ? EXEC_SLOT_MOMENTS + 1 : EXEC_SLOT_MOMENTS;
    }
    return 0;
}

/* ---- dtypes --------------------------------------------------------------------------------- */

static void set_dtype(ExecSlots *slots, uint32_t slot, PlanDtype dtype) {
    g_hash_table_insert(slots->dtypes, GUINT_TO_POINTER(slot), GUINT_TO_POINTER(dtype));
}

PlanDtype exec_slots_dtype(const ExecSlots *slots, uint32_t slot) {
    gpointer dtype;
    return g_hash_table_lookup_extended(slots->dtypes, GUINT_TO_POINTER(slot), NULL, &dtype)
               ? (PlanDtype)GPOINTER_TO_UINT(dtype)
               : PLAN_FP32;
}

static uint32_t slot_of(const PlanRole *role, const PlanOp *op) {
    return (uint32_t)plan_op_dims(role, op)[1];
}

/* What moves says it of its slot; the optimizer's other slots follow the parameter's, which always
 * moves. */
static void find_dtypes(ExecSlots *slots, const PlanRole *role) {
    for (uint32_t i = 0; i < role->n_ops; i++) {
        const PlanOp *op = &role->ops[i];
        if (op->kind == PLAN_OP_TO_HOST || op->kind == PLAN_OP_FROM_HOST) {
            set_dtype(slots, slot_of(role, op),
                      (PlanDtype)role->buffers[plan_op_buffer(role, op, 0)].dtype);
        }
    }
    for (uint32_t i = 0; i < role->n_ops; i++) {
        const PlanOp *op = &role->ops[i];
        unsigned n = exec_slots_of_optimizer(role, op);
        for (unsigned k = 0; k < n; k++) {
            uint32_t first = slot_of(role, op);
            PlanDtype dtype = exec_slots_dtype(slots, first + EXEC_SLOT_PARAMETER);
            set_dtype(slots, first + k, dtype);
        }
    }
}

/* ---- memory --------------------------------------------------------------------------------- */

static gpointer get_plain(gsize bytes, GError **error) {
    return g_malloc(bytes);
}

static const ExecSlotMemory plain = {get_plain, g_free};

ExecSlots *exec_slots_new(const PlanRole *role, const ExecSlotMemory *memory) {
    ExecSlots *slots = g_new0(ExecSlots, 1);
    g_mutex_init(&slots->mutex);
    slots->slots = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    slots->memory = memory ? memory : &plain;
    slots->dtypes = g_hash_table_new(NULL, NULL);
    find_dtypes(slots, role);
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
