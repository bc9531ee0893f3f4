/* models/families/mlp.c - a stack of square linear layers with ReLU; the loss is the mean of the
 * output.
 *
 * The smallest network with units. `seq` is how many vectors a sample has.
 */
#include <math.h>

#include "models/network.h"
#include "plan/graph/emit.h"

typedef struct {
    uint32_t module, linear, weight, bias;
} Block;

static uint32_t run_block(PlanGraph *graph, const Block *block, uint64_t rows, uint64_t width,
                          uint32_t x) {
    int64_t m = (int64_t)rows, n = (int64_t)width;
    uint64_t elements = rows * width;
    plan_graph_enter(graph, block->module, &x, 1);
    plan_graph_enter(graph, block->linear, &x, 1);
    uint32_t y = plan_graph_op(graph, PLAN_OP_LINEAR, (uint32_t[]){x, block->weight, block->bias},
                               graph->dtype, elements,
                               (int64_t[]){[LINEAR_M] = m, [LINEAR_N] = n, [LINEAR_K] = n}, NULL);
    plan_graph_leave(graph, &y, 1);
    uint32_t z =
        plan_graph_op(graph, PLAN_OP_RELU, &y, graph->dtype, elements, (int64_t[]){m * n}, NULL);
    plan_graph_leave(graph, &z, 1);
    return z;
}

/* Mixed precision casts what a unit is given before it is gathered, and Mlp.forward takes the batch
 * as targets too. */
static uint32_t enter_root(PlanGraph *graph, uint32_t root, uint32_t x, uint64_t elements) {
    int64_t n = (int64_t)elements;
    uint32_t casts[2];
    if (graph->dtype == PLAN_FP32) {
        plan_graph_enter(graph, root, &x, 1);
        return x;
    }
    for (unsigned i = 0; i < 2; i++) {
        casts[i] = plan_graph_op(graph, PLAN_OP_CAST, &x, graph->dtype, elements, &n, NULL);
    }
    plan_graph_enter(graph, root, casts, 2);
    for (unsigned i = 0; i < 2; i++) {
        plan_graph_hold_argument(graph, casts[i]);
    }
    plan_graph_let_go_after(graph, casts[0], casts[1]); /* a tuple, which goes from its end */
    return casts[0];
}

static void emit(const ModelNetwork *network, uint64_t batch, uint64_t seq, PlanGraph *graph) {
    uint64_t rows = batch * seq, width = network->width;
    int64_t weight[] = {(int64_t)width, (int64_t)width}, bias[] = {(int64_t)width};
    uint32_t root = plan_graph_module(graph, PLAN_NONE, "", "Mlp", false);
    g_autofree Block *blocks = g_new(Block, network->layers);
    for (uint64_t i = 0; i < network->layers; i++) {
        g_autofree char *name = g_strdup_printf("layers.%" G_GUINT64_FORMAT, i);
        Block *block = &blocks[i];
        block->module = plan_graph_module(graph, root, name, "MlpBlock", true);
        block->linear = plan_graph_module(graph, block->module, "linear", "Linear", false);
        block->weight = plan_graph_parameter(graph, block->linear, "weight", 2, weight,
                                             PLAN_INIT_NORMAL, sqrt(2.0 / (double)width));
        block->bias =
            plan_graph_parameter(graph, block->linear, "bias", 1, bias, PLAN_INIT_FILL, 0);
    }
    uint32_t x = plan_graph_input(graph, PLAN_FP32, rows * width, 0);
    x = enter_root(graph, root, x, rows * width);
    for (uint64_t i = 0; i < network->layers; i++) {
        x = run_block(graph, &blocks[i], rows, width, x);
    }
    plan_graph_hold(graph, x);
    uint32_t loss = plan_graph_op(graph, PLAN_OP_MEAN, &x, graph->dtype, 1,
                                  (int64_t[]){(int64_t)(rows * width)}, NULL);
    plan_graph_leave(graph, &loss, 1);
    plan_graph_leave_autocast(graph, root);
    plan_graph_finish(graph, loss);
}

const ModelFamily model_mlp = {"mlp", "layers width seq|", emit};
