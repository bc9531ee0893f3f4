/* plan/graph/walk.c - the walk of a forward program: which module runs, and which step lets go of
 * which value. */
#include "plan/graph/alone.h"
#include "plan/graph/boundaries.h"
#include "plan/graph/results.h"

/* What is entered with the next step. */
static void push_frame(PlanGraph *graph, uint32_t module) {
    uint32_t frame[2] = {module, graph->steps.len};
    g_array_append_vals(graph->now.frames, frame, 2);
}

void plan_graph_enter(PlanGraph *graph, uint32_t module, const uint32_t *arguments, unsigned n) {
    uint32_t *given = g_newa(uint32_t, n + 1);
    plan_boundary_enter(graph, module, arguments, n, given);
    push_frame(graph, module);
    plan_graph_add_step(graph, PLAN_STEP_ENTER, module, given, n);
}

void plan_graph_enter_with(PlanGraph *graph, uint32_t module, const uint32_t *arguments,
                           unsigned n) {
    plan_graph_enter(graph, module, arguments, n);
    plan_graph_step_at(graph, graph->steps.len - 1)->takes_over = true;
}

void plan_graph_call(PlanGraph *graph, uint32_t module) {
    push_frame(graph, module);
}

/* Returns the first step of what returns. */
static uint32_t pop_frame(PlanGraph *graph) {
    g_assert(graph->now.frames->len >= 2);
    uint32_t enter = g_array_index(graph->now.frames, uint32_t, graph->now.frames->len - 1);
    uint32_t module = g_array_index(graph->now.frames, uint32_t, graph->now.frames->len - 2);
    g_array_set_size(graph->now.frames, graph->now.frames->len - 2);
    plan_graph_add_step(graph, PLAN_STEP_RETURN, module, NULL, 0);
    return enter;
}

static void let_go_of_locals(PlanGraph *graph, uint32_t enter, uint32_t return_step) {
    while (graph->now.locals->len) {
        PlanGraphLocal local =
            g_array_index(graph->now.locals, PlanGraphLocal, graph->now.locals->len - 1);
        if (local.enter_step != enter) {
            break;
        }
        g_array_set_size(graph->now.locals, graph->now.locals->len - 1);
        plan_graph_hold_until(graph, local.value, return_step + local.is_argument);
    }
}

void plan_graph_return(PlanGraph *graph) {
    uint32_t enter = pop_frame(graph);
    let_go_of_locals(graph, enter, graph->steps.len - 1);
}

void plan_graph_leave(PlanGraph *graph, const uint32_t *results, unsigned n) {
    uint32_t module = plan_graph_module_now(graph), enter = pop_frame(graph);
    uint32_t return_step = graph->steps.len - 1;
    uint32_t *given = g_newa(uint32_t, n + 1);
    for (unsigned i = 0; i < n; i++) {
        given[i] = plan_graph_stand_in(graph, results[i]);
    }
    plan_graph_add_step(graph, PLAN_STEP_LEAVE, module, given, n);
    PlanGraphStep entered = *plan_graph_step_at(graph, enter);
    for (unsigned i = 0; i < entered.n_values && !entered.takes_over; i++) {
        plan_graph_hold_until(graph, plan_graph_ref(graph, entered.values + i), return_step + 1);
    }
    let_go_of_locals(graph, enter, return_step);
    for (unsigned i = 0; i < n; i++) {
        plan_graph_hold_until(graph, given[i], return_step + 1);
    }
    plan_boundary_leave(graph, module, enter, results, n);
    if (graph->copies_results && module == 0) {
        plan_results_copy(graph, results, n);
    }
}

void plan_graph_hook_computes(PlanGraph *graph) {
    PlanGraphStep *step = plan_graph_step_at(graph, graph->steps.len - 1);
    g_assert(step->kind == PLAN_STEP_LEAVE);
    step->is_closed_later = true;
}

void plan_graph_close(PlanGraph *graph, uint32_t module, uint32_t result) {
    uint32_t given = plan_graph_stand_in(graph, result);
    plan_graph_add_step(graph, PLAN_STEP_CLOSE, module, &given, 1);
    plan_graph_keep(graph, given);
}

void plan_graph_keep(PlanGraph *graph, uint32_t value) {
    plan_graph_hold_until(graph, plan_graph_stand_in(graph, value), graph->steps.len - 1);
}

void plan_graph_give_name(PlanGraph *graph, uint32_t value, uint32_t next) {
    plan_graph_keep(graph, value);
    plan_graph_value_at(graph, value)->next = next;
}

void plan_graph_goes_behind(PlanGraph *graph, uint32_t value, uint32_t other) {
    plan_graph_value_at(graph, value)->behind_variable = other;
}

static void hold(PlanGraph *graph, uint32_t value, bool is_argument) {
    g_assert(graph->now.frames->len >= 2);
    uint32_t enter = g_array_index(graph->now.frames, uint32_t, graph->now.frames->len - 1);
    PlanGraphLocal local = {enter, plan_graph_stand_in(graph, value), is_argument};
    g_array_append_val(graph->now.locals, local);
}

void plan_graph_hold(PlanGraph *graph, uint32_t value) {
    hold(graph, value, false);
}

void plan_graph_hold_argument(PlanGraph *graph, uint32_t value) {
    hold(graph, value, true);
}

static gint by_rank(gconstpointer a, gconstpointer b, gpointer data) {
    const PlanGraph *graph = data;
    uint64_t p = plan_graph_value_at(graph, *(const uint32_t *)a)->rank;
    uint64_t q = plan_graph_value_at(graph, *(const uint32_t *)b)->rank;
    return p < q ? -1 : p > q;
}

void plan_graph_after_backward(PlanGraph *graph, uint32_t module) {
    g_assert(graph->now.frames->len == 0);
    graph->n_train_steps = graph->steps.len;
    push_frame(graph, module);
}

static PlanGraphValue *base_of(const PlanGraph *graph, uint32_t value) {
    return plan_graph_value_at(graph, plan_graph_value_at(graph, value)->base);
}

void plan_graph_return_value(PlanGraph *graph, uint32_t value) {
    uint32_t given = plan_graph_stand_in(graph, value);
    PlanGraphReturned returned = {graph->steps.len - 1, given};
    g_array_append_val(graph->returned, returned);
    plan_graph_hold_until(graph, given, returned.step);
    base_of(graph, given)->is_returned = true;
    base_of(graph, value)->is_copied = graph->copies_results;
}

bool plan_graph_results_outlive_pass(const PlanGraph *graph) {
    return graph->results_held == PLAN_RESULTS_NEXT_FORWARD && graph->returned->len > 0;
}

/* The step after which a value is freed; PLAN_NONE: never (a parameter, an input, or kept). */
static uint32_t released_by(const PlanGraph *graph, uint32_t value) {
    const PlanGraphValue *v = plan_graph_value_at(graph, value);
    return v->parameter == PLAN_NONE && !v->is_input ? plan_graph_value_at(graph, value)->held_until
                                                     : PLAN_NONE;
}

/* Counting sort of the values by the step that lets go of them; within a step in order of
 * rank, which is that of making unless someone said otherwise. */
static void sort_releases(PlanGraph *graph) {
    for (uint32_t value = 0; value < graph->values.len; value++) {
        uint32_t by = released_by(graph, value);
        if (by != PLAN_NONE) {
            plan_graph_step_at(graph, by)->n_releases++;
        }
    }
    uint32_t total = 0;
    for (uint32_t i = 0; i < graph->steps.len; i++) {
        PlanGraphStep *step = plan_graph_step_at(graph, i);
        step->releases = total;
        total += step->n_releases;
        step->n_releases = 0;
    }
    g_array_set_size(graph->releases, total);
    for (uint32_t value = 0; value < graph->values.len; value++) {
        uint32_t by = released_by(graph, value);
        if (by != PLAN_NONE) {
            PlanGraphStep *step = plan_graph_step_at(graph, by);
            g_array_index(graph->releases, uint32_t, step->releases + step->n_releases++) = value;
        }
    }
    for (uint32_t i = 0; i < graph->steps.len; i++) {
        const PlanGraphStep *step = plan_graph_step_at(graph, i);
        if (step->n_releases > 1) {
            g_qsort_with_data(&g_array_index(graph->releases, uint32_t, step->releases),
                              (gint)step->n_releases, sizeof(uint32_t), by_rank, graph);
        }
    }
}

/* What plan_graph_new() took for a larger network, the plan that is built next needs. */
static void give_room_back(PlanGraph *graph) {
    plan_vector_trim(&graph->modules);
    plan_vector_trim(&graph->parameters);
    plan_vector_trim(&graph->values);
    plan_vector_trim(&graph->ops);
    plan_vector_trim(&graph->steps);
    plan_vector_trim(&graph->value_refs);
    plan_vector_trim(&graph->dims);
    plan_vector_trim(&graph->attrs);
}

void plan_graph_finish(PlanGraph *graph, uint32_t loss) {
    if (graph->n_train_steps) {
        g_array_set_size(graph->now.frames, 0);
    } else {
        graph->n_train_steps = graph->steps.len;
    }
    g_assert(graph->now.frames->len == 0);
    uint32_t given = plan_graph_stand_in(graph, loss);
    graph->loss_made = graph->copies_results ? loss : given;
    graph->loss = loss = given;
    plan_graph_value_at(graph, loss)->held_until = PLAN_NONE; /* the training loop holds it */
    if (graph->evaluates && plan_graph_is_compiled(graph)) {
        plan_graph_compile_alone(graph);
    }
    sort_releases(graph);
    give_room_back(graph);
}
