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
    PIECES = 40,  /* of one launch: 3.2 KB of its arguments */
    CHUNK = 8192, /* elements a block copies */
};

struct Pieces {
    KernelCudaPiece piece[PIECES];
    unsigned first_block[PIECES + 1];
    unsigned n;
};

/* Elements a thread copies at a time: 16 bytes where they stay what they are, for 8 bytes a thread
 * under way would not fill memory. */
__host__ __device__ unsigned unit_of(const KernelCudaPiece &p) {
    return p.from && p.to_type == p.from_type && p.to_type != KERNEL_CUDA_F32 ? 8 : 4;
}

/* Four elements of a row, or fewer at its end. */
__device__ void copy_four(const KernelCudaPiece &p, size_t row, size_t column) {
    size_t to = row * p.to_stride + column, from = row * p.from_stride + column;
    size_t n = min((size_t)4, p.width - column);
    bool together = n == 4 && is_aligned4(p.to, p.to_type, to) &&
                    (!p.from || is_aligned4(p.from, p.from_type, from));
    float x[4] = {};
    if (together) {
        if (p.from) {
            widen4(x, load_raw(p.from, p.from_type, from), p.from_type);
        }
        store4(p.to, p.to_type, to, x);
        return;
    }
#pragma unroll 1
    for (size_t v = 0; v < n; v++) {
        store1(p.to, p.to_type, to + v, p.from ? load1(p.from, p.from_type, from + v) : 0.0f);
    }
}

/* Eight of 16 bits from anywhere, by the words that they lie in; one before or one behind them is
 * read too, where they begin within a word. */
__device__ uint4 eight_from(const uint16_t *from) {
    bool is_within = (uintptr_t)from % 4 != 0;
    const unsigned *word = (const unsigned *)(is_within ? from - 1 : from);
    uint4 eight = make_uint4(word[0], word[1], word[2], word[3]);
    if (is_within) {
        unsigned last = word[4];
        eight = make_uint4(eight.x >> 16 | eight.y << 16, eight.y >> 16 | eight.z << 16,
                           eight.z >> 16 | eight.w << 16, eight.w >> 16 | last << 16);
    }
    return eight;
}

/* Of a row of 16 bits, the unit's eight: such that begin on 16 bytes where they go; the first unit
 * has those before them, too. */
__device__ void copy_eight(const KernelCudaPiece &p, size_t row, size_t unit) {
    const uint16_t *from = (const uint16_t *)p.from + row * p.from_stride;
    uint16_t *to = (uint16_t *)p.to + row * p.to_stride;
    size_t head = (16 - (uintptr_t)to % 16) % 16 / 2, end = min(p.width, head + 8 * unit + 8);
    size_t begin = unit ? head + 8 * unit : 0;
    bool whole = begin + 8 == end && is_aligned(to + begin);
    if (whole && is_aligned(from + begin)) {
        put((uint4 *)(to + begin), *(const uint4 *)(from + begin));
    } else if (whole && unit && end < p.width) {
        put((uint4 *)(to + begin), eight_from(from + begin));
    } else {
#pragma unroll 1
        for (size_t i = begin; i < end; i++) {
            to[i] = from[i];
        }
    }
}

__global__ void __launch_bounds__(THREADS) pieces_kernel(const __grid_constant__ Pieces pieces) {
    unsigned k = 0;
    while (pieces.first_block[k + 1] <= blockIdx.x) {
        k++;
    }
    const KernelCudaPiece &p = pieces.piece[k];
    unsigned unit = unit_of(p);
    size_t row_units = (p.width + unit - 1) / unit, units = p.rows * row_units;
    size_t first = (size_t)(blockIdx.x - pieces.first_block[k]) * (CHUNK / unit);
    size_t last = min(units, first + CHUNK / unit);
#pragma unroll 1
    for (size_t u = first + threadIdx.x; u < last; u += blockDim.x) {
        size_t row = p.rows == 1 ? 0 : u / row_units, column = (u - row * row_units) * unit;
        if (unit == 8) {
            copy_eight(p, row, column / 8);
        } else {
            copy_four(p, row, column);
        }
    }
}

size_t blocks_of(const KernelCudaPiece *p) {
    return divide_up(p->rows * divide_up(p->width, unit_of(*p)), CHUNK / unit_of(*p));
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
