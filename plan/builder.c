#include "plan/builder.h"

void plan_builder_init(PlanBuilder *builder) {
    *builder = (PlanBuilder){.unit = PLAN_NONE, .module = PLAN_NONE};
    for (unsigned i = 0; i < PLAN_N_SECTIONS; i++) {
        builder->sections[i] = g_array_new(FALSE, FALSE, sizeof(PlanInstr));
    }
    builder->buffers = g_array_new(FALSE, FALSE, sizeof(PlanBuffer));
    builder->ops = g_array_new(FALSE, FALSE, sizeof(PlanOp));
    builder->operands = g_array_new(FALSE, FALSE, sizeof(PlanOperand));
    builder->dims = g_array_new(FALSE, FALSE, sizeof(int64_t));
    builder->attrs = g_array_new(FALSE, FALSE, sizeof(double));
    builder->loss_ops = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    builder->live = g_array_new(FALSE, FALSE, sizeof(uint8_t));
}

void plan_builder_clear(PlanBuilder *builder) {
    for (unsigned i = 0; i < PLAN_N_SECTIONS; i++) {
        g_clear_pointer(&builder->sections[i], g_array_unref);
    }
    g_clear_pointer(&builder->buffers, g_array_unref);
    g_clear_pointer(&builder->ops, g_array_unref);
    g_clear_pointer(&builder->operands, g_array_unref);
    g_clear_pointer(&builder->dims, g_array_unref);
    g_clear_pointer(&builder->attrs, g_array_unref);
    g_clear_pointer(&builder->loss_ops, g_array_unref);
    g_clear_pointer(&builder->live, g_array_unref);
}

static void make_room(GArray **array, guint n) {
    guint size = g_array_get_element_size(*array);
    g_array_unref(*array);
    *array = g_array_sized_new(FALSE, FALSE, size, n);
}

void plan_builder_make_room(PlanBuilder *builder, const PlanRole *like) {
    for (unsigned i = 0; i < PLAN_N_SECTIONS; i++) {
        make_room(&builder->sections[i], like->n_instrs[i]);
    }
    make_room(&builder->buffers, like->n_buffers);
    make_room(&builder->live, like->n_buffers);
    make_room(&builder->ops, like->n_ops);
    make_room(&builder->operands, like->n_operands);
    make_room(&builder->dims, like->n_dims);
    make_room(&builder->attrs, like->n_attrs);
}

void plan_builder_begin_section(PlanBuilder *builder, PlanSection section) {
    builder->section = section;
    builder->n_events = builder->reserved_events;
}

void plan_builder_end_section(PlanBuilder *builder) {
    for (uint32_t i = 0; i < builder->buffers->len; i++) {
        if (g_array_index(builder->live, uint8_t, i)) {
            plan_builder_at(builder, i)->carried |= (uint8_t)(1u << builder->section);
        }
    }
    builder->max_events = MAX(builder->max_events, builder->n_events);
}

void plan_builder_repeat_section(PlanBuilder *builder) {
    PlanSection last = builder->section++;
    GArray *section = builder->sections[builder->section];
    guint n_losses = builder->loss_ops->len;
    g_array_append_vals(section, builder->sections[last]->data, builder->sections[last]->len);
    for (guint i = 0; i < section->len; i++) {
        PlanInstr *instr = &g_array_index(section, PlanInstr, i);
        if (instr->kind == PLAN_LAUNCH) { /* each launch has an op; copies share the operands */
            uint32_t copy = builder->ops->len;
            for (guint l = 0; l < n_losses; l++) {
                if (g_array_index(builder->loss_ops, uint32_t, l) == instr->arg) {
                    g_array_append_val(builder->loss_ops, copy);
                }
            }
            PlanOp op = g_array_index(builder->ops, PlanOp, instr->arg);
            instr->arg = copy;
            g_array_append_val(builder->ops, op);
        }
    }
    plan_builder_end_section(builder);
}

uint32_t plan_builder_buffer(PlanBuilder *builder, uint64_t elements, PlanDtype dtype,
                             PlanSubcategory sub, uint8_t lane, const char *name) {
    PlanBuffer buffer = {
        .bytes = elements * plan_dtype_bytes(dtype),
        .dtype = (uint8_t)dtype,
        .sub = (uint8_t)sub,
        .lane = lane,
        .unit = builder->unit,
        .name = name,
    };
    uint8_t dead = 0;
    g_array_append_val(builder->buffers, buffer);
    g_array_append_val(builder->live, dead);
    return builder->buffers->len - 1;
}

static void emit(PlanBuilder *builder, PlanInstrKind kind, uint8_t lane, uint32_t arg) {
    PlanInstr instr = {
        .kind = (uint8_t)kind,
        .lane = lane,
        .phase = (uint8_t)builder->phase,
        .unit = builder->unit,
        .module = builder->module,
        .arg = arg,
    };
    g_array_append_val(builder->sections[builder->section], instr);
}

void plan_builder_alloc(PlanBuilder *builder, uint32_t buffer) {
    uint8_t *live = &g_array_index(builder->live, uint8_t, buffer);
    g_assert(!*live);
    *live = 1;
    emit(builder, PLAN_ALLOC, plan_builder_at(builder, buffer)->lane, buffer);
}

void plan_builder_free(PlanBuilder *builder, uint32_t buffer) {
    uint8_t *live = &g_array_index(builder->live, uint8_t, buffer);
    g_assert(*live);
    *live = 0;
    emit(builder, PLAN_FREE, plan_builder_at(builder, buffer)->lane, buffer);
}

void plan_builder_mark(PlanBuilder *builder, uint32_t buffer, uint8_t lane) {
    if (plan_builder_at(builder, buffer)->lane == lane) {
        return;
    }
    emit(builder, PLAN_MARK, lane, buffer);
}

void plan_builder_reserve_events(PlanBuilder *builder, uint32_t n) {
    builder->reserved_events = n;
    builder->n_events = MAX(builder->n_events, n);
}

void plan_builder_record_reserved(PlanBuilder *builder, uint8_t lane, uint32_t event) {
    emit(builder, PLAN_RECORD, lane, event);
}

uint32_t plan_builder_record(PlanBuilder *builder, uint8_t lane) {
    uint32_t event = builder->n_events++;
    emit(builder, PLAN_RECORD, lane, event);
    return event;
}

void plan_builder_wait(PlanBuilder *builder, uint8_t lane, uint32_t event) {
    emit(builder, PLAN_WAIT, lane, event);
}

void plan_builder_host_wait(PlanBuilder *builder, uint32_t event, uint8_t before) {
    emit(builder, PLAN_HOST_WAIT, 0, event);
    GArray *section = builder->sections[builder->section];
    g_array_index(section, PlanInstr, section->len - 1).before = before;
}

void plan_builder_wait_lane(PlanBuilder *builder, uint8_t lane, uint8_t other) {
    plan_builder_wait(builder, lane, plan_builder_record(builder, other));
}

uint32_t plan_builder_begin_op(PlanBuilder *builder, PlanOpKind kind, PlanAxis axis,
                               const int64_t *dims, const double *attrs) {
    const PlanOpInfo *info = plan_op_info(kind);
    PlanOp op = {
        .kind = (uint16_t)kind,
        .axis = (uint8_t)axis,
        .operands = builder->operands->len,
        .dims = builder->dims->len,
        .attrs = builder->attrs->len,
    };
    unsigned n_attrs = info->n_attrs;
    g_array_append_vals(builder->dims, dims, info->n_dims);
    g_array_append_vals(builder->attrs, attrs, n_attrs);
    g_array_append_val(builder->ops, op);
    return builder->ops->len - 1;
}

void plan_builder_operand(PlanBuilder *builder, uint32_t buffer, uint64_t offset_bytes,
                          uint64_t elements) {
    PlanOperand operand = {.buffer = buffer, .offset_bytes = offset_bytes, .elements = elements};
    g_array_append_val(builder->operands, operand);
    g_array_index(builder->ops, PlanOp, builder->ops->len - 1).n_operands++;
}

void plan_builder_rows(PlanBuilder *builder, uint64_t rows) {
    g_array_index(builder->operands, PlanOperand, builder->operands->len - 1).rows = (uint32_t)rows;
}

void plan_builder_whole(PlanBuilder *builder, uint32_t buffer) {
    if (buffer == PLAN_NONE) {
        plan_builder_operand(builder, PLAN_NONE, 0, 0);
        return;
    }
    const PlanBuffer *b = plan_builder_at(builder, buffer);
    plan_builder_operand(builder, buffer, 0, b->bytes / plan_dtype_bytes((PlanDtype)b->dtype));
}

/* An op computes in the dtype of what it writes; an integer output says so too. */
void plan_builder_launch(PlanBuilder *builder, uint8_t lane) {
    uint32_t id = builder->ops->len - 1;
    PlanOp *op = &g_array_index(builder->ops, PlanOp, id);
    const PlanOpInfo *info = plan_op_info((PlanOpKind)op->kind);
    g_assert(op->n_operands == info->n_slots - info->n_lists +
                                   info->n_lists * plan_op_list_length(info, op->n_operands));
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const PlanOperand *operand =
            &g_array_index(builder->operands, PlanOperand, op->operands + i);
        if (info->slots[plan_op_slot_of(info, op->n_operands, i)].flags & PLAN_SLOT_WRITE &&
            operand->buffer != PLAN_NONE) {
            op->dtype = plan_builder_at(builder, operand->buffer)->dtype;
            break;
        }
    }
    emit(builder, PLAN_LAUNCH, lane, id);
}

static gpointer take(GArray **array, uint32_t *ret_n) {
    *ret_n = (*array)->len;
    return g_array_free(g_steal_pointer(array), FALSE);
}

void plan_builder_finish(PlanBuilder *builder, PlanRole *role) {
    for (unsigned i = 0; i < PLAN_N_SECTIONS; i++) {
        role->sections[i] = take(&builder->sections[i], &role->n_instrs[i]);
    }
    role->buffers = take(&builder->buffers, &role->n_buffers);
    role->ops = take(&builder->ops, &role->n_ops);
    role->operands = take(&builder->operands, &role->n_operands);
    role->dims = take(&builder->dims, &role->n_dims);
    role->attrs = take(&builder->attrs, &role->n_attrs);
    role->loss_ops = take(&builder->loss_ops, &role->n_loss_ops);
    role->n_events = builder->max_events;
    plan_builder_clear(builder);
}
