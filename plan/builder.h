/* plan/builder.h - writes one role's program, instruction by instruction.
 *
 * Inside plan/ only. Autograd, the flavours and the optimizer decide what happens in which order
 * and call the builder for each instruction. It keeps the arrays that will be the role's, the
 * phase, unit and module that the next instruction carries, and which buffers are allocated.
 *
 * Owns: nothing of what is written, which lies in the plan's arena from the start. Threads: one.
 */
#pragma once

#include "plan/op/names.h"
#include "plan/plan.h"
#include "plan/vector.h"

enum {
    PLAN_LANE_COMPUTE /* the first lane of every flavour */
};

typedef struct {
    PLAN_VECTOR(PlanInstr) sections[PLAN_N_SECTIONS];
    bool repeats[PLAN_N_SECTIONS]; /* its program is that of the section before, stored once */
    PLAN_VECTOR(PlanBuffer) buffers;
    PLAN_VECTOR(PlanOp) ops;
    PLAN_VECTOR(PlanRef) operands;
    PLAN_VECTOR(PlanOperand) parts;
    PLAN_VECTOR(int64_t) dims;
    PLAN_VECTOR(double) attrs;
    PLAN_VECTOR(uint32_t) loss_ops;
    PLAN_VECTOR(bool) live; /* by buffer: it is allocated */
    PlanSection section;
    PlanPhase phase;
    uint32_t unit, module;
    uint32_t n_once; /* instructions of the section that no later one has, where that is known */
    unsigned works;  /* bits: lanes on which the section launches something */
    /* A rank with several stages: how many units and modules its earlier stages have. */
    uint32_t first_unit, first_module;
    uint32_t n_events, max_events, reserved_events;
    bool fills; /* deterministic PyTorch: memory from torch.empty() is filled by a kernel */
    uint32_t n_copied, copied, copies; /* ops, as in PlanRole */
} PlanBuilder;

void plan_builder_init(PlanBuilder *builder, PlanArena *arena);
void plan_builder_clear(PlanBuilder *builder);

/* What the ops of a graph and its parameters usually become: so many of each for an op and for a
 * parameter; and how many dims of the role's ops for one of the graph's and for a parameter. */
typedef struct {
    uint8_t of_op, of_parameter;
} PlanBuilderRate;

typedef struct {
    PlanBuilderRate instrs, buffers, ops, operands, parts, attrs, dims;
} PlanBuilderGrowth;

/* Reserves room, so that arrays need not be moved as they grow: for a graph of n ops with n_dims
 * dims and of so many parameters, or for about as much as another role has. */
void plan_builder_expect(PlanBuilder *builder, const PlanBuilderGrowth *growth, uint32_t n,
                         uint32_t n_dims, uint32_t n_parameters);
void plan_builder_expect_like(PlanBuilder *builder, const PlanRole *role);

void plan_builder_begin_section(PlanBuilder *builder, PlanSection section);
void plan_builder_end_section(PlanBuilder *builder);
void plan_builder_repeat_section(PlanBuilder *builder); /* the next section is the same program */

/* The number that buffers and instructions carry for a unit of this stage. */
uint32_t plan_builder_unit(const PlanBuilder *builder, uint32_t unit);

/* name must outlive the plan: interned, or in the plan's arena. */
uint32_t plan_builder_buffer(PlanBuilder *builder, uint64_t elements, PlanDtype dtype,
                             PlanSubcategory sub, uint8_t lane, const char *name);
void plan_builder_alloc(PlanBuilder *builder, uint32_t buffer);
/* The same for a buffer that PyTorch makes by torch.empty(). With deterministic algorithms a kernel
 * on the buffer's lane then fills it. */
void plan_builder_alloc_empty(PlanBuilder *builder, uint32_t buffer);
void plan_builder_fill_empty(PlanBuilder *builder, PlanOperand part, uint8_t lane);
/* Both at once: a new buffer, allocated. */
uint32_t plan_builder_new(PlanBuilder *builder, uint64_t elements, PlanDtype dtype,
                          PlanSubcategory sub, uint8_t lane, const char *name);
uint32_t plan_builder_new_empty(PlanBuilder *builder, uint64_t elements, PlanDtype dtype,
                                PlanSubcategory sub, uint8_t lane, const char *name);
void plan_builder_free(PlanBuilder *builder, uint32_t buffer); /* PLAN_NONE is fine */
/* Frees the buffer that a variable holds, and sets the variable to PLAN_NONE. */
void plan_builder_drop(PlanBuilder *builder, uint32_t *buffer);
/* A lane uses the buffer (record_stream). Of the buffer's own lane nothing is written. */
void plan_builder_mark(PlanBuilder *builder, uint32_t buffer, uint8_t lane);
uint32_t plan_builder_record(PlanBuilder *builder, uint8_t lane); /* a fresh event */
/* Makes n events with fixed numbers, the first ones, so that later steps can wait for them. */
void plan_builder_reserve_events(PlanBuilder *builder, uint32_t n);
void plan_builder_record_reserved(PlanBuilder *builder, uint8_t lane, uint32_t event);
void plan_builder_wait(PlanBuilder *builder, uint8_t lane, uint32_t event);
/* before: how many steps ago the event was recorded, at most PLAN_MAX_BEFORE. */
void plan_builder_host_wait(PlanBuilder *builder, uint32_t event, uint8_t before);
/* PyTorch's lane.wait_stream(other): lane waits for all that has been launched on other so far. */
void plan_builder_wait_lane(PlanBuilder *builder, uint8_t lane, uint8_t other);
/* The host waits for all that has been launched on the lane so far. */
void plan_builder_host_wait_lane(PlanBuilder *builder, uint8_t lane);

/* Begins an op; returns its number. Its operands are added by the functions below, in the order of
 * ops.def, before the next op is begun. */
uint32_t plan_builder_begin_op(PlanBuilder *builder, PlanOpKind kind, PlanAxis axis,
                               const int64_t *dims, const double *attrs);
void plan_builder_operand(PlanBuilder *builder, PlanOperand operand);
void plan_builder_whole(PlanBuilder *builder, uint32_t buffer); /* PLAN_NONE: a missing operand */
/* Begins a collective among `ranks` ranks of an axis, and adds its operands: `given` is what this
 * rank contributes, `taken` what it ends up with. Where the contribution already lies in `taken`,
 * given.buffer is PLAN_NONE; kinds with one operand are always so. how: the attribute "average"
 * (PlanReduction), for kinds that have it. */
void plan_builder_collective(PlanBuilder *builder, PlanOpKind kind, PlanAxis axis, uint64_t ranks,
                             double how, PlanOperand given, PlanOperand taken);
/* For many operands at once. The caller asks for room for n references, makes each with
 * plan_builder_ref(), writes it there, and finally says where the last one ends. */
PlanRef plan_builder_ref(PlanBuilder *builder, PlanOperand operand);
PlanRef *plan_builder_room(PlanBuilder *builder, uint32_t n);
void plan_builder_written(PlanBuilder *builder, const PlanRef *end);
void plan_builder_launch(PlanBuilder *builder, uint8_t lane); /* the op begun last */
void plan_builder_launch_op(PlanBuilder *builder, uint32_t id, uint8_t lane); /* an earlier one */
void plan_builder_host_op(PlanBuilder *builder); /* the op begun last, done by the host */

/* The operand behind a reference, which must not be PLAN_NONE. */
static inline PlanOperand plan_builder_operand_of(const PlanBuilder *builder, PlanRef ref) {
    return plan_ref_is_part(ref) ? builder->parts.items[ref - PLAN_PART]
                                 : plan_operand_whole(builder->buffers.items, ref);
}

static inline PlanBuffer *plan_builder_at(PlanBuilder *builder, uint32_t buffer) {
    return &builder->buffers.items[buffer];
}

/* All is written: gives back the room that is left. */
void plan_builder_trim(PlanBuilder *builder);
/* Points the role at what has been written so far. To be called again after writing more. */
void plan_builder_hand_over(const PlanBuilder *builder, PlanRole *role);
