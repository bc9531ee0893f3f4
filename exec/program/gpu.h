/* exec/program/gpu.h - the GPU's side of foreshard-exec, which is loaded only when a GPU is asked
 * for.
 *
 * CUDA, cuBLAS, cuDNN and NCCL take 150 MB of a process that never uses them, and where they are
 * missing nothing linked against them starts. So what needs them is a module, foreshard-cuda.so: it
 * shows one symbol, exec_cuda, and takes all else from the program.
 */
#pragma once

#include "exec/device.h"

/* NULL with error: an input's, when this program was built without CUDA; else what is missing. */
const ExecDevice *exec_gpu_device(GError **error);
