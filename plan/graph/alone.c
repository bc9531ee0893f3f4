/* plan/graph/alone.c - what a compiler makes of blocks of which nobody wants a gradient. */
#include "plan/graph/alone.h"

/* From a block's entrance to its exit. */
typedef struct {
    uint32_t enter, leave;  /* steps */
    uint32_t first, behind; /* values made between them */
} Program;

static uint32_t *hold_of(PlanGraph *graph, uint32_t value) {
    return &plan_graph_value_at(graph, value)->held_until;
}

/* No variable of Python's holds what is made inside of it; what leaves it is held longer. */
static void let_go_with_last_use(PlanGraph *graph, const Program *program) {
    for (uint32_t v = program->first; v < program->behind; v++) {
        if (*hold_of(graph, v) <= program->leave) {
            *hold_of(graph, v) = program->enter;
        }
    }
    for (uint32_t s = program->enter; s <= program->leave; s++) {
        const PlanGraphStep *step = plan_graph_step_at(graph, s);
        const PlanGraphOp *op =
            step->kind == PLAN_STEP_OP ? plan_graph_op_at(graph, step->index) : NULL;
        for (unsigned i = 0; op && i < op->n_inputs + op->n_outputs; i++) {
            uint32_t v = plan_graph_ref(graph, op->values + i);
            if (v >= program->first && v < program->behind) {
                plan_graph_hold_until(graph, v, s);
            }
        }
    }
}

/* How many inputs, from the first on, a kernel reads number by number beside its first result, so
 * that the result may be written over one of them. */
static unsigned n_overwritable(uint32_t kind) {
    switch (kind) {
    case PLAN_OP_ADD:
    case PLAN_OP_MUL:
    case PLAN_OP_SWIGLU:
    case PLAN_OP_ADD_RMSNORM:
    case PLAN_OP_ADD_LAYERNORM:
        return 2;
    case PLAN_OP_GELU_TANH:
    case PLAN_OP_GELU_ERF:
    case PLAN_OP_RELU:
    case PLAN_OP_SILU:
        return 1;
    default:
        return 0;
    }
}

/* Whether the step is the last that reads anything of what lies there, which was made inside. */
static bool ends_with(PlanGraph *graph, const Program *program, uint32_t base, uint32_t step) {
    bool ends = base >= program->first && base < program->behind;
    for (uint32_t v = program->first; v < program->behind && ends; v++) {
        ends = plan_graph_value_at(graph, v)->base != base || *hold_of(graph, v) <= step;
    }
    return ends;
}

static void write_over(PlanGraph *graph, const Program *program, uint32_t y, uint32_t base) {
    for (uint32_t v = y; v < program->behind; v++) {
        PlanGraphValue *value = plan_graph_value_at(graph, v);
        value->base = value->base == y ? base : value->base;
    }
}

static void overwrite(PlanGraph *graph, const Program *program, uint32_t step,
                      const PlanGraphOp *op) {
    uint32_t y = plan_graph_ref(graph, op->values + op->n_inputs);
    const PlanGraphValue *made = plan_graph_value_at(graph, y);
    for (unsigned i = 0; made->base == y && i < n_overwritable(op->kind); i++) {
        uint32_t x = plan_graph_ref(graph, op->values + i);
        uint32_t base = plan_graph_value_at(graph, x)->base;
        const PlanGraphValue *there = plan_graph_value_at(graph, base);
        if (there->elements == made->elements && there->dtype == made->dtype &&
            ends_with(graph, program, base, step)) {
            write_over(graph, program, y, base);
            return;
        }
    }
}

static void compile(PlanGraph *graph, const Program *program) {
    let_go_with_last_use(graph, program);
    for (uint32_t s = program->enter; s <= program->leave; s++) {
        const PlanGraphStep *step = plan_graph_step_at(graph, s);
        if (step->kind == PLAN_STEP_OP) {
            overwrite(graph, program, s, plan_graph_op_at(graph, step->index));
        }
    }
}

/* Values are numbered as they are made. */
void plan_graph_compile_alone(PlanGraph *graph) {
    Program program = {.enter = PLAN_NONE};
    uint32_t n_made = 0;
    for (uint32_t s = 0; s < graph->steps.len; s++) {
        const PlanGraphStep *step = plan_graph_step_at(graph, s);
        const PlanGraphOp *op =
            step->kind == PLAN_STEP_OP ? plan_graph_op_at(graph, step->index) : NULL;
        for (unsigned i = 0; op && i < op->n_outputs; i++) {
            uint32_t v = plan_graph_ref(graph, op->values + op->n_inputs + i);
            n_made = v == PLAN_NONE ? n_made : MAX(n_made, v + 1);
        }
        bool is_block = !op && plan_graph_module_at(graph, step->index)->is_block &&
                        plan_graph_is_in_program(graph, step->index);
        if (is_block && step->kind == PLAN_STEP_ENTER) {
            program = (Program){.enter = s, .first = n_made};
        } else if (is_block && step->kind == PLAN_STEP_LEAVE) {
            program.leave = s;
            program.behind = n_made;
            compile(graph, &program);
        }
    }
}
