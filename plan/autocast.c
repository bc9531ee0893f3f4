#include "plan/autocast.h"

typedef enum {
    LIST_WIDEST, /* in none: runs in the widest dtype of its inputs */
    LIST_LOWER,
    LIST_FP32,
    LIST_GIVEN /* says itself what it makes */
} List;

static const uint8_t lists[PLAN_N_OP_KINDS] = {
    [PLAN_OP_LINEAR] = LIST_LOWER,   [PLAN_OP_ATTENTION] = LIST_LOWER,
    [PLAN_OP_LAYERNORM] = LIST_FP32, [PLAN_OP_HEADS_MATMUL] = LIST_LOWER,
    [PLAN_OP_RMSNORM] = LIST_FP32,   [PLAN_OP_POWER] = LIST_FP32,
    [PLAN_OP_SOFTMAX] = LIST_FP32,   [PLAN_OP_NLL_LOSS] = LIST_FP32,
    [PLAN_OP_CAST] = LIST_GIVEN,
};

static bool is_floating(const PlanGraph *graph, uint32_t value) {
    if (value == PLAN_NONE) {
        return false;
    }
    PlanDtype dtype = (PlanDtype)plan_graph_at(graph->values, PlanGraphValue, value)->dtype;
    return dtype == PLAN_FP32 || dtype == PLAN_BF16 || dtype == PLAN_FP16;
}

void plan_autocast_inputs(PlanGraph *graph, PlanOpKind kind, uint32_t *inputs, unsigned n) {
    List list = (List)lists[kind];
    if (list == LIST_WIDEST || list == LIST_GIVEN) {
        return;
    }
    for (unsigned i = n; i-- > 0;) { /* as a compiler of C++ works out a call's arguments */
        if (is_floating(graph, inputs[i])) {
            inputs[i] =
                plan_graph_cast(graph, inputs[i], list == LIST_LOWER ? graph->lower : PLAN_FP32);
        }
    }
}

PlanDtype plan_autocast_result(const PlanGraph *graph, PlanOpKind kind, const uint32_t *inputs,
                               unsigned n, PlanDtype given) {
    bool found = false, wide = false;
    PlanDtype dtype = given;
    if (lists[kind] == LIST_GIVEN) {
        return given;
    }
    for (unsigned i = 0; i < n; i++) {
        if (is_floating(graph, inputs[i])) {
            PlanDtype mine =
                (PlanDtype)plan_graph_at(graph->values, PlanGraphValue, inputs[i])->dtype;
            wide |= mine == PLAN_FP32 || (found && mine != dtype);
            dtype = mine;
            found = true;
        }
    }
    return wide ? PLAN_FP32 : dtype;
}

unsigned plan_autocast_n_results(PlanOpKind kind) {
    return kind == PLAN_OP_NLL_LOSS ? 2 : 1;
}
