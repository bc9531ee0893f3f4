/* tests/pretended-gpu/gpu.h - GPUs that are only described, for NVIDIA's own libraries to plan on.
 *
 * gpu.c stands for the CUDA runtime and the driver: it says what such a GPU is, gives addresses
 * with nothing behind them, and notes which kernels are launched instead of running them. Device i
 * is GPU i of the table there. What a GPU would refuse at once (too much shared memory, a grid or a
 * block too large) it refuses too.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum {
    PRETENDED_GPUS = 4,
    PRETENDED_LAUNCHES = 16 /* at most noted since the last pretended_forget() */
};

/* "H100", and its compute capability times ten. */
const char *pretended_gpu_name(unsigned gpu);
unsigned pretended_gpu_capability(unsigned gpu);

/* What was launched since pretended_forget(): names of kernels, as the compiler wrote them. */
unsigned pretended_n_launches(void);
const char *pretended_launch(unsigned i);
void pretended_forget(void);

/* Bytes that cudaMalloc gave and has not got back, and how often it was asked. */
size_t pretended_allocated_bytes(void);
unsigned pretended_n_allocations(void);
