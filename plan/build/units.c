/* plan/build/units.c - which modules are gathered, used and dropped together.
 *
 * Unit 0 is the root; what no other unit takes is its. `every=K` makes one unit of K blocks in a
 * row: it opens when the first is entered and closes when the last is left, as a container would.
 * `size=N` follows size_based_auto_wrap_policy (torch/distributed/fsdp/wrap.py): a module becomes a
 * unit when at least N elements in it are in no unit yet, its children first.
 */
#include "plan/build/units-private.h"

#include <string.h>

/* ---- which modules open a unit -------------------------------------------------------------- */

typedef struct {
    const PlanGraph *graph;
    const PlanStrategy *strategy;
    bool *opens;                   /* by module: it is the first (or only) module of a unit */
    uint32_t *closes;              /* by module that opens one: the last module of the unit */
    uint32_t tail_norm, tail_head; /* of wrap_ends=tail; 0: there is none */
} Wrap;

static void wrap(Wrap *w, uint32_t module, uint32_t last) {
    w->opens[module] = true;
    w->closes[module] = last;
}

/* Whether two modules are of one list. A family has no module for the list itself; its name is the
 * beginning of theirs. */
static bool are_of_one_list(const PlanGraph *graph, uint32_t a, uint32_t b) {
    const PlanGraphModule *m = plan_graph_module_at(graph, a), *n = plan_graph_module_at(graph, b);
    const char *end_m = strrchr(m->name, '.'), *end_n = strrchr(n->name, '.');
    gsize len_m = end_m ? (gsize)(end_m - m->name) : 0,
          len_n = end_n ? (gsize)(end_n - n->name) : 0;
    return m->parent == n->parent && len_m == len_n && !memcmp(m->name, n->name, len_m);
}

static void wrap_blocks(Wrap *w, uint32_t every) {
    uint32_t first = PLAN_NONE, n = 0;
    for (uint32_t m = 1; m < w->graph->modules.len; m++) {
        if (!plan_graph_module_at(w->graph, m)->is_block) {
            continue;
        }
        bool goes_on = first != PLAN_NONE && n % every && are_of_one_list(w->graph, first, m);
        if (goes_on) {
            w->closes[first] = m;
        } else {
            wrap(w, m, m);
            first = m;
            n = 0;
        }
        n++;
    }
}

static bool is_linear(const PlanGraph *graph, uint32_t module) {
    return g_str_equal(plan_graph_module_at(graph, module)->class_name, "Linear");
}

static void wrap_linear(Wrap *w) {
    for (uint32_t m = 1; m < w->graph->modules.len; m++) {
        if (is_linear(w->graph, m)) {
            wrap(w, m, m);
        }
    }
}

uint32_t plan_next_named(const PlanGraph *graph, const GRegex *whole, uint32_t m) {
    uint32_t n = graph->modules.len;
    while (m < n && !(whole && plan_graph_is_named(graph, m, whole))) {
        m++;
    }
    return m;
}

static void wrap_named(Wrap *w, const char *pattern) {
    g_autoptr(GRegex) regex = plan_strategy_whole_regex(pattern, NULL);
    uint32_t n = w->graph->modules.len;
    for (uint32_t m = plan_next_named(w->graph, regex, 1); m < n;
         m = plan_next_named(w->graph, regex, m + 1)) {
        wrap(w, m, m);
    }
}

bool *plan_called_modules(const PlanGraph *graph) {
    bool *is_called = g_new0(bool, graph->modules.len);
    for (uint32_t m = 0; m < graph->modules.len; m++) {
        is_called[m] = !graph->traced;
    }
    for (uint32_t i = 0; i < graph->steps.len; i++) {
        const PlanGraphStep *step = plan_graph_step_at(graph, i);
        if (step->kind == PLAN_STEP_ENTER) {
            is_called[step->index] = true;
        }
    }
    return is_called;
}

/* Lists of modules are none (its EXCLUDE_WRAP_MODULES). */
static void wrap_by_size(Wrap *w, uint64_t least) {
    uint32_t n = w->graph->modules.len;
    g_autofree bool *is_called = plan_called_modules(w->graph);
    g_autofree uint64_t *loose = g_new0(uint64_t, n); /* elements of a module in no unit yet */
    for (uint32_t p = 0; p < w->graph->parameters.len; p++) {
        const PlanGraphParameter *parameter = plan_graph_parameter_at(w->graph, p);
        loose[parameter->module] += parameter->ignored ? 0 : parameter->elements;
    }
    for (uint32_t m = n; m-- > 1;) { /* children come after their parents */
        if (loose[m] >= least && is_called[m]) {
            wrap(w, m, m);
        } else {
            loose[plan_graph_module_at(w->graph, m)->parent] += loose[m];
        }
    }
}

/* Tables and the head: modules outside blocks that have a matrix. */
static void wrap_ends(Wrap *w) {
    for (uint32_t p = 0; p < w->graph->parameters.len; p++) {
        uint32_t m = plan_graph_parameter_at(w->graph, p)->module;
        if (m && !plan_graph_is_in_block(w->graph, m) &&
            plan_graph_parameter_at(w->graph, p)->n_dims > 1) {
            wrap(w, m, m);
        }
    }
}

/* The last norm. */
static uint32_t norm_before_head(const PlanGraph *graph) {
    for (uint32_t p = graph->parameters.len; p-- > 0;) {
        uint32_t m = plan_graph_parameter_at(graph, p)->module;
        if (plan_graph_parameter_at(graph, p)->n_dims == 1 && !plan_graph_is_in_block(graph, m) &&
            !is_linear(graph, m)) {
            return m;
        }
    }
    return 0;
}

/* The module that makes the logits; a head that is the embedding has no parameter of its own. */
static uint32_t head_of(const PlanGraph *graph) {
    uint32_t m = graph->modules.len - 1;
    while (m > 0 && !is_linear(graph, m)) {
        m--;
    }
    return m;
}

/* The same, but that the head is one with the norm before it, and with the embedding that it is. */
static void wrap_tail(Wrap *w) {
    uint32_t norm = norm_before_head(w->graph), head = head_of(w->graph);
    if (!norm || plan_graph_is_in_block(w->graph, head)) {
        return;
    }
    uint32_t first = norm;
    if (!w->opens[head]) { /* tied */
        first = plan_graph_parameter_at(w->graph, 0)->module;
    }
    w->opens[head] = false;
    w->tail_norm = norm;
    w->tail_head = head;
    wrap(w, first, head);
}

/* Experts that ranks share are sharded among other ranks than what is around them. */
static bool are_experts(const PlanGraph *graph, uint32_t module) {
    return graph->shared.expert > 1 &&
           g_str_equal(plan_graph_module_at(graph, module)->class_name, "GroupedExperts");
}

static void wrap_experts(Wrap *w) {
    for (uint32_t m = 1; m < w->graph->modules.len; m++) {
        if (are_experts(w->graph, m)) {
            wrap(w, m, m);
        }
    }
}

bool plan_strategy_wraps(const PlanStrategy *strategy) {
    return strategy->flavour != PLAN_FLAVOUR_PLAIN && strategy->flavour != PLAN_FLAVOUR_DDP;
}

static void choose(Wrap *w) {
    const PlanVariant *by = &w->strategy->wrap;
    wrap(w, 0, 0);
    if (!plan_strategy_wraps(w->strategy)) {
        return;
    }
    switch ((PlanWrap)by->choice) {
    case PLAN_WRAP_BLOCK:
        wrap_blocks(w, 1);
        break;
    case PLAN_WRAP_WHOLE:
        break;
    case PLAN_WRAP_LINEAR:
        wrap_linear(w);
        break;
    case PLAN_WRAP_EVERY:
        wrap_blocks(w, (uint32_t)by->number);
        break;
    case PLAN_WRAP_SIZE:
        wrap_by_size(w, (uint64_t)by->number);
        break;
    case PLAN_WRAP_MODULE:
        wrap_named(w, by->text);
        break;
    }
    wrap_experts(w);
    if (w->strategy->wrap_ends != PLAN_ENDS_ROOT) {
        wrap_ends(w);
    }
    if (w->strategy->wrap_ends == PLAN_ENDS_TAIL) {
        wrap_tail(w);
    }
}

/* ---- what is whose -------------------------------------------------------------------------- */

static void make_units(const Wrap *w, PlanRun *run) {
    const PlanGraph *graph = w->graph;
    uint32_t n = graph->modules.len, group = PLAN_NONE, group_end = 0, tail = PLAN_NONE;
    GArray *units = g_array_new(FALSE, FALSE, sizeof(PlanRunUnit));
    for (uint32_t m = 0; m < n; m++) {
        run->modules.unit_closed_by[m] = PLAN_NONE;
    }
    for (uint32_t m = 0; m < n; m++) {
        run->modules.unit_opened_by[m] = PLAN_NONE;
        bool in_group =
            group != PLAN_NONE && m <= group_end && plan_graph_module_at(graph, m)->is_block;
        bool is_tail = w->tail_head && w->closes[m] == w->tail_head;
        if (w->opens[m]) {
            PlanRunUnit unit = {.module = m,
                                .parameters = g_array_new(FALSE, FALSE, sizeof(uint32_t)),
                                .of_experts = are_experts(graph, m),
                                .stays_whole = is_tail};
            run->modules.unit_opened_by[m] = run->modules.unit_of[m] = units->len;
            run->modules.unit_closed_by[w->closes[m]] = units->len;
            if (is_tail) {
                tail = units->len;
            } else if (w->closes[m] != m) {
                group = units->len;
                group_end = w->closes[m];
            }
            g_array_append_val(units, unit);
        } else if (m && (m == w->tail_norm || m == w->tail_head)) {
            run->modules.unit_of[m] = tail;
        } else {
            run->modules.unit_of[m] =
                in_group ? group : run->modules.unit_of[plan_graph_module_at(graph, m)->parent];
        }
    }
    run->n_units = units->len;
    run->units = (PlanRunUnit *)(gpointer)g_array_free(units, FALSE);
}

/* fully_shard() takes a module's parameters behind those of what it holds: by module, its turn.
 * Modules stand in the order in which they are found from the root on. */
static uint32_t *turns_of_modules(const PlanGraph *graph) {
    uint32_t n = graph->modules.len;
    uint32_t *turns = g_new0(uint32_t, n);
    g_autofree uint32_t *n_inside = g_new0(uint32_t, n), *n_around = g_new0(uint32_t, n);
    for (uint32_t m = n; m-- > 1;) {
        n_inside[plan_graph_module_at(graph, m)->parent] += n_inside[m] + 1;
    }
    for (uint32_t m = 1; m < n; m++) {
        n_around[m] = n_around[plan_graph_module_at(graph, m)->parent] + 1;
    }
    for (uint32_t m = 0; m < n; m++) {
        turns[m] = m + n_inside[m] - n_around[m];
    }
    return turns;
}

typedef struct {
    const PlanGraph *graph;
    const uint32_t *turns;
} Turns;

static gint by_turn(gconstpointer a, gconstpointer b, gpointer data) {
    const Turns *t = data;
    uint32_t p = *(const uint32_t *)a, q = *(const uint32_t *)b;
    uint32_t of_p = t->turns[plan_graph_parameter_at(t->graph, p)->module];
    uint32_t of_q = t->turns[plan_graph_parameter_at(t->graph, q)->module];
    return of_p != of_q ? (of_p < of_q ? -1 : 1) : p < q ? -1 : p > q;
}

/* A family's modules have parameters or modules, none has both. */
static void order_by_modules(const PlanGraph *graph, PlanRun *run) {
    g_autofree uint32_t *turns = turns_of_modules(graph);
    Turns data = {graph, turns};
    for (uint32_t u = 0; u < run->n_units; u++) {
        g_array_sort_with_data(run->units[u].parameters, by_turn, &data);
    }
}

static void deal_parameters(const PlanGraph *graph, PlanRun *run) {
    for (uint32_t p = 0; p < graph->parameters.len; p++) {
        uint32_t u = run->modules.unit_of[plan_graph_parameter_at(graph, p)->module];
        run->unit_of_parameter[p] = u;
        if (plan_strategy_wraps(run->strategy) && plan_graph_parameter_at(graph, p)->ignored) {
            continue;
        }
        g_array_append_val(run->units[u].parameters, p);
        run->units[u].elements += plan_graph_parameter_at(graph, p)->elements;
    }
}

/* accelerate names the norm first. */
static void put_tail_norm_first(const Wrap *w, PlanRun *run) {
    GArray *parameters = run->units[run->modules.unit_of[w->tail_norm]].parameters;
    for (uint32_t i = 0, n = 0; i < parameters->len; i++) {
        uint32_t p = g_array_index(parameters, uint32_t, i);
        if (plan_graph_parameter_at(w->graph, p)->module == w->tail_norm) {
            g_array_remove_index(parameters, i);
            g_array_insert_val(parameters, n++, p);
        }
    }
}

void plan_assign_units(PlanRun *run) {
    const PlanGraph *graph = run->graph;
    uint32_t n = graph->modules.len;
    Wrap w = {.graph = graph,
              .strategy = run->strategy,
              .opens = g_new0(bool, n),
              .closes = g_new0(uint32_t, n)};
    run->modules.unit_of = g_new(uint32_t, n);
    run->modules.unit_opened_by = g_new(uint32_t, n);
    run->modules.unit_closed_by = g_new(uint32_t, n);
    run->unit_of_parameter = g_new(uint32_t, graph->parameters.len);
    choose(&w);
    make_units(&w, run);
    deal_parameters(graph, run);
    bool nests = graph->traced || graph->made->len; /* else modules have parameters or modules */
    if (nests && run->strategy->flavour == PLAN_FLAVOUR_FSDP2) {
        order_by_modules(graph, run);
    }
    if (w.tail_norm) {
        put_tail_norm_first(&w, run);
    }
    g_free(w.opens);
    g_free(w.closes);
}

void plan_clear_units(PlanRun *run) {
    for (uint32_t u = 0; u < run->n_units; u++) {
        g_array_unref(run->units[u].parameters);
    }
    g_free(run->units);
    g_free(run->modules.unit_of);
    g_free(run->modules.unit_opened_by);
    g_free(run->modules.unit_closed_by);
    g_free(run->unit_of_parameter);
}
