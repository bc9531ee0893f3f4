/* kernels/everywhere.h - marks what is alike on the host and on a GPU, and called on both. */
#pragma once

#ifdef __CUDACC__
#define KERNEL_EVERYWHERE __host__ __device__
#else
#define KERNEL_EVERYWHERE
#endif
