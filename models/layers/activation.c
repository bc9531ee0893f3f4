/* models/layers/activation.c - GELU, as one kernel or of the ops that a program wrote out,
 * and caps. */
#include <math.h>

#include "models/layers/layers.h"

uint32_t model_run_number(const ModelWalk *w, PlanOpKind kind, uint32_t x, uint64_t n,
                          double number) {
    return plan_graph_op(w->graph, kind, &x, w->graph->dtype, n, (int64_t[]){(int64_t)n}, &number);
}

uint32_t model_run_capped(const ModelWalk *w, uint32_t x, uint64_t n, double cap) {
    if (!cap) {
        return x;
    }
    x = model_run_number(w, PLAN_OP_TIMES_NUMBER, x, n, 1 / cap);
    x = model_run_elementwise(w, PLAN_OP_TANH, x, PLAN_NONE, n);
    return model_run_number(w, PLAN_OP_TIMES_NUMBER, x, n, cap);
}

/* 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0)))) */
static uint32_t run_gelu_of_ops(const ModelWalk *w, uint32_t x, uint64_t n) {
    uint32_t half = model_run_number(w, PLAN_OP_TIMES_NUMBER, x, n, 0.5);
    uint32_t y = model_run_number(w, PLAN_OP_POWER, x, n, 3);
    y = model_run_number(w, PLAN_OP_TIMES_NUMBER, y, n, 0.044715);
    y = model_run_elementwise(w, PLAN_OP_ADD, x, y, n);
    y = model_run_number(w, PLAN_OP_TIMES_NUMBER, y, n, sqrt(2 / G_PI));
    y = model_run_elementwise(w, PLAN_OP_TANH, y, PLAN_NONE, n);
    y = model_run_number(w, PLAN_OP_ADD_NUMBER, y, n, 1);
    uint32_t gelu = model_run_elementwise(w, PLAN_OP_MUL, half, y, n);
    plan_graph_keep(w->graph, x); /* an argument goes after a temporary */
    plan_graph_let_go_after(w->graph, x, y);
    return gelu;
}

uint32_t model_run_gelu(const ModelWalk *w, ModelGelu gelu, uint32_t x, uint64_t n) {
    if (gelu == MODEL_GELU_OPS && !w->graph->now.fused) {
        return run_gelu_of_ops(w, x, n);
    }
    return model_run_elementwise(w, gelu == MODEL_GELU_ERF ? PLAN_OP_GELU_ERF : PLAN_OP_GELU_TANH,
                                 x, PLAN_NONE, n);
}
