#include "plan/graph/autocast.h"

#include "plan/graph/private.h"

typedef enum {
    LIST_WIDEST, /* in none: runs in the widest dtype of its inputs */
    LIST_LOWER,
    LIST_FP32,
    LIST_GIVEN /* says itself what it makes */
} List;

static const uint8_t lists[PLAN_N_OP_KINDS] = {
    [PLAN_OP_LINEAR] = LIST_LOWER,       [PLAN_OP_ATTENTION] = LIST_LOWER,
    [PLAN_OP_LAYERNORM] = LIST_FP32,     [PLAN_OP_HEADS_MATMUL] = LIST_LOWER,
    [PLAN_OP_RMSNORM] = LIST_FP32,       [PLAN_OP_POWER] = LIST_FP32,
    [PLAN_OP_SOFTMAX] = LIST_FP32,       [PLAN_OP_NLL_LOSS] = LIST_FP32,
    [PLAN_OP_CAST] = LIST_GIVEN,         [PLAN_OP_CROSS_ENTROPY] = LIST_GIVEN,
    [PLAN_OP_LINEAR_PARTS] = LIST_LOWER, [PLAN_OP_COMPILED_LOSS] = LIST_GIVEN,
    [PLAN_OP_JOIN_REST] = LIST_GIVEN,
};

/* A compiler joins the cast of a norm's or a rotation's result with what makes it. */
static bool casts_its_result(const PlanGraph *graph, PlanOpKind kind, unsigned output) {
    bool is_compiled = plan_graph_is_compiled(graph) && graph->now.fused;
    switch (kind) {
    case PLAN_OP_LAYERNORM:
    case PLAN_OP_RMSNORM:
    case PLAN_OP_ROPE:
        return is_compiled && output == 0;
    case PLAN_OP_ADD_LAYERNORM:
    case PLAN_OP_ADD_RMSNORM:
        return is_compiled && output == 1; /* behind the sum */
    default:
        return false;
    }
}

static bool is_floating(const PlanGraph *graph, uint32_t value) {
    if (value == PLAN_NONE) {
        return false;
    }
    return plan_graph_is_floating((PlanDtype)plan_graph_value_at(graph, value)->dtype);
}

bool plan_autocast_input(const PlanGraph *graph, PlanOpKind kind, uint32_t input,
                         PlanDtype *ret_dtype) {
    List list = (List)lists[kind];
    *ret_dtype = list == LIST_LOWER ? graph->autocast.lower : PLAN_FP32;
    return list != LIST_WIDEST && list != LIST_GIVEN && !casts_its_result(graph, kind, 0) &&
           is_floating(graph, input);
}

PlanDtype plan_autocast_result(const PlanGraph *graph, PlanOpKind kind, unsigned output,
                               const uint32_t *inputs, unsigned n, PlanDtype given) {
    bool found = false, wide = false;
    PlanDtype dtype = given;
    if (lists[kind] == LIST_GIVEN) {
        return given;
    }
    if (casts_its_result(graph, kind, output)) {
        return graph->autocast.lower;
    }
    for (unsigned i = 0; i < n; i++) {
        if (is_floating(graph, inputs[i])) {
            PlanDtype mine = (PlanDtype)plan_graph_value_at(graph, inputs[i])->dtype;
            wide |= mine == PLAN_FP32 || (found && mine != dtype);
            dtype = mine;
            found = true;
        }
    }
    return wide ? PLAN_FP32 : dtype;
}

unsigned plan_autocast_n_results(PlanOpKind kind) {
    bool is_two =
        kind == PLAN_OP_NLL_LOSS || kind == PLAN_OP_ADD_LAYERNORM || kind == PLAN_OP_ADD_RMSNORM;
    return is_two ? 2 : 1;
}
