/* tests/oracle/pretend-cuda/cublas.c - cuBLAS and cuBLASLt that multiply nothing (cudart.c). */
int cublasCreate_v2(void **handle);
int cublasCreate_v2(void **handle) {
    *handle = (void *)0x1000;
    return 0;
}

int cublasGetVersion_v2(void *handle, int *version);
int cublasGetVersion_v2(void *handle, int *version) {
    *version = 130100;
    return 0;
}

int cublasLtCreate(void **handle);
int cublasLtCreate(void **handle) {
    *handle = (void *)0x1000;
    return 0;
}

/* One algorithm is found. */
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c,
                                   void *d, void *preference, int wanted, void *results,
                                   int *found);
int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c,
                                   void *d, void *preference, int wanted, void *results,
                                   int *found) {
    *found = 1;
    return 0;
}

/* Products are work that the device is given. */
void pretend_launched(void); /* cudart.c */

int cublasLtMatmul(void);
int cublasLtMatmul(void) {
    pretend_launched();
    return 0;
}

int cublasGemmEx(void);
int cublasGemmEx(void) {
    pretend_launched();
    return 0;
}

int cublasGemmStridedBatchedEx(void);
int cublasGemmStridedBatchedEx(void) {
    pretend_launched();
    return 0;
}

int cublasSgemm_v2(void);
int cublasSgemm_v2(void) {
    pretend_launched();
    return 0;
}

int cublasSgemmStridedBatched(void);
int cublasSgemmStridedBatched(void) {
    pretend_launched();
    return 0;
}
