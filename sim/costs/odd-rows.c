#include "sim/costs/odd-rows.h"

#include <math.h>

#include "sim/costs/traffic.h"

typedef enum {
    NO_LINEAR,
    FORWARD,
    DX,
    DW
} Pass;

static Pass pass_of(PlanOpKind kind) {
    switch (kind) {
    case PLAN_OP_LINEAR:
    case PLAN_OP_LINEAR_PARTS:
    case PLAN_OP_LINEAR_GELU:
        return FORWARD;
    case PLAN_OP_LINEAR_DX:
    case PLAN_OP_LINEAR_DX_GELU:
        return DX;
    case PLAN_OP_LINEAR_DW:
    case PLAN_OP_LINEAR_DW_DB:
        return DW;
    default:
        return NO_LINEAR;
    }
}

/* Operations a clock and multiprocessor: 8192 rows of 576, 50257 columns, in bf16 on 84
 * multiprocessors of GA10x at 1.78 GHz, 47.8 to 48.4 %, 58.2 to 59.5 % and 64.0 to 65.4 % of 112.1
 * to 114.4 TFLOP/s (b-vitamins/slinoss, docs/kernels.md@044600943). An H200 at its 1.98 GHz has 366
 * and 379 forward: 72000 x 3072 x 3072 and x 14336 in 14.2 and 64.0 ms, where aligned ones take
 * 1.715 and 9.097 (a FastWAM's scripts/microbench_gemm_alignment.py, its notes of 2026-07). */
static const double a_clock[] = {[FORWARD] = 364, [DX] = 446, [DW] = 490};

bool sim_has_odd_rows(int64_t n, int64_t k) {
    return (n | k) & 1;
}

static bool is_odd(Pass pass, const SimProduct *p) {
    return pass != NO_LINEAR && (pass == DW ? sim_has_odd_rows((int64_t)p->m, (int64_t)p->n)
                                            : sim_has_odd_rows((int64_t)p->n, (int64_t)p->k));
}

/* What the GPU's clock is by its peak in fp32: a multiprocessor has so many ordinary cores, which
 * multiply and add once a clock. No card's is above 3 GHz; one that seems so has TF32's rate in
 * that place, and gets an H100's. */
static double clock_hz(const ModelCluster *cluster) {
    double cores = cluster->device_compute_capability <= 80 ? 64 : 128;
    double hz = model_cluster_peak_flops(cluster, PLAN_FP32) / (2 * cores * cluster->device_sms);
    return hz < 3e9 ? hz : 1.98e9;
}

/* Volta's kernels are of its own kind; products in fp32 run on ordinary cores, where loads of one
 * element cost an A100 4 %, and TF32's are not told apart from them; float8 layers are planned for
 * rows of 16 elements alone. */
static bool has_such_kernel(const ModelCluster *cluster, PlanDtype dtype) {
    return cluster->device_sms > 0 && cluster->device_compute_capability >= 75 &&
           plan_dtype_bytes(dtype) == 2;
}

static double unpadded_ns(const ModelCluster *cluster, const SimProduct *product, Pass pass) {
    SimProduct odd = *product;
    odd.peak_flops = a_clock[pass] * cluster->device_sms * clock_hz(cluster);
    odd.efficiency = 1;
    return sim_product_ns(cluster, &odd);
}

/* What Inductor copies to longer rows: each factor with an odd side that rows or sums run along. */
static double copied_bytes(const SimProduct *p, Pass pass) {
    bool left = ((int64_t)(pass == DW ? p->m : p->k) & 1) != 0;
    bool right = pass != DW || ((int64_t)p->n & 1) != 0;
    return ((left ? p->m : 0) + (right ? p->n : 0)) * p->k * p->element_bytes;
}

/* It times both and asks for a tenth (torch/_inductor/fx_passes/pad_mm.py of PyTorch 2.13). */
#define PADDED_GAIN 1.1

double sim_linear_ns(const ModelCluster *cluster, const SimProduct *product, PlanOpKind kind,
                     PlanDtype dtype, bool pads) {
    double aligned = sim_product_ns(cluster, product);
    Pass pass = pass_of(kind);
    if (!is_odd(pass, product) || !has_such_kernel(cluster, dtype)) {
        return aligned;
    }
    double unpadded = fmax(aligned, unpadded_ns(cluster, product, pass));
    double padded = aligned + sim_traffic_ns(cluster, 2 * copied_bytes(product, pass));
    return pads && padded * PADDED_GAIN < unpadded ? padded : unpadded;
}
