/* tests/emulator/blas.cc - cuBLASLt's products over CBLAS.
 *
 * Matrices are column-major, as cuBLASLt's. Halves are widened, multiplied in fp32, and rounded
 * once, after the epilogue. A tf32 product is computed in fp32.
 *
 * Of float8 it takes what cublasLt.h's documentation has for compute capability 8.9 and 9.0: a
 * transposed and b not, sides and addresses of whole 16 bytes, not both factors in e5m2. It adds as
 * these chips do, which keep 14 bits: "fp32" sums of float8 are none (sum_of_float8()).
 *
 * What a GPU would only show as a wrong number or a fault ends the program: matrices that do not
 * fit each other, or lie outside the device's memory; pointers that are less aligned than the
 * heuristics were told (of a bias, its gradient and of what goes into GELU: than those that they
 * saw), a bias that is less aligned than the output was said to be, or that nothing reads; a
 * workspace that is less than what was said, or begins on no 256 bytes (cuBLAS's documentation of
 * cublasLtMatmul). Refused are an array that an epilogue needs and was not given, matrices without
 * elements, tf32 of others than fp32, and a choice that may add up parts of a sum as they are
 * stored. What cublasLt.h asks of the epilogues is held: rows of what goes into GELU are a
 * multiple of 8 elements apart and no closer than the output's, a bias and its gradient are of the
 * output's type. Where the sums of b are wanted, b is transposed: cuBLASLt 13.0 refuses any other
 * (seen by others on an RTX 3060), in heuristics and launch alike. A bias (or gradient) of halves
 * that lies on no 4 bytes is refused too, by a result that says so, and one of an fp32 product of
 * odd k only when it is launched. No GPU is known to do either: so the ways round them are tried.
 */
#include <cblas.h>
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>

#include <algorithm>
#include <vector>

#include "tests/emulator/emulator-private.h"

struct EmulatorBlas {
    int unused;
};

struct EmulatorProduct {
    cublasComputeType_t compute;
    cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue;
    void *bias; /* or its gradient */
    int32_t bias_type;
    void *aux;
    int64_t aux_ld;
    const float *a_scale = nullptr, *b_scale = nullptr; /* of float8: one for all */
    int8_t quick = 0;
};

struct EmulatorLayout {
    cudaDataType type;
    uint64_t rows, cols;
    int64_t ld;
    int32_t batch;
    int64_t stride;
};

struct EmulatorPreference {
    uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
    uint32_t a = 256, b = 256, c = 256, d = 256; /* bytes */
    uint64_t workspace = 0;
};

/* What an algorithm counts on; in cublasLtMatmulAlgo_t. */
struct EmulatorAlignments {
    uint32_t a, b, d, bias, aux;
    uint32_t workspace; /* bytes */
};

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

bool is_float8(cudaDataType type) {
    return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

float get(const void *array, cudaDataType type, size_t i) {
    switch (type) {
    case CUDA_R_8F_E4M3:
        return of_float8(((const uint8_t *)array)[i], 3, 7);
    case CUDA_R_8F_E5M2:
        return of_float8(((const uint8_t *)array)[i], 2, 15);
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

float gelu(float x) {
    return 0.5f * x * (1 + tanhf(0.797884561f * (x + 0.044715f * x * x * x)));
}

float gelu_slope(float x) {
    float inner = 0.797884561f * (x + 0.044715f * x * x * x), t = tanhf(inner);
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.797884561f * (1 + 3 * 0.044715f * x * x);
}

struct Call {
    EmulatorProduct product;
    EmulatorLayout a_layout, b_layout, d_layout;
    const void *a, *b;
    void *d;
    float alpha, beta; /* beta 0: d is written only */
};

uint32_t alignment(const void *at) {
    uintptr_t all = (uintptr_t)at | 256;
    return (uint32_t)(all & -all);
}

/* A value of another size than the attribute's is refused. */
template <typename T> cublasStatus_t assign(T *attribute, const void *value, size_t bytes) {
    if (bytes != sizeof *attribute) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    memcpy(attribute, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

bool has_bias(const EmulatorProduct &p) {
    return p.epilogue == CUBLASLT_EPILOGUE_BIAS || p.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}

bool has_gradient(const EmulatorProduct &p) {
    return p.epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD || p.epilogue == CUBLASLT_EPILOGUE_BGRADB;
}

/* What went into GELU: keeps it, or reads it. */
bool keeps(const EmulatorProduct &p) {
    return p.epilogue == CUBLASLT_EPILOGUE_GELU_AUX ||
           p.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}

bool goes_back(const EmulatorProduct &p) {
    return p.epilogue == CUBLASLT_EPILOGUE_DGELU || p.epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD;
}

/* Whether what the epilogue reads and writes beside the product is there, and as it must be. */
bool is_complete(const EmulatorProduct &p, const EmulatorLayout &d) {
    bool uses_bias = has_bias(p) || has_gradient(p), uses_aux = keeps(p) || goes_back(p);
    return (!uses_bias || (p.bias && p.bias_type == d.type)) &&
           (!uses_aux || (p.aux && p.aux_ld >= (int64_t)d.rows)) &&
           (!has_gradient(p) || d.batch == 1);
}

/* Of what is summed: b is op(b), k x cols. */
void add_up_b(const Call &call, const std::vector<float> &b, bool transposed, size_t k) {
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
void add_up_rows(const Call &call, const std::vector<float> &y) {
    const EmulatorLayout &d = call.d_layout;
    for (size_t r = 0; r < d.rows; r++) {
        float sum = 0;
        for (size_t c = 0; c < d.cols; c++) {
            sum += y[c * d.rows + r];
        }
        put(call.product.bias, d.type, r, sum);
    }
}

void finish(const Call &call, std::vector<float> *y, size_t batch) {
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

/* x down to a multiple of a 2^13th of the power of two below `largest`. */
float cut(float x, float largest) {
    float unit = ldexpf(1, ilogbf(largest) - 13);
    return floorf(x / unit) * unit;
}

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
    for (size_t first = 0; first < k && std::isfinite(plain); first += AT_ONCE) {
        size_t end = std::min(k, first + AT_ONCE);
        float largest = fabsf(sum), next = 0;
        for (size_t i = first; i < end; i++) {
            largest = std::max(largest, fabsf(a[i] * b[i]));
        }
        for (size_t i = first; i < end && largest > 0; i++) {
            next += cut(a[i] * b[i], largest);
        }
        next += largest > 0 ? cut(sum, largest) : 0;
        sum = next != 0 ? cut(next, next) : 0;
    }
    return std::isfinite(plain) ? sum : plain;
}

/* a is transposed, and b is not. */
void multiply_float8(std::vector<float> *y, const std::vector<float> &a,
                     const std::vector<float> &b, size_t rows, size_t k, float alpha) {
    for (size_t i = 0; i < y->size(); i++) {
        (*y)[i] = alpha * sum_of_float8(&a[i % rows * k], &b[i / rows * k], k);
    }
}

void multiply(const Call &call) {
    const EmulatorLayout &l = call.d_layout;
    bool ta = call.product.a == CUBLAS_OP_T, tb = call.product.b == CUBLAS_OP_T;
    size_t k = ta ? call.a_layout.rows : call.a_layout.cols;
    float alpha = call.alpha * (call.product.a_scale ? *call.product.a_scale : 1) *
                  (call.product.b_scale ? *call.product.b_scale : 1);
    for (size_t i = 0; i < (size_t)l.batch; i++) {
        std::vector<float> a = widened(call.a, call.a_layout, i);
        std::vector<float> b = widened(call.b, call.b_layout, i), y(l.rows * l.cols);
        if (is_float8(call.a_layout.type)) {
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

template <typename T> T *made(T *object) {
    emulator_blas_objects++;
    return object;
}

template <typename T> cublasStatus_t given_back(T *object) {
    emulator_blas_objects -= object != nullptr;
    delete object;
    return CUBLAS_STATUS_SUCCESS;
}

/* A library that tries what the GPU does not do may leave the error of a call of its own behind, for
 * whoever asks for the last one. */
cublasStatus_t refused(cublasStatus_t status) {
    emulator_error(cudaErrorInvalidValue);
    return status;
}

} // namespace

size_t emulator_blas_objects;

size_t cublasLtGetVersion(void) {
    return 130000;
}

const char *cublasLtGetStatusName(cublasStatus_t status) {
    return status == CUBLAS_STATUS_SUCCESS            ? "CUBLAS_STATUS_SUCCESS"
           : status == CUBLAS_STATUS_NOT_SUPPORTED    ? "CUBLAS_STATUS_NOT_SUPPORTED"
           : status == CUBLAS_STATUS_EXECUTION_FAILED ? "CUBLAS_STATUS_EXECUTION_FAILED"
                                                      : "CUBLAS_STATUS_INVALID_VALUE";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
    *handle = made(new EmulatorBlas());
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
    return given_back(handle);
}

/* Numbers that a product is multiplied by are fp32 for either way to compute. */
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *product, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
    if (scale != CUDA_R_32F) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *product = made(new EmulatorProduct());
    (*product)->compute = compute;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes) {
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return assign(&product->a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return assign(&product->b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return assign(&product->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return assign(&product->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
        return assign(&product->aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
        return assign(&product->aux_ld, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        return assign(&product->bias_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
        return assign(&product->a_scale, value, bytes);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
        return assign(&product->b_scale, value, bytes);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
        return assign(&product->quick, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
    return given_back(product);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld) {
    if (ld < (int64_t)rows || !rows || !cols) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *layout = made(new EmulatorLayout{type, rows, cols, ld, 1, 0});
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void *value, size_t bytes) {
    switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        return assign(&layout->batch, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return assign(&layout->stride, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    return given_back(layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
    *preference = made(new EmulatorPreference());
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes) {
    switch (attribute) {
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return assign(&preference->reductions, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
        return assign(&preference->a, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
        return assign(&preference->b, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
        return assign(&preference->c, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return assign(&preference->d, value, bytes);
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return assign(&preference->workspace, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    return given_back(preference);
}

/* Whether it is no product of float8, or one that a GPU has. */
static bool takes_float8(const EmulatorProduct &p, const EmulatorLayout &a, const EmulatorLayout &b,
                         const EmulatorLayout &d, const EmulatorPreference &aligned) {
    if (!is_float8(a.type) && !is_float8(b.type)) {
        return !p.a_scale && !p.b_scale && !p.quick;
    }
    bool is_whole = (a.rows | a.cols | b.rows | b.cols | (uint64_t)a.ld | (uint64_t)b.ld) % 16 == 0;
    return is_float8(a.type) && is_float8(b.type) && !is_float8(d.type) &&
           !(a.type == CUDA_R_8F_E5M2 && b.type == CUDA_R_8F_E5M2) && p.a == CUBLAS_OP_T &&
           p.b == CUBLAS_OP_N && is_whole && aligned.a >= 16 && aligned.b >= 16 && aligned.d >= 16;
}

/* Of an algorithm, where it stood among those that were proposed. */
enum {
    PLACE = 7
};
static uint64_t n_refused;
static bool refuses_endings;

void emulator_refuse_algorithms(unsigned n) {
    n_refused = n;
}

void emulator_refuse_endings(int refuses) {
    refuses_endings = refuses;
}

/* As on a GPU, the epilogue that keeps what went into GELU wants rows of whole 16 bytes. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results,
                                              int *found) {
    const uint32_t in_fp32 = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    EmulatorAlignments alignments = {preference->a,
                                     preference->b,
                                     preference->d < preference->c ? preference->d : preference->c,
                                     alignment(product->bias),
                                     alignment(product->aux),
                                     (uint32_t)preference->workspace};
    bool is_tf32 = product->compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    *found = 0;
    if (d->type != CUDA_R_32F && preference->reductions & ~in_fp32) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (!is_complete(*product, *d)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    bool sums_rows = product->epilogue == CUBLASLT_EPILOGUE_BGRADB && product->b != CUBLAS_OP_T;
    bool wants_eights = (keeps(*product) || goes_back(*product)) && product->aux_ld % 8;
    if (wanted < 1 || sums_rows || wants_eights || (is_tf32 && a->type != CUDA_R_32F) ||
        !takes_float8(*product, *a, *b, *d, *preference)) {
        return refused(CUBLAS_STATUS_NOT_SUPPORTED);
    }
    *found = std::min(wanted, 2);
    bool uses_bias = has_bias(*product) || has_gradient(*product);
    static_assert(sizeof alignments <= sizeof results->algo - sizeof results->algo.data[PLACE],
                  "it is kept there");
    for (int i = 0; i < *found; i++) {
        results[i] = {{{0}}, (size_t)preference->workspace, CUBLAS_STATUS_SUCCESS, 1};
        if (uses_bias && d->type != CUDA_R_32F && alignments.bias < 4) {
            results[i].state = refused(CUBLAS_STATUS_NOT_SUPPORTED);
        }
        memcpy(&results[i].algo, &alignments, sizeof alignments);
        results[i].algo.data[PLACE] = (uint64_t)i;
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* Elements from the first to behind the last. */
static size_t elements_of(const EmulatorLayout &l) {
    return (size_t)(l.batch - 1) * (size_t)l.stride + (l.cols - 1) * (size_t)l.ld + l.rows;
}

static size_t bytes_of(cudaDataType type) {
    return is_float8(type) ? 1 : type == CUDA_R_32F ? 4 : 2;
}

static void must_be_there(const char *what, const void *at, size_t elements, cudaDataType type) {
    if (emulator_place_of(at, elements * bytes_of(type)) != EMULATOR_DEVICE) {
        emulator_fault("cublasLtMatmul: %s is not in the device's memory", what);
    }
}

/* What an epilogue reads or writes, too. */
static void all_must_be_there(const Call &call) {
    const EmulatorProduct &p = call.product;
    const EmulatorLayout &d = call.d_layout;
    must_be_there("a", call.a, elements_of(call.a_layout), call.a_layout.type);
    must_be_there("b", call.b, elements_of(call.b_layout), call.b_layout.type);
    must_be_there("d", call.d, elements_of(d), d.type);
    if (has_bias(p) || has_gradient(p)) {
        bool is_of_columns = p.epilogue == CUBLASLT_EPILOGUE_BGRADB;
        must_be_there("a bias", p.bias, is_of_columns ? d.cols : d.rows, d.type);
    }
    if (keeps(p) || goes_back(p)) {
        must_be_there("what goes into GELU", p.aux, (d.cols - 1) * (size_t)p.aux_ld + d.rows,
                      d.type);
    }
    for (const float *scale : {p.a_scale, p.b_scale}) {
        if (scale) {
            must_be_there("a scale", scale, 1, CUDA_R_32F);
        }
    }
}

static void must_be_aligned(const Call &call, const EmulatorAlignments &wanted) {
    const EmulatorProduct &p = call.product;
    bool good = alignment(call.a) >= wanted.a && alignment(call.b) >= wanted.b &&
                alignment(call.d) >= wanted.d &&
                (!has_bias(p) || alignment(p.bias) >= std::max(wanted.bias, wanted.d)) &&
                (!has_gradient(p) || alignment(p.bias) >= wanted.bias) &&
                (!(keeps(p) || goes_back(p)) || alignment(p.aux) >= wanted.aux);
    if (!good) {
        emulator_fault("cublasLtMatmul: an array is less aligned than the heuristics were told");
    }
}

static void must_have_room(const void *workspace, size_t bytes, const EmulatorAlignments &wanted) {
    if (bytes < wanted.workspace ||
        (wanted.workspace &&
         (emulator_place_of(workspace, bytes) != EMULATOR_DEVICE || (uintptr_t)workspace % 256))) {
        emulator_fault("cublasLtMatmul: %zu bytes of workspace at %p, for %u at 256", bytes,
                       workspace, wanted.workspace);
    }
}

/* beta: to what is there, where that is what it adds to. */
static void must_fit(const Call &call, bool is_in_place) {
    const EmulatorLayout &a = call.a_layout, &b = call.b_layout, &d = call.d_layout;
    bool ta = call.product.a == CUBLAS_OP_T, tb = call.product.b == CUBLAS_OP_T;
    uint64_t m = ta ? a.cols : a.rows, k = ta ? a.rows : a.cols;
    uint64_t kb = tb ? b.cols : b.rows, n = tb ? b.rows : b.cols;
    bool has_odd_bias = call.product.bias && !has_bias(call.product) && !has_gradient(call.product);
    if ((call.beta != 0 && !is_in_place) || k != kb || m != d.rows || n != d.cols ||
        a.batch != d.batch || b.batch != d.batch || !is_complete(call.product, d) || has_odd_bias) {
        emulator_fault("cublasLtMatmul: what it is given does not fit together");
    }
}

/* What a library may say of what its heuristics have proposed. */
static cublasStatus_t is_refused(const Call &call, const cublasLtMatmulAlgo_t *algo) {
    bool uses_bias = has_bias(call.product) || has_gradient(call.product);
    uint64_t k = call.product.a == CUBLAS_OP_T ? call.a_layout.rows : call.a_layout.cols;
    if (algo->data[PLACE] < n_refused) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (refuses_endings && call.product.epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    return uses_bias && call.d_layout.type == CUDA_R_32F && k % 2 ? CUBLAS_STATUS_NOT_SUPPORTED
                                                                  : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream) {
    EmulatorEntry entry;
    Call call = {*product,
                 *a_layout,
                 *b_layout,
                 *d_layout,
                 a,
                 b,
                 d,
                 *(const float *)alpha,
                 *(const float *)beta};
    EmulatorAlignments wanted;
    memcpy(&wanted, algo, sizeof wanted);
    must_fit(call, c == d && c_layout == d_layout);
    all_must_be_there(call);
    must_be_aligned(call, wanted);
    must_have_room(workspace, workspace_bytes, wanted);
    cublasStatus_t status = is_refused(call, algo);
    if (status != CUBLAS_STATUS_SUCCESS) {
        return refused(status);
    }
    if (emulator_state() != cudaSuccess) {
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    emulator_push(stream, [=] { multiply(call); });
    return CUBLAS_STATUS_SUCCESS;
}
