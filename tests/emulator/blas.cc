/* tests/emulator/blas.cc - cuBLASLt: what it is asked, what it refuses, and what it counts on.
 * (products.cc has the arithmetic.)
 *
 * Of float8 it takes what cublasLt.h's documentation has for compute capability 8.9 and 9.0: a
 * transposed and b not, sides and addresses of whole 16 bytes, not both factors in e5m2. MXFP8
 * takes 10.0: both factors in e4m3, with exponents for whole tiles of 128 rows and 4 columns.
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
#include <cublasLt.h>

#include <algorithm>

#include "tests/emulator/blas.h"
#include "tests/emulator/emulator-private.h"

struct EmulatorBlas {
    int unused;
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

/* Whether what the epilogue reads and writes beside the product is there, and as it must be. */
bool is_complete(const EmulatorProduct &p, const EmulatorLayout &d) {
    bool uses_bias = has_bias(p) || has_gradient(p), uses_aux = keeps(p) || goes_back(p);
    return (!uses_bias || (p.bias && p.bias_type == d.type)) &&
           (!uses_aux || (p.aux && p.aux_ld >= (int64_t)d.rows)) &&
           (!has_gradient(p) || d.batch == 1);
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
    case CUBLASLT_MATMUL_DESC_A_SCALE_MODE:
        return assign(&product->a_mode, value, bytes);
    case CUBLASLT_MATMUL_DESC_B_SCALE_MODE:
        return assign(&product->b_mode, value, bytes);
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

/* Whether it is no product of MXFP8, or one that a GPU has; PyTorch asks for whole tiles, too. */
static bool takes_mxfp8(const EmulatorProduct &p, const EmulatorLayout &a,
                        const EmulatorLayout &b) {
    return (!p.a_mode && !p.b_mode) ||
           (is_mxfp8(p) && emulator_capability() >= 100 && p.a_scale && p.b_scale && !p.quick &&
            a.type == CUDA_R_8F_E4M3 && b.type == CUDA_R_8F_E4M3 &&
            (a.rows | a.cols | b.rows | b.cols) % 128 == 0 && a.batch == 1);
}

/* Whether it is no product of float8, or one that a GPU has. */
static bool takes_float8(const EmulatorProduct &p, const EmulatorLayout &a, const EmulatorLayout &b,
                         const EmulatorLayout &d, const EmulatorPreference &aligned) {
    if (!is_float8(a.type) && !is_float8(b.type)) {
        return !p.a_scale && !p.b_scale && !p.quick && !p.a_mode && !p.b_mode;
    }
    bool is_whole = (a.rows | a.cols | b.rows | b.cols | (uint64_t)a.ld | (uint64_t)b.ld) % 16 == 0;
    return is_float8(a.type) && is_float8(b.type) && !is_float8(d.type) &&
           !(a.type == CUDA_R_8F_E5M2 && b.type == CUDA_R_8F_E5M2) && p.a == CUBLAS_OP_T &&
           p.b == CUBLAS_OP_N && is_whole && takes_mxfp8(p, a, b) && aligned.a >= 16 &&
           aligned.b >= 16 && aligned.d >= 16;
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
static void all_must_be_there(const EmulatorCall &call) {
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
    const EmulatorLayout *layouts[] = {&call.a_layout, &call.b_layout};
    const void *scales[] = {p.a_scale, p.b_scale};
    for (int i = 0; i < 2; i++) {
        if (scales[i] && is_mxfp8(p)) {
            must_be_there("an exponent", scales[i], elements_of(*layouts[i]) / 32, CUDA_R_8F_E4M3);
        } else if (scales[i]) {
            must_be_there("a scale", scales[i], 1, CUDA_R_32F);
        }
    }
}

static void must_be_aligned(const EmulatorCall &call, const EmulatorAlignments &wanted) {
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
static void must_fit(const EmulatorCall &call, bool is_in_place) {
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
static cublasStatus_t is_refused(const EmulatorCall &call, const cublasLtMatmulAlgo_t *algo) {
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
    EmulatorCall call = {*product,
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
    emulator_push(stream, [=] { emulator_multiply(call); });
    return CUBLAS_STATUS_SUCCESS;
}
