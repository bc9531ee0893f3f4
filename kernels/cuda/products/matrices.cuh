/* kernels/cuda/products/matrices.cuh - products of small matrices of halves by the lanes of a warp
 * together; for .cu files of this folder only.
 *
 * What every GPU from sm_80 on has (PTX ISA: ldmatrix, mma.sync.m16n8k16). Which lane holds which
 * elements stands there; below, g is a lane's number / 4, t its number % 4. All lanes of the warp
 * come here together. CUDA's own wmma is not used, since it reads bf16 in single words and turns
 * columns around afterwards (CUDA 13.0, sm_90), where ldmatrix does both at once.
 */
#pragma once
#include "kernels/cuda/device.cuh"

#ifdef KERNEL_EMULATED
#include <emulator-matrices.h>
#endif

namespace cu {

/* Four matrices of 8 x 8. Lane l says where row l % 8 of matrix l / 8 begins, on 16 bytes of shared
 * memory. Of matrix i a lane gets, in word i, elements 2 t and 2 t + 1 of row g; if ACROSS, of
 * column g. */
template <bool ACROSS, typename T>
static inline __device__ void load_matrices(unsigned (&word)[4], const T *row) {
#ifdef KERNEL_EMULATED
    emulator_load_matrices(word, row, ACROSS);
#else
    unsigned at = (unsigned)__cvta_generic_to_shared(row);
    if (ACROSS) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                     : "r"(at)
                     : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                     : "r"(at)
                     : "memory");
    }
#endif
}

/* sum[16 x 8] += a[16 x 16] b[16 x 8], in fp32. A lane's two halves of a[0] are row g, columns 2 t
 * and 2 t + 1; a[1] is eight rows below, a[2] and a[3] the same eight columns on. b: rows 2 t and
 * 2 t + 1 of column g; b_below eight rows on. sum: row g, columns 2 t and 2 t + 1; then eight rows
 * below. */
static inline __device__ void add_product(float (&sum)[4], const unsigned (&a)[4], unsigned b,
                                          unsigned b_below, __nv_bfloat16 type) {
#ifdef KERNEL_EMULATED
    emulator_add_product(sum, a, b, b_below, type);
#else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(b_below));
#endif
}
static inline __device__ void add_product(float (&sum)[4], const unsigned (&a)[4], unsigned b,
                                          unsigned b_below, __half type) {
#ifdef KERNEL_EMULATED
    emulator_add_product(sum, a, b, b_below, type);
#else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(b_below));
#endif
}

} // namespace cu
