#include "plan/builder.h"

#include <string.h>

void plan_builder_init(PlanBuilder *builder, PlanArena *arena) {
    *builder = (PlanBuilder){.unit = PLAN_NONE, .module = PLAN_NONE};
    for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
        builder->sections[s].arena = arena;
    }
    builder->buffers.arena = arena;
    builder->ops.arena = arena;
    builder->operands.arena = arena;
    builder->parts.arena = arena;
    builder->dims.arena = arena;
    builder->attrs.arena = arena;
    builder->loss_ops.arena = arena;
}

void plan_builder_clear(PlanBuilder *builder) {
    plan_vector_clear(&builder->live);
}

void plan_builder_expect(PlanBuilder *builder, const PlanBuilderGrowth *growth, uint32_t n,
                         uint32_t n_dims, uint32_t n_parameters) {
#define EXPECTED(what, n_ops)                                                                      \
    (growth->what.of_op * (n_ops) + growth->what.of_parameter * n_parameters)
    plan_vector_reserve(&builder->sections[PLAN_SECTION_CONSTRUCT], n + n_parameters);
    plan_vector_reserve(&builder->sections[PLAN_SECTION_FIRST], EXPECTED(instrs, n));
    plan_vector_reserve(&builder->buffers, EXPECTED(buffers, n));
    plan_vector_reserve(&builder->live, EXPECTED(buffers, n));
    plan_vector_reserve(&builder->ops, EXPECTED(ops, n));
    plan_vector_reserve(&builder->dims, EXPECTED(dims, n_dims));
    plan_vector_reserve(&builder->attrs, EXPECTED(attrs, n));
    plan_vector_reserve(&builder->operands, EXPECTED(operands, n));
    plan_vector_reserve(&builder->parts, EXPECTED(parts, n));
#undef EXPECTED
}

static uint32_t about(uint32_t n) {
    return n + n / 64 + 16;
}

void plan_builder_expect_like(PlanBuilder *builder, const PlanRole *role) {
    for (PlanSection s = PLAN_SECTION_CONSTRUCT; s <= PLAN_SECTION_FIRST; s++) {
        plan_vector_reserve(&builder->sections[s], about(role->n_instrs[s]));
    }
    plan_vector_reserve(&builder->buffers, about(role->n_buffers));
    plan_vector_reserve(&builder->live, about(role->n_buffers));
    plan_vector_reserve(&builder->ops, about(role->n_ops));
    plan_vector_reserve(&builder->dims, about(role->n_dims));
    plan_vector_reserve(&builder->attrs, about(role->n_attrs));
    plan_vector_reserve(&builder->operands, about(role->n_operands));
    plan_vector_reserve(&builder->parts, about(role->n_parts));
}

/* Steps are about equally long, but for what the first does once. */
void plan_builder_begin_section(PlanBuilder *builder, PlanSection section) {
    if (section > PLAN_SECTION_FIRST) {
        uint32_t n = builder->sections[section - 1].len;
        plan_vector_reserve(&builder->sections[section], n - builder->n_once + n / 128);
    }
    builder->n_once = 0;
    builder->section = section;
    builder->works = 0;
    builder->n_events = builder->reserved_events;
}

void plan_builder_end_section(PlanBuilder *builder) {
    const bool *live = builder->live.items, *end = live + builder->live.len;
    for (const bool *at = live; at < end && (at = memchr(at, true, (gsize)(end - at))); at++) {
        plan_builder_at(builder, (uint32_t)(at - live))->carried |=
            (uint8_t)(1u << builder->section);
    }
    builder->max_events = MAX(builder->max_events, builder->n_events);
}

void plan_builder_repeat_section(PlanBuilder *builder) {
    builder->repeats[++builder->section] = true;
    plan_builder_end_section(builder);
}

uint32_t plan_builder_unit(const PlanBuilder *builder, uint32_t unit) {
    return unit == PLAN_NONE ? PLAN_NONE : unit + builder->first_unit;
}

static uint32_t number_of_module(const PlanBuilder *builder) {
    return builder->module == PLAN_NONE ? PLAN_NONE : builder->module + builder->first_module;
}

uint32_t plan_builder_buffer(PlanBuilder *builder, uint64_t elements, PlanDtype dtype,
                             PlanSubcategory sub, uint8_t lane, const char *name) {
    PlanBuffer buffer = {
        .bytes = elements * plan_dtype_bytes(dtype),
        .dtype = (uint8_t)dtype,
        .sub = (uint8_t)sub,
        .lane = lane,
        .unit = plan_builder_unit(builder, builder->unit),
        .name = name,
    };
    plan_vector_push(&builder->buffers, buffer);
    plan_vector_push(&builder->live, false);
    return builder->buffers.len - 1;
}

static void emit(PlanBuilder *builder, PlanInstrKind kind, uint8_t lane, uint32_t arg) {
    PlanInstr instr = {
        .kind = (uint8_t)kind,
        .lane = lane,
        .phase = (uint8_t)builder->phase,
        .unit = plan_builder_unit(builder, builder->unit),
        .module = number_of_module(builder),
        .arg = arg,
    };
    plan_vector_push(&builder->sections[builder->section], instr);
}

void plan_builder_alloc(PlanBuilder *builder, uint32_t buffer) {
    g_assert(!builder->live.items[buffer]);
    builder->live.items[buffer] = true;
    emit(builder, PLAN_ALLOC, plan_builder_at(builder, buffer)->lane, buffer);
}

void plan_builder_free(PlanBuilder *builder, uint32_t buffer) {
    if (buffer == PLAN_NONE) {
        return;
    }
    g_assert(builder->live.items[buffer]);
    builder->live.items[buffer] = false;
    emit(builder, PLAN_FREE, plan_builder_at(builder, buffer)->lane, buffer);
}

void plan_builder_drop(PlanBuilder *builder, uint32_t *buffer) {
    plan_builder_free(builder, *buffer);
    *buffer = PLAN_NONE;
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
    plan_vector_last(&builder->sections[builder->section])->before = before;
}

void plan_builder_wait_lane(PlanBuilder *builder, uint8_t lane, uint8_t other) {
    plan_builder_wait(builder, lane, plan_builder_record(builder, other));
}

void plan_builder_host_wait_lane(PlanBuilder *builder, uint8_t lane) {
    plan_builder_host_wait(builder, plan_builder_record(builder, lane), 0);
}

uint32_t plan_builder_begin_op(PlanBuilder *builder, PlanOpKind kind, PlanAxis axis,
                               const int64_t *dims, const double *attrs) {
    const PlanOpInfo *info = plan_op_info(kind);
    PlanOp op = {
        .kind = (uint16_t)kind,
        .axis = (uint8_t)axis,
        .operands = builder->operands.len,
        .dims = builder->dims.len,
        .attrs = builder->attrs.len,
    };
    for (unsigned i = 0; i < info->n_dims; i++) {
        plan_vector_push(&builder->dims, dims[i]);
    }
    for (unsigned i = 0; i < info->n_attrs; i++) {
        plan_vector_push(&builder->attrs, attrs[i]);
    }
    plan_vector_push(&builder->ops, op);
    return builder->ops.len - 1;
}

static PlanRef ref_of(PlanBuilder *builder, const PlanOperand *operand) {
    if (plan_operand_is_whole(builder->buffers.items, operand)) {
        return operand->buffer;
    }
    plan_vector_push(&builder->parts, *operand);
    return PLAN_PART + builder->parts.len - 1;
}

PlanRef plan_builder_ref(PlanBuilder *builder, PlanOperand operand) {
    return ref_of(builder, &operand);
}

static void add(PlanBuilder *builder, PlanRef operand) {
    plan_vector_push(&builder->operands, operand);
    plan_vector_last(&builder->ops)->n_operands++;
}

void plan_builder_operand(PlanBuilder *builder, PlanOperand operand) {
    add(builder, ref_of(builder, &operand));
}

void plan_builder_whole(PlanBuilder *builder, uint32_t buffer) {
    add(builder, buffer);
}

void plan_builder_collective(PlanBuilder *builder, PlanOpKind kind, PlanAxis axis, uint64_t ranks,
                             double how, PlanOperand given, PlanOperand taken) {
    uint64_t elements = MAX(given.elements, taken.elements);
    plan_builder_begin_op(
        builder, kind, axis,
        (int64_t[]){[COLLECTIVE_ELEMENTS] = (int64_t)elements, [COLLECTIVE_RANKS] = (int64_t)ranks},
        &how);
    if (plan_op_info(kind)->n_slots > 1) {
        plan_builder_operand(builder, given);
    }
    plan_builder_operand(builder, taken);
}

PlanRef *plan_builder_room(PlanBuilder *builder, uint32_t n) {
    plan_vector_reserve(&builder->operands, builder->operands.len + n);
    return builder->operands.items + builder->operands.len;
}

void plan_builder_written(PlanBuilder *builder, const PlanRef *end) {
    uint32_t len = (uint32_t)(end - builder->operands.items);
    plan_vector_last(&builder->ops)->n_operands += len - builder->operands.len;
    builder->operands.len = len;
}

/* An op computes in the dtype of what it writes first; an integer output says so too. */
static uint8_t dtype_written(PlanBuilder *builder, const PlanOp *op, const PlanOpInfo *info) {
    unsigned length = plan_op_list_length(info, op->n_operands), end = 0;
    for (unsigned s = 0; s < info->n_slots; s++) {
        unsigned i = end;
        end += info->slots[s].flags & PLAN_SLOT_LIST ? length : 1;
        for (; i < end && info->slots[s].flags & PLAN_SLOT_WRITE; i++) {
            PlanRef written = builder->operands.items[op->operands + i];
            if (written != PLAN_NONE) {
                uint32_t buffer = plan_builder_operand_of(builder, written).buffer;
                return plan_builder_at(builder, buffer)->dtype;
            }
        }
    }
    return 0;
}

void plan_builder_launch_op(PlanBuilder *builder, uint32_t id, uint8_t lane) {
    PlanOp *op = &builder->ops.items[id];
    const PlanOpInfo *info = plan_op_info((PlanOpKind)op->kind);
    g_assert(op->n_operands == info->n_slots - info->n_lists +
                                   info->n_lists * plan_op_list_length(info, op->n_operands));
    op->dtype = dtype_written(builder, op, info);
    builder->works |= 1u << lane;
    emit(builder, PLAN_LAUNCH, lane, id);
}

void plan_builder_launch(PlanBuilder *builder, uint8_t lane) {
    plan_builder_launch_op(builder, builder->ops.len - 1, lane);
}

void plan_builder_fill_empty(PlanBuilder *builder, PlanOperand part, uint8_t lane) {
    if (!part.elements) {
        return;
    }
    plan_builder_begin_op(builder, PLAN_OP_FILL_EMPTY, PLAN_AXIS_NONE,
                          (int64_t[]){(int64_t)part.elements}, NULL);
    plan_builder_operand(builder, part);
    plan_builder_launch(builder, lane);
}

void plan_builder_alloc_empty(PlanBuilder *builder, uint32_t buffer) {
    plan_builder_alloc(builder, buffer);
    if (builder->fills) {
        plan_builder_fill_empty(builder, plan_operand_whole(builder->buffers.items, buffer),
                                plan_builder_at(builder, buffer)->lane);
    }
}

uint32_t plan_builder_new(PlanBuilder *builder, uint64_t elements, PlanDtype dtype,
                          PlanSubcategory sub, uint8_t lane, const char *name) {
    uint32_t buffer = plan_builder_buffer(builder, elements, dtype, sub, lane, name);
    plan_builder_alloc(builder, buffer);
    return buffer;
}

uint32_t plan_builder_new_empty(PlanBuilder *builder, uint64_t elements, PlanDtype dtype,
                                PlanSubcategory sub, uint8_t lane, const char *name) {
    uint32_t buffer = plan_builder_buffer(builder, elements, dtype, sub, lane, name);
    plan_builder_alloc_empty(builder, buffer);
    return buffer;
}

void plan_builder_host_op(PlanBuilder *builder) {
    emit(builder, PLAN_HOST_OP, 0, builder->ops.len - 1);
}

void plan_builder_trim(PlanBuilder *builder) {
    for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
        if (builder->sections[s].len) {
            plan_vector_trim(&builder->sections[s]);
        }
    }
    plan_vector_trim(&builder->buffers);
    plan_vector_trim(&builder->ops);
    plan_vector_trim(&builder->operands);
    plan_vector_trim(&builder->parts);
    plan_vector_trim(&builder->dims);
    plan_vector_trim(&builder->attrs);
}

void plan_builder_hand_over(const PlanBuilder *builder, PlanRole *role) {
    for (unsigned i = 0; i < PLAN_N_SECTIONS; i++) {
        unsigned held = builder->repeats[i] ? i - 1 : i;
        role->sections[i] = builder->sections[held].items;
        role->n_instrs[i] = builder->sections[held].len;
    }
    role->n_events = builder->max_events;
    role->buffers = builder->buffers.items;
    role->n_buffers = builder->buffers.len;
    role->ops = builder->ops.items;
    role->n_ops = builder->ops.len;
    role->operands = builder->operands.items;
    role->n_operands = builder->operands.len;
    role->parts = builder->parts.items;
    role->n_parts = builder->parts.len;
    role->dims = builder->dims.items;
    role->n_dims = builder->dims.len;
    role->attrs = builder->attrs.items;
    role->n_attrs = builder->attrs.len;
    role->loss_ops = builder->loss_ops.items;
    role->n_loss_ops = builder->loss_ops.len;
    role->n_copied = builder->n_copied;
    role->copied = builder->copied;
    role->copies = builder->copies;
}
