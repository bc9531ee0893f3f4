/* The GPU's side of foreshard-exec (exec/program/gpu.h), linked to the emulator: nothing is loaded.
 */
#include "exec/program/gpu.h"

const ExecDevice *exec_gpu_device(GError **error) {
    return &exec_cuda;
}
