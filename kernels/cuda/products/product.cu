/* kernels/cuda/products/product.cu - see product.cuh. Bound: arithmetic.
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
#include "kernels/cuda/products/product.cuh"

#include <cublasLt.h>
#include <string.h>

#include <initializer_list>
#include <list>
#include <mutex>
#include <vector>

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
    std::vector<cublasLtMatmulAlgo_t> algos; /* that cuBLASLt has for it, the quickest first */
};

/* The lanes of a device share one: it takes the device's memory, and its end waits for the device
 * (cuBLAS's documentation of cublasLtCreate, which says to make few). Threads may share it, too. */
struct KernelCudaHandle {
    int device;
    unsigned lanes;
    cublasLtHandle_t handle;
};

struct KernelCudaBlas {
    KernelCudaHandle *shared;
    std::vector<KernelCudaProduct *> products;
};

using namespace cu;

namespace {

typedef KernelCudaProductShape Shape;

cudaDataType_t data_type(KernelCudaType type) {
    return type == KERNEL_CUDA_F32    ? CUDA_R_32F
           : type == KERNEL_CUDA_BF16 ? CUDA_R_16BF
                                      : CUDA_R_16F;
}

cudaDataType_t factor_type(uint8_t stored, cudaDataType_t type) {
    return stored == AS_OUTPUT ? type : stored == IN_E5M2 ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3;
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

KernelCudaFault check_blas(const char *call, cublasStatus_t status) {
    return status == CUBLAS_STATUS_SUCCESS
               ? NULL
               : kernel_cuda_fault("%s: %s", call, cublasLtGetStatusName(status));
}

#define TRY_BLAS(call, ...) KERNEL_CUDA_TRY(check_blas(#call, call(__VA_ARGS__)))

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

/* That scales are MXFP8's, which cuBLASLt knows from CUDA 12.8 on. */
KernelCudaFault scale_blocks(cublasLtMatmulDesc_t desc) {
#if CUDART_VERSION >= 12080
    int32_t mode = CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0;
    KERNEL_CUDA_TRY(set(desc, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode));
    return set(desc, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode);
#else
    (void)desc;
    return kernel_cuda_fault("this was built with CUDA before 12.8, whose cuBLASLt has no MXFP8");
#endif
}

KernelCudaFault describe(const KernelCuda *lane, KernelCudaProduct *p) {
    const Shape &s = p->shape;
    cudaDataType_t type = data_type((KernelCudaType)s.type);
    bool tf32 = type == CUDA_R_32F && lane->math == KERNEL_CUDA_TF32 && !s.a_stored;
    TRY_BLAS(cublasLtMatmulDescCreate, &p->desc,
             tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F);
    /* cuBLAS is column-major and sees our matrices transposed, so a and b swap places and keep
     * their own transpose flags. */
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
    if (s.a_stored == IN_MXFP8) {
        KERNEL_CUDA_TRY(scale_blocks(p->desc));
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

/* What a library says of a kernel that it has, or believes to have, and cannot run. Of an ending it
 * may also say that an argument is wrong, where it wants a bias to lie otherwise, say. */
bool cannot(cublasStatus_t status, bool is_ending) {
    return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH ||
           status == CUBLAS_STATUS_EXECUTION_FAILED || status == CUBLAS_STATUS_INTERNAL_ERROR ||
           (is_ending && status == CUBLAS_STATUS_INVALID_VALUE);
}

/* The quickest, or those that can take its place; an ending that it refuses, whichever way, is done
 * by another kernel. */
KernelCudaFault choose(const KernelCuda *lane, KernelCudaProduct *p,
                       cublasLtMatmulPreference_t preference) {
    constexpr int MOST = 4;
    cublasLtMatmulHeuristicResult_t results[MOST] = {};
    int found = 0;
    bool is_ending = p->shape.ending != PLAIN;
    KERNEL_CUDA_TRY(prefer(preference, p->shape));
    cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(lane->blas->shared->handle, p->desc, p->b, p->a, p->y, p->y,
                                       preference, is_ending ? 1 : MOST, results, &found);
    for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < found; i++) {
        if (results[i].state == CUBLAS_STATUS_SUCCESS) {
            p->algos.push_back(results[i].algo);
        }
    }
    bool is_refused = status == CUBLAS_STATUS_NOT_SUPPORTED || (is_ending && cannot(status, true));
    return is_refused ? NULL : check_blas("cublasLtMatmulAlgoGetHeuristic", status);
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
    for (KernelCudaProduct *known : lane->blas->products) {
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
    lane->blas->products.push_back(p);
    *ret_product = p;
    return NULL;
}

/* A lane that multiplies has one: of a rank's lanes that is the one that computes. */
KernelCudaFault take_workspace(KernelCuda *lane) {
    return lane->blas_workspace ? NULL
                                : kernel_cuda_take(lane, "for cuBLAS", KERNEL_CUDA_BLAS_WORKSPACE,
                                                   &lane->blas_workspace);
}

} // namespace

KernelCudaFault cu::multiply(KernelCuda *lane, void *y, size_t y_stride, size_t y_batch,
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
        *ret_possible = !p->algos.empty();
    }
    if (p->algos.empty()) {
        return ret_possible ? NULL
                            : kernel_cuda_fault("cublasLtMatmulAlgoGetHeuristic: nothing for a "
                                                "product of %zu x %zu x %zu",
                                                z.m, z.n, z.k);
    }
    KERNEL_CUDA_TRY(set_pointers(p, end));
    KERNEL_CUDA_TRY(take_workspace(lane));
    cublasStatus_t status;
    bool is_refused;
    do {
        status = cublasLtMatmul(lane->blas->shared->handle, p->desc, &end.alpha, b.data, p->b,
                                a.data, p->a, &end.beta, y, p->y, y, p->y, &p->algos.front(),
                                lane->blas_workspace, KERNEL_CUDA_BLAS_WORKSPACE, lane->stream);
        is_refused = cannot(status, s.ending != PLAIN);
        if (is_refused) { /* it tells only now; a device that broke tells again */
            p->algos.erase(p->algos.begin());
        }
    } while (is_refused && !p->algos.empty());
    if (ret_possible && is_refused) {
        *ret_possible = false;
        return NULL;
    }
    return check_blas("cublasLtMatmul", status);
}

/* ---- the handle ----------------------------------------------------------------------------- */

static std::mutex handles_mutex;
static std::list<KernelCudaHandle> handles; /* of each device that a lane is on */

static KernelCudaFault take_handle(int device, KernelCudaHandle **ret_shared) {
    std::lock_guard<std::mutex> guard(handles_mutex);
    for (KernelCudaHandle &known : handles) {
        if (known.device == device) {
            known.lanes++;
            *ret_shared = &known;
            return NULL;
        }
    }
    KernelCudaHandle made = {device, 1, NULL};
    TRY_BLAS(cublasLtCreate, &made.handle);
    handles.push_back(made);
    *ret_shared = &handles.back();
    return NULL;
}

static void give_back_handle(KernelCudaHandle *shared) {
    std::lock_guard<std::mutex> guard(handles_mutex);
    if (--shared->lanes == 0) {
        cublasLtDestroy(shared->handle);
        handles.remove_if([=](const KernelCudaHandle &known) { return &known == shared; });
    }
}

KernelCudaFault kernel_cuda_blas_new(KernelCuda *lane) {
    int device;
    KERNEL_CUDA_TRY(kernel_cuda_check("cudaGetDevice", cudaGetDevice(&device)));
    lane->blas = new KernelCudaBlas();
    return take_handle(device, &lane->blas->shared);
}

void kernel_cuda_blas_free(KernelCuda *lane) {
    if (!lane->blas) {
        return;
    }
    for (KernelCudaProduct *p : lane->blas->products) {
        product_free(p);
    }
    if (lane->blas->shared) {
        give_back_handle(lane->blas->shared);
    }
    delete lane->blas;
}
