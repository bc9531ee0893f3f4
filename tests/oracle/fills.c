#include "tests/oracle/fills.h"

#include <string.h>

/* Operations whose CUDA kernels have their results from functions that fill, by PyTorch 2.13's
 * sources: recorder/fills.py holds this list against what PyTorch does on the CPU. All others are
 * structured kernels, or give a storage its size back. */
static const char *const filling[] = {
    "aten.empty.",
    "aten.empty_like.",
    "aten.new_empty.",
    "aten.zeros.",
    "aten.zeros_like.",
    "aten.new_zeros.",
    "aten.ones.",
    "aten.ones_like.",
    "aten.new_ones.",
    "aten.scalar_tensor.",
    "aten.where.",
    "aten.full.",
    "aten.arange.",
    "aten._to_copy.",
    "aten.clone.",
    "aten.constant_pad_nd.",
    "aten.slice_backward.",
    "aten.masked_fill.",
    "aten.abs.",
    "aten.embedding.",
    "aten.embedding_dense_backward.",
    "aten.native_layer_norm.",
    "aten.native_layer_norm_backward.",
    "aten._fused_rms_norm.",
    "aten._fused_rms_norm_backward.",
    "aten.native_dropout.",
    "aten.native_dropout_backward.",
    "aten._scaled_dot_product_flash_attention.",
    "aten._scaled_dot_product_flash_attention_backward.",
    "aten._scaled_dot_product_efficient_attention.",
    "aten._scaled_dot_product_efficient_attention_backward.",
    "aten._foreach_sqrt.",
    "aten._foreach_add.",
    "aten._foreach_norm.",
    "_c10d_functional.all_reduce.",
    "fsdp.all_gather_copy_in.",
};

static bool fills(const char *op) {
    for (unsigned i = 0; i < G_N_ELEMENTS(filling); i++) {
        if (g_str_has_prefix(op, filling[i])) {
            return true;
        }
    }
    return false;
}

GArray *oracle_recorded_fills(const Recording *recording, unsigned step) {
    GArray *all = g_array_new(FALSE, FALSE, sizeof(OracleFill));
    const GPtrArray *lines = recording->events->pdata[step];
    const char *last = NULL;
    for (unsigned i = 0; i < lines->len; i++) {
        JsonObject *line = lines->pdata[i];
        if (!g_str_equal(json_object_get_string_member(line, "kind"), "alloc")) {
            continue;
        }
        const char *op = json_object_get_string_member(line, "op");
        if (g_str_has_prefix(op, "_c10d_functional.wait_tensor.")) {
            continue; /* on a device the tensor that was reduced (events.c) */
        }
        /* Clipping asks for one norm after the other of the recorder's device, for all of a GPU;
         * and SiLU's backward is of several ops there (1 - sigmoid begins with an empty_like). */
        bool is_of_silu = g_str_has_prefix(op, "aten.empty_like.") && last &&
                          g_str_has_prefix(last, "aten.sigmoid.");
        OracleFill fill = {.is_filled = fills(op),
                           .is_any = is_of_silu || g_str_has_prefix(op, "aten.linalg_vector_norm."),
                           .made_by = op};
        g_array_append_val(all, fill);
        last = op;
    }
    return all;
}

GArray *oracle_planned_fills(const PlanRole *role, PlanSection section) {
    GArray *all = g_array_new(FALSE, FALSE, sizeof(OracleFill));
    g_autofree uint32_t *alloc_of = g_new(uint32_t, role->n_buffers);
    memset(alloc_of, 0xff, role->n_buffers * sizeof *alloc_of);
    for (uint32_t i = 0; i < role->n_instrs[section]; i++) {
        const PlanInstr *instr = &role->sections[section][i];
        if (instr->kind == PLAN_ALLOC) {
            OracleFill fill = {0};
            alloc_of[instr->arg] = all->len;
            g_array_append_val(all, fill);
        } else if (instr->kind == PLAN_LAUNCH && role->ops[instr->arg].kind == PLAN_OP_FILL_EMPTY) {
            uint32_t buffer = plan_op_buffer(role, &role->ops[instr->arg], 0);
            if (alloc_of[buffer] != PLAN_NONE) {
                g_array_index(all, OracleFill, alloc_of[buffer]).is_filled = true;
            }
        }
    }
    return all;
}
