/* kernels/cuda/copy.cu - see copy.h. Bound: memory.
 *
 * Pieces go to the device as arguments of the launch, so nothing has to be copied there first. The
 * blocks are dealt out to pieces by their elements; a block finds its piece in the table of first
 * blocks, and copies a run of CHUNK elements, whole rows or parts of them.
 */
#include "kernels/cuda/copy.h"

#include "kernels/cuda/each.cuh"

using namespace cu;

namespace {

enum {
    PIECES = 40, /* of one launch: 3.2 KB of its arguments */
    CHUNK = 8192 /* elements a block copies */
};

struct Pieces {
    KernelCudaPiece piece[PIECES];
    unsigned first_block[PIECES + 1];
    unsigned n;
};

/* Four elements of a row, or fewer at its end, on their way. */
struct Four {
    Raw4 raw;
    size_t to, from, n;
    bool together; /* raw holds them; else they go one by one */
};

__device__ Four fetch(const KernelCudaPiece &p, size_t unit, size_t row_units) {
    size_t row = p.rows == 1 ? 0 : unit / row_units, column = (unit - row * row_units) * 4;
    Four f = {{}, row * p.to_stride + column, row * p.from_stride + column, 0, false};
    f.n = min((size_t)4, p.width - column);
    f.together = f.n == 4 && is_aligned4(p.to, p.to_type, f.to) &&
                 (!p.from || is_aligned4(p.from, p.from_type, f.from));
    if (f.together && p.from) {
        f.raw = load_raw(p.from, p.from_type, f.from);
    }
    return f;
}

__device__ void put(const KernelCudaPiece &p, const Four &f) {
    if (f.together) {
        float x[4] = {};
        if (p.from) {
            widen4(x, f.raw, p.from_type);
        }
        store4(p.to, p.to_type, f.to, x);
        return;
    }
    for (size_t v = 0; v < f.n; v++) {
        store1(p.to, p.to_type, f.to + v, p.from ? load1(p.from, p.from_type, f.from + v) : 0.0f);
    }
}

/* Two units of a thread are loaded before either is stored: one of 8 bytes would not keep memory
 * busy. */
__global__ void __launch_bounds__(THREADS) pieces_kernel(const __grid_constant__ Pieces pieces) {
    unsigned k = 0;
    while (pieces.first_block[k + 1] <= blockIdx.x) {
        k++;
    }
    const KernelCudaPiece &p = pieces.piece[k];
    size_t row_units = (p.width + 3) / 4, units = p.rows * row_units;
    size_t first = (size_t)(blockIdx.x - pieces.first_block[k]) * (CHUNK / 4);
    size_t last = min(units, first + CHUNK / 4);
    for (size_t u = first + threadIdx.x; u < last; u += 2 * blockDim.x) {
        bool has_second = u + blockDim.x < last;
        Four one = fetch(p, u, row_units);
        Four two = fetch(p, has_second ? u + blockDim.x : u, row_units);
        put(p, one);
        if (has_second) {
            put(p, two);
        }
    }
}

size_t blocks_of(const KernelCudaPiece *p) {
    return divide_up(p->rows * divide_up(p->width, 4), CHUNK / 4);
}

} // namespace

KernelCudaFault kernel_cuda_copy_pieces(KernelCuda *lane, const KernelCudaPiece *pieces, size_t n) {
    Pieces some = {};
    for (size_t i = 0; i < n; i++) {
        size_t blocks = blocks_of(&pieces[i]);
        if (blocks) {
            some.piece[some.n] = pieces[i];
            some.first_block[some.n + 1] = some.first_block[some.n] + (unsigned)blocks;
            some.n++;
        }
        if (some.n == PIECES || (i + 1 == n && some.n)) {
            KERNEL_CUDA_TRY(launch(lane, "copy_pieces", pieces_kernel,
                                   dim3(some.first_block[some.n]), dim3(THREADS), 0, some));
            some.n = 0;
        }
    }
    return NULL;
}
