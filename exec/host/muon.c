/* exec/host/muon.c - what the optimizer Muon does with one matrix (plan/optimizer/muon.c). */
#include "exec/host/ops.h"

#include "exec/task.h"
#include "kernels/host/copy.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/matmul.h"
#include "kernels/host/optimizer.h"

/* Rows become columns. */
static void exchange_sides(float *y, const float *x, size_t rows, size_t columns) {
    kernel_copy_4d_f32(y, (size_t[]){0, 0, 1, rows}, x, (size_t[]){0, 0, columns, 1},
                       (size_t[]){1, 1, rows, columns});
}

static void lerp(const ExecTask *t) {
    kernel_copy_f32(f32(t, 2), f32(t, 0), dim(t, 0));
    kernel_lerp_inplace_f32(f32(t, 2), f32(t, 1), (float)attr(t, 0), dim(t, 0));
}

static void at_least(const ExecTask *t) {
    for (size_t i = 0; i < dim(t, 0); i++) {
        f32(t, 1)[i] = MAX(f32(t, 0)[i], (float)attr(t, 0));
    }
}

/* The third matrix is where the product is added to. */
static void product(const ExecTask *t) {
    size_t m = dim(t, 0), n = dim(t, 1), k = dim(t, 2);
    bool a_turned = dim(t, 3), b_turned = dim(t, 4), c_turned = dim(t, 5);
    float *c = f32(t, 2), *y = f32(t, 3);
    if (c && c_turned) {
        exchange_sides(y, c, n, m);
    } else if (c) {
        kernel_copy_f32(y, c, m * n);
    }
    kernel_gemm_f32(a_turned ? KERNEL_TRANSPOSE : KERNEL_NO_TRANSPOSE,
                    b_turned ? KERNEL_TRANSPOSE : KERNEL_NO_TRANSPOSE, m, n, k, (float)attr(t, 0),
                    f32(t, 0), a_turned ? m : k, f32(t, 1), b_turned ? k : n,
                    c ? (float)attr(t, 1) : 0, y, n);
}

static void update(const ExecTask *t) {
    size_t rows = dim(t, 0), columns = dim(t, 1);
    bool is_turned = dim(t, 2);
    kernel_lower_by_matrix_f32(f32(t, 1), f32(t, 0), attr(t, 0), rows, columns,
                               is_turned ? 1 : columns, is_turned ? rows : 1);
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
        kernel_div_scalar_inplace_f32(f32(t, 1), *f32(t, 0), dim(t, 0));
        return;
    case PLAN_OP_PRODUCT:
        product(t);
        return;
    case PLAN_OP_MUON_UPDATE:
        update(t);
        return;
    case PLAN_OP_EXCHANGE_SIDES:
        exchange_sides(f32(t, 1), f32(t, 0), dim(t, 0), dim(t, 1));
        return;
    }
    g_assert_not_reached();
}
