#include "sim/costs/compute.h"

#include <math.h>

#include "plan/op/attention.h"
#include "plan/op/float8.h"
#include "plan/op/names.h"
#include "plan/op/work.h"
#include "sim/costs/attention.h"
#include "sim/costs/chunked-loss.h"
#include "sim/costs/lists.h"
#include "sim/costs/odd-rows.h"
#include "sim/costs/traffic.h"

/* ---- products and attention ----------------------------------------------------------------- */

static bool is_grouped(PlanOpKind kind) {
    return kind == PLAN_OP_GROUPED_LINEAR || kind == PLAN_OP_GROUPED_PARTS ||
           kind == PLAN_OP_GROUPED_PRODUCT || kind == PLAN_OP_GROUPED_LINEAR_DX ||
           kind == PLAN_OP_GROUPED_LINEAR_DW;
}

/* A product for each group, of equally many rows in the mean. dw adds up over rows: its sides are
 * the weight's. */
static SimProduct grouped_product(PlanOpKind kind, double m, double n, double k, double groups) {
    SimProduct product = {
        .batch = groups, .by_group = true, .ragged = kind != PLAN_OP_GROUPED_LINEAR_DW};
    bool is_dw = kind == PLAN_OP_GROUPED_LINEAR_DW, is_dx = kind == PLAN_OP_GROUPED_LINEAR_DX;
    product.m = is_dw ? n : m;
    product.n = is_dw || is_dx ? k : n;
    product.k = is_dw ? m : is_dx ? n : k;
    return product;
}

PlanDtype sim_compute_dtype(const PlanOp *op) {
    return plan_op_is_float8_product((PlanOpKind)op->kind) ? PLAN_E4M3 : (PlanDtype)op->dtype;
}

const char *sim_computes_in(const PlanOp *op) {
    return op->kind == PLAN_OP_MXFP8_PRODUCT ? "mxfp8" : plan_dtype_name(sim_compute_dtype(op));
}

static double peak_flops(const ModelCluster *cluster, const PlanOp *op) {
    return op->kind == PLAN_OP_MXFP8_PRODUCT
               ? model_cluster_mxfp8_flops(cluster)
               : model_cluster_peak_flops(cluster, sim_compute_dtype(op));
}

/* The plan's m, n, k are the forward product's: y [m, n] = x [m, k] w [k, n]. Its gradients are
 * dx [m, k], a sum of n, and dw [k, n], a sum of m. */
static SimProduct product_of(const PlanOp *op, const int64_t *dims) {
    if (op->kind == PLAN_OP_HEADS_MATMUL) {
        return (SimProduct){.batch =
                                (double)dims[HEADS_MATMUL_BATCH] * (double)dims[HEADS_MATMUL_HEADS],
                            .m = (double)dims[HEADS_MATMUL_M],
                            .n = (double)dims[HEADS_MATMUL_N],
                            .k = (double)dims[HEADS_MATMUL_K]};
    }
    double m = (double)dims[LINEAR_M], n = (double)dims[LINEAR_N], k = (double)dims[LINEAR_K];
    if (op->kind == PLAN_OP_TRACED_MATMUL) {
        return (SimProduct){.batch = (double)dims[TRACED_MATMUL_BATCH], .m = m, .n = n, .k = k};
    }
    if (is_grouped(op->kind)) {
        double groups = (double)dims[GROUPED_LINEAR_GROUPS];
        return grouped_product(op->kind, m / groups, n, k, groups);
    }
    if (op->kind == PLAN_OP_LINEAR_DX || op->kind == PLAN_OP_LINEAR_DX_GELU ||
        op->kind == PLAN_OP_FLOAT8_LINEAR_DX) {
        return (SimProduct){.batch = 1, .m = m, .n = k, .k = n};
    }
    if (op->kind == PLAN_OP_LINEAR_DW || op->kind == PLAN_OP_LINEAR_DW_DB ||
        op->kind == PLAN_OP_FLOAT8_LINEAR_DW) {
        return (SimProduct){.batch = 1, .m = n, .n = k, .k = m};
    }
    return (SimProduct){.batch = 1, .m = m, .n = n, .k = k};
}

static double product_ns(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op,
                         double peak, bool pads) {
    const int64_t *dims = plan_op_dims(role, op);
    if (op->kind == PLAN_OP_CHUNKED_LOSS) {
        return sim_chunked_loss_ns(cluster, role, op, peak);
    }
    SimProduct product = product_of(op, dims);
    product.element_bytes = (double)plan_dtype_bytes(sim_compute_dtype(op));
    product.output_bytes = (double)plan_dtype_bytes((PlanDtype)op->dtype);
    if (op->dtype == PLAN_FP32) {
        product.efficiency = cluster->matmul_fp32_efficiency;
    }
    product.peak_flops = product.efficiency > 0 ? peak : peak * cluster->matmul_sustained;
    return sim_linear_ns(cluster, &product, (PlanOpKind)op->kind, sim_compute_dtype(op), pads);
}

/* On GPUs only the memory-efficient kernel takes a bias. What it reaches of the flash kernel's rate
 * is assumed: Dao 2023 (FlashAttention-2) has its own kernel about twice as fast as xformers', from
 * which PyTorch's memory-efficient one is. */
#define BIASED_OVER_FLASH 0.5

/* With latent attention v's heads are shorter than q's, which no flash kernel takes. In 16 bits
 * cuDNN has a kernel for compute capability 9.0, and for 10.x with DeepSeek's lengths
 * (models/families/latent.c); the cluster's rate holds for it. All others get the memory-efficient
 * kernel, taken to be half as fast as flash here, too. Nobody published that rate for such heads:
 * on an A100-80GB NVIDIA's own kernels reach 118 TFLOP/s forward (cuDNN 9.27) and 69 backward
 * (cudnn-frontend 1.31's open one; of DeepSeek's, 4096 tokens, causal:
 * NVIDIA/cudnn-frontend@a0312ccb, benchmark/attention_training), for 99 and 82 here. */
static bool is_slow_latent(const ModelCluster *cluster, const PlanOp *op, const int64_t *dims) {
    double capability = cluster->device_compute_capability;
    bool is_deepseeks =
        dims[LATENT_ATTENTION_HEAD_DIM] == 192 && dims[LATENT_ATTENTION_V_DIM] == 128;
    bool has_cudnn = capability == 90 || (capability >= 100 && capability < 110 && is_deepseeks);
    return plan_op_is_latent(op->kind) && op->dtype != PLAN_FP32 && !has_cudnn;
}

/* A kernel's blocks are of queries, backward of keys. Of heads of two lengths the mean stands for
 * both products. */
static SimAttention attention_of(const PlanRole *role, const PlanOp *op) {
    PlanAttention a = plan_attention_of(role, op);
    return (SimAttention){.batch = (double)a.batch,
                          .heads = (double)a.heads,
                          .seq = (double)(a.backward ? a.kv_rows : a.q_rows),
                          .head_dim = (double)(a.head_dim + a.v_dim) / 2,
                          .causal = a.causal,
                          .backward = a.backward};
}

/* The flash kernel takes 16 bits and no bias; what the memory-efficient kernel loses where it must
 * keep an order is not known, and is left out. */
static void set_order(SimAttention *attention, const PlanRole *role, const PlanOp *op) {
    if (op->kind == PLAN_OP_ATTENTION_BACKWARD_ORDERED) {
        attention->ordered = op->dtype != PLAN_FP32 && !plan_op_has_bias(role, op);
        attention->fills = plan_op_attrs(role, op)[ATTENTION_BACKWARD_ORDERED_FILLS] > 0;
    }
}

double sim_attention_rows_of(const PlanRole *role, const PlanOp *op) {
    if (plan_op_info(op->kind)->op_class != PLAN_CLASS_ATTENTION) {
        return 0;
    }
    SimAttention attention = attention_of(role, op);
    return sim_attention_rows(&attention);
}

/* 0: as other attention. */
static double latent_share(const ModelCluster *cluster, PlanOpKind kind) {
    return kind == PLAN_OP_LATENT_ATTENTION ? cluster->attention_latent_efficiency
           : kind == PLAN_OP_LATENT_ATTENTION_BACKWARD
               ? cluster->attention_latent_backward_efficiency
               : 0;
}

/* 0: attention's own rate is this kernel's. */
static double flash_share(const ModelCluster *cluster, bool backward) {
    return backward ? cluster->attention_flash_backward_efficiency
                    : cluster->attention_flash_efficiency;
}

/* cuDNN's kernel is 16-bit and not deterministic. Since PyTorch 2.11 it also serves masks, at an
 * unpublished rate; the older kernel's is assumed. FlashAttention-2 does not take heads of two
 * lengths. */
static double share_of_kernel(const ModelCluster *cluster, const PlanOp *op,
                              const SimAttention *attention, bool is_slow,
                              PlanAttentionKernel kernel) {
    if (op->dtype == PLAN_FP32 && cluster->attention_fp32_efficiency > 0) {
        return cluster->attention_fp32_efficiency;
    }
    bool is_latent = plan_op_is_latent(op->kind), is_flash = kernel == PLAN_ATTENTION_KERNEL_FLASH;
    return is_slow || attention->ordered || op->dtype == PLAN_FP32 || (is_flash && !is_latent)
               ? flash_share(cluster, attention->backward)
               : latent_share(cluster, (PlanOpKind)op->kind);
}

static double attention_ns(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op,
                           const PlanOpWork *work, double peak, PlanAttentionKernel kernel) {
    SimAttention attention = attention_of(role, op);
    bool is_slow =
        plan_op_has_bias(role, op) || is_slow_latent(cluster, op, plan_op_dims(role, op));
    set_order(&attention, role, op);
    attention.flops = work->flops;
    attention.bytes = work->bytes;
    attention.share = share_of_kernel(cluster, op, &attention, is_slow, kernel);
    attention.peak_flops = is_slow && cluster->device_sms > 0 ? peak * BIASED_OVER_FLASH : peak;
    return sim_attention_ns(cluster, &attention);
}

/* By rows dx comes without its scales, and the kernel that reads it works out both of each number:
 * a quotient in fp64, its logarithm rounded down, a power of two and two more quotients. That is 76
 * instructions a number, and 95 for each of the ranks that a kernel works it out for before it
 * takes one: what Triton 3.7 makes for compute capability 9.0 of Inductor's kernels (PyTorch 2.13,
 * torchao 0.18; Llama 3 8B shared by 8), without the quotients' slow branches. */
#define SCALE_INSTRUCTIONS        76
#define JOINED_SCALE_INSTRUCTIONS 95
/* What such a kernel moves meanwhile, in bytes a number: half of a sum of two; its sum with another
 * and the copy behind that. */
#define SCALED_BYTES        3
#define JOINED_SCALED_BYTES 10

/* A core does an instruction where it could multiply and add; how much of that they reach is what
 * products in fp32 do, which are nothing else. */
static double scales_ns(const ModelCluster *cluster, const PlanOp *op, const int64_t *dims) {
    if (op->kind != PLAN_OP_FLOAT8_LINEAR_DX || dims[FLOAT8_LINEAR_DX_SCALED] == 0) {
        return 0;
    }
    double n = (double)dims[FLOAT8_LINEAR_DX_M] * (double)dims[FLOAT8_LINEAR_DX_K];
    double times = (double)dims[FLOAT8_LINEAR_DX_SCALED];
    bool is_joined = times > 1;
    double reached = cluster->matmul_fp32_efficiency > 0 ? cluster->matmul_fp32_efficiency : 1;
    double instructions_a_ns = model_cluster_peak_flops(cluster, PLAN_FP32) / 2e9 * reached;
    double each = is_joined ? JOINED_SCALE_INSTRUCTIONS : SCALE_INSTRUCTIONS;
    double bytes = n * (is_joined ? JOINED_SCALED_BYTES : SCALED_BYTES);
    return fmax(0, n * times * each / instructions_a_ns - sim_traffic_ns(cluster, bytes));
}

/* ---- kernels that move bytes ---------------------------------------------------------------- */

/* Kinds that do more than move their operands once; a kind without a row does just that. */
static const struct {
    bool adds; /* as it goes: several passes over its rows, atomics, few threads a column */
    /* How many more times PyTorch's softmax and loss kernels (SoftMax.cu) read a row too long for a
     * block: forward for maximum, sum and result; backward, both operands, for sum and result. */
    unsigned reads_again;
} manners[PLAN_N_OP_KINDS] = {
    [PLAN_OP_LAYERNORM] = {true, 0},
    [PLAN_OP_LAYERNORM_BACKWARD] = {true, 0},
    [PLAN_OP_RMSNORM] = {true, 0},
    [PLAN_OP_RMSNORM_BACKWARD] = {true, 0},
    [PLAN_OP_NORM_COLUMNS] = {true, 0},
    [PLAN_OP_NORM_COLUMNS_BACKWARD] = {true, 0},
    [PLAN_OP_SUM_HEAD_COLUMNS] = {true, 0},
    [PLAN_OP_SOFTMAX] = {true, 2},
    [PLAN_OP_SOFTMAX_BACKWARD] = {true, 2},
    [PLAN_OP_LOG_SOFTMAX] = {true, 2},
    [PLAN_OP_LOG_SOFTMAX_BACKWARD] = {true, 1},
    [PLAN_OP_CROSS_ENTROPY] = {false, 1},
    [PLAN_OP_COMPILED_LOSS] = {false, 1}, /* Inductor's own kernel: the largest, then the sum */
    [PLAN_OP_NLL_LOSS] = {true, 0},
    [PLAN_OP_NLL_LOSS_BACKWARD] = {true, 0},
    [PLAN_OP_EMBEDDING] = {true, 0},
    [PLAN_OP_EMBEDDING_BACKWARD] = {true, 0},
    [PLAN_OP_SUM_ROWS] = {true, 0},
    [PLAN_OP_SUM_HEADS] = {true, 0},
    [PLAN_OP_BIAS_BACKWARD] = {true, 0},
    [PLAN_OP_MEAN] = {true, 0},
    [PLAN_OP_SUM_COLUMNS] = {true, 0},
    [PLAN_OP_ROWS_OF] = {true, 0},
    [PLAN_OP_SUM_EACH] = {true, 0},
    [PLAN_OP_ADD_TO_ROWS] = {true, 0},
};

/* Blocks start, wait for memory for the first time, and end one by one. A kind that was measured by
 * itself has that in its rate. */
static double start_ns(const ModelCluster *cluster, PlanOpKind kind) {
    bool moves_bytes = plan_op_info(kind)->op_class == PLAN_CLASS_MEMORY;
    return moves_bytes && cluster->kernel_gb_per_s[kind] == 0 ? cluster->device_start_us * 1e3 : 0;
}

/* What the ops before wrote is in the cache still, and what this one writes over was, where the
 * cache has room for both: half of it, for tensors of other ops lie between. */
static double cached_ns(const ModelCluster *cluster, double bytes) {
    double rate = cluster->device_l2_gb_per_s;
    bool fits = rate > 0 && bytes <= (double)cluster->device_l2_bytes / 2;
    return fits ? bytes / rate : sim_traffic_ns(cluster, bytes);
}

/* A kind that was measured by itself goes at its own rate. */
static double traffic_ns(const ModelCluster *cluster, PlanOpKind kind, double bytes) {
    double ns = cached_ns(cluster, bytes), rate = cluster->kernel_gb_per_s[kind];
    if (rate > 0) {
        return bytes / rate;
    }
    return manners[kind].adds ? ns * cluster->device_memory_efficiency /
                                    model_cluster_reduction_efficiency(cluster)
                              : ns;
}

/* A block of threads keeps a row in its shared memory, which is 48 KiB unless it asks for more; two
 * blocks a multiprocessor keep theirs in the cache that all share. */
static double reread_bytes(const ModelCluster *cluster, PlanOpKind kind, const int64_t *dims,
                           double element_bytes) {
    unsigned again = manners[kind].reads_again;
    if (again == 0) {
        return 0;
    }
    double row = (double)dims[SOFTMAX_COLS] * element_bytes;
    double at_once = 2 * (double)cluster->device_sms * row;
    bool stays = row <= 48 * 1024 || at_once <= (double)cluster->device_l2_bytes ||
                 cluster->device_l2_bytes == 0;
    return stays ? 0 : again * (double)dims[SOFTMAX_ROWS] * row;
}

/* A kind that was measured by itself has all its kernels in its rate; this project's own kernel on
 * CPU ranks takes both gradients of a norm in one go. Elsewhere PyTorch's kernels are predicted. */
static bool has_second_kernel(const ModelCluster *cluster, PlanOpKind kind) {
    bool is_norm = kind == PLAN_OP_LAYERNORM_BACKWARD || kind == PLAN_OP_RMSNORM_BACKWARD;
    return is_norm && cluster->device_kind == MODEL_DEVICE_GPU &&
           cluster->kernel_gb_per_s[kind] == 0;
}

/* PyTorch takes the gradient of a norm's weight in a second kernel, which reads gradient and input
 * again; before 2.8 with a block of threads for each 32 columns, however many rows. */
static double weight_gradient_ns(const ModelCluster *cluster, PlanOpKind kind, const int64_t *dims,
                                 double element_bytes) {
    if (!has_second_kernel(cluster, kind)) {
        return 0;
    }
    double width = (double)dims[LAYERNORM_BACKWARD_WIDTH];
    double elements = 2 * (double)dims[LAYERNORM_BACKWARD_ROWS] * width;
    double ns = start_ns(cluster, kind) + traffic_ns(cluster, kind, elements * element_bytes);
    double blocks = ceil(width / 32), sms = (double)cluster->device_sms;
    double rate = cluster->device_column_gelements_per_s;
    return rate > 0 && sms > 0 ? fmax(ns, elements / (rate * fmin(blocks, sms))) : ns;
}

/* What CPU ranks do behind a product, or beside it, as a GPU's products do at their end: one kernel
 * after the other, each over an array of the gradients' or results' shape. */
static double apart_ns(const ModelCluster *cluster, const PlanOp *op, const int64_t *dims,
                       double element_bytes) {
    if (cluster->device_kind == MODEL_DEVICE_GPU) {
        return 0;
    }
    double y = (double)dims[LINEAR_M] * (double)dims[LINEAR_N] * element_bytes;
    double x = (double)dims[LINEAR_M] * (double)dims[LINEAR_K] * element_bytes;
    switch (op->kind) {
    case PLAN_OP_LINEAR_GELU:
        return traffic_ns(cluster, PLAN_OP_GELU_TANH, 2 * y);
    case PLAN_OP_LINEAR_DX_GELU:
        return traffic_ns(cluster, PLAN_OP_GELU_TANH_BACKWARD, 3 * x) +
               traffic_ns(cluster, PLAN_OP_SUM_ROWS, x);
    case PLAN_OP_LINEAR_DW_DB:
        return traffic_ns(cluster, PLAN_OP_SUM_ROWS, y);
    default:
        return 0;
    }
}

/* PyTorch padded each gradient and joined them, before one kernel did both. */
static double packing_ns(const ModelCluster *cluster, PlanOpKind kind, const int64_t *dims) {
    double rate = cluster->device_pack_gelements_per_s;
    bool packs = kind == PLAN_OP_REDUCE_COPY_IN && rate > 0;
    return packs ? (double)dims[REDUCE_COPY_IN_SLICE] * (double)dims[REDUCE_COPY_IN_RANKS] / rate
                 : 0;
}

/* It has no kernel of its own on a GPU. CPU ranks have one for each op. */
static bool is_within(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op) {
    return cluster->device_kind == MODEL_DEVICE_GPU && plan_op_is_within(role, op);
}

static double moving_ns(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op,
                        const PlanOpWork *work, double element_bytes) {
    PlanOpKind kind = (PlanOpKind)op->kind;
    const int64_t *dims = plan_op_dims(role, op);
    if (is_within(cluster, role, op)) {
        return traffic_ns(cluster, kind, work->bytes);
    }
    double all = !plan_op_is_within(role, op) ? 1 : kind == PLAN_OP_ADD_SCALED ? 3 : 2;
    double bytes = all * work->bytes + reread_bytes(cluster, kind, dims, element_bytes);
    return fmax(start_ns(cluster, kind) + traffic_ns(cluster, kind, bytes) +
                    weight_gradient_ns(cluster, kind, dims, element_bytes),
                packing_ns(cluster, kind, dims));
}

static bool orders_columns(const PlanOp *op, const int64_t *dims) {
    return op->kind == PLAN_OP_MXFP8_ORDER && dims[MXFP8_ORDER_FROM_COLUMNS];
}

/* ---- all ------------------------------------------------------------------------------------ */

bool sim_compute_cost(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op,
                      SimKernels kernels, SimComputeCost *ret_cost) {
    PlanOpWork work = plan_op_work(role, op);
    const int64_t *dims = plan_op_dims(role, op);
    PlanOpClass op_class = plan_op_info(op->kind)->op_class;
    double peak = peak_flops(cluster, op), flops_ns = 0;
    bool computes = op_class == PLAN_CLASS_MATMUL || op_class == PLAN_CLASS_ATTENTION;
    if (computes && peak == 0) {
        return false;
    }
    if (computes) {
        flops_ns = op_class == PLAN_CLASS_MATMUL
                       ? product_ns(cluster, role, op, peak, kernels.pads)
                       : attention_ns(cluster, role, op, &work, peak, kernels.attention);
    }
    double element_bytes = (double)plan_dtype_bytes((PlanDtype)op->dtype);
    if (op_class == PLAN_CLASS_MATMUL) {
        flops_ns += apart_ns(cluster, op, dims, element_bytes) + scales_ns(cluster, op, dims);
    }
    SimListCost of_lists = sim_list_cost(cluster, role, op, work.bytes);
    *ret_cost = (SimComputeCost){
        .overhead_ns = is_within(cluster, role, op) ? 0 : cluster->device_launch_overhead_ns,
        .flops_ns = flops_ns,
        .bytes_ns = op_class == PLAN_CLASS_HOST_LINK
                        ? work.bytes / cluster->device_host_link_gb_per_s
                    : of_lists.kernels > 0 ? of_lists.ns
                                           : moving_ns(cluster, role, op, &work, element_bytes),
        .kernels = of_lists.kernels > 0       ? of_lists.kernels
                   : orders_columns(op, dims) ? PLAN_MXFP8_ORDER_KERNELS
                                              : sim_kernels_of(cluster, role, op),
    };
    return true;
}

static bool has_two_rates(const ModelCluster *cluster) {
    return flash_share(cluster, false) > 0 || flash_share(cluster, true) > 0;
}

static bool has_odd_rows(const PlanRole *role) {
    for (uint32_t i = 0; i < role->n_ops; i++) {
        const int64_t *dims = plan_op_dims(role, &role->ops[i]);
        if (role->ops[i].kind == PLAN_OP_LINEAR &&
            sim_has_odd_rows(dims[LINEAR_N], dims[LINEAR_K])) {
            return true;
        }
    }
    return false;
}

static PlanAttentionKernel attention_kernel(const PlanStrategy *strategy) {
    return strategy->document > 0 ? PLAN_ATTENTION_KERNEL_FLASH
                                  : (PlanAttentionKernel)strategy->attention_kernel;
}

/* FSDP's hooks leave the head out of what is compiled. */
static bool compiles_head(const PlanStrategy *strategy) {
    return strategy->kernels == PLAN_KERNELS_COMPILED && strategy->compile != PLAN_COMPILE_BLOCK &&
           strategy->flavour != PLAN_FLAVOUR_FSDP1 && strategy->flavour != PLAN_FLAVOUR_FSDP2;
}

SimKernels sim_kernels_chosen(SimStrategy *strategy, const PlanRole *role,
                              const ModelCluster *cluster) {
    SimKernels kernels = {PLAN_ATTENTION_KERNEL_CUDNN, false};
    bool has_two = has_two_rates(cluster), is_odd = has_odd_rows(role);
    const PlanStrategy *known = has_two || is_odd ? sim_strategy(strategy) : NULL;
    if (known) {
        kernels.attention = has_two ? attention_kernel(known) : kernels.attention;
        kernels.pads = is_odd && compiles_head(known) && known->shape_padding == PLAN_YES;
    }
    return kernels;
}
