/* kernels/cuda/matmul.cu - see matmul.h. Bound: arithmetic.
 *
 * cuBLASLt thinks in columns. A row-major matrix [r, c] is its column-major [c, r], so each product
 * is asked for transposed: y^T = op(b)^T op(a)^T, where what we call b comes first. A bias runs
 * along the rows of that transpose, which is what cuBLASLt adds.
 *
 * What was decided for a shape (a Product) is kept for the lane's life. The heuristics are told how
 * the pointers are aligned, and look at those of a bias (or its gradient) and of what goes into
 * GELU themselves, so that is part of the shape. A bias is read along with the output it is added
 * to: the output is called no better aligned than its bias, as PyTorch does too; so is one whose
 * rows are added up. Where k is split, the parts are added up in fp32: the schemes that add them as
 * they are stored are ruled out.
 */
#include "kernels/cuda/matmul.h"

#include <string.h>

#include <algorithm>
#include <initializer_list>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/reduce.h"

/* All that a decision rests on; compared byte by byte, so it is zeroed first. */
struct KernelCudaProductShape {
    uint64_t m, n, k, batch;
    uint64_t a_stride, b_stride, y_stride, a_batch, b_batch, y_batch;
    uint32_t a_align, b_align, y_align, bias_align, before_align;
    uint8_t a_transposed, b_transposed, type, ending;
    uint8_t a_stored, b_stored, quick; /* Stored */
};

struct KernelCudaProduct {
    KernelCudaProductShape shape;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, y;
    cublasLtMatmulAlgo_t algo;
    bool is_possible; /* cuBLASLt has something for it */
};

namespace {

using cu::divide_up;
typedef KernelCudaProductShape Shape;

/* A row-major operand: rows `stride` elements apart, matrices of a batch `batch_stride`. */
struct Matrix {
    const void *data;
    size_t stride, batch_stride;
    bool transposed;
};

enum Ending : uint8_t {
    PLAIN,
    BIAS,
    GELU,
    BIAS_GELU,
    DGELU,
    DGELU_DBIAS, /* and the sums of what that leaves, over our rows */
    DBIAS        /* and the sums of a over what is summed */
};

/* What is done to a product at its end, and the arrays for that. */
struct End {
    Ending ending;
    const void *bias;               /* or its gradient, which is written */
    const void *before;             /* what goes into GELU: written forward, read backward */
    const float *a_scale, *b_scale; /* of factors in float8 */
    float alpha = 1, beta = 0;      /* times the product, and what the output holds */
};

/* How a factor is: as the output, or in float8. */
enum Stored : uint8_t {
    AS_OUTPUT,
    IN_E4M3,
    IN_E5M2
};

constexpr End NO_END = {PLAIN, NULL, NULL}, ADDED = {PLAIN, NULL, NULL, NULL, NULL, 1, 1};

cudaDataType_t data_type(KernelCudaType type) {
    return type == KERNEL_CUDA_F32    ? CUDA_R_32F
           : type == KERNEL_CUDA_BF16 ? CUDA_R_16BF
                                      : CUDA_R_16F;
}

cudaDataType_t factor_type(uint8_t stored, cudaDataType_t type) {
    return stored == IN_E4M3 ? CUDA_R_8F_E4M3 : stored == IN_E5M2 ? CUDA_R_8F_E5M2 : type;
}

cublasLtEpilogue_t epilogue_of(uint8_t ending) {
    switch (ending) {
    case BIAS:
        return CUBLASLT_EPILOGUE_BIAS;
    case GELU:
        return CUBLASLT_EPILOGUE_GELU_AUX;
    case BIAS_GELU:
        return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case DGELU:
        return CUBLASLT_EPILOGUE_DGELU;
    case DGELU_DBIAS:
        return CUBLASLT_EPILOGUE_DGELU_BGRAD;
    case DBIAS:
        return CUBLASLT_EPILOGUE_BGRADB; /* our a is their second */
    default:
        return CUBLASLT_EPILOGUE_DEFAULT;
    }
}

/* The largest power of two up to 16 that divides the address and the steps between rows. */
uint32_t alignment(const void *data, size_t stride, size_t batch_stride, size_t bytes) {
    uintptr_t all = (uintptr_t)data | stride * bytes | batch_stride * bytes | 16;
    return (uint32_t)(all & -all);
}

/* Of what cuBLASLt sees the address of: up to 256, the most it counts on. NULL: 0. */
uint32_t alignment_of_extra(const void *data) {
    uintptr_t all = (uintptr_t)data | 256;
    return data ? (uint32_t)(all & -all) : 0;
}

#define TRY_BLAS(call, ...) KERNEL_CUDA_TRY(kernel_cuda_check_blas(#call, call(__VA_ARGS__)))

template <typename T>
KernelCudaFault set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, T value) {
    TRY_BLAS(cublasLtMatmulDescSetAttribute, desc, attribute, &value, sizeof value);
    return NULL;
}

/* A row-major [rows, cols] as its transpose. */
KernelCudaFault new_layout(cublasLtMatrixLayout_t *ret_layout, cudaDataType_t type, uint64_t rows,
                           uint64_t cols, uint64_t stride, uint64_t batch, uint64_t batch_stride) {
    TRY_BLAS(cublasLtMatrixLayoutCreate, ret_layout, type, cols, rows, (int64_t)stride);
    int32_t count = (int32_t)batch;
    int64_t offset = (int64_t)batch_stride;
    TRY_BLAS(cublasLtMatrixLayoutSetAttribute, *ret_layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
             &count, sizeof count);
    TRY_BLAS(cublasLtMatrixLayoutSetAttribute, *ret_layout,
             CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &offset, sizeof offset);
    return NULL;
}

/* What differs from call to call of a shape; the heuristics want to see it too. */
KernelCudaFault set_pointers(const KernelCudaProduct *p, const End &end) {
    if (end.bias) {
        KERNEL_CUDA_TRY(set(p->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, end.bias));
    }
    if (p->shape.a_stored) { /* ours and theirs stand the other way round; NULL: 1 */
        KERNEL_CUDA_TRY(set(p->desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, end.b_scale));
        KERNEL_CUDA_TRY(set(p->desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, end.a_scale));
    }
    return end.before ? set(p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, end.before) : NULL;
}

KernelCudaFault describe(const KernelCuda *lane, KernelCudaProduct *p) {
    const Shape &s = p->shape;
    cudaDataType_t type = data_type((KernelCudaType)s.type);
    bool tf32 = type == CUDA_R_32F && lane->math == KERNEL_CUDA_TF32;
    TRY_BLAS(cublasLtMatmulDescCreate, &p->desc,
             tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F);
    /* Ours and theirs transpose alike: op(b)^T of a matrix seen transposed. */
    KERNEL_CUDA_TRY(
        set(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, s.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N));
    KERNEL_CUDA_TRY(
        set(p->desc, CUBLASLT_MATMUL_DESC_TRANSB, s.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N));
    KERNEL_CUDA_TRY(set(p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(s.ending)));
    if (s.bias_align) {
        KERNEL_CUDA_TRY(set(p->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type));
    }
    if (s.before_align) {
        KERNEL_CUDA_TRY(set(p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, (int64_t)s.y_stride));
    }
    if (s.quick) {
        KERNEL_CUDA_TRY(set(p->desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, (int8_t)1));
    }
    cudaDataType_t a_type = factor_type(s.a_stored, type), b_type = factor_type(s.b_stored, type);
    KERNEL_CUDA_TRY(new_layout(&p->a, a_type, s.a_transposed ? s.k : s.m,
                               s.a_transposed ? s.m : s.k, s.a_stride, s.batch, s.a_batch));
    KERNEL_CUDA_TRY(new_layout(&p->b, b_type, s.b_transposed ? s.n : s.k,
                               s.b_transposed ? s.k : s.n, s.b_stride, s.batch, s.b_batch));
    return new_layout(&p->y, type, s.m, s.n, s.y_stride, s.batch, s.y_batch);
}

KernelCudaFault prefer(cublasLtMatmulPreference_t preference, const Shape &s) {
    const struct {
        cublasLtMatmulPreferenceAttributes_t attribute;
        uint32_t value;
    } settings[] = {
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, s.b_align},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, s.a_align},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, s.y_align},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, s.y_align}};
    TRY_BLAS(cublasLtMatmulPreferenceSetAttribute, preference,
             CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &KERNEL_CUDA_BLAS_WORKSPACE,
             sizeof KERNEL_CUDA_BLAS_WORKSPACE);
    for (const auto &setting : settings) {
        TRY_BLAS(cublasLtMatmulPreferenceSetAttribute, preference, setting.attribute,
                 &setting.value, sizeof setting.value);
    }
    return NULL;
}

/* What a library says of a kernel that it has, or believes to have, and cannot run. */
bool cannot(cublasStatus_t status) {
    return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH ||
           status == CUBLAS_STATUS_EXECUTION_FAILED || status == CUBLAS_STATUS_INTERNAL_ERROR;
}

KernelCudaFault choose(const KernelCuda *lane, KernelCudaProduct *p,
                       cublasLtMatmulPreference_t preference) {
    cublasLtMatmulHeuristicResult_t result = {};
    int found = 0;
    KERNEL_CUDA_TRY(prefer(preference, p->shape));
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(lane->blas, p->desc, p->b, p->a, p->y,
                                                           p->y, preference, 1, &result, &found);
    p->is_possible =
        status == CUBLAS_STATUS_SUCCESS && found && result.state == CUBLAS_STATUS_SUCCESS;
    p->algo = result.algo;
    /* An ending that it refuses, whichever way, is done by another kernel. */
    bool is_ending = p->shape.ending != PLAIN;
    bool is_refused = status == CUBLAS_STATUS_NOT_SUPPORTED ||
                      (is_ending && (cannot(status) || status == CUBLAS_STATUS_INVALID_VALUE));
    return is_refused ? NULL : kernel_cuda_check_blas("cublasLtMatmulAlgoGetHeuristic", status);
}

void product_free(KernelCudaProduct *p) {
    if (p->desc) {
        cublasLtMatmulDescDestroy(p->desc);
    }
    for (cublasLtMatrixLayout_t layout : {p->a, p->b, p->y}) {
        if (layout) {
            cublasLtMatrixLayoutDestroy(layout);
        }
    }
    delete p;
}

KernelCudaFault decide(const KernelCuda *lane, KernelCudaProduct *p, const End &end) {
    cublasLtMatmulPreference_t preference;
    KERNEL_CUDA_TRY(describe(lane, p));
    KERNEL_CUDA_TRY(set_pointers(p, end));
    TRY_BLAS(cublasLtMatmulPreferenceCreate, &preference);
    KernelCudaFault fault = choose(lane, p, preference);
    cublasLtMatmulPreferenceDestroy(preference);
    return fault;
}

KernelCudaFault product_for(KernelCuda *lane, const Shape &shape, const End &end,
                            KernelCudaProduct **ret_product) {
    for (KernelCudaProduct *known : lane->products) {
        if (!memcmp(&known->shape, &shape, sizeof shape)) {
            *ret_product = known;
            return NULL;
        }
    }
    KernelCudaProduct *p = new KernelCudaProduct();
    p->shape = shape;
    KernelCudaFault fault = decide(lane, p, end);
    if (fault) {
        product_free(p);
        return fault;
    }
    lane->products.push_back(p);
    *ret_product = p;
    return NULL;
}

struct Sizes {
    size_t m, n, k, batch;
    KernelCudaType type;
    Stored a, b;
    bool quick;
    size_t bytes_of(Stored stored) const {
        return stored == AS_OUTPUT ? kernel_cuda_type_bytes(type) : 1;
    }
};

/* A lane that multiplies has one: of a rank's lanes that is the one that computes. */
KernelCudaFault take_workspace(KernelCuda *lane) {
    return lane->blas_workspace ? NULL
                                : kernel_cuda_take(lane, "for cuBLAS", KERNEL_CUDA_BLAS_WORKSPACE,
                                                   &lane->blas_workspace);
}

/* y = op(a) op(b), ended as asked; *ret_possible says whether cuBLASLt could, and NULL that it
 * must. */
KernelCudaFault multiply(KernelCuda *lane, void *y, size_t y_stride, size_t y_batch,
                         const Matrix &a, const Matrix &b, const Sizes &z, const End &end,
                         bool *ret_possible) {
    size_t bytes = kernel_cuda_type_bytes(z.type);
    Shape s;
    memset(&s, 0, sizeof s);
    s.m = z.m, s.n = z.n, s.k = z.k, s.batch = z.batch;
    s.a_stride = a.stride, s.b_stride = b.stride, s.y_stride = y_stride;
    s.a_batch = a.batch_stride, s.b_batch = b.batch_stride, s.y_batch = y_batch;
    s.a_align = alignment(a.data, a.stride, a.batch_stride, z.bytes_of(z.a));
    s.b_align = alignment(b.data, b.stride, b.batch_stride, z.bytes_of(z.b));
    s.bias_align = alignment_of_extra(end.bias), s.before_align = alignment_of_extra(end.before);
    s.y_align = alignment(y, y_stride, y_batch, bytes);
    if (end.bias && end.ending != DBIAS && s.bias_align < s.y_align) {
        s.y_align = s.bias_align;
    }
    s.a_transposed = a.transposed, s.b_transposed = b.transposed;
    s.type = (uint8_t)z.type;
    s.ending = end.ending;
    s.a_stored = z.a, s.b_stored = z.b, s.quick = z.quick;
    KernelCudaProduct *p;
    KERNEL_CUDA_TRY(product_for(lane, s, end, &p));
    if (ret_possible) {
        *ret_possible = p->is_possible;
    }
    if (!p->is_possible) {
        return ret_possible ? NULL
                            : kernel_cuda_fault("cublasLtMatmulAlgoGetHeuristic: nothing for a "
                                                "product of %zu x %zu x %zu",
                                                z.m, z.n, z.k);
    }
    KERNEL_CUDA_TRY(set_pointers(p, end));
    KERNEL_CUDA_TRY(take_workspace(lane));
    cublasStatus_t status = cublasLtMatmul(
        lane->blas, p->desc, &end.alpha, b.data, p->b, a.data, p->a, &end.beta, y, p->y, y, p->y,
        &p->algo, lane->blas_workspace, KERNEL_CUDA_BLAS_WORKSPACE, lane->stream);
    if (ret_possible && cannot(status)) { /* it tells only now; a device that broke tells again */
        *ret_possible = p->is_possible = false;
        return NULL;
    }
    return kernel_cuda_check_blas("cublasLtMatmul", status);
}

/* A dense y. cuBLASLt promises nothing of a sum of no products, which is 0. */
KernelCudaFault multiply_one(KernelCuda *lane, void *y, const Matrix &a, const Matrix &b,
                             const Sizes &z) {
    return !z.m || !z.n ? NULL
           : !z.k       ? kernel_cuda_fill(lane, y, z.m * z.n, 0, z.type)
                        : multiply(lane, y, z.n, 0, a, b, z, NO_END, NULL);
}

/* ---- odd widths ------------------------------------------------------------------------------
 *
 * Of halves in rows that are no whole 16 bytes long (logits of GPT-2's 50257 tokens) cuBLASLt has
 * nothing but kernels for sm_75, on an H100 too, and looks at what is summed and at the output's
 * columns besides (12.4.5; tests/pretended-gpu). So such an array goes by way of the lane's scratch
 * memory, a part at a time, in rows that are whole; what is then computed is the same. */

enum {
    LEAST_SIDE = 256, /* of m and k: copies take less time than they spare */
    LEAST_ODD = 1024, /* of n */
#ifdef KERNEL_EMULATED
    PART_BYTES = 1 << 20, /* so that tests have several */
#else
    PART_BYTES = 1 << 28, /* of scratch memory; some waves of tiles, and little of a GPU */
#endif
    TILE = 256, /* columns of a part are a multiple of it */
};

/* A linear layer of m tokens whose n outputs make odd rows, and what stands in for them. */
struct Odd {
    size_t m, n, k;
    KernelCudaType type;
    size_t whole, padded; /* columns: those in whole 16 bytes, and as many as hold all */
    char *scratch;

    size_t bytes() const {
        return kernel_cuda_type_bytes(type);
    }
    const char *at(const void *array, size_t element) const {
        return (const char *)array + element * bytes();
    }
    char *at(void *array, size_t element) const {
        return (char *)array + element * bytes();
    }
    /* Tokens at a time, in parts that are alike and hold so many bytes at most. */
    size_t rows() const {
        size_t most = PART_BYTES / (padded * bytes());
        return divide_up(m, divide_up(m, most));
    }
    /* Columns at a time. */
    size_t cols() const {
        size_t most = PART_BYTES / (m * bytes()) / TILE * TILE;
        return divide_up(divide_up(whole, divide_up(whole, most)), TILE) * TILE;
    }
    KernelCudaPiece piece(void *to, size_t to_stride, const void *from, size_t from_stride,
                          size_t n_rows, size_t width) const {
        return {to, from, n_rows, width, to_stride, from_stride, type, type};
    }
};

/* Whether it is one, and there is room for so many bytes of it: asked for once, for where memory is
 * short the kernels for sm_75 do, too. */
bool is_odd(KernelCuda *lane, Odd *odd, std::initializer_list<const void *> others, size_t more) {
    uintptr_t all = odd->k * odd->bytes();
    void *scratch = NULL;
    for (const void *other : others) {
        all |= (uintptr_t)other;
    }
    odd->whole = odd->n / 8 * 8, odd->padded = odd->whole + 8;
    if (odd->type == KERNEL_CUDA_F32 || odd->whole == odd->n || all % 16 || odd->m < LEAST_SIDE ||
        odd->k < LEAST_SIDE || odd->n < LEAST_ODD || odd->padded * LEAST_SIDE > PART_BYTES / 2 ||
        odd->m * TILE > PART_BYTES / 2 || more > 2 * (size_t)PART_BYTES || lane->is_short) {
        return false;
    }
    size_t part = std::min((size_t)PART_BYTES, odd->m * odd->padded * odd->bytes());
    lane->is_short = kernel_cuda_spare_scratch(lane, part + more, &scratch) != NULL;
    cudaGetLastError(); /* which is then no fault of what comes next */
    odd->scratch = (char *)scratch;
    return !lane->is_short;
}

/* y[m, n] = x w^T: rows of whole ones are made and copied, and the last columns by themselves. */
KernelCudaFault forward_odd(KernelCuda *lane, const Odd &o, void *y, const void *x, const void *w) {
    size_t last = o.n - o.whole;
    for (size_t row = 0, rows; row < o.m; row += rows) {
        rows = std::min(o.rows(), o.m - row);
        KERNEL_CUDA_TRY(multiply(lane, o.scratch, o.padded, 0, {o.at(x, row * o.k), o.k, 0, false},
                                 {w, o.k, 0, true}, {rows, o.whole, o.k, 1, o.type}, NO_END, NULL));
        KernelCudaPiece made = o.piece(o.at(y, row * o.n), o.n, o.scratch, o.padded, rows, o.whole);
        KERNEL_CUDA_TRY(kernel_cuda_copy_pieces(lane, &made, 1));
    }
    return multiply(lane, o.at(y, o.whole), o.n, 0, {x, o.k, 0, false},
                    {o.at(w, o.whole * o.k), o.k, 0, true}, {o.m, last, o.k, 1, o.type}, NO_END,
                    NULL);
}

/* dx[m, k] = dy w: both with columns, and rows, of zeros more. */
KernelCudaFault backward_input_odd(KernelCuda *lane, const Odd &o, void *dx, const void *dy,
                                   const void *w) {
    char *padded_w = o.at(o.scratch, o.rows() * o.padded);
    size_t more = o.padded - o.n;
    const KernelCudaPiece of_w[] = {o.piece(padded_w, 0, w, 0, 1, o.n * o.k),
                                    o.piece(o.at(padded_w, o.n * o.k), 0, NULL, 0, 1, more * o.k)};
    KERNEL_CUDA_TRY(kernel_cuda_copy_pieces(lane, of_w, 2));
    for (size_t row = 0, rows; row < o.m; row += rows) {
        rows = std::min(o.rows(), o.m - row);
        const KernelCudaPiece of_dy[] = {
            o.piece(o.scratch, o.padded, o.at(dy, row * o.n), o.n, rows, o.n),
            o.piece(o.at(o.scratch, o.n), o.padded, NULL, 0, rows, more)};
        KERNEL_CUDA_TRY(kernel_cuda_copy_pieces(lane, of_dy, 2));
        KERNEL_CUDA_TRY(multiply(lane, o.at(dx, row * o.k), o.k, 0, {o.scratch, o.padded, 0, false},
                                 {padded_w, o.k, 0, false}, {rows, o.k, o.padded, 1, o.type},
                                 NO_END, NULL));
    }
    return NULL;
}

/* dw[n, k] = dy^T x: a part of dy's columns is as many rows of dw, and the last by themselves. */
KernelCudaFault backward_weight_odd(KernelCuda *lane, const Odd &o, void *dw, const void *dy,
                                    const void *x) {
    size_t last = o.n - o.whole;
    for (size_t col = 0, cols; col < o.whole; col += cols) {
        cols = std::min(o.cols(), o.whole - col);
        KernelCudaPiece of_dy = o.piece(o.scratch, cols, o.at(dy, col), o.n, o.m, cols);
        KERNEL_CUDA_TRY(kernel_cuda_copy_pieces(lane, &of_dy, 1));
        KERNEL_CUDA_TRY(multiply(lane, o.at(dw, col * o.k), o.k, 0, {o.scratch, cols, 0, true},
                                 {x, o.k, 0, false}, {cols, o.k, o.m, 1, o.type}, NO_END, NULL));
    }
    return multiply(lane, o.at(dw, o.whole * o.k), o.k, 0, {o.at(dy, o.whole), o.n, 0, true},
                    {x, o.k, 0, false}, {last, o.k, o.m, 1, o.type}, NO_END, NULL);
}

/* A dense y that is ended as asked, where there is one and cuBLASLt can. */
KernelCudaFault multiply_ended(KernelCuda *lane, void *y, const Matrix &a, const Matrix &b,
                               const Sizes &z, const End &end, bool *ret_done) {
    *ret_done = false;
    return z.m && z.n && z.k ? multiply(lane, y, z.n, 0, a, b, z, end, ret_done) : NULL;
}

/* Rows of what goes into GELU, n long, are whole 16 bytes of halves, as the epilogues that keep and
 * read it want them (cublasLt.h: its leading dimension must be divisible by 8). */
bool goes_through_gelu(const KernelCuda *lane, const void *before, size_t n, KernelCudaType type) {
    bool is_whole = n % 8 == 0 && (uintptr_t)before % 16 == 0;
    return lane->blas_knows_gelu && type != KERNEL_CUDA_F32 && is_whole;
}

} // namespace

KernelCudaFault kernel_cuda_float8_product(KernelCuda *lane, void *y, KernelCudaFloat8Factor a,
                                           KernelCudaFloat8Factor b, size_t m, size_t n, size_t k,
                                           bool quick, KernelCudaType type) {
    Stored stored[] = {IN_E4M3, IN_E5M2};
    Sizes sizes = {m, n, k, 1, type, stored[a.type], stored[b.type], quick};
    End scaled = {PLAIN, NULL, NULL, a.scale, b.scale};
    return !m || !n || !k ? NULL
                          : multiply(lane, y, n, 0, {a.numbers, k, 0, false},
                                     {b.numbers, k, 0, true}, sizes, scaled, NULL);
}

void kernel_cuda_products_free(KernelCuda *lane) {
    for (KernelCudaProduct *p : lane->products) {
        product_free(p);
    }
    lane->products.clear();
}

KernelCudaFault kernel_cuda_linear_forward(KernelCuda *lane, void *y, const void *x, const void *w,
                                           const void *bias, size_t m, size_t n, size_t k,
                                           KernelCudaType type) {
    Matrix left = {x, k, 0, false}, right = {w, k, 0, true};
    Sizes sizes = {m, n, k, 1, type};
    bool is_done = false;
    if (!m || !n) {
        return NULL;
    }
    if (bias) { /* cuBLASLt need not add one that lies anyhow */
        KERNEL_CUDA_TRY(multiply_ended(lane, y, left, right, sizes, {BIAS, bias, NULL}, &is_done));
    }
    Odd odd = {m, n, k, type};
    if (!bias && is_odd(lane, &odd, {x, w}, 0)) {
        return forward_odd(lane, odd, y, x, w);
    }
    if (is_done) {
        return NULL;
    }
    KERNEL_CUDA_TRY(multiply_one(lane, y, left, right, sizes));
    return bias ? kernel_cuda_add(lane, y, y, bias, m * n, n, type) : NULL;
}

KernelCudaFault kernel_cuda_linear_gelu_forward(KernelCuda *lane, void *y, void *before,
                                                const void *x, const void *w, const void *bias,
                                                size_t m, size_t n, size_t k,
                                                KernelCudaActivation gelu, KernelCudaType type) {
    bool is_done = false;
    if (gelu == KERNEL_CUDA_GELU_TANH && goes_through_gelu(lane, before, n, type)) {
        KERNEL_CUDA_TRY(multiply_ended(lane, y, {x, k, 0, false}, {w, k, 0, true},
                                       {m, n, k, 1, type}, {bias ? BIAS_GELU : GELU, bias, before},
                                       &is_done));
    }
    if (is_done) {
        return NULL;
    }
    KERNEL_CUDA_TRY(kernel_cuda_linear_forward(lane, before, x, w, bias, m, n, k, type));
    return kernel_cuda_activation_forward(lane, y, before, m * n, gelu, type);
}

KernelCudaFault kernel_cuda_linear_backward_input(KernelCuda *lane, void *dx, const void *dy,
                                                  const void *w, size_t m, size_t n, size_t k,
                                                  KernelCudaType type) {
    Odd odd = {m, n, k, type};
    return is_odd(lane, &odd, {dx, w}, (n + 8) * k * odd.bytes())
               ? backward_input_odd(lane, odd, dx, dy, w)
               : multiply_one(lane, dx, {dy, n, 0, false}, {w, k, 0, false}, {m, k, n, 1, type});
}

KernelCudaFault kernel_cuda_linear_backward_weight(KernelCuda *lane, void *dw, const void *dy,
                                                   const void *x, size_t m, size_t n, size_t k,
                                                   KernelCudaType type) {
    Odd odd = {m, n, k, type};
    return is_odd(lane, &odd, {dw, x}, 0)
               ? backward_weight_odd(lane, odd, dw, dy, x)
               : multiply_one(lane, dw, {dy, n, 0, true}, {x, k, 0, false}, {n, k, m, 1, type});
}

KernelCudaFault kernel_cuda_linear_backward_weight_add(KernelCuda *lane, void *dw, const void *dy,
                                                       const void *x, size_t m, size_t n, size_t k,
                                                       KernelCudaType type) {
    return !m || !n || !k ? NULL
                          : multiply(lane, dw, k, 0, {dy, n, 0, true}, {x, k, 0, false},
                                     {n, k, m, 1, type}, ADDED, NULL);
}

KernelCudaFault kernel_cuda_linear_gelu_backward_input(KernelCuda *lane, void *dx, void *db,
                                                       const void *dy, const void *w,
                                                       const void *before, size_t m, size_t n,
                                                       size_t k, KernelCudaType type) {
    Matrix left = {dy, n, 0, false}, right = {w, k, 0, false};
    Sizes sizes = {m, k, n, 1, type};
    bool is_done = false, is_summed = !db, can_end = goes_through_gelu(lane, before, k, type);
    if (can_end && db && lane->blas_sums_gelu) {
        KERNEL_CUDA_TRY(
            multiply_ended(lane, dx, left, right, sizes, {DGELU_DBIAS, db, before}, &is_done));
        is_summed = is_done;
    }
    if (can_end && !is_done) {
        KERNEL_CUDA_TRY(
            multiply_ended(lane, dx, left, right, sizes, {DGELU, NULL, before}, &is_done));
    }
    if (!is_done) {
        KERNEL_CUDA_TRY(multiply_one(lane, dx, left, right, sizes));
        KERNEL_CUDA_TRY(kernel_cuda_activation_backward(lane, dx, dx, before, m * k,
                                                        KERNEL_CUDA_GELU_TANH, type));
    }
    return is_summed ? NULL : kernel_cuda_column_sum(lane, db, dx, m, k, type);
}

KernelCudaFault kernel_cuda_linear_backward_weight_bias(KernelCuda *lane, void *dw, void *db,
                                                        const void *dy, const void *x, size_t m,
                                                        size_t n, size_t k, KernelCudaType type) {
    bool is_done;
    KERNEL_CUDA_TRY(multiply_ended(lane, dw, {dy, n, 0, true}, {x, k, 0, false}, {n, k, m, 1, type},
                                   {DBIAS, db, NULL}, &is_done));
    if (is_done) {
        return NULL;
    }
    KERNEL_CUDA_TRY(kernel_cuda_linear_backward_weight(lane, dw, dy, x, m, n, k, type));
    return kernel_cuda_column_sum(lane, db, dy, m, n, type);
}

KernelCudaFault kernel_cuda_product(KernelCuda *lane, void *y, const void *a, bool a_turned,
                                    const void *b, bool b_turned, size_t m, size_t n, size_t k,
                                    double alpha, double beta, KernelCudaType type) {
    End end = {PLAIN, NULL, NULL, NULL, NULL, (float)alpha, (float)beta};
    return !m || !n || !k
               ? NULL
               : multiply(lane, y, n, 0, {a, a_turned ? m : k, 0, a_turned},
                          {b, b_turned ? k : n, 0, b_turned}, {m, n, k, 1, type}, end, NULL);
}

/* Batch and heads are one batch where the next sequence begins as the next head would. */
KernelCudaFault kernel_cuda_heads_matmul(KernelCuda *lane, KernelCudaMatrices y,
                                         KernelCudaMatrices a, KernelCudaMatrices b, size_t batch,
                                         size_t heads, size_t m, size_t n, size_t k,
                                         KernelCudaType type) {
    const KernelCudaMatrices *all[] = {&y, &a, &b};
    bool is_one = true;
    if (y.transposed) {
        return kernel_cuda_fault("heads_matmul: the output is transposed");
    }
    if (!m || !n || !heads || !batch) {
        return NULL;
    }
    for (const KernelCudaMatrices *matrices : all) {
        is_one = is_one && matrices->batch_stride == heads * matrices->head_stride;
    }
    size_t calls = is_one ? 1 : batch, each = is_one ? batch * heads : heads;
    size_t bytes = kernel_cuda_type_bytes(type);
    for (size_t i = 0; i < calls; i++) {
        Matrix left = {(const char *)a.data + i * a.batch_stride * bytes, a.row_stride,
                       a.head_stride, a.transposed};
        Matrix right = {(const char *)b.data + i * b.batch_stride * bytes, b.row_stride,
                        b.head_stride, b.transposed};
        KERNEL_CUDA_TRY(multiply(lane, (char *)y.data + i * y.batch_stride * bytes, y.row_stride,
                                 y.head_stride, left, right, {m, n, k, each, type}, NO_END, NULL));
    }
    return NULL;
}
