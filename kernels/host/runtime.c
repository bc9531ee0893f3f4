/* kernels/host/runtime.c - see runtime.h. */
#include "kernels/host/runtime.h"
#include <cblas.h>
#include <string.h>

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

const char *kernel_blas_better_core(void) {
#ifdef KERNEL_OPENBLAS
    const char *isa = kernel_isa_name();
    if (strcmp(openblas_get_corename(), "Prescott") == 0) {
        return strcmp(isa, "x86-64-v4") == 0   ? "SkylakeX"
               : strcmp(isa, "x86-64-v3") == 0 ? "Haswell"
                                               : NULL;
    }
#endif
    return NULL;
}

#ifndef KERNEL_DISPATCH
const char *kernel_isa_name(void) {
    return "generic";
}
#endif
