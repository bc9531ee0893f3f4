/* models/traced/sound.c - whether a trace that was read line by line is one as a whole: what is
 * made goes again, and gradients come from the loss to all that wait for them.
 */
#include "models/traced/read.h"

typedef struct {
    uint32_t base;
    bool wants_gradient, is_made, is_gone;
    bool has_gradient; /* one comes */
} Value;

/* An op, and where its values stand. */
typedef struct {
    const PlanTracedKind *kind;
    const uint32_t *inputs;
    uint32_t first_output;
} Op;

typedef struct {
    const PlanTraced *program;
    GArray *values; /* Value */
    GArray *ops;    /* Op */
} Walk;

static Value *value_at(const Walk *w, uint32_t value) {
    return plan_graph_at(w->values, Value, value);
}

static PlanTracedRef ref_at(const Walk *w, uint32_t i) {
    return g_array_index(w->program->refs, PlanTracedRef, i);
}

static void add_value(Walk *w, uint32_t base, bool wants_gradient, bool is_made) {
    Value value = {base == PLAN_NONE ? w->values->len : base, wants_gradient, is_made, false,
                   false};
    g_array_append_val(w->values, value);
}

static void walk_op(Walk *w, const PlanTracedStep *step) {
    const PlanTracedKind *kind = plan_graph_at(w->program->kinds, PlanTracedKind, step->index);
    Op op = {kind, &g_array_index(w->program->values, uint32_t, step->values), w->values->len};
    g_array_append_val(w->ops, op);
    for (uint32_t i = 0; i < kind->n_outs; i++) {
        const PlanTracedOut *out = plan_graph_at(w->program->outs, PlanTracedOut, kind->outs + i);
        uint32_t of = out->storage.of == PLAN_TRACED_INPUT    ? op.inputs[out->storage.index]
                      : out->storage.of == PLAN_TRACED_OUTPUT ? op.first_output + out->storage.index
                                                              : PLAN_NONE;
        add_value(w, of == PLAN_NONE ? of : value_at(w, of)->base, out->wants_gradient,
                  of == PLAN_NONE);
    }
}

static void walk(Walk *w, const ModelTraced *traced, const ModelTracedBody *body) {
    for (uint32_t i = 0; i < traced->tensors->len; i++) {
        const ModelTracedTensor *t = plan_graph_at(traced->tensors, ModelTracedTensor, i);
        add_value(w, PLAN_NONE, t->is_parameter && !t->frozen, false);
    }
    for (uint32_t i = 0; i < body->inputs->len; i++) {
        add_value(w, PLAN_NONE, false, false);
    }
    for (uint32_t i = 0; i < w->program->steps->len; i++) {
        const PlanTracedStep *step = plan_graph_at(w->program->steps, PlanTracedStep, i);
        if (step->kind == PLAN_TRACED_OP) {
            walk_op(w, step);
        } else if (step->kind == PLAN_TRACED_LET) {
            value_at(w, step->index)->is_gone = true;
        }
    }
}

/* A tensor without elements is none. */
static bool is_made(const Walk *w, const PlanTracedKind *kind, uint32_t which) {
    for (uint32_t i = 0; i < kind->n_events; i++) {
        const PlanTracedEvent *event =
            plan_graph_at(w->program->events, PlanTracedEvent, kind->events + i);
        if (event->kind == PLAN_TRACED_ALLOC && event->index == which) {
            return plan_traced_count(event->count, w->program->first_samples) > 0;
        }
    }
    return false;
}

/* Whether the edge is handed something when the op's gradients have come. */
static bool gives(const Walk *w, const Op *op, uint32_t edge) {
    PlanTracedRef ref = ref_at(w, op->kind->gives + edge);
    return (ref.of == PLAN_TRACED_MADE && is_made(w, op->kind, ref.index)) ||
           (ref.of == PLAN_TRACED_GIVEN && value_at(w, op->first_output + ref.index)->has_gradient);
}

/* Backward, from the last op to the first: each that has something to differentiate is come to. */
static char *flow_fault(const Walk *w) {
    value_at(w, w->program->loss)->has_gradient = true;
    for (uint32_t i = w->ops->len; i-- > 0;) {
        const Op *op = plan_graph_at(w->ops, Op, i);
        bool is_asked = false, is_come_to = false;
        for (uint32_t e = 0; e < op->kind->n_edges; e++) {
            is_asked |= op->inputs[e] != PLAN_NONE && value_at(w, op->inputs[e])->wants_gradient;
        }
        for (uint32_t o = 0; o < op->kind->n_outs; o++) {
            is_come_to |= value_at(w, op->first_output + o)->has_gradient;
        }
        if (is_asked && !is_come_to) {
            return g_strdup_printf("backward does not come to op %u (%s)", i, op->kind->name);
        }
        for (uint32_t e = 0; is_asked && e < op->kind->n_edges; e++) {
            uint32_t value = op->inputs[e];
            if (value == PLAN_NONE || !value_at(w, value)->wants_gradient) {
                continue;
            }
            if (!gives(w, op, e)) {
                return g_strdup_printf("op %u (%s) gives nothing to edge %u", i, op->kind->name, e);
            }
            value_at(w, value)->has_gradient = true;
        }
    }
    return NULL;
}

static char *end_fault(const Walk *w, const ModelTraced *traced) {
    uint32_t loss = value_at(w, w->program->loss)->base;
    for (uint32_t i = 0; i < w->values->len; i++) {
        const Value *v = value_at(w, i);
        if (v->is_made && !v->is_gone && i != loss) {
            return g_strdup_printf("value %u is never let go of", i);
        }
        if (i < traced->tensors->len && v->wants_gradient && !v->has_gradient) {
            return g_strdup_printf("parameter %u gets no gradient", i);
        }
    }
    return NULL;
}

char *model_traced_fault(const ModelTraced *traced, const ModelTracedBody *body) {
    Walk w = {.program = body->program,
              .values = g_array_new(FALSE, FALSE, sizeof(Value)),
              .ops = g_array_new(FALSE, FALSE, sizeof(Op))};
    walk(&w, traced, body);
    char *fault = flow_fault(&w);
    fault = fault ? fault : end_fault(&w, traced);
    g_array_unref(w.values);
    g_array_unref(w.ops);
    return fault;
}
