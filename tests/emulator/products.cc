/* tests/emulator/products.cc - the arithmetic of cuBLASLt's products, over CBLAS.
 *
 * Matrices are column-major, as cuBLASLt's. Halves are widened, multiplied in fp32, and rounded
 * once, after the epilogue. A tf32 product is computed in fp32. float8 is added up as GPUs do that,
 * which keep 14 bits: "fp32" sums of it are none (sum_of_float8()). Of MXFP8, whose sums Blackwell
 * is not known to cut, sums are in fp32.
 */
#include <cblas.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>

#include <algorithm>
#include <vector>

#include "tests/emulator/blas.h"

namespace {

/* By its definition; the largest exponent of e5m2 is infinity and NaN, e4m3 has one NaN. */
float of_float8(uint8_t x, int fraction_bits, int bias) {
    int exponent = (x & 0x7f) >> fraction_bits, ones = (1 << (7 - fraction_bits)) - 1;
    int fraction = x & ((1 << fraction_bits) - 1), all = (1 << fraction_bits) - 1;
    bool has_infinity = fraction_bits == 2;
    double value = ldexp(exponent ? fraction + all + 1 : fraction,
                         (exponent ? exponent : 1) - bias - fraction_bits);
    if (exponent == ones && (has_infinity || fraction == all)) {
        value = has_infinity && fraction == 0 ? INFINITY : NAN;
    }
    return (float)(x & 0x80 ? -value : value);
}

/* All of them. */
struct Float8 {
    float number[256];
    Float8(int fraction_bits, int bias) {
        for (int i = 0; i < 256; i++) {
            number[i] = of_float8((uint8_t)i, fraction_bits, bias);
        }
    }
};
const Float8 e4m3(3, 7), e5m2(2, 15);

float get(const void *array, cudaDataType type, size_t i) {
    switch (type) {
    case CUDA_R_8F_E4M3:
        return e4m3.number[((const uint8_t *)array)[i]];
    case CUDA_R_8F_E5M2:
        return e5m2.number[((const uint8_t *)array)[i]];
    case CUDA_R_32F:
        return ((const float *)array)[i];
    case CUDA_R_16F:
        return __half2float(((const __half *)array)[i]);
    case CUDA_R_16BF:
        return __bfloat162float(((const __nv_bfloat16 *)array)[i]);
    }
    return NAN;
}

void put(void *array, cudaDataType type, size_t i, float x) {
    switch (type) {
    case CUDA_R_32F:
        ((float *)array)[i] = x;
        break;
    case CUDA_R_16F:
        ((__half *)array)[i] = __float2half_rn(x);
        break;
    case CUDA_R_16BF:
        ((__nv_bfloat16 *)array)[i] = __float2bfloat16_rn(x);
        break;
    case CUDA_R_8F_E4M3: /* no output is */
    case CUDA_R_8F_E5M2:
        break;
    }
}

/* Dense. */
std::vector<float> widened(const void *array, const EmulatorLayout &l, size_t batch) {
    std::vector<float> x(l.rows * l.cols);
    for (size_t c = 0; c < l.cols; c++) {
        for (size_t r = 0; r < l.rows; r++) {
            x[c * l.rows + r] = get(array, l.type, batch * (size_t)l.stride + c * (size_t)l.ld + r);
        }
    }
    return x;
}

/* Where cuBLAS's documentation (1D block scaling factors layout) has the exponent of a row, of
 * `cols` a row: in blocks of 128 rows and 4 columns, rows 32 apart side by side. */
size_t place_of_exponent(size_t row, size_t col, size_t cols) {
    size_t block = row / 128 * (cols / 4) + col / 4;
    return block * 512 + row % 32 * 16 + row % 128 / 32 * 4 + col % 4;
}

/* Columns are what is summed. */
void scale_blocks(std::vector<float> *x, const EmulatorLayout &l, const void *exponents) {
    for (size_t i = 0; i < x->size(); i++) {
        size_t at = place_of_exponent(i / l.rows, i % l.rows / 32, l.rows / 32);
        int exponent = ((const uint8_t *)exponents)[at];
        (*x)[i] = exponent == 255 ? NAN : ldexpf((*x)[i], exponent - 127);
    }
}

float gelu(float x) {
    return 0.5f * x * (1 + tanhf(0.797884561f * (x + 0.044715f * x * x * x)));
}

float gelu_slope(float x) {
    float inner = 0.797884561f * (x + 0.044715f * x * x * x), t = tanhf(inner);
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.797884561f * (1 + 3 * 0.044715f * x * x);
}

/* Of what is summed: b is op(b), k x cols. */
void add_up_b(const EmulatorCall &call, const std::vector<float> &b, bool transposed, size_t k) {
    const EmulatorLayout &d = call.d_layout;
    for (size_t c = 0; c < d.cols; c++) {
        float sum = 0;
        for (size_t i = 0; i < k; i++) {
            sum += transposed ? b[i * d.cols + c] : b[c * k + i];
        }
        put(call.product.bias, d.type, c, sum);
    }
}

/* Of the output's rows, before they are rounded. */
void add_up_rows(const EmulatorCall &call, const std::vector<float> &y) {
    const EmulatorLayout &d = call.d_layout;
    for (size_t r = 0; r < d.rows; r++) {
        float sum = 0;
        for (size_t c = 0; c < d.cols; c++) {
            sum += y[c * d.rows + r];
        }
        put(call.product.bias, d.type, r, sum);
    }
}

void finish(const EmulatorCall &call, std::vector<float> *y, size_t batch) {
    const EmulatorProduct &p = call.product;
    const EmulatorLayout &l = call.d_layout;
    for (size_t c = 0; goes_back(p) && c < l.cols; c++) {
        for (size_t r = 0; r < l.rows; r++) {
            (*y)[c * l.rows + r] *= gelu_slope(get(p.aux, l.type, c * (size_t)p.aux_ld + r));
        }
    }
    if (p.epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD) {
        add_up_rows(call, *y);
    }
    for (size_t c = 0; c < l.cols; c++) {
        for (size_t r = 0; r < l.rows; r++) {
            size_t at = batch * (size_t)l.stride + c * (size_t)l.ld + r;
            float x =
                (*y)[c * l.rows + r] + (call.beta != 0 ? call.beta * get(call.d, l.type, at) : 0);
            x += has_bias(p) ? get(p.bias, l.type, r) : 0;
            if (keeps(p)) {
                put(p.aux, l.type, c * (size_t)p.aux_ld + r, x);
                x = gelu(x);
            }
            put(call.d, l.type, at, x);
        }
    }
}

/* Down to multiples of a 2^13th of the power of two below `largest`, of numbers no larger. */
struct Cut {
    float unit, inverse;
    explicit Cut(float largest)
        : unit(ldexpf(1, ilogbf(largest) - 13)), inverse(ldexpf(1, 13 - ilogbf(largest))) {
    }
    float operator()(float x) const {
        float units = x * inverse, towards_zero = (float)(int)units; /* of 14 bits */
        return (towards_zero - (towards_zero > units)) * unit;
    }
};

/* The sum of k products as tensor cores of compute capability 8.9 and 9.0 form it: of 32 products
 * and the sum so far, each is cut to 14 bits of the largest of them, and so is what they come to
 * (DeepSeek-V3's report, section 3.5.2; PyTorch's names it e8m13). That now and then such a sum is
 * added up in fp32 unless fast accumulation is asked for is left out: it would be off by less. */
float sum_of_float8(const float *a, const float *b, size_t k) {
    constexpr size_t AT_ONCE = 32;
    float sum = 0, plain = 0;
    for (size_t i = 0; i < k; i++) {
        plain += a[i] * b[i];
    }
    if (!std::isfinite(plain)) {
        return plain;
    }
    for (size_t first = 0; first < k; first += AT_ONCE) {
        size_t n = std::min(k - first, AT_ONCE);
        float products[AT_ONCE], largest = fabsf(sum), next = 0;
        for (size_t i = 0; i < n; i++) {
            products[i] = a[first + i] * b[first + i];
            largest = std::max(largest, fabsf(products[i]));
        }
        if (largest > 0) {
            Cut cut(largest);
            for (size_t i = 0; i < n; i++) {
                next += cut(products[i]);
            }
            next += cut(sum);
        }
        sum = next != 0 ? Cut(next)(next) : 0;
    }
    return sum;
}

/* a is transposed, and b is not. */
void multiply_float8(std::vector<float> *y, const std::vector<float> &a,
                     const std::vector<float> &b, size_t rows, size_t k, float alpha) {
    for (size_t i = 0; i < y->size(); i++) {
        (*y)[i] = alpha * sum_of_float8(&a[i % rows * k], &b[i / rows * k], k);
    }
}

} // namespace

void emulator_multiply(const EmulatorCall &call) {
    const EmulatorLayout &l = call.d_layout;
    bool ta = call.product.a == CUBLAS_OP_T, tb = call.product.b == CUBLAS_OP_T;
    size_t k = ta ? call.a_layout.rows : call.a_layout.cols;
    bool in_blocks = is_mxfp8(call.product);
    float alpha = call.alpha;
    for (const void *scale : {call.product.a_scale, call.product.b_scale}) {
        alpha *= scale && !in_blocks ? *(const float *)scale : 1;
    }
    for (size_t i = 0; i < (size_t)l.batch; i++) {
        std::vector<float> a = widened(call.a, call.a_layout, i);
        std::vector<float> b = widened(call.b, call.b_layout, i), y(l.rows * l.cols);
        if (in_blocks) {
            scale_blocks(&a, call.a_layout, call.product.a_scale);
            scale_blocks(&b, call.b_layout, call.product.b_scale);
        }
        if (is_float8(call.a_layout.type) && !in_blocks) {
            multiply_float8(&y, a, b, l.rows, k, alpha);
        } else {
            cblas_sgemm(CblasColMajor, ta ? CblasTrans : CblasNoTrans,
                        tb ? CblasTrans : CblasNoTrans, (int)l.rows, (int)l.cols, (int)k, alpha,
                        a.data(), (int)call.a_layout.rows, b.data(), (int)call.b_layout.rows, 0,
                        y.data(), (int)l.rows);
        }
        finish(call, &y, i);
        if (call.product.epilogue == CUBLASLT_EPILOGUE_BGRADB) {
            add_up_b(call, b, tb, k);
        }
    }
}
