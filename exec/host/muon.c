/* exec/host/muon.c - what the optimizer Muon does with one matrix (plan/optimizer/muon.c). */
#include "exec/host/ops.h"

#include "exec/task.h"
#include "kernels/at-least.h"
#include "kernels/host/copy.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/lists/optimizer.h"
#include "kernels/host/products/matmul.h"

/* Rows become columns. */
static void exchange_sides(float *y, const float *x, size_t rows, size_t columns) {
    kernel_copy_4d_f32(y, (size_t[]){0, 0, 1, rows}, x, (size_t[]){0, 0, columns, 1},
                       (size_t[]){1, 1, rows, columns});
}

static void lerp(const ExecTask *t) {
    kernel_copy_f32(f32(t, LERP_Y), f32(t, LERP_A), dim(t, LERP_N));
    kernel_lerp_inplace_f32(f32(t, LERP_Y), f32(t, LERP_B), (float)attr(t, LERP_WEIGHT),
                            dim(t, LERP_N));
}

static void at_least(const ExecTask *t) {
    float limit = (float)attr(t, AT_LEAST_LIMIT);
    for (size_t i = 0; i < dim(t, AT_LEAST_N); i++) {
        f32(t, AT_LEAST_Y)[i] = kernel_at_least(f32(t, AT_LEAST_X)[i], limit);
    }
}

/* The third matrix is where the product is added to. */
static void product(const ExecTask *t) {
    size_t m = dim(t, PRODUCT_M), n = dim(t, PRODUCT_N), k = dim(t, PRODUCT_K);
    bool a_turned = dim(t, PRODUCT_A_TURNED), b_turned = dim(t, PRODUCT_B_TURNED),
         c_turned = dim(t, PRODUCT_C_TURNED);
    float *c = f32(t, PRODUCT_C), *y = f32(t, PRODUCT_Y);
    if (c && c_turned) {
        exchange_sides(y, c, n, m);
    } else if (c) {
        kernel_copy_f32(y, c, m * n);
    }
    kernel_gemm_f32(a_turned ? KERNEL_TRANSPOSE : KERNEL_NO_TRANSPOSE,
                    b_turned ? KERNEL_TRANSPOSE : KERNEL_NO_TRANSPOSE, m, n, k,
                    (float)attr(t, PRODUCT_ALPHA), f32(t, PRODUCT_A), a_turned ? m : k,
                    f32(t, PRODUCT_B), b_turned ? k : n, c ? (float)attr(t, PRODUCT_BETA) : 0, y,
                    n);
}

static void update(const ExecTask *t) {
    size_t rows = dim(t, MUON_UPDATE_ROWS), columns = dim(t, MUON_UPDATE_COLS);
    bool is_turned = dim(t, MUON_UPDATE_TURNED);
    kernel_lower_by_matrix_f32(f32(t, MUON_UPDATE_PARAMETER), f32(t, MUON_UPDATE_X),
                               attr(t, MUON_UPDATE_LR), rows, columns, is_turned ? 1 : columns,
                               is_turned ? rows : 1);
}

void exec_host_muon(const ExecTask *t) {
    switch ((ExecMuonOp)t->op->kind) {
    case PLAN_OP_LERP:
        lerp(t);
        return;
    case PLAN_OP_AT_LEAST:
        at_least(t);
        return;
    case PLAN_OP_DIVIDE_BY:
        kernel_div_scalar_inplace_f32(f32(t, DIVIDE_BY_X), *f32(t, DIVIDE_BY_BY),
                                      dim(t, DIVIDE_BY_N));
        return;
    case PLAN_OP_PRODUCT:
        product(t);
        return;
    case PLAN_OP_MUON_UPDATE:
        update(t);
        return;
    case PLAN_OP_EXCHANGE_SIDES:
        exchange_sides(f32(t, EXCHANGE_SIDES_Y), f32(t, EXCHANGE_SIDES_X),
                       dim(t, EXCHANGE_SIDES_ROWS), dim(t, EXCHANGE_SIDES_COLS));
        return;
    }
    g_assert_not_reached();
}
