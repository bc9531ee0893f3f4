/* kernels/host/runtime.c - see runtime.h. */
#include "kernels/host/runtime.h"
#include <cblas.h>

bool kernel_set_threads(int threads) {
#ifdef KERNEL_OPENBLAS
    openblas_set_num_threads(threads);
    return true;
#else
    (void)threads;
    return false;
#endif
}

const char *kernel_blas_name(void) {
#ifdef KERNEL_OPENBLAS
    return openblas_get_config();
#else
    return "CBLAS";
#endif
}

#ifndef KERNEL_DISPATCH
const char *kernel_isa_name(void) {
    return "generic";
}
#endif
