/* The GPU's side of foreshard-exec (exec/gpu.h), linked to the emulator: nothing is loaded. */
#include "exec/gpu.h"

const ExecDevice *exec_gpu_device(GError **error) {
    return &exec_cuda;
}
