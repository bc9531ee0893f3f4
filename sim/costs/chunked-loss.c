#include "sim/costs/chunked-loss.h"

#include <math.h>

#include "plan/op/names.h"
#include "sim/costs/odd-rows.h"
#include "sim/costs/traffic.h"

enum {
    /* Kernels of a chunk, counted in PyTorch 2.13's torch/nn/modules/linear_cross_entropy.py
     * (acc_policy compact, 2026-11): three products, and what stands between them; in 16 bits rows
     * and logits are copied from one dtype to the other, too. A frozen w has four less. */
    KERNELS = 20,
    KERNELS_OF_16_BITS = 24,
    KERNELS_OF_DW = 4,
    /* Bytes of each logit that those move, all in fp32: the largest of a row is looked for (4) and
     * taken away (8), exponentials are made (8) and added up (4), and each becomes its share of the
     * gradient (8). In 16 bits that is copied (4 + 2). */
    LOGIT_BYTES = 32,
    LOGIT_BYTES_OF_16_BITS = 38,
    /* Liger's (liger_kernel/ops/fused_linear_cross_entropy.py, 0.5): three products, one kernel
     * that reads the logits twice and writes their gradient over them, and a copy of dx. */
    KERNELS_OF_LIGER = 5,
    LIGERS_OF_DW = 1,
    LIGER_PASSES = 3,
};

static bool is_liger(const PlanRole *role, const PlanOp *op) {
    return plan_op_attrs(role, op)[CHUNKED_LOSS_IN_PLACE] > 0;
}

static bool has_dw(const PlanRole *role, const PlanOp *op) {
    return plan_op_buffer(role, op, CHUNKED_LOSS_DW) != PLAN_NONE;
}

static unsigned n_chunks(const PlanRole *role, const PlanOp *op) {
    const int64_t *dims = plan_op_dims(role, op);
    return (unsigned)((dims[CHUNKED_LOSS_ROWS] + dims[CHUNKED_LOSS_CHUNK] - 1) /
                      dims[CHUNKED_LOSS_CHUNK]);
}

unsigned sim_kernels_of(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op) {
    if (op->kind != PLAN_OP_CHUNKED_LOSS || cluster->device_kind != MODEL_DEVICE_GPU) {
        return 1;
    }
    unsigned of_chunk = is_liger(role, op)       ? KERNELS_OF_LIGER
                        : op->dtype == PLAN_FP32 ? KERNELS
                                                 : KERNELS_OF_16_BITS;
    unsigned of_dw = has_dw(role, op) ? 0 : is_liger(role, op) ? LIGERS_OF_DW : KERNELS_OF_DW;
    return n_chunks(role, op) * (of_chunk - of_dw);
}

static double product_ns(const ModelCluster *cluster, const PlanOp *op, PlanOpKind pass, double m,
                         double n, double k, double output_bytes, double peak) {
    SimProduct product = {.batch = 1, .m = m, .n = n, .k = k, .output_bytes = output_bytes};
    product.element_bytes = (double)plan_dtype_bytes((PlanDtype)op->dtype);
    product.efficiency = op->dtype == PLAN_FP32 ? cluster->matmul_fp32_efficiency : 0;
    product.peak_flops = product.efficiency > 0 ? peak : peak * cluster->matmul_sustained;
    return sim_linear_ns(cluster, &product, pass, (PlanDtype)op->dtype, false);
}

static double logit_bytes_of_pytorch(const PlanOp *op) {
    return op->dtype == PLAN_FP32 ? LOGIT_BYTES : LOGIT_BYTES_OF_16_BITS;
}

/* dw is added up in place, chunk by chunk: read once more than a product that begins it. */
static double chunk_ns(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op,
                       double rows, double peak) {
    const int64_t *dims = plan_op_dims(role, op);
    double cols = (double)dims[CHUNKED_LOSS_COLS], width = (double)dims[CHUNKED_LOSS_WIDTH];
    double size = (double)plan_dtype_bytes((PlanDtype)op->dtype);
    double logit_size = is_liger(role, op) ? size : 4;
    double moved = is_liger(role, op) ? rows * (LIGER_PASSES * cols + 2 * width) * size
                                      : rows * cols * logit_bytes_of_pytorch(op);
    double ns = product_ns(cluster, op, PLAN_OP_LINEAR, rows, cols, width, logit_size, peak) +
                product_ns(cluster, op, PLAN_OP_LINEAR_DX, rows, width, cols, size, peak) +
                sim_traffic_ns(cluster, moved);
    return has_dw(role, op)
               ? ns + product_ns(cluster, op, PLAN_OP_LINEAR_DW, cols, width, rows, 2 * size, peak)
               : ns;
}

/* What the kernels take that move bytes, beside them. */
static double starts_ns(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op) {
    unsigned kernels = sim_kernels_of(cluster, role, op);
    unsigned products = n_chunks(role, op) * (has_dw(role, op) ? 3 : 2);
    return kernels > products ? (kernels - products) * cluster->device_start_us * 1e3 : 0;
}

double sim_chunked_loss_ns(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op,
                           double peak) {
    const int64_t *dims = plan_op_dims(role, op);
    double rows = (double)dims[CHUNKED_LOSS_ROWS], chunk = (double)dims[CHUNKED_LOSS_CHUNK],
           last = fmod(rows, chunk);
    double ns = floor(rows / chunk) * chunk_ns(cluster, role, op, chunk, peak);
    if (last > 0) {
        ns += chunk_ns(cluster, role, op, last, peak);
    }
    double further = (double)sim_kernels_of(cluster, role, op) - 1;
    ns += starts_ns(cluster, role, op) + further * cluster->device_launch_overhead_ns;
    return fmax(ns, further * cluster->host_cpu_factor * cluster->host_launch_us * 1e3);
}
