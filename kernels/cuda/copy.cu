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
    PIECES = 40,  /* of one launch: 2.4 KB of its arguments */
    CHUNK = 8192, /* elements a block copies */
    AT_ONCE = 4,  /* units of 8 or 16 bytes that a thread has under way */
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

/* What a thread has asked for and not written yet. DONE: nothing, it has copied one by one. */
enum How {
    DONE,
    AS_IT_LIES,
    BETWEEN_WORDS,
};

struct Four {
    Raw4 raw;
    size_t to; /* in elements */
    How how;
};

struct Eight {
    unsigned word[5];
    uint16_t *to;
    How how;
};

/* Four elements of a row, or fewer at its end. */
__device__ Four ask_four(const KernelCudaPiece &p, size_t row, size_t column) {
    size_t to = row * p.to_stride + column, from = row * p.from_stride + column;
    size_t n = min((size_t)4, p.width - column);
    Four four = {{}, to, AS_IT_LIES};
    if (n < 4 || !is_aligned4(p.to, p.to_type, to) ||
        (p.from && !is_aligned4(p.from, p.from_type, from))) {
#pragma unroll 1
        for (size_t v = 0; v < n; v++) {
            store1(p.to, p.to_type, to + v, p.from ? load1(p.from, p.from_type, from + v) : 0.0f);
        }
        four.how = DONE;
    } else if (p.from) {
        four.raw = load_raw(p.from, p.from_type, from);
    }
    return four;
}

/* All bits 0 are the number 0 in each type. */
__device__ void write(const KernelCudaPiece &p, const Four &four) {
    if (four.how != DONE) {
        float x[4];
        widen4(x, four.raw, p.from_type);
        store4(p.to, p.to_type, four.to, x);
    }
}

/* Of a row of 16 bits, the unit's eight: such that begin on 16 bytes where they go; the first unit
 * has those before them, too. Where they come from they may lie anyhow: then the words that they
 * lie in are read, and with them one element before or behind, where they begin within a word. */
__device__ Eight ask_eight(const KernelCudaPiece &p, size_t row, size_t unit) {
    const uint16_t *from = (const uint16_t *)p.from + row * p.from_stride;
    uint16_t *to = (uint16_t *)p.to + row * p.to_stride;
    size_t head = (16 - (uintptr_t)to % 16) % 16 / 2, end = min(p.width, head + 8 * unit + 8);
    size_t begin = unit ? head + 8 * unit : 0;
    bool whole = begin + 8 == end && is_aligned(to + begin);
    Eight eight = {{}, to + begin, DONE};
    if (whole && is_aligned(from + begin)) {
        uint4 bits = *(const uint4 *)(from + begin);
        eight.word[0] = bits.x, eight.word[1] = bits.y, eight.word[2] = bits.z;
        eight.word[3] = bits.w;
        eight.how = AS_IT_LIES;
    } else if (whole && unit && end < p.width) {
        bool is_between = (uintptr_t)(from + begin) % 4 != 0;
        const unsigned *word = (const unsigned *)(from + begin - (is_between ? 1 : 0));
#pragma unroll
        for (int i = 0; i < 4; i++) {
            eight.word[i] = word[i];
        }
        if (is_between) {
            eight.word[4] = word[4];
        }
        eight.how = is_between ? BETWEEN_WORDS : AS_IT_LIES;
    } else {
#pragma unroll 1
        for (size_t i = begin; i < end; i++) {
            to[i] = from[i];
        }
    }
    return eight;
}

__device__ void write(const KernelCudaPiece &, const Eight &eight) {
    const unsigned *w = eight.word;
    if (eight.how == AS_IT_LIES) {
        put((uint4 *)eight.to, make_uint4(w[0], w[1], w[2], w[3]));
    } else if (eight.how == BETWEEN_WORDS) {
        put((uint4 *)eight.to, make_uint4(w[0] >> 16 | w[1] << 16, w[1] >> 16 | w[2] << 16,
                                          w[2] >> 16 | w[3] << 16, w[3] >> 16 | w[4] << 16));
    }
}

/* Units first .. last - 1 of a piece, AT_ONCE a thread under way together: ask(row, number in the
 * row). Where there are few a row is found by a division of 32 bits, which is several times as
 * quick. */
template <typename Asked, typename F>
__device__ void for_units(const KernelCudaPiece &p, size_t row_units, size_t first, size_t last,
                          F ask) {
    bool is_one = p.rows == 1, are_few = p.rows * row_units <= UINT32_MAX;
#pragma unroll 1
    for (size_t u = first + threadIdx.x; u < last; u += blockDim.x * AT_ONCE) {
        Asked asked[AT_ONCE];
#pragma unroll
        for (unsigned t = 0; t < AT_ONCE; t++) {
            size_t at = u + t * blockDim.x;
            if (at < last) {
                size_t row = is_one    ? 0
                             : are_few ? (unsigned)at / (unsigned)row_units
                                       : at / row_units;
                asked[t] = ask(row, at - row * row_units);
            }
        }
#pragma unroll
        for (unsigned t = 0; t < AT_ONCE; t++) {
            if (u + t * blockDim.x < last) {
                write(p, asked[t]);
            }
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
    if (unit == 8) {
        for_units<Eight>(p, row_units, first, last,
                         [&](size_t row, size_t number) { return ask_eight(p, row, number); });
    } else {
        for_units<Four>(p, row_units, first, last,
                        [&](size_t row, size_t number) { return ask_four(p, row, number * 4); });
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
