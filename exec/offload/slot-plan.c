#include "exec/offload/slot-plan.h"

#include "exec/error.h"
#include "plan/op/names.h"

/* The part of a slot that an op works on. */
typedef struct {
    int64_t slot;
    uint64_t offset, n; /* elements */
} Stretch;

enum {
    MOST_STRETCHES = EXEC_MOST_OPTIMIZER_SLOTS
};

unsigned exec_slots_of_optimizer(const PlanRole *role, const PlanOp *op) {
    if (op->kind == PLAN_OP_HOST_ADAM) {
        return EXEC_MOST_OPTIMIZER_SLOTS;
    }
    if (op->kind == PLAN_OP_HOST_SGD) {
        bool has_momentum = plan_op_attrs(role, op)[HOST_SGD_MOMENTUM] != 0;
        return has_momentum ? EXEC_SLOT_MOMENTS + 1 : EXEC_SLOT_MOMENTS;
    }
    return 0;
}

/* ---- dtypes --------------------------------------------------------------------------------- */

static void set_dtype(GHashTable *dtypes, uint32_t slot, PlanDtype dtype) {
    g_hash_table_insert(dtypes, GUINT_TO_POINTER(slot), GUINT_TO_POINTER(dtype));
}

PlanDtype exec_slot_dtype_in(GHashTable *dtypes, uint32_t slot) {
    gpointer dtype;
    return g_hash_table_lookup_extended(dtypes, GUINT_TO_POINTER(slot), NULL, &dtype)
               ? (PlanDtype)GPOINTER_TO_UINT(dtype)
               : PLAN_FP32;
}

/* The slot of an op that works on n elements of one; such ops have its number in the same dim. */
static uint32_t slot_of(const PlanRole *role, const PlanOp *op) {
    return (uint32_t)plan_op_dims(role, op)[TO_HOST_SLOT];
}

GHashTable *exec_slot_dtypes(const PlanRole *role) {
    GHashTable *dtypes = g_hash_table_new(NULL, NULL);
    for (uint32_t i = 0; i < role->n_ops; i++) {
        const PlanOp *op = &role->ops[i];
        if (op->kind == PLAN_OP_TO_HOST || op->kind == PLAN_OP_FROM_HOST) {
            set_dtype(dtypes, slot_of(role, op),
                      (PlanDtype)role->buffers[plan_op_buffer(role, op, TO_HOST_X)].dtype);
        }
    }
    for (uint32_t i = 0; i < role->n_ops; i++) {
        const PlanOp *op = &role->ops[i];
        unsigned n = exec_slots_of_optimizer(role, op);
        for (unsigned k = 0; k < n; k++) {
            uint32_t first = slot_of(role, op);
            set_dtype(dtypes, first + k, exec_slot_dtype_in(dtypes, first + EXEC_SLOT_PARAMETER));
        }
    }
    return dtypes;
}

/* ---- how far ops reach ---------------------------------------------------------------------- */

/* What the op works on, slot by slot; returns how many. Numbers are as the plan has them, from 0
 * on. */
static unsigned stretches_of(const PlanRole *role, const PlanOp *op, Stretch *ret_stretches) {
    const int64_t *d = plan_op_dims(role, op);
    unsigned n = exec_slots_of_optimizer(role, op);
    for (unsigned k = 0; k < n; k++) {
        ret_stretches[k] = (Stretch){d[HOST_ADAM_SLOT] + k, (uint64_t)d[HOST_ADAM_OFFSET],
                                     (uint64_t)d[HOST_ADAM_N]};
    }
    switch ((PlanOpKind)op->kind) {
    case PLAN_OP_HOST_INIT_NORMAL:
    case PLAN_OP_HOST_INIT_FILL:
        ret_stretches[0] = (Stretch){d[HOST_INIT_NORMAL_SLOT], 0, (uint64_t)d[HOST_INIT_NORMAL_N]};
        return 1;
    case PLAN_OP_HOST_INIT_NIBBLES: /* of elements of some size, all of which will move */
        ret_stretches[0] = (Stretch){d[HOST_INIT_NIBBLES_SLOT], 0, 0};
        return 1;
    case PLAN_OP_TO_HOST:
    case PLAN_OP_FROM_HOST:
    case PLAN_OP_HOST_ROUND:
    case PLAN_OP_HOST_POWER:
    case PLAN_OP_HOST_ALL_REDUCE: /* of dims that begin alike */
        ret_stretches[0] = (Stretch){d[TO_HOST_SLOT], 0, (uint64_t)d[TO_HOST_N]};
        return 1;
    case PLAN_OP_HOST_ADD:
        ret_stretches[0] = (Stretch){d[HOST_ADD_SLOT], 0, (uint64_t)d[HOST_ADD_N]};
        ret_stretches[1] = (Stretch){d[HOST_ADD_FROM], 0, (uint64_t)d[HOST_ADD_N]};
        return 2;
    case PLAN_OP_HOST_ZERO:
        ret_stretches[0] =
            (Stretch){d[HOST_ZERO_SLOT], (uint64_t)d[HOST_ZERO_OFFSET], (uint64_t)d[HOST_ZERO_N]};
        return 1;
    case PLAN_OP_HOST_NORM:
        ret_stretches[0] =
            (Stretch){d[HOST_NORM_SLOT], (uint64_t)d[HOST_NORM_OFFSET], (uint64_t)d[HOST_NORM_N]};
        ret_stretches[1] = (Stretch){d[HOST_NORM_TO], (uint64_t)d[HOST_NORM_PLACE], 1};
        return 2;
    case PLAN_OP_HOST_CLIP:
        ret_stretches[0] =
            (Stretch){d[HOST_CLIP_SLOT], (uint64_t)d[HOST_CLIP_OFFSET], (uint64_t)d[HOST_CLIP_N]};
        ret_stretches[1] = (Stretch){d[HOST_CLIP_NORM], 0, 1};
        return 2;
    case PLAN_OP_STEP_IF_FINITE:
        ret_stretches[0] = (Stretch){d[STEP_IF_FINITE_SLOT], 0, 1};
        return 1;
    default:
        return n;
    }
}

static bool fits_a_tensor(const PlanRole *role, uint64_t offset, uint64_t n) {
    for (uint32_t b = 0; b < role->n_buffers; b++) {
        uint64_t bytes = role->buffers[b].bytes;
        if (n <= bytes && offset <= bytes - n) {
            return true;
        }
    }
    return false;
}

bool exec_slots_are_bounded(const PlanRole *role, const PlanOp *op, GError **error) {
    Stretch stretches[MOST_STRETCHES];
    unsigned n = stretches_of(role, op, stretches);
    for (unsigned i = 0; i < n; i++) {
        const Stretch *s = &stretches[i];
        const char *name = plan_op_info((PlanOpKind)op->kind)->name;
        if (s->slot > UINT32_MAX - 1) {
            g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                        "%s names slot %" G_GINT64_FORMAT " of the host, of which there are fewer; "
                        "make the plan again",
                        name, (gint64)s->slot);
            return false;
        }
        if (!fits_a_tensor(role, s->offset, s->n)) {
            g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                        "%s of %" G_GUINT64_FORMAT " elements from %" G_GUINT64_FORMAT
                        " on in slot %" G_GINT64_FORMAT " of the host: that is larger than any "
                        "tensor of the plan; make the plan again",
                        name, (guint64)s->n, (guint64)s->offset, (gint64)s->slot);
            return false;
        }
    }
    return true;
}

/* ---- how large slots get -------------------------------------------------------------------- */

static GHashTable *ends_of(const PlanRole *role) {
    GHashTable *ends = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    for (uint32_t i = 0; i < role->n_ops; i++) {
        Stretch stretches[MOST_STRETCHES];
        unsigned n = stretches_of(role, &role->ops[i], stretches);
        for (unsigned k = 0; k < n; k++) {
            gpointer slot = GUINT_TO_POINTER((uint32_t)stretches[k].slot);
            double *end = g_hash_table_lookup(ends, slot);
            if (!end) {
                end = g_new0(double, 1);
                g_hash_table_insert(ends, slot, end);
            }
            *end = MAX(*end, (double)stretches[k].offset + (double)stretches[k].n);
        }
    }
    return ends;
}

ExecSlotSizes exec_slot_sizes(const PlanRole *role) {
    g_autoptr(GHashTable) ends = ends_of(role);
    g_autoptr(GHashTable) dtypes = exec_slot_dtypes(role);
    ExecSlotSizes sizes = {0};
    GHashTableIter iter;
    gpointer slot, end;
    g_hash_table_iter_init(&iter, ends);
    while (g_hash_table_iter_next(&iter, &slot, &end)) {
        uint32_t number = GPOINTER_TO_UINT(slot);
        double bytes =
            *(const double *)end * (double)plan_dtype_bytes(exec_slot_dtype_in(dtypes, number));
        sizes.bytes += bytes;
        if (bytes > sizes.largest_bytes ||
            (bytes == sizes.largest_bytes && number < sizes.largest)) {
            sizes.largest = number;
            sizes.largest_bytes = bytes;
        }
    }
    return sizes;
}
