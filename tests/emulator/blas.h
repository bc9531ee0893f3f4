/* tests/emulator/blas.h - what cuBLASLt's part of the emulator (blas.cc) and its arithmetic
 * (products.cc) share.
 */
#pragma once

#include <cublasLt.h>

struct EmulatorProduct {
    cublasComputeType_t compute;
    cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue;
    void *bias; /* or its gradient */
    int32_t bias_type;
    void *aux;
    int64_t aux_ld;
    /* Of float8: one for all, or in MXFP8 an exponent for each 32 that are summed. */
    const void *a_scale = nullptr, *b_scale = nullptr;
    int32_t a_mode = CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F, b_mode = a_mode;
    int8_t quick = 0;
};

struct EmulatorLayout {
    cudaDataType type;
    uint64_t rows, cols;
    int64_t ld;
    int32_t batch;
    int64_t stride;
};

/* Of cublasLtMatmul. */
struct EmulatorCall {
    EmulatorProduct product;
    EmulatorLayout a_layout, b_layout, d_layout;
    const void *a, *b;
    void *d;
    float alpha, beta; /* beta 0: d is written only */
};

inline bool is_float8(cudaDataType type) {
    return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2;
}

inline bool is_mxfp8(const EmulatorProduct &p) {
    return p.a_mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0 && p.b_mode == p.a_mode;
}

inline bool has_bias(const EmulatorProduct &p) {
    return p.epilogue == CUBLASLT_EPILOGUE_BIAS || p.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}

inline bool has_gradient(const EmulatorProduct &p) {
    return p.epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD || p.epilogue == CUBLASLT_EPILOGUE_BGRADB;
}

/* What went into GELU: keeps it, or reads it. */
inline bool keeps(const EmulatorProduct &p) {
    return p.epilogue == CUBLASLT_EPILOGUE_GELU_AUX ||
           p.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}

inline bool goes_back(const EmulatorProduct &p) {
    return p.epilogue == CUBLASLT_EPILOGUE_DGELU || p.epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD;
}

/* Every batch's, and its epilogue. */
void emulator_multiply(const EmulatorCall &call);
