#include "plan/autograd/traced.h"

#include "plan/autograd/node.h"
#include "plan/autograd/traced-call.h"

/* An op that is played: what its words stand for. */
typedef struct {
    PlanRun *run;
    const PlanGraphOp *op;
    const PlanTracedKind *kind;
    const PlanTensor *given; /* backward alone, as the rest */
    PlanTensor *made;
    uint32_t saved; /* first in the tape */
} Play;

const PlanTracedKind *plan_traced_kind(const PlanGraph *graph, const PlanGraphOp *op) {
    int64_t which = graph->dims.items[op->dims];
    return plan_graph_at(graph->traced->kinds, PlanTracedKind, which);
}

static PlanTracedRef ref_at(const PlanGraph *graph, uint32_t i) {
    return g_array_index(graph->traced->refs, PlanTracedRef, i);
}

static uint64_t count_of(const PlanRun *run, PlanTracedCount count) {
    return plan_traced_count(count, run->graph->samples);
}

/* ---- launches ------------------------------------------------------------------------------- */

/* All of the storage that a value lies in; buffer PLAN_NONE: it has none. */
static PlanOperand storage_of_value(PlanRun *run, uint32_t value) {
    PlanOperand none = {.buffer = PLAN_NONE};
    if (value == PLAN_NONE) {
        return none;
    }
    uint32_t base = plan_graph_value_at(run->graph, value)->base;
    const PlanGraphValue *v = plan_graph_value_at(run->graph, base);
    if (v->parameter != PLAN_NONE) {
        return run->flavour->parameter(run, v->parameter);
    }
    uint32_t storage = run->tape.storage_of_value[base];
    return storage == PLAN_NONE ? none
                                : plan_operand_whole(run->builder.buffers.items,
                                                     run->storages.items[storage].buffer);
}

static PlanOperand storage_of_tensor(PlanRun *run, PlanTensor tensor) {
    return tensor.storage == PLAN_NONE
               ? (PlanOperand){.buffer = PLAN_NONE}
               : plan_operand_whole(run->builder.buffers.items, plan_run_buffer_of(run, tensor));
}

static uint32_t position_of(const Play *p, PlanTracedRef ref) {
    return ref.index + (ref.of == PLAN_TRACED_OUTPUT ? p->op->n_inputs : 0);
}

static PlanOperand operand_of(const Play *p, PlanTracedRef ref) {
    const PlanGraph *graph = p->run->graph;
    switch (ref.of) {
    case PLAN_TRACED_INPUT:
    case PLAN_TRACED_OUTPUT:
        return storage_of_value(p->run, plan_graph_ref(graph, p->op->values + position_of(p, ref)));
    case PLAN_TRACED_SAVED: {
        PlanTracedRef kept = ref_at(graph, p->kind->saves + ref.index);
        return storage_of_value(p->run,
                                plan_graph_ref(graph, p->op->values + position_of(p, kept)));
    }
    case PLAN_TRACED_GIVEN:
        return storage_of_tensor(p->run, p->given[ref.index]);
    case PLAN_TRACED_MADE:
        return storage_of_tensor(p->run, p->made[ref.index]);
    case PLAN_TRACED_NOTHING:
        break;
    }
    return (PlanOperand){.buffer = PLAN_NONE};
}

/* Where the operands of a kernel stand: of each of its refs, the place among those that there are;
 * PLAN_NONE: the plan knows none. */
typedef struct {
    const PlanGraph *graph;
    const PlanTracedKernel *kernel;
    uint32_t *places;
    unsigned n_reads, n_writes, length; /* of each list, as it is written */
} Places;

static void add_operands(PlanRun *run, const PlanOperand *operands, unsigned n, unsigned length) {
    for (unsigned i = 0; i < length; i++) {
        PlanOperand o = operands[MIN(i, n - 1)];
        plan_builder_operand(&run->builder, o);
    }
}

/* Those that there are; their number. */
static unsigned find_operands(const Play *p, uint32_t first, uint32_t n, PlanOperand *ret_found,
                              uint32_t *ret_places) {
    unsigned n_found = 0;
    for (uint32_t i = 0; i < n; i++) {
        PlanOperand operand = operand_of(p, ref_at(p->run->graph, first + i));
        ret_places[i] = operand.buffer == PLAN_NONE ? PLAN_NONE : n_found;
        if (operand.buffer != PLAN_NONE) {
            ret_found[n_found++] = operand;
        }
    }
    return n_found;
}

static uint32_t place_of(PlanTracedRef ref, gconstpointer data) {
    const Places *places = data;
    for (uint32_t i = 0; i < places->kernel->n_reads + places->kernel->n_writes; i++) {
        PlanTracedRef other = ref_at(places->graph, places->kernel->refs + i);
        if (other.of == ref.of && other.index == ref.index) {
            bool is_written = i >= places->kernel->n_reads;
            return places->places[i] == PLAN_NONE
                       ? PLAN_NONE
                       : places->places[i] + (is_written ? places->length : 0);
        }
    }
    return PLAN_NONE;
}

/* What touches nothing that the plan knows is left out. Its number; PLAN_NONE. */
static uint32_t launch_kernel(const Play *p, const PlanTracedKernel *kernel) {
    PlanRun *run = p->run;
    g_autofree PlanOperand *reads = g_new(PlanOperand, kernel->n_reads + 1);
    g_autofree PlanOperand *writes = g_new(PlanOperand, kernel->n_writes + 1);
    g_autofree uint32_t *found = g_new(uint32_t, kernel->n_reads + kernel->n_writes + 1);
    Places places = {.graph = run->graph, .kernel = kernel, .places = found};
    places.n_reads = find_operands(p, kernel->refs, kernel->n_reads, reads, found);
    places.n_writes = find_operands(p, kernel->refs + kernel->n_reads, kernel->n_writes, writes,
                                    found + kernel->n_reads);
    if (!places.n_reads && !places.n_writes) {
        return PLAN_NONE;
    }
    if (!places.n_reads) {
        reads[places.n_reads++] = writes[0];
    }
    if (!places.n_writes) {
        writes[places.n_writes++] = reads[0];
    }
    places.length = MAX(places.n_reads, places.n_writes);
    int64_t dims[PLAN_MAX_DIMS];
    unsigned n_sizes = plan_traced_n_sizes(kernel->op);
    for (unsigned i = 0; i < n_sizes; i++) {
        dims[i] = (int64_t)count_of(run, kernel->dims[i]);
    }
    dims[n_sizes] = plan_traced_call_number(run, kernel->call, place_of, &places);
    uint32_t id = plan_builder_begin_op(&run->builder, kernel->op, PLAN_AXIS_NONE, dims, NULL);
    add_operands(run, reads, places.n_reads, places.length);
    add_operands(run, writes, places.n_writes, places.length);
    plan_run_launch(run);
    return id;
}

static void launch_memory(PlanRun *run, uint64_t bytes, int64_t call) {
    plan_builder_begin_op(
        &run->builder, PLAN_OP_TRACED_MEMORY, PLAN_AXIS_NONE,
        (int64_t[]){[TRACED_MEMORY_BYTES] = (int64_t)bytes, [TRACED_MEMORY_CALL] = call}, NULL);
}

void plan_traced_fill_input(PlanRun *run, uint32_t input) {
    const PlanGraph *graph = run->graph;
    uint32_t value = g_array_index(graph->inputs, uint32_t, input);
    const PlanGraphValue *v = plan_graph_value_at(graph, value);
    bool is_dealt = v->elements % graph->samples == 0;
    int64_t samples = is_dealt ? (int64_t)graph->samples : 1;
    LAUNCH_ON(run, PLAN_LANE_COMPUTE, PLAN_OP_TRACED_INPUT, PLAN_AXIS_NONE,
              DIMS([TRACED_INPUT_SAMPLES] = samples,
                   [TRACED_INPUT_SAMPLE_ELEMENTS] = (int64_t)v->elements / samples,
                   [TRACED_INPUT_BOUND] = (int64_t)v->bound, [TRACED_INPUT_INPUT] = input),
              NULL, plan_run_operand_of(run, plan_run_value(run, value)));
}

/* Numbers that a file of weights has under the buffer's name. */
void plan_traced_launch_first(PlanRun *run, uint32_t value, PlanTensor tensor) {
    PlanOperand whole = storage_of_tensor(run, tensor);
    const char *name = plan_graph_value_at(run->graph, value)->name;
    g_autofree char *call = name ? g_strconcat("buffer ", name, " > 1", NULL) : NULL;
    launch_memory(run, tensor.elements * plan_dtype_bytes(plan_run_dtype_of(run, tensor)),
                  call ? plan_calls_number(run->calls, call) : 0);
    add_operands(run, &whole, 1, 1);
    add_operands(run, &whole, 1, 1);
    plan_run_launch(run);
}

static void launch_sum(PlanRun *run, PlanTracedCall call, PlanTensor a, PlanTensor b,
                       PlanTensor sum) {
    PlanOperand reads[] = {storage_of_tensor(run, a), storage_of_tensor(run, b)};
    PlanOperand made = storage_of_tensor(run, sum);
    uint64_t size = plan_dtype_bytes(plan_run_dtype_of(run, sum));
    launch_memory(run, 3 * sum.elements * size,
                  plan_traced_call_number(run, call, plan_traced_sum_operand, GUINT_TO_POINTER(2)));
    add_operands(run, reads, 2, 2);
    add_operands(run, &made, 1, 2);
    plan_run_launch(run);
}

static bool is_of(const PlanGraph *graph, uint32_t value, PlanTracedTarget target) {
    return target.is_parameter ? plan_graph_value_at(graph, value)->parameter == target.index
                               : value == target.index;
}

void plan_traced_begin_sums(PlanRun *run) {
    g_free(run->is_summed);
    run->is_summed = run->graph->traced ? g_new0(bool, run->graph->traced->sums->len + 1) : NULL;
}

void plan_traced_launch_sum(PlanRun *run, PlanTracedTarget target, PlanTensor a, PlanTensor b,
                            PlanTensor sum) {
    const GArray *sums = run->graph->traced->sums;
    PlanTracedCall call = {0};
    for (uint32_t i = 0; i < sums->len; i++) {
        const PlanTracedSum *known = plan_graph_at(sums, PlanTracedSum, i);
        if (!run->is_summed[i] && is_of(run->graph, known->value, target)) {
            run->is_summed[i] = true;
            call = known->call;
            break;
        }
    }
    launch_sum(run, call, a, b, sum);
}

void plan_traced_launch_copy(PlanRun *run, uint32_t parameter, PlanTensor gradient,
                             PlanTensor copy) {
    const GArray *copied = run->graph->traced->copied;
    PlanTracedTarget target = {.is_parameter = true, .index = parameter};
    PlanTracedCall call = {0};
    for (uint32_t i = 0; i < copied->len; i++) {
        const PlanTracedSum *known = plan_graph_at(copied, PlanTracedSum, i);
        call = is_of(run->graph, known->value, target) ? known->call : call;
    }
    launch_sum(run, call, gradient, gradient, copy);
}

/* ---- forward -------------------------------------------------------------------------------- */

/* Whether what the op makes counts as an activation: only inside of a module. Mixed precision's
 * casts of inputs run inside of the root's call with FSDP2, before it with FSDP1. */
static bool is_of_a_module(const PlanRun *run, uint32_t op_id) {
    bool is_inside = run->frames.begins.len || run->builder.phase != PLAN_PHASE_FORWARD;
    return is_inside || (!run->flavour->flatten && op_id >= run->graph->first_cast);
}

static void make_output(PlanRun *run, uint32_t op_id, const PlanTracedKind *kind, uint32_t i,
                        uint32_t value) {
    const PlanTracedOut *out =
        plan_graph_at(run->graph->traced->outs, PlanTracedOut, kind->outs + i);
    uint64_t stored = count_of(run, out->stored);
    if (out->storage.of != PLAN_TRACED_NOTHING || !stored) {
        return;
    }
    PlanTensor tensor = plan_run_new_tensor(run, stored, (PlanDtype)out->dtype, kind->name);
    run->tape.storage_of_value[value] = tensor.storage;
    uint32_t buffer = plan_run_buffer_of(run, tensor);
    if (is_of_a_module(run, op_id)) {
        plan_vector_push(&run->frames.buffers, buffer);
    }
}

void plan_traced_forward(PlanRun *run, uint32_t op_id, const PlanGraphOp *op) {
    const PlanGraph *graph = run->graph;
    const PlanTracedKind *kind = plan_traced_kind(graph, op);
    bool makes_loss = false;
    for (uint32_t i = 0; i < op->n_outputs; i++) {
        uint32_t value = plan_graph_ref(graph, op->values + op->n_inputs + i);
        make_output(run, op_id, kind, i, value);
        makes_loss |= value == plan_graph_value_at(graph, graph->loss)->base;
    }
    Play play = {.run = run, .op = op, .kind = kind};
    for (uint32_t i = 0; i < kind->n_kernels; i++) {
        uint32_t id = launch_kernel(
            &play, plan_graph_at(graph->traced->kernels, PlanTracedKernel, kind->kernels + i));
        if (makes_loss && i + 1 == kind->n_kernels && id != PLAN_NONE) {
            plan_vector_push(&run->builder.loss_ops, id);
        }
    }
}

void plan_traced_save(PlanRun *run, const PlanGraphOp *op, PlanNode *node) {
    const PlanTracedKind *kind = plan_traced_kind(run->graph, op);
    Play play = {.run = run, .op = op, .kind = kind};
    node->saved = run->tape.saved.len;
    node->n_saved = kind->n_saves;
    for (uint32_t i = 0; i < kind->n_saves; i++) {
        uint32_t at = position_of(&play, ref_at(run->graph, kind->saves + i));
        uint32_t value = plan_graph_ref(run->graph, op->values + at);
        PlanTensor tensor = plan_run_ref(run, plan_run_value(run, value));
        plan_vector_push(&run->tape.saved, tensor);
    }
}

bool plan_traced_keeps_an_output(const PlanGraph *graph, const PlanGraphOp *op) {
    const PlanTracedKind *kind = plan_traced_kind(graph, op);
    for (uint32_t i = 0; i < kind->n_saves; i++) {
        if (ref_at(graph, kind->saves + i).of == PLAN_TRACED_OUTPUT) {
            return true;
        }
    }
    return false;
}

/* ---- backward ------------------------------------------------------------------------------- */

/* A checkpoint's tensors go where the function has done with them; a node's own when it has run. */
static void drop(const Play *p, uint32_t node, uint32_t saved) {
    if (plan_run_unpacks(p->run, node)) {
        plan_run_drop(p->run, &p->run->tape.saved.items[p->saved + saved]);
    }
}

static void play_event(const Play *p, const PlanBackward *b, const PlanTracedEvent *event) {
    PlanRun *run = p->run;
    switch (event->kind) {
    case PLAN_TRACED_ALLOC: {
        uint64_t n = count_of(run, event->count);
        if (n) {
            p->made[event->index] =
                plan_run_new_tensor(run, n, (PlanDtype)event->dtype, p->kind->name);
        }
        return;
    }
    case PLAN_TRACED_FREE:
        plan_run_drop(run, &p->made[event->index]);
        return;
    case PLAN_TRACED_RUN:
        launch_kernel(p,
                      plan_graph_at(run->graph->traced->kernels, PlanTracedKernel, event->index));
        return;
    case PLAN_TRACED_DROP:
        drop(p, b->node, event->index);
        return;
    }
    g_assert_not_reached();
}

/* A gradient has as many elements as its input has, also where those lie in fewer in memory. */
static PlanTensor gradient_of(const Play *p, const PlanBackward *b, uint32_t edge) {
    PlanTracedRef ref = ref_at(p->run->graph, p->kind->gives + edge);
    if (ref.of == PLAN_TRACED_NOTHING || !wanted(b, edge)) {
        return PLAN_NO_TENSOR;
    }
    PlanTensor from = ref.of == PLAN_TRACED_MADE ? p->made[ref.index] : p->given[ref.index];
    PlanTensor gradient = plan_run_ref(p->run, from);
    gradient.elements = input(b, edge)->elements;
    return gradient;
}

void plan_traced_backward(const PlanBackward *b) {
    PlanRun *run = b->run;
    const PlanTracedKind *kind = plan_traced_kind(run->graph, b->op);
    g_autofree PlanTensor *made = g_new(PlanTensor, kind->n_made + 1);
    for (uint32_t i = 0; i < kind->n_made; i++) {
        made[i] = PLAN_NO_TENSOR;
    }
    Play play = {.run = run,
                 .op = b->op,
                 .kind = kind,
                 .given = b->dy,
                 .made = made,
                 .saved = run->tape.nodes.items[b->node].saved};
    for (uint32_t i = 0; i < kind->n_events; i++) {
        play_event(&play, b,
                   plan_graph_at(run->graph->traced->events, PlanTracedEvent, kind->events + i));
    }
    for (uint32_t i = 0; i < kind->n_edges; i++) {
        b->dx[i] = gradient_of(&play, b, i);
    }
    for (uint32_t i = 0; i < kind->n_made; i++) { /* what flows on is held by that */
        plan_run_drop(run, &made[i]);
    }
}
