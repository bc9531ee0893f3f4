/* models/layers/norm.c - LayerNorm and RMSNorm: as kernels or written out, by themselves or with
 * the sum that they are of. */
#include "models/layers/layers.h"

static const double USUAL_EPS = 1e-5; /* nn.LayerNorm's default */

static ModelLayer norm(const ModelWalk *w, uint32_t parent, const char *name,
                       const char *class_name, uint64_t width, double start) {
    int64_t dims[] = {(int64_t)width};
    ModelLayer layer = {.module = plan_graph_module(w->graph, parent, name, class_name, false),
                        .bias = PLAN_NONE};
    layer.weight =
        plan_graph_parameter(w->graph, layer.module, "weight", 1, dims, PLAN_INIT_FILL, start);
    return layer;
}

ModelLayer model_layernorm(const ModelWalk *w, uint32_t parent, const char *name) {
    int64_t dims[] = {(int64_t)w->width};
    ModelLayer layer = norm(w, parent, name, "LayerNorm", w->width, 1);
    if (!w->no_bias) {
        layer.bias =
            plan_graph_parameter(w->graph, layer.module, "bias", 1, dims, PLAN_INIT_FILL, 0);
    }
    return layer;
}

ModelLayer model_rmsnorm_of(const ModelWalk *w, uint32_t parent, const char *name, uint64_t width) {
    if (w->norms_bare) {
        return (ModelLayer){.module =
                                plan_graph_module(w->graph, parent, name, "OlmoLayerNorm", false),
                            .weight = PLAN_NONE,
                            .bias = PLAN_NONE};
    }
    return norm(w, parent, name, "RMSNorm", width, w->norms_from_one ? 0 : 1);
}

ModelLayer model_rmsnorm(const ModelWalk *w, uint32_t parent, const char *name) {
    return model_rmsnorm_of(w, parent, name, w->width);
}

uint32_t model_run_layernorm(const ModelWalk *w, const ModelLayer *layer, uint32_t x) {
    PlanGraphResult results[] = {
        {w->graph->dtype, w->rows * w->width}, {PLAN_FP32, w->rows}, {PLAN_FP32, w->rows}};
    double eps = USUAL_EPS;
    plan_graph_enter(w->graph, layer->module, &x, 1);
    uint32_t y = plan_graph_op_making(
        w->graph, PLAN_OP_LAYERNORM, (uint32_t[]){x, layer->weight, layer->bias}, results,
        (int64_t[]){[LAYERNORM_ROWS] = (int64_t)w->rows, [LAYERNORM_WIDTH] = (int64_t)w->width},
        &eps);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

/* An op of one input and one output in fp32. */
static uint32_t run_wide(const ModelWalk *w, PlanOpKind kind, uint32_t x, uint64_t elements,
                         const int64_t *dims, double attr) {
    return plan_graph_op(w->graph, kind, &x, PLAN_FP32, elements, dims, &attr);
}

/* x over its root mean square, in fp32: a copy of x, unless it is that. */
static uint32_t run_normed_of_ops(const ModelWalk *w, uint32_t x, uint64_t rows, uint64_t width,
                                  double eps, uint32_t *ret_mean) {
    uint64_t n = rows * width;
    int64_t all[] = {(int64_t)n}, few[] = {(int64_t)rows};
    int64_t shape[] = {[SUM_COLUMNS_ROWS] = (int64_t)rows, [SUM_COLUMNS_COLS] = (int64_t)width};
    uint32_t wide = model_run_widen(w, x);
    uint32_t square = run_wide(w, PLAN_OP_POWER, wide, n, all, 2);
    uint32_t mean = *ret_mean =
        run_wide(w, PLAN_OP_SUM_COLUMNS, square, rows, shape, 1 / (double)width);
    uint32_t shifted = run_wide(w, PLAN_OP_ADD_NUMBER, mean, rows, few, eps);
    uint32_t rstd = run_wide(w, PLAN_OP_POWER, shifted, rows, few, -0.5);
    uint32_t normed = plan_graph_op(w->graph, PLAN_OP_MUL_COLUMN, (uint32_t[]){wide, rstd},
                                    PLAN_FP32, n, shape, NULL);
    if (wide != x) {
        plan_graph_let_go_after(w->graph, wide, rstd); /* an argument goes after a temporary */
    }
    return normed;
}

static uint32_t times_row(const ModelWalk *w, uint32_t x, uint32_t row, uint64_t rows,
                          uint64_t width, PlanDtype dtype) {
    uint64_t n = rows * width;
    return plan_graph_op(
        w->graph, PLAN_OP_MUL_ROW, (uint32_t[]){x, row}, dtype, n,
        (int64_t[]){[MUL_ROW_ROWS] = (int64_t)rows, [MUL_ROW_COLS] = (int64_t)width}, NULL);
}

/* Where ranks share layers a node of its own makes a DTensor of what a norm is given: gradients of
 * all its uses meet there. */
static uint32_t as_dtensor(const ModelWalk *w, uint32_t x, uint64_t rows, uint64_t width) {
    return plan_graph_cuts_tokens(w->graph)
               ? plan_graph_heads(w->graph, x, 1, rows, 1, width, PLAN_HEADS_AS_THEY_ARE)
               : x;
}

/* As OLMo 2 has it, whose names are of what is in fp32, and Helium. */
static uint32_t scale_and_round(const ModelWalk *w, const ModelLayer *layer, uint32_t normed,
                                uint32_t mean, uint32_t x, uint64_t rows, uint64_t width) {
    uint32_t weight = w->norms_widened ? model_run_widen(w, layer->weight) : layer->weight;
    uint32_t wide = times_row(w, normed, weight, rows, width, PLAN_FP32);
    uint32_t y = model_run_like(w, wide, x);
    plan_graph_keep(w->graph, normed);
    plan_graph_let_go_after(w->graph, normed, wide);
    plan_graph_keep(w->graph, mean);
    plan_graph_let_go_after(w->graph, mean, normed);
    return y;
}

/* As Llama's code wrote it and PyTorch did it: rounded before it is scaled. */
static uint32_t run_rmsnorm_of_ops(const ModelWalk *w, const ModelLayer *layer, uint32_t x,
                                   uint64_t rows, uint64_t width, double eps) {
    x = as_dtensor(w, x, rows, width);
    uint32_t mean, normed = run_normed_of_ops(w, x, rows, width, eps, &mean);
    if (w->norms_wide) {
        return scale_and_round(w, layer, normed, mean, x, rows, width);
    }
    uint32_t rounded = model_run_like(w, normed, x);
    uint32_t y = times_row(w, rounded, layer->weight, rows, width, w->graph->dtype);
    if (w->graph->weight_first) { /* and what is rounded has a name, as the mean has */
        plan_graph_keep(w->graph, normed);
        plan_graph_let_go_after(w->graph, normed, rounded);
        plan_graph_keep(w->graph, mean);
        plan_graph_let_go_after(w->graph, mean, normed);
    }
    return y;
}

/* As Gemma has it: scaled by one more than its weights, in fp32, and then rounded. */
static uint32_t run_rmsnorm_from_one(const ModelWalk *w, const ModelLayer *layer, uint32_t x,
                                     uint64_t rows, uint64_t width, double eps) {
    uint32_t mean, normed = run_normed_of_ops(w, x, rows, width, eps, &mean);
    uint32_t wide = model_run_widen(w, layer->weight);
    uint32_t scale = run_wide(w, PLAN_OP_ADD_NUMBER, wide, width, (int64_t[]){(int64_t)width}, 1);
    uint32_t y = times_row(w, normed, scale, rows, width, PLAN_FP32);
    plan_graph_let_go_after(w->graph, normed, scale); /* a variable goes after a temporary */
    return model_run_like(w, y, x);
}

/* OLMo's: of a copy of x in fp32, by nothing, and rounded. */
static uint32_t run_bare_layernorm(const ModelWalk *w, uint32_t x, uint64_t rows, uint64_t width) {
    PlanGraphResult results[] = {{PLAN_FP32, rows * width}, {PLAN_FP32, rows}, {PLAN_FP32, rows}};
    uint32_t wide = model_run_widen(w, x);
    uint32_t y = plan_graph_op_making(
        w->graph, PLAN_OP_LAYERNORM, (uint32_t[]){wide, PLAN_NONE, PLAN_NONE}, results,
        (int64_t[]){[LAYERNORM_ROWS] = (int64_t)rows, [LAYERNORM_WIDTH] = (int64_t)width},
        &USUAL_EPS);
    if (wide != x) {
        plan_graph_let_go_after(w->graph, wide, y + 2); /* an argument, after what is dropped */
    }
    return model_run_like(w, y, x);
}

static uint32_t less_column(const ModelWalk *w, uint32_t x, uint32_t column, uint64_t rows,
                            uint64_t width) {
    int64_t dims[] = {[SUB_COLUMN_ROWS] = (int64_t)rows, [SUB_COLUMN_COLS] = (int64_t)width};
    return plan_graph_op(w->graph, PLAN_OP_SUB_COLUMN, (uint32_t[]){x, column}, PLAN_FP32,
                         rows * width, dims, NULL);
}

/* Cohere's, in fp32 and rounded: x less its mean, twice, over the root of its variance. Its names
 * are of x and what is made of it, of the mean and the variance. */
static uint32_t run_centred_layernorm(const ModelWalk *w, const ModelLayer *layer, uint32_t x,
                                      uint64_t rows, uint64_t width, double eps) {
    PlanGraph *graph = w->graph;
    uint64_t n = rows * width;
    int64_t all[] = {(int64_t)n}, few[] = {(int64_t)rows};
    int64_t shape[] = {[SUM_COLUMNS_ROWS] = (int64_t)rows, [SUM_COLUMNS_COLS] = (int64_t)width};
    double share = 1 / (double)width;
    uint32_t wide = model_run_widen(w, x);
    uint32_t mean = run_wide(w, PLAN_OP_SUM_COLUMNS, wide, rows, shape, share);
    uint32_t square =
        run_wide(w, PLAN_OP_POWER, less_column(w, wide, mean, rows, width), n, all, 2);
    uint32_t variance = run_wide(w, PLAN_OP_SUM_COLUMNS, square, rows, shape, share);
    uint32_t apart = less_column(w, wide, mean, rows, width);
    uint32_t shifted = run_wide(w, PLAN_OP_ADD_NUMBER, variance, rows, few, eps);
    uint32_t rstd = run_wide(w, PLAN_OP_POWER, shifted, rows, few, -0.5);
    uint32_t normed = plan_graph_op(graph, PLAN_OP_MUL_COLUMN, (uint32_t[]){apart, rstd}, PLAN_FP32,
                                    n, shape, NULL);
    if (wide != x) {
        plan_graph_keep(graph, wide);
        plan_graph_let_go_after(graph, wide, rstd);
    }
    uint32_t weight = model_run_widen(w, layer->weight);
    uint32_t scaled = times_row(w, normed, weight, rows, width, PLAN_FP32);
    plan_graph_let_go_after(graph, normed, weight); /* a variable goes after a temporary */
    uint32_t y = model_run_like(w, scaled, x);
    plan_graph_keep(graph, mean);
    plan_graph_keep(graph, variance);
    plan_graph_let_go_after(graph, mean, scaled);
    plan_graph_let_go_after(graph, variance, mean);
    return y;
}

uint32_t model_run_rmsnorm_of(const ModelWalk *w, const ModelLayer *layer, uint32_t x,
                              uint64_t rows, uint64_t width, double eps) {
    PlanGraphResult results[] = {{w->graph->dtype, rows * width}, {PLAN_FP32, rows}};
    int64_t shape[] = {[RMSNORM_ROWS] = (int64_t)rows, [RMSNORM_WIDTH] = (int64_t)width};
    plan_graph_enter(w->graph, layer->module, &x, 1);
    uint32_t y = w->norms_bare       ? run_bare_layernorm(w, x, rows, width)
                 : w->norms_centred  ? run_centred_layernorm(w, layer, x, rows, width, eps)
                 : w->norms_from_one ? run_rmsnorm_from_one(w, layer, x, rows, width, eps)
                 : !w->graph->now.fused && w->graph->kernels.rms_norm_of_ops
                     ? run_rmsnorm_of_ops(w, layer, x, rows, width, eps)
                     : plan_graph_op_making(w->graph, PLAN_OP_RMSNORM,
                                            (uint32_t[]){x, layer->weight}, results, shape, &eps);
    plan_graph_leave(w->graph, &y, 1);
    return y;
}

uint32_t model_run_rmsnorm(const ModelWalk *w, const ModelLayer *layer, uint32_t x, double eps) {
    return model_run_rmsnorm_of(w, layer, x, w->rows, w->width, eps);
}

/* By one kernel, or as an addition of the current module and the norm; eps of RMSNorm, 0 of
 * LayerNorm. */
uint32_t model_run_add_norm(const ModelWalk *w, const ModelLayer *layer, uint32_t a, uint32_t r,
                            double eps, uint32_t *ret_sum) {
    bool centred = eps == 0;
    uint64_t n = w->rows * w->width;
    if (!w->graph->now.fused) {
        *ret_sum = model_run_residual(w, a, r);
        return centred ? model_run_layernorm(w, layer, *ret_sum)
                       : model_run_rmsnorm(w, layer, *ret_sum, eps);
    }
    PlanGraphResult made[] = {
        {w->graph->dtype, n}, {w->graph->dtype, n}, {PLAN_FP32, w->rows}, {PLAN_FP32, w->rows}};
    double epsilon = centred ? USUAL_EPS : eps;
    plan_graph_enter(w->graph, layer->module, (uint32_t[]){a, r}, 2);
    *ret_sum = plan_graph_op_making(
        w->graph, centred ? PLAN_OP_ADD_LAYERNORM : PLAN_OP_ADD_RMSNORM,
        (uint32_t[]){a, r, layer->weight, layer->bias}, made,
        (int64_t[]){
            [ADD_LAYERNORM_ROWS] = (int64_t)w->rows, [ADD_LAYERNORM_WIDTH] = (int64_t)w->width},
        &epsilon);
    uint32_t results[] = {*ret_sum, *ret_sum + 1};
    plan_graph_leave(w->graph, results, 2);
    return results[1];
}

uint32_t model_run_stream_norm(const ModelWalk *w, const ModelLayer *layer, ModelStream stream,
                               double eps, uint32_t *ret_sum) {
    if (stream.r != PLAN_NONE) {
        return model_run_add_norm(w, layer, stream.a, stream.r, eps, ret_sum);
    }
    *ret_sum = stream.a;
    return eps == 0 ? model_run_layernorm(w, layer, stream.a)
                    : model_run_rmsnorm(w, layer, stream.a, eps);
}

uint32_t model_run_last_norm(const ModelWalk *w, const ModelLayer *norm, ModelStream stream,
                             double eps, uint32_t *ret_sum) {
    bool before = w->graph->now.fused;
    w->graph->now.fused |= w->graph->kernels.compiled_norm;
    uint32_t normed = model_run_stream_norm(w, norm, stream, eps, ret_sum);
    w->graph->now.fused = before;
    return normed;
}
