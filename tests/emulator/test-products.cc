/* tests/emulator/test-products.cc - what is asked of cuBLASLt and left to cuDNN. */
#include <cublasLt.h>
#include <math.h>

#include "kernels/cuda/attention/attention-private.h"
#include "tests/emulator/test.h"

/* ---- products ------------------------------------------------------------------------------- */

/* d [ROWS, COLS] = a [ROWS, K] b [K, COLS], columns first, with something at its end. */
struct Product {
    static const unsigned ROWS = 8, COLS = 3, K = 6;

    cublasLtEpilogue_t epilogue;
    bool has_bias, has_aux = true;
    int64_t aux_ld = ROWS;
    cudaDataType_t bias_type = CUDA_R_32F;
    cublasOperation_t b_op;
    int32_t batch = 1;
    unsigned shift = 0; /* of what goes into GELU when it is launched; elements */
    uint64_t workspace_bytes = 64, less = 0; /* that is said, and that it is less than that */
    const float *a_at = nullptr;             /* elsewhere than here */
    float a[ROWS * K], b[K * COLS], d[ROWS * COLS], bias[ROWS];
    alignas(64) float aux[ROWS * COLS + 4];
    alignas(256) char workspace[64];

    explicit Product(cublasLtEpilogue_t end)
        : epilogue(end),
          has_bias(end == CUBLASLT_EPILOGUE_DGELU_BGRAD || end == CUBLASLT_EPILOGUE_BGRADB),
          b_op(end == CUBLASLT_EPILOGUE_BGRADB ? CUBLAS_OP_T : CUBLAS_OP_N) {
        for (unsigned i = 0; i < ROWS * K; i++) {
            a[i] = (float)(i % 7) - 3;
        }
        for (unsigned i = 0; i < K * COLS; i++) {
            b[i] = (float)(i % 5) - 2;
        }
        for (unsigned i = 0; i < ROWS * COLS + 4; i++) {
            aux[i] = (float)(i % 3) - 1;
        }
    }

    template <typename T>
    static void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, T value) {
        g_assert_cmpint(cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value), ==,
                        CUBLAS_STATUS_SUCCESS);
    }

    static cublasLtMatrixLayout_t layout(uint64_t rows, uint64_t cols, int32_t batch) {
        cublasLtMatrixLayout_t made;
        g_assert_cmpint(cublasLtMatrixLayoutCreate(&made, CUDA_R_32F, rows, cols, (int64_t)rows),
                        ==, CUBLAS_STATUS_SUCCESS);
        cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                         sizeof batch);
        return made;
    }

    /* What the heuristics say, or the launch if they have no objection. */
    cublasStatus_t run() {
        cublasLtHandle_t blas;
        cublasLtMatmulDesc_t desc;
        cublasLtMatmulPreference_t preference;
        cublasLtMatmulHeuristicResult_t result;
        const float one = 1, zero = 0;
        int found;
        cublasLtCreate(&blas);
        cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
        cublasLtMatmulPreferenceCreate(&preference);
        for (auto least : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
            uint32_t bytes = sizeof(float);
            cublasLtMatmulPreferenceSetAttribute(preference, least, &bytes, sizeof bytes);
        }
        cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &workspace_bytes, sizeof workspace_bytes);
        set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
        set(desc, CUBLASLT_MATMUL_DESC_TRANSB, b_op);
        set(desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, bias_type);
        set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, has_bias ? bias : nullptr);
        set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, has_aux ? aux : nullptr);
        set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, aux_ld);
        cublasLtMatrixLayout_t la = layout(ROWS, K, batch);
        cublasLtMatrixLayout_t lb =
            b_op == CUBLAS_OP_T ? layout(COLS, K, batch) : layout(K, COLS, batch);
        cublasLtMatrixLayout_t ld = layout(ROWS, COLS, batch);
        cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(blas, desc, la, lb, ld, ld,
                                                               preference, 1, &result, &found);
        if (status == CUBLAS_STATUS_SUCCESS) {
            set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, has_aux ? aux + shift : nullptr);
            status = cublasLtMatmul(blas, desc, &one, a_at ? a_at : a, la, b, lb, &zero, d, ld, d,
                                    ld, &result.algo, workspace, workspace_bytes - less, nullptr);
            g_assert_cmpint(cudaStreamSynchronize(nullptr), ==, cudaSuccess);
        }
        for (auto made : {la, lb, ld}) {
            cublasLtMatrixLayoutDestroy(made);
        }
        cublasLtMatmulPreferenceDestroy(preference);
        cublasLtMatmulDescDestroy(desc);
        cublasLtDestroy(blas);
        return status;
    }
};

/* One that lies in the device's memory, changed. */
template <typename F> static cublasStatus_t refused(cublasLtEpilogue_t end, F change) {
    void *memory;
    g_assert_cmpint(cudaMalloc(&memory, sizeof(Product)), ==, cudaSuccess);
    Product *p = new (memory) Product(end);
    change(p);
    cublasStatus_t status = p->run();
    cudaFree(memory);
    return status;
}

void plant_crooked_aux() {
    refused(CUBLASLT_EPILOGUE_DGELU, [](Product *p) { p->shift = 1; });
}

void plant_unread_bias() {
    refused(CUBLASLT_EPILOGUE_DGELU, [](Product *p) { p->has_bias = true; });
}

void plant_short_workspace() {
    refused(CUBLASLT_EPILOGUE_DGELU, [](Product *p) { p->less = 1; });
}

void plant_host_matrix() {
    Product elsewhere(CUBLASLT_EPILOGUE_DGELU);
    refused(CUBLASLT_EPILOGUE_DGELU, [&](Product *p) { p->a_at = elsewhere.a; });
}

/* What cublasLt.h asks of the epilogues of gradients is refused where it is not kept. */
static void test_epilogues() {
    const cublasLtEpilogue_t back = CUBLASLT_EPILOGUE_DGELU_BGRAD;
    for (auto end : {CUBLASLT_EPILOGUE_DGELU, back, CUBLASLT_EPILOGUE_BGRADB}) {
        g_assert_cmpint(refused(end, [](Product *) {}), ==, CUBLAS_STATUS_SUCCESS);
    }
    g_assert_cmpint(refused(CUBLASLT_EPILOGUE_DGELU, [](Product *p) { p->aux_ld = 12; }), ==,
                    CUBLAS_STATUS_NOT_SUPPORTED);
    for (auto end : {CUBLASLT_EPILOGUE_DGELU, back, CUBLASLT_EPILOGUE_GELU_AUX}) {
        g_assert_cmpint(refused(end, [](Product *p) { p->aux_ld = 0; }), ==,
                        CUBLAS_STATUS_INVALID_VALUE);
        g_assert_cmpint(refused(end, [](Product *p) { p->has_aux = false; }), ==,
                        CUBLAS_STATUS_INVALID_VALUE);
    }
    g_assert_cmpint(refused(CUBLASLT_EPILOGUE_BGRADB, [](Product *p) { p->b_op = CUBLAS_OP_N; }),
                    ==, CUBLAS_STATUS_NOT_SUPPORTED);
    for (auto end : {back, CUBLASLT_EPILOGUE_BGRADB}) {
        g_assert_cmpint(refused(end, [](Product *p) { p->has_bias = false; }), ==,
                        CUBLAS_STATUS_INVALID_VALUE);
        g_assert_cmpint(refused(end, [](Product *p) { p->bias_type = CUDA_R_16F; }), ==,
                        CUBLAS_STATUS_INVALID_VALUE);
        g_assert_cmpint(refused(end, [](Product *p) { p->batch = 2; }), ==,
                        CUBLAS_STATUS_INVALID_VALUE);
    }
}

/* ---- attention by cuDNN --------------------------------------------------------------------- */

/* What is left to which version of it, on which GPU. */
static void test_cudnn_versions() {
    const auto fits = [](size_t version, auto change, int major = 9) {
        KernelCudaAttention shape = {2,   4,   4,   256, 64,   256,
                                     256, 256, 256, 1.,  true, KERNEL_CUDA_BF16};
        change(&shape);
        return kernel_cuda_cudnn_fits(&shape, version, major);
    };
    const auto plain = [](KernelCudaAttention *) {};
    const auto padded = [](KernelCudaAttention *a) { a->lse_stride = 260; };
    const auto uneven = [](KernelCudaAttention *a) { a->seq = a->lse_stride = 70; };
    const auto wide = [](KernelCudaAttention *a) { a->head_dim = a->q_stride = 256; };
    const auto single = [](KernelCudaAttention *a) { a->seq = a->lse_stride = 1; };
    const auto half = [](KernelCudaAttention *a) { a->seq = a->lse_stride = 192; };
    const auto open_half = [](KernelCudaAttention *a) { a->keys = 192, a->causal = false; };
    const auto fewer_keys = [](KernelCudaAttention *a) { a->keys = 192; };
    const auto few_queries = [](KernelCudaAttention *a) {
        a->keys = 256, a->seq = a->lse_stride = 70, a->causal = false;
    };
    for (size_t bad : {80907, 90501, 91000, 91001}) {
        g_assert_false(fits(bad, plain));
    }
    for (size_t good : {90600, 90900, 91002, 91900, 92600}) {
        g_assert_true(fits(good, plain));
        g_assert_true(fits(good, padded) == (good >= 92600));
        g_assert_true(fits(good, uneven) == (good >= 91501));
        g_assert_true(fits(good, wide) == (good >= 91002));
        g_assert_false(fits(good, wide, 8));
        g_assert_false(fits(good, wide, 10));
        g_assert_false(fits(good, single));
        for (auto beyond : {+open_half, +fewer_keys, +few_queries}) { /* the last of a tile */
            g_assert_false(fits(good, beyond));
            g_assert_true(fits(good, beyond, 10) == (good >= 91501 || beyond == +few_queries));
        }
        g_assert_true(fits(good, half) == (good >= 91501));
        float least = kernel_cuda_cudnn_least(good);
        g_assert_true(least < -1e38f && isinf(least) == (good >= 91000));
    }
}

/* The lanes of a device multiply by one handle, which lives as long as any of them. */
static void test_one_handle() {
    EmulatorLive before = emulator_live();
    KernelCuda *lanes[2];
    cudaStream_t streams[2];
    for (int i = 0; i < 2; i++) {
        cudaStreamCreate(&streams[i]);
        g_assert_null(kernel_cuda_new(&lanes[i], streams[i], KERNEL_CUDA_EXACT));
    }
    g_assert_cmpuint(emulator_live().blas, ==, before.blas + 1);
    for (int i = 0; i < 2; i++) {
        g_assert_cmpuint(emulator_live().blas, ==, before.blas + 1);
        kernel_cuda_free(lanes[i]);
        cudaStreamDestroy(streams[i]);
    }
    g_assert_cmpuint(emulator_live().blas, ==, before.blas);
}

void add_product_tests() {
    g_test_add_func("/emulator/products/epilogues", test_epilogues);
    g_test_add_func("/emulator/products/one-handle", test_one_handle);
    g_test_add_func("/emulator/cudnn/versions", test_cudnn_versions);
}
