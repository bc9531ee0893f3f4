#include "plan/flavours/replay.h"

#include <string.h>

PlanWritten plan_replay_written(const PlanRun *run) {
    const PlanBuilder *b = &run->builder;
    return (PlanWritten){.instrs = b->sections[b->section].len,
                         .buffers = b->buffers.len,
                         .ops = b->ops.len,
                         .operands = b->operands.len,
                         .parts = b->parts.len,
                         .dims = b->dims.len,
                         .attrs = b->attrs.len,
                         .events = b->n_events};
}

typedef struct {
    const PlanRole *first;
    PlanWritten begin, end, here;
    uint32_t *older; /* what the first role's buffers from before the passes are in this one */
} Replay;

static inline uint32_t buffer_here(const Replay *r, uint32_t buffer) {
    if (buffer == PLAN_NONE) {
        return PLAN_NONE;
    }
    if (buffer >= r->begin.buffers) {
        return buffer - r->begin.buffers + r->here.buffers;
    }
    return r->older[buffer];
}

static uint32_t op_here(const Replay *r, uint32_t op) {
    return op - r->begin.ops + r->here.ops;
}

static void copy_buffers(const Replay *r, PlanBuilder *builder) {
    uint32_t n = r->end.buffers - r->begin.buffers;
    PlanBuffer *buffers;
    bool *live;
    plan_vector_extend(&builder->buffers, n, &buffers);
    plan_vector_extend(&builder->live, n, &live);
    memcpy(buffers, r->first->buffers + r->begin.buffers, n * sizeof *buffers);
    memset(live, 0, n * sizeof *live);
    for (uint32_t i = 0; i < n; i++) {
        buffers[i].carried = 0;
    }
}

static void copy_operands(const Replay *r, PlanBuilder *builder) {
    const PlanRef *from = r->first->operands + r->begin.operands;
    uint32_t n = r->end.operands - r->begin.operands;
    PlanRef *operands;
    plan_vector_extend(&builder->operands, n, &operands);
    for (uint32_t i = 0; i < n; i++) {
        operands[i] = plan_ref_is_part(from[i]) ? from[i] - r->begin.parts + r->here.parts
                                                : buffer_here(r, from[i]);
    }
}

static void copy_parts(const Replay *r, PlanBuilder *builder) {
    const PlanOperand *from = r->first->parts + r->begin.parts;
    uint32_t n = r->end.parts - r->begin.parts;
    PlanOperand *parts;
    plan_vector_extend(&builder->parts, n, &parts);
    for (uint32_t i = 0; i < n; i++) {
        parts[i] = from[i];
        parts[i].buffer = buffer_here(r, from[i].buffer);
    }
}

static void copy_ops(const Replay *r, PlanBuilder *builder) {
    uint32_t n = r->end.ops - r->begin.ops;
    PlanOp *ops;
    plan_vector_extend(&builder->ops, n, &ops);
    for (uint32_t i = 0; i < n; i++) {
        ops[i] = r->first->ops[r->begin.ops + i];
        ops[i].operands += r->here.operands - r->begin.operands;
        ops[i].dims += r->here.dims - r->begin.dims;
        ops[i].attrs += r->here.attrs - r->begin.attrs;
    }
    for (uint32_t i = 0; i < r->first->n_loss_ops; i++) {
        uint32_t op = r->first->loss_ops[i];
        if (op >= r->begin.ops && op < r->end.ops) {
            plan_vector_push(&builder->loss_ops, op_here(r, op));
        }
    }
}

static void copy_instrs(const Replay *r, PlanBuilder *builder) {
    const PlanInstr *from = r->first->sections[PLAN_SECTION_FIRST] + r->begin.instrs;
    uint32_t n = r->end.instrs - r->begin.instrs;
    PlanInstr *instrs;
    plan_vector_extend(&builder->sections[builder->section], n, &instrs);
    for (uint32_t i = 0; i < n; i++) {
        PlanInstr *instr = &instrs[i];
        *instr = from[i];
        switch ((PlanInstrKind)instr->kind) {
        case PLAN_ALLOC:
        case PLAN_FREE:
            instr->arg = buffer_here(r, instr->arg);
            builder->live.items[instr->arg] = instr->kind == PLAN_ALLOC;
            break;
        case PLAN_MARK:
            instr->arg = buffer_here(r, instr->arg);
            break;
        case PLAN_LAUNCH:
            builder->works |= 1u << instr->lane;
            G_GNUC_FALLTHROUGH;
        case PLAN_HOST_OP:
            instr->arg = op_here(r, instr->arg);
            break;
        case PLAN_RECORD:
        case PLAN_WAIT:
        case PLAN_HOST_WAIT:
        case PLAN_N_INSTRS:
            break; /* every section numbers its events from the start */
        }
    }
    builder->n_events = r->end.events;
}

/* Dims and attributes of another role's ops; a role's own copies share those they were written
 * with. */
static void copy_numbers(const Replay *r, PlanBuilder *builder) {
    uint32_t n_dims = r->end.dims - r->begin.dims, n_attrs = r->end.attrs - r->begin.attrs;
    int64_t *dims;
    double *attrs;
    plan_vector_extend(&builder->dims, n_dims, &dims);
    plan_vector_extend(&builder->attrs, n_attrs, &attrs);
    memcpy(dims, r->first->dims + r->begin.dims, n_dims * sizeof *dims);
    memcpy(attrs, r->first->attrs + r->begin.attrs, n_attrs * sizeof *attrs);
}

/* So that nothing moves while it is copied. */
static void make_room(const PlanRole *first, const PlanPasses *passes, PlanBuilder *b) {
    const PlanWritten *begin = &passes->begin, *end = &passes->end;
    plan_vector_more(&b->sections[b->section], end->instrs - begin->instrs);
    plan_vector_more(&b->buffers, end->buffers - begin->buffers);
    plan_vector_more(&b->ops, end->ops - begin->ops);
    plan_vector_more(&b->operands, end->operands - begin->operands);
    plan_vector_more(&b->parts, end->parts - begin->parts);
    if (first) {
        plan_vector_more(&b->dims, end->dims - begin->dims);
        plan_vector_more(&b->attrs, end->attrs - begin->attrs);
    }
    plan_vector_more(&b->loss_ops, b->loss_ops.len);
}

void plan_replay(PlanRun *run, const PlanRole *first, const PlanPasses *passes) {
    PlanBuilder *builder = &run->builder;
    make_room(first, passes, builder);
    PlanRole own;
    plan_builder_hand_over(builder, &own);
    Replay r = {.first = first ? first : &own,
                .begin = passes->begin,
                .end = passes->end,
                .here = plan_replay_written(run)};
    g_assert(r.here.events == r.begin.events);
    g_autofree uint32_t *older = r.older = g_new(uint32_t, r.begin.buffers);
    for (uint32_t i = 0; i < r.begin.buffers; i++) {
        older[i] = i;
    }
    if (first) {
        run->flavour->renumber(run, older);
        copy_numbers(&r, builder);
    } else {
        r.here.dims = r.begin.dims;
        r.here.attrs = r.begin.attrs;
        builder->n_copied = r.end.ops - r.begin.ops;
        builder->copied = r.begin.ops;
        builder->copies = r.here.ops;
    }
    copy_buffers(&r, builder);
    copy_ops(&r, builder);
    copy_operands(&r, builder);
    copy_parts(&r, builder);
    copy_instrs(&r, builder);
    for (uint32_t i = r.here.buffers; i < builder->buffers.len; i++) {
        if (builder->live.items[i]) {
            run->flavour->adopt(run, i);
        }
    }
}
