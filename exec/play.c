#include "exec/play.h"

#include <math.h>

#include "exec/clock.h"
#include "exec/device.h"
#include "exec/error.h"
#include "exec/part-runs.h"
#include "plan/strategy/strategy.h"
#include "trace/from-plan.h"

/* ---- beginning and end ---------------------------------------------------------------------- */

static ExecContext context_of(const Plan *plan, const ExecComm *comm, const ExecOptions *options) {
    return (ExecContext){.plan = plan,
                         .role = &plan->roles[plan_role_of_rank(plan, comm->rank)],
                         .comm = comm,
                         .seed = options->seed,
                         .weights = options->weights,
                         .data = options->data};
}

static bool fits_ranks(const Plan *plan, const ExecComm *comm, GError **error) {
    if (comm->world != plan->world) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                    "the plan is for %u rank%s, but %u %s started; start as many as the plan has",
                    plan->world, plan->world == 1 ? "" : "s", comm->world,
                    comm->world == 1 ? "is" : "are");
    }
    return comm->world == plan->world;
}

static bool knows_plan(const ExecDevice *device, const ExecContext *context, GError **error) {
    for (uint32_t i = 0; i < context->role->n_ops; i++) {
        const PlanOp *op = &context->role->ops[i];
        if (op->kind == PLAN_OP_UNEVEN_ALL_TO_ALL) { /* all ranks cannot be the busiest one */
            g_set_error_literal(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                                "expert_overload is a what-if of the predictor; set "
                                "expert_overload=1 to run");
            return false;
        }
        if (!device->knows(context, op, error)) {
            return false;
        }
    }
    return true;
}

static bool allocator_of(const Plan *plan, MemoryOptions *ret_allocator, GError **error) {
    g_autoptr(GError) cause = NULL;
    const char *conf;
    if (plan_allocator_conf(plan->strategy, &conf, &cause) && !conf) {
        g_set_error_literal(&cause, EXEC_ERROR, EXEC_ERROR_INPUT,
                            "allocator=arena is a what-if of the predictor; set "
                            "allocator=caching to run");
    }
    if (cause || !memory_options_parse(conf, ret_allocator, &cause)) {
        g_set_error_literal(error, EXEC_ERROR, EXEC_ERROR_INPUT, cause->message);
    }
    return !cause;
}

bool exec_play_fits(const ExecDevice *device, const Plan *plan, const ExecComm *comm,
                    const ExecOptions *options, GError **error) {
    MemoryOptions unasked;
    if ((device->suits && !device->suits(comm, options, error)) || !fits_ranks(plan, comm, error)) {
        return false;
    }
    ExecContext context = context_of(plan, comm, options);
    return knows_plan(device, &context, error) && allocator_of(plan, &unasked, error);
}

bool exec_play_init(ExecPlay *play, const ExecDevice *device, const Plan *plan,
                    const ExecComm *comm, uint32_t steps, const ExecOptions *options,
                    GError **error) {
    g_assert(comm->world == plan->world);
    play->device = device;
    play->role_id = plan_role_of_rank(plan, comm->rank);
    const PlanRole *role = &plan->roles[play->role_id];
    play->context = context_of(plan, comm, options);
    play->context.stepping = &play->stepping;
    play->options = *options;
    play->steps = steps;
    play->ledger = memory_ledger_new(PLAN_N_SUBCATEGORIES, plan->n_units + 1);
    play->blocks = g_new0(MemoryBlock *, role->n_buffers);
    play->op_rows = g_ptr_array_new_with_free_func(g_free);
    play->memory_rows = g_array_new(FALSE, FALSE, sizeof(TraceMemoryRow));
    play->losses = g_new(double, steps);
    play->step_end_ns = g_new0(int64_t, steps);
    for (uint32_t i = 0; i < steps; i++) {
        play->losses[i] = NAN;
    }
    if (!comm->join(comm->self, plan, error)) {
        g_prefix_error(error, "the ranks find each other: ");
        return false;
    }
    return true;
}

bool exec_play_take_memory(ExecPlay *play, const MemorySource *source, gpointer self,
                           GError **error) {
    MemoryOptions allocator;
    g_autoptr(GError) cause = NULL;
    if (!allocator_of(play->context.plan, &allocator, error)) {
        return false;
    }
    play->caching = memory_caching_new(&allocator, source, self, &cause);
    if (!play->caching) { /* the source cannot do what the plan asks for */
        g_set_error_literal(error, EXEC_ERROR, EXEC_ERROR_INPUT, cause->message);
    } else if (play->options.keep_rows) {
        play->answers = memory_answers_new();
        memory_caching_keep_answers(play->caching, play->answers);
    }
    return play->caching != NULL;
}

void exec_play_clear(ExecPlay *play) {
    memory_caching_free(play->caching);
    memory_answers_free(play->answers);
    memory_ledger_free(play->ledger);
    g_free(play->blocks);
    g_clear_pointer(&play->op_rows, g_ptr_array_unref);
    g_clear_pointer(&play->memory_rows, g_array_unref);
    g_free(play->losses);
    g_free(play->step_end_ns);
    g_free(play->out_of_memory);
}

void exec_play_free(ExecPlay *play) {
    if (play) {
        play->device->close(play);
    }
}

/* ---- memory --------------------------------------------------------------------------------- */

static void note_memory(ExecPlay *play, const PlanPosition *at, uint32_t buffer, int64_t delta) {
    const PlanBuffer *b = &at->role->buffers[buffer];
    uint32_t unit = b->unit == PLAN_NONE ? play->context.plan->n_units : b->unit;
    uint64_t active = memory_caching_active(play->caching);
    uint64_t reserved = memory_caching_reserved(play->caching);
    uint32_t number = trace_instruction_number(at->role, at->section, at->index);
    int64_t now = exec_now_ns();
    MemoryMoment moment = {number, now};
    if (delta > 0) {
        memory_ledger_add(play->ledger, (MemoryChange){b->sub, unit, (uint64_t)delta}, active,
                          reserved, moment);
    } else {
        memory_ledger_sub(play->ledger, (MemoryChange){b->sub, unit, (uint64_t)-delta}, active,
                          reserved, moment);
    }
    if (play->options.keep_rows) {
        TraceMemoryRow row = {play->context.comm->rank,
                              at->step,
                              number,
                              b->sub,
                              now,
                              delta,
                              memory_caching_allocated(play->caching),
                              active,
                              reserved};
        g_array_append_val(play->memory_rows, row);
    }
}

/* A limit may leave room that is not there: not only the allocator holds memory of a device. */
static void tell_what_others_hold(const ExecPlay *play, GString *text) {
    uint64_t left = play->options.memory_limit_bytes - memory_caching_reserved(play->caching);
    uint64_t is_free = play->device->free_bytes ? play->device->free_bytes() : left;
    if (is_free < left) {
        g_string_append_printf(text,
                               "; the device has only %" G_GUINT64_FORMAT " bytes free: kernels, "
                               "other ranks or other programs hold the rest",
                               is_free);
    }
}

static void describe_out_of_memory(ExecPlay *play, const PlanPosition *at, const PlanBuffer *b) {
    g_autofree char *step = trace_step_name(at->step);
    GString *text = g_string_new(NULL);
    g_string_printf(text,
                    "%s: no room for %" G_GUINT64_FORMAT " bytes (%s of unit %s): "
                    "%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " bytes are reserved, "
                    "%" G_GUINT64_FORMAT " allocated%s",
                    step, b->bytes, b->name,
                    b->unit == PLAN_NONE ? "-" : play->context.plan->units[b->unit].name,
                    memory_caching_reserved(play->caching), play->options.memory_limit_bytes,
                    memory_caching_allocated(play->caching),
                    memory_caching_allocated(play->caching) ? ":" : "");
    const uint64_t *held = memory_ledger_by_tag(play->ledger);
    for (unsigned i = 0; i < PLAN_N_SUBCATEGORIES; i++) {
        if (held[i]) {
            g_string_append_printf(text, " %s %" G_GUINT64_FORMAT,
                                   plan_subcategory_name((PlanSubcategory)i), held[i]);
        }
    }
    tell_what_others_hold(play, text);
    g_free(play->out_of_memory);
    play->out_of_memory = g_string_free(text, FALSE);
    play->oom =
        (TraceOom){.rank = play->context.comm->rank,
                   .step = at->step,
                   .instruction = trace_instruction_number(at->role, at->section, at->index),
                   .buffer = b->name};
}

PlanAnswer exec_play_alloc(gpointer self, const PlanPosition *at, uint32_t buffer, GError **error) {
    ExecPlay *play = self;
    const PlanBuffer *b = &at->role->buffers[buffer];
    if (!memory_caching_alloc(play->caching, b->lane, b->bytes, &play->blocks[buffer])) {
        describe_out_of_memory(play, at, b);
        return PLAN_STOPPED;
    }
    note_memory(play, at, buffer, (int64_t)memory_block_bytes(play->blocks[buffer]));
    return PLAN_DONE;
}

PlanAnswer exec_play_release(gpointer self, const PlanPosition *at, uint32_t buffer,
                             GError **error) {
    ExecPlay *play = self;
    int64_t bytes = (int64_t)memory_block_bytes(play->blocks[buffer]);
    memory_caching_drop(play->caching, play->blocks[buffer]);
    play->blocks[buffer] = NULL;
    note_memory(play, at, buffer, -bytes);
    return PLAN_DONE;
}

PlanAnswer exec_play_mark(gpointer self, const PlanPosition *at, uint32_t buffer, uint32_t lane,
                          GError **error) {
    ExecPlay *play = self;
    memory_caching_mark(play->caching, play->blocks[buffer], lane);
    return PLAN_DONE;
}

static gpointer pointer_of(const ExecPlay *play, uint32_t buffer) {
    const MemoryBlock *block = play->blocks[buffer];
    return (char *)memory_block_handle(block) + memory_block_offset(block);
}

gpointer exec_play_pointer(const ExecPlay *play, uint32_t buffer) {
    g_assert(play->blocks[buffer]);
    return pointer_of(play, buffer);
}

/* ---- ops ------------------------------------------------------------------------------------ */

ExecTask exec_play_task(ExecPlay *play, const PlanPosition *at, const PlanOp *op,
                        gpointer *pointers) {
    if (op->kind == PLAN_OP_BATCH) {
        const int64_t *dims = plan_op_dims(at->role, op);
        play->pass =
            (uint64_t)MAX(at->step, 0) * (uint64_t)dims[BATCH_PASSES] + (uint64_t)dims[BATCH_PASS];
    }
    for (uint32_t i = 0; i < op->n_operands; i++) {
        PlanOperand operand = plan_op_operand(at->role, op, i);
        pointers[i] = operand.buffer == PLAN_NONE
                          ? NULL
                          : (char *)pointer_of(play, operand.buffer) +
                                exec_operand_offset(play->context.plan, play->context.comm->rank,
                                                    op, &operand);
    }
    return (ExecTask){&play->context, op, at->step, play->pass, pointers, play->stepping};
}

TraceOpRow *exec_play_op_row(ExecPlay *play, const PlanPosition *at, uint32_t lane) {
    if (!play->options.keep_rows) {
        return NULL;
    }
    TraceOpRow *row = g_new0(TraceOpRow, 1);
    row->rank = play->context.comm->rank;
    row->step = at->step;
    row->instruction = trace_instruction_number(at->role, at->section, at->index);
    row->lane = lane;
    row->host_issue_ns = exec_now_ns();
    g_ptr_array_add(play->op_rows, row);
    return row;
}

void exec_play_say_where(const ExecPlay *play, int32_t step, const PlanOp *op, uint32_t unit,
                         GError **error) {
    g_autofree char *name = trace_step_name(step);
    g_prefix_error(error, "%s, op %s%s%s: ", name, plan_op_info((PlanOpKind)op->kind)->name,
                   unit == PLAN_NONE ? "" : " of unit ",
                   unit == PLAN_NONE ? "" : play->context.plan->units[unit].name);
}

/* ---- losses --------------------------------------------------------------------------------- */

static bool makes_loss(const PlanRole *role, const PlanOp *op) {
    for (uint32_t i = 0; i < role->n_loss_ops; i++) {
        if (op == &role->ops[role->loss_ops[i]]) {
            return true;
        }
    }
    return false;
}

/* Each program of a step has every pass once. */
static uint32_t passes_of(const PlanRole *role) {
    uint32_t programs = 0;
    for (PlanSection s = PLAN_SECTION_FIRST; s < PLAN_N_SECTIONS; s++) {
        programs += !plan_section_repeats(role, s);
    }
    return MAX(1, role->n_loss_ops / programs);
}

double exec_play_loss_share(const ExecPlay *play, const PlanPosition *at, const PlanOp *op) {
    return at->step >= 0 && makes_loss(at->role, op) ? 1.0 / (double)passes_of(at->role) : 0;
}

bool exec_play_note_loss(ExecPlay *play, int32_t step, double loss, double share, GError **error) {
    double *sum = &play->losses[step];
    *sum = (isnan(*sum) ? 0 : *sum) + loss * share;
    if (isfinite(loss) || play->context.comm->rehearsed) {
        return true;
    }
    /* The first step's is of weights that nothing has moved yet. */
    g_set_error(error, EXEC_ERROR, EXEC_ERROR_NUMBERS, "the loss is %s%s",
                isnan(loss) ? "not a number" : "infinite",
                step > 0 ? "; lower the learning rate (--lr)"
                         : " before anything was learned; look at the weights (--load) and the "
                           "data, and whether fp16 holds such numbers (bf16 and fp32 do)");
    return false;
}

/* ---- steps ---------------------------------------------------------------------------------- */

void exec_play_note_step_end(ExecPlay *play, int32_t step, int64_t now_ns) {
    g_atomic_pointer_set((gpointer *)&play->step_end_ns[step], (gpointer)(intptr_t)now_ns);
}

static int64_t step_end(const ExecPlay *play, uint32_t step) {
    return (intptr_t)g_atomic_pointer_get((gpointer *)&play->step_end_ns[step]);
}

bool exec_play_step_has_ended(const ExecPlay *play, uint32_t step) {
    return step_end(play, step) != 0;
}

double exec_play_step_ms(const ExecPlay *play, uint32_t step) {
    int64_t start = step ? step_end(play, step - 1) : play->start_ns;
    return (double)(step_end(play, step) - start) / 1e6;
}

/* ---- results -------------------------------------------------------------------------------- */

/* What the allocator was told decides, with the plan, all that it did. */
static void add_answers(const ExecPlay *play, Trace *trace) {
    g_autofree char *key = g_strdup_printf("answers.%u", play->context.comm->rank);
    g_autofree char *text = memory_answers_text(play->answers);
    if (*text) {
        trace_set(trace, key, text);
    }
}

void exec_play_add_rows(const ExecPlay *play, Trace *trace) {
    add_answers(play, trace);
    trace_add_rank(trace, play->context.comm->rank, play->role_id);
    for (guint i = 0; i < play->op_rows->len; i++) {
        TraceOpRow row = *(const TraceOpRow *)play->op_rows->pdata[i];
        row.host_issue_ns -= play->start_ns;
        row.start_ns -= play->start_ns;
        row.end_ns -= play->start_ns;
        trace_add_op(trace, &row);
    }
    for (guint i = 0; i < play->memory_rows->len; i++) {
        TraceMemoryRow row = g_array_index(play->memory_rows, TraceMemoryRow, i);
        row.host_ns -= play->start_ns;
        trace_add_memory(trace, &row);
    }
}
