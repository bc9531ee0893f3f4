/* exec/program/gpu-none.c - gpu.h where this was built without CUDA. */
#include "exec/error.h"
#include "exec/program/gpu.h"

const ExecDevice *exec_gpu_device(GError **error) {
    g_set_error_literal(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                        "there is no device 'cuda' here; build with -Dcuda=enabled, which needs "
                        "the CUDA toolkit");
    return NULL;
}
