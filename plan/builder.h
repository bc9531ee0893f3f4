/* plan/builder.h - writes one role's program, instruction by instruction.
 *
 * Inside plan/ only. The schedules say what happens in which order; the builder keeps the arrays,
 * the context (phase, unit, module) that each instruction carries, and which buffers live.
 *
 * Owns: nothing of what is written, which lies in the plan's arena from the start. Threads: one.
 */
#pragma once

#include "plan/op/names.h"
#include "plan/plan.h"
#include "plan/vector.h"

typedef struct {
    PLAN_VECTOR(PlanInstr) sections[PLAN_N_SECTIONS];
    bool repeats[PLAN_N_SECTIONS]; /* the program of the section before, held once */
    PLAN_VECTOR(PlanBuffer) buffers;
    PLAN_VECTOR(PlanOp) ops;
    PLAN_VECTOR(PlanRef) operands;
    PLAN_VECTOR(PlanOperand) parts;
    PLAN_VECTOR(int64_t) dims;
    PLAN_VECTOR(double) attrs;
    PLAN_VECTOR(uint32_t) loss_ops;
    PLAN_VECTOR(bool) live; /* per buffer */
    PlanSection section;
    PlanPhase phase;
    uint32_t unit, module;
    unsigned works; /* bits: lanes on which the section launches something */
    /* Of a role with several stages: where this one's begin behind those of its first one. */
    uint32_t first_unit, first_module;
    uint32_t n_events, max_events, reserved_events;
    bool fills;                        /* deterministic PyTorch: what `empty` gives */
    uint32_t n_copied, copied, copies; /* ops, as PlanRole has them */
} PlanBuilder;

void plan_builder_init(PlanBuilder *builder, PlanArena *arena);
void plan_builder_clear(PlanBuilder *builder);

/* Room at once for what most plans make of so many ops and parameters, or for about as much as
 * another role has: an array that outgrows its room is copied. */
void plan_builder_expect(PlanBuilder *builder, uint32_t n);
void plan_builder_expect_like(PlanBuilder *builder, const PlanRole *role);

void plan_builder_begin_section(PlanBuilder *builder, PlanSection section);
void plan_builder_end_section(PlanBuilder *builder);
void plan_builder_repeat_section(PlanBuilder *builder); /* the next section is the same program */

/* As buffers and instructions have it. */
uint32_t plan_builder_unit(const PlanBuilder *builder, uint32_t unit);

/* name must outlive the plan: interned, or in the plan's arena. */
uint32_t plan_builder_buffer(PlanBuilder *builder, uint64_t elements, PlanDtype dtype,
                             PlanSubcategory sub, uint8_t lane, const char *name);
void plan_builder_alloc(PlanBuilder *builder, uint32_t buffer);
/* The same by PyTorch's `empty`, whose memory deterministic algorithms fill, on its lane. */
void plan_builder_alloc_empty(PlanBuilder *builder, uint32_t buffer);
void plan_builder_fill_empty(PlanBuilder *builder, PlanOperand part, uint8_t lane);
void plan_builder_free(PlanBuilder *builder, uint32_t buffer);
void plan_builder_mark(PlanBuilder *builder, uint32_t buffer,
                       uint8_t lane); /* record_stream; of its own lane: nothing */
uint32_t plan_builder_record(PlanBuilder *builder, uint8_t lane); /* a fresh event */
/* The first n events keep their meaning in all sections: later steps may wait for them. */
void plan_builder_reserve_events(PlanBuilder *builder, uint32_t n);
void plan_builder_record_reserved(PlanBuilder *builder, uint8_t lane, uint32_t event);
void plan_builder_wait(PlanBuilder *builder, uint8_t lane, uint32_t event);
/* before: how many steps ago the event was recorded, at most PLAN_MAX_BEFORE. */
void plan_builder_host_wait(PlanBuilder *builder, uint32_t event, uint8_t before);
/* What PyTorch calls lane.wait_stream(other): all that other has been given so far. */
void plan_builder_wait_lane(PlanBuilder *builder, uint8_t lane, uint8_t other);
/* The host waits for all that the lane was given. */
void plan_builder_host_wait_lane(PlanBuilder *builder, uint8_t lane);

/* Operands may be added after the op is begun and before the next is. */
uint32_t plan_builder_begin_op(PlanBuilder *builder, PlanOpKind kind, PlanAxis axis,
                               const int64_t *dims, const double *attrs);
void plan_builder_operand(PlanBuilder *builder, PlanOperand operand);
void plan_builder_part(PlanBuilder *builder, uint32_t buffer, uint64_t offset_bytes,
                       uint64_t elements);
void plan_builder_whole(PlanBuilder *builder, uint32_t buffer); /* operand: all of it, or none */
/* Many at once, each as it is held: room for at most n, and where those that were written there
 * end. */
PlanRef plan_builder_ref(PlanBuilder *builder, PlanOperand operand);
PlanRef *plan_builder_room(PlanBuilder *builder, uint32_t n);
void plan_builder_written(PlanBuilder *builder, const PlanRef *end);
void plan_builder_launch(PlanBuilder *builder, uint8_t lane); /* the op begun last */
/* Op id, to which no operand is added any more. */
void plan_builder_launch_op(PlanBuilder *builder, uint32_t id, uint8_t lane);
void plan_builder_host_op(PlanBuilder *builder); /* it too, done by the host */

/* What a reference stands for: a part, or all of a buffer. Not PLAN_NONE. */
static inline PlanOperand plan_builder_operand_of(const PlanBuilder *builder, PlanRef ref) {
    return plan_ref_is_part(ref) ? builder->parts.items[ref - PLAN_PART]
                                 : plan_operand_whole(builder->buffers.items, ref);
}

static inline PlanBuffer *plan_builder_at(PlanBuilder *builder, uint32_t buffer) {
    return &builder->buffers.items[buffer];
}

/* The role's program is what has been written so far; if more is, ask again. */
void plan_builder_hand_over(const PlanBuilder *builder, PlanRole *role);
