/* kernels/host/dispatch.c - which variant of each vector kernel runs here.
 *
 * The loader calls a resolver for each name before main() and binds the name to what it returns, so
 * a call costs no more than any other. Resolvers run before sanitizers are ready, hence their
 * exemption. A kernel written with KERNEL() (vector.h) needs one line in the list below; without it
 * the program does not link. This file is built only where the variants are.
 */
#include "kernels/host/activation.h"
#include "kernels/host/attention/attention.h"
#include "kernels/host/attention/rope.h"
#include "kernels/host/elementwise.h"
#include "kernels/host/half.h"
#include "kernels/host/lists/optimizer.h"
#include "kernels/host/products/float8.h"
#include "kernels/host/products/mxfp8.h"
#include "kernels/host/random.h"
#include "kernels/host/reduce.h"
#include "kernels/host/rows/loss.h"
#include "kernels/host/rows/norm.h"
#include "kernels/host/runtime.h"

#define UNINSTRUMENTED __attribute__((used, no_sanitize("address", "undefined")))

typedef enum {
    LEVEL_1, /* x86-64 */
    LEVEL_3, /* x86-64-v3 */
    LEVEL_4, /* x86-64-v4 */
} Level;

static inline UNINSTRUMENTED Level level(void) {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2")) {
        return LEVEL_1;
    }
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl")) {
        return LEVEL_3;
    }
    return LEVEL_4;
}

const char *kernel_isa_name(void) {
    switch (level()) {
    case LEVEL_1:
        return "x86-64";
    case LEVEL_3:
        return "x86-64-v3";
    case LEVEL_4:
        return "x86-64-v4";
    }
    return "x86-64";
}

#define DISPATCH(name)                                                                             \
    extern __typeof__(name) name##_v1, name##_v3, name##_v4;                                       \
    static UNINSTRUMENTED __typeof__(name) *resolve_##name(void) {                                 \
        switch (level()) {                                                                         \
        case LEVEL_1:                                                                              \
            break;                                                                                 \
        case LEVEL_3:                                                                              \
            return name##_v3;                                                                      \
        case LEVEL_4:                                                                              \
            return name##_v4;                                                                      \
        }                                                                                          \
        return name##_v1;                                                                          \
    }                                                                                              \
    __typeof__(name) name __attribute__((ifunc("resolve_" #name)))

DISPATCH(kernel_fill_f32);
DISPATCH(kernel_zero_f32);
DISPATCH(kernel_copy_f32);
DISPATCH(kernel_arange_i64);
DISPATCH(kernel_add_f32);
DISPATCH(kernel_mul_f32);
DISPATCH(kernel_scale_f32);
DISPATCH(kernel_add_scaled_f32);
DISPATCH(kernel_add_inplace_f32);
DISPATCH(kernel_add_rows_f32);
DISPATCH(kernel_mul_rows_f32);
DISPATCH(kernel_mul_columns_f32);
DISPATCH(kernel_spread_f32);
DISPATCH(kernel_power_f32);
DISPATCH(kernel_widen_e4m3);
DISPATCH(kernel_widen_e5m2);
DISPATCH(kernel_narrow_e4m3);
DISPATCH(kernel_narrow_e5m2);
DISPATCH(kernel_magnitude_f32);
DISPATCH(kernel_magnitude_rows_f32);
DISPATCH(kernel_magnitude_columns_f32);
DISPATCH(kernel_float8_scale);
DISPATCH(kernel_float8_delay);
DISPATCH(kernel_mxfp8_cast);
DISPATCH(kernel_mxfp8_order);
DISPATCH(kernel_mxfp8_widen);
DISPATCH(kernel_scale_rows_columns_f32);
DISPATCH(kernel_exchange_bytes);
DISPATCH(kernel_widen_bf16);
DISPATCH(kernel_narrow_bf16);
DISPATCH(kernel_add_inplace_bf16);
DISPATCH(kernel_scale_inplace_bf16);
DISPATCH(kernel_widen_f16);
DISPATCH(kernel_narrow_f16);
DISPATCH(kernel_add_inplace_f16);
DISPATCH(kernel_scale_inplace_f16);
DISPATCH(kernel_gelu_tanh_forward_f32);
DISPATCH(kernel_gelu_tanh_backward_f32);
DISPATCH(kernel_gelu_erf_forward_f32);
DISPATCH(kernel_gelu_erf_backward_f32);
DISPATCH(kernel_tanh_forward_f32);
DISPATCH(kernel_tanh_backward_f32);
DISPATCH(kernel_relu_forward_f32);
DISPATCH(kernel_threshold_backward_f32);
DISPATCH(kernel_silu_forward_f32);
DISPATCH(kernel_silu_backward_f32);
DISPATCH(kernel_layernorm_forward_f32);
DISPATCH(kernel_rmsnorm_forward_f32);
DISPATCH(kernel_layernorm_backward_f32);
DISPATCH(kernel_rmsnorm_backward_f32);
DISPATCH(kernel_rope_tables_f32);
DISPATCH(kernel_rope_forward_f32);
DISPATCH(kernel_rope_backward_f32);
DISPATCH(kernel_turn_table_f32);
DISPATCH(kernel_turn_f32);
DISPATCH(kernel_conjugate_f32);
DISPATCH(kernel_mean_forward_f32);
DISPATCH(kernel_mean_backward_f32);
DISPATCH(kernel_column_sum_f32);
DISPATCH(kernel_row_sum_f32);
DISPATCH(kernel_norm_f32);
DISPATCH(kernel_softmax_forward_f32);
DISPATCH(kernel_softmax_backward_f32);
DISPATCH(kernel_log_softmax_forward_f32);
DISPATCH(kernel_log_softmax_backward_f32);
DISPATCH(kernel_nll_loss_forward_f32);
DISPATCH(kernel_nll_loss_backward_f32);
DISPATCH(kernel_cross_entropy_forward_f32);
DISPATCH(kernel_cross_entropy_backward_f32);
DISPATCH(kernel_compiled_loss_forward_f32);
DISPATCH(kernel_compiled_loss_backward_f32);
DISPATCH(kernel_largest_f32);
DISPATCH(kernel_sum_of_exps_f32);
DISPATCH(kernel_pick_targets_f32);
DISPATCH(kernel_mean_picked_f32);
DISPATCH(kernel_add_softmax_f32);
DISPATCH(kernel_scale_counted_f32);
DISPATCH(kernel_mul_scalar_inplace_f32);
DISPATCH(kernel_div_scalar_inplace_f32);
DISPATCH(kernel_add_scalar_inplace_f32);
DISPATCH(kernel_lower_by_matrix_f32);
DISPATCH(kernel_lerp_inplace_f32);
DISPATCH(kernel_addcmul_inplace_f32);
DISPATCH(kernel_addcdiv_inplace_f32);
DISPATCH(kernel_sqrt_f32);
DISPATCH(kernel_adam_f32);
DISPATCH(kernel_sgd_f32);
DISPATCH(kernel_scale_by_inplace_f32);
DISPATCH(kernel_unscale_inplace_f32);
DISPATCH(kernel_philox_4x32);
DISPATCH(kernel_philox_normal_f32);
DISPATCH(kernel_philox_uniform_f32);
DISPATCH(kernel_philox_uniform_i64);
DISPATCH(kernel_attention_forward_f32);
DISPATCH(kernel_attention_backward_f32);
