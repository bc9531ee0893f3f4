/* kernels/cuda/products/grouped.cu - see grouped.h. Bound: arithmetic; where groups are small or
 * differ much in their rows, the last wave of blocks.
 *
 * Why not a library's: cuBLASLt's products and cublasGemmGroupedBatchedEx (CUDA 12.5) take the rows
 * of each group from the host's memory (m_array[]), so the host would wait for every router; here
 * each block reads on the device where groups end, and the host runs on. What that costs: products
 * are those of a warp (matrices.cuh), which every GPU from sm_80 on has; Hopper's and Blackwell's
 * own, which are faster there, are not used.
 *
 * A block makes one tile of a group's output. The grid has as many as the rows could take however
 * they are dealt out; those too many end at once. Of a group all tiles of a column stand one behind
 * another, so that its part of the matrix is read while it is in the cache. Slices of DEPTH of what
 * is summed go through shared memory by way of registers: the next slice is on its way while this
 * one is multiplied.
 */
#include "kernels/cuda/products/grouped.h"

#include "kernels/cuda/each.cuh"
#include "kernels/cuda/products/matrices.cuh"

using namespace cu;

namespace {

enum {
    BLOCK = 128, /* threads: four warps, two by two */
};

/* Output elements of a tile's side, and of what is summed at a time. Rows of shared memory are PAD
 * elements longer, so that eight of them, 16 bytes each, lie in 32 banks. */
template <typename T> struct Size {
    enum {
        TILE = 128,
        DEPTH = 32,
        PAD = 8,
    };
};
template <> struct Size<float> {
    enum {
        TILE = 64,
        DEPTH = 16,
        PAD = 4,
    };
};

/* A factor of a product, [outer, depth], or as it lies if `deep`: [depth, outer]. */
template <typename T> struct Factor {
    const T *at;
    size_t outer, depth; /* elements there are; beyond them are zeros */
    bool whole;          /* 16 bytes may be read wherever VECTOR elements begin */
};

/* What a block is to do. */
template <typename T> struct Task {
    Factor<T> a, b;
    T *out; /* [a.outer, b.outer] */
    size_t row, column;
};

/* ---- slices --------------------------------------------------------------------------------- */

/* TILE of a factor's outer elements and DEPTH of its depth, as they lie. */
template <typename T, bool DEEP> struct Slice {
    enum {
        ROWS = DEEP ? Size<T>::DEPTH : Size<T>::TILE,
        COLS = DEEP ? Size<T>::TILE : Size<T>::DEPTH,
        STRIDE = COLS + Size<T>::PAD,
        PIECES = ROWS * COLS / VECTOR<T> / BLOCK, /* of 16 bytes, a thread's */
    };
    alignas(16) T at[ROWS][STRIDE];

    __device__ const T *find(unsigned outer, unsigned depth) const {
        return DEEP ? &at[depth][outer] : &at[outer][depth];
    }
};

/* A thread's pieces of one, in registers. */
template <typename T, bool DEEP> struct Staged {
    typedef Slice<T, DEEP> S;
    uint4 piece[S::PIECES];

    static __device__ unsigned row_of(unsigned i) {
        return (threadIdx.x + i * BLOCK) / (S::COLS / VECTOR<T>);
    }
    static __device__ unsigned column_of(unsigned i) {
        return (threadIdx.x + i * BLOCK) % (S::COLS / VECTOR<T>)*VECTOR<T>;
    }

    __device__ void load(const Factor<T> &f, size_t outer, size_t depth) {
        size_t rows = DEEP ? f.depth : f.outer, cols = DEEP ? f.outer : f.depth;
        size_t first_row = DEEP ? depth : outer, first_column = DEEP ? outer : depth;
#pragma unroll
        for (unsigned i = 0; i < S::PIECES; i++) {
            size_t row = first_row + row_of(i), column = first_column + column_of(i);
            const T *from = f.at + row * cols + column;
            piece[i] = make_uint4(0, 0, 0, 0);
            if (row < rows && column < cols && f.whole) {
                piece[i] = *(const uint4 *)from;
            } else if (row < rows && column < cols) {
                load_some(&piece[i], from, cols - column);
            }
        }
    }

    static __device__ void load_some(uint4 *to, const T *from, size_t n) {
        float some[VECTOR<T>] = {};
#pragma unroll
        for (int v = 0; v < VECTOR<T>; v++) {
            some[v] = (size_t)v < n ? widen(from[v]) : 0.0f;
        }
        *to = narrow_part(some, T());
    }

    __device__ void store(S *slice) const {
#pragma unroll
        for (unsigned i = 0; i < S::PIECES; i++) {
            *(uint4 *)&slice->at[row_of(i)][column_of(i)] = piece[i];
        }
    }
};

/* ---- a tile's sums, in the registers of the block's threads ---------------------------------- */

/* Of halves: a warp has a quarter of the tile, 16 rows by 8 columns at a time. */
template <typename T, bool A_DEEP, bool B_DEEP> struct Sums {
    enum {
        SIDE = Size<T>::TILE / 2, /* of the quarter */
        DOWN = SIDE / 16,
        ACROSS = SIDE / 8,
    };
    float sum[DOWN][ACROSS][4];

    static __device__ unsigned lane() {
        return threadIdx.x % LANES;
    }
    static __device__ unsigned row() {
        return threadIdx.x / LANES / 2 * SIDE;
    }
    static __device__ unsigned column() {
        return threadIdx.x / LANES % 2 * SIDE;
    }

    __device__ void clear() {
#pragma unroll
        for (int i = 0; i < DOWN * ACROSS * 4; i++) {
            sum[i / (ACROSS * 4)][i / 4 % ACROSS][i % 4] = 0;
        }
    }

    /* 16 x 16 of a slice, as four matrices: the second is eight on along the outer side (or along
     * the depth, if depth_first), the third eight along the other one. */
    template <bool DEEP>
    static __device__ void load(unsigned (&word)[4], const Slice<T, DEEP> &slice, unsigned outer,
                                unsigned depth, bool depth_first) {
        unsigned second = lane() / 8 % 2 * 8, third = lane() / 16 * 8, row = lane() % 8;
        outer += (depth_first ? third : second) + (DEEP ? 0 : row);
        depth += (depth_first ? second : third) + (DEEP ? row : 0);
        load_matrices<DEEP>(word, slice.find(outer, depth));
    }

    /* rows, columns: of the tile that are there; a warp that has none of them has nothing to do. */
    __device__ void add(const Slice<T, A_DEEP> &a, const Slice<T, B_DEEP> &b, size_t rows,
                        size_t columns) {
        if (row() >= rows || column() >= columns) {
            return;
        }
#pragma unroll
        for (unsigned k = 0; k < Size<T>::DEPTH; k += 16) {
            unsigned left[4], right[ACROSS / 2][4];
#pragma unroll
            for (unsigned j = 0; j < ACROSS / 2; j++) {
                load(right[j], b, column() + j * 16, k, true);
            }
#pragma unroll
            for (unsigned i = 0; i < DOWN; i++) {
                load(left, a, row() + i * 16, k, false);
#pragma unroll
                for (unsigned j = 0; j < ACROSS; j++) {
                    add_product(sum[i][j], left, right[j / 2][j % 2 * 2],
                                right[j / 2][j % 2 * 2 + 1], T());
                }
            }
        }
    }

    __device__ void write(const Task<T> &task) const {
        size_t cols = task.b.outer;
        bool in_pairs = cols % 2 == 0 && (uintptr_t)task.out % 4 == 0;
#pragma unroll
        for (unsigned i = 0; i < DOWN * ACROSS * 2; i++) {
            const float *two = &sum[i / (ACROSS * 2)][i / 2 % ACROSS][i % 2 * 2];
            size_t r = task.row + row() + i / (ACROSS * 2) * 16 + i % 2 * 8 + lane() / 4;
            size_t c = task.column + column() + i / 2 % ACROSS * 8 + lane() % 4 * 2;
            T *to = task.out + r * cols + c;
            if (r < task.a.outer && c < cols && in_pairs) {
                *(unsigned *)to = pack(two[0], two[1], T());
            } else if (r < task.a.outer) {
                for (unsigned v = 0; v < 2 && c + v < cols; v++) {
                    narrow(&to[v], two[v]);
                }
            }
        }
    }
};

/* Of fp32: a thread has every DOWNth row and every ACROSSth column. */
template <bool A_DEEP, bool B_DEEP> struct Sums<float, A_DEEP, B_DEEP> {
    enum {
        ACROSS = 16,
        DOWN = BLOCK / ACROSS,
        ROWS = Size<float>::TILE / DOWN,
        COLS = Size<float>::TILE / ACROSS,
    };
    float sum[ROWS][COLS];

    static __device__ unsigned row(unsigned i) {
        return threadIdx.x / ACROSS + i * DOWN;
    }
    static __device__ unsigned column(unsigned j) {
        return threadIdx.x % ACROSS + j * ACROSS;
    }

    __device__ void clear() {
#pragma unroll
        for (int i = 0; i < ROWS * COLS; i++) {
            sum[i / COLS][i % COLS] = 0;
        }
    }

    __device__ void add(const Slice<float, A_DEEP> &a, const Slice<float, B_DEEP> &b, size_t,
                        size_t) {
#pragma unroll 4
        for (unsigned k = 0; k < Size<float>::DEPTH; k++) {
            float right[COLS];
#pragma unroll
            for (unsigned j = 0; j < COLS; j++) {
                right[j] = *b.find(column(j), k);
            }
#pragma unroll
            for (unsigned i = 0; i < ROWS; i++) {
                float left = *a.find(row(i), k);
#pragma unroll
                for (unsigned j = 0; j < COLS; j++) {
                    sum[i][j] += left * right[j];
                }
            }
        }
    }

    __device__ void write(const Task<float> &task) const {
#pragma unroll
        for (unsigned i = 0; i < ROWS; i++) {
#pragma unroll
            for (unsigned j = 0; j < COLS; j++) {
                size_t to_row = task.row + row(i), to_column = task.column + column(j);
                if (to_row < task.a.outer && to_column < task.b.outer) {
                    task.out[to_row * task.b.outer + to_column] = sum[i][j];
                }
            }
        }
    }
};

/* The tile of a task. */
template <typename T, bool A_DEEP, bool B_DEEP> __device__ void multiply(const Task<T> &task) {
    struct Slices {
        Slice<T, A_DEEP> a[2];
        Slice<T, B_DEEP> b[2];
    };
    BLOCK_SHARED(Slices, slices);
    Sums<T, A_DEEP, B_DEEP> sums;
    Staged<T, A_DEEP> a;
    Staged<T, B_DEEP> b;
    size_t depth = task.a.depth, rows = task.a.outer - task.row;
    size_t columns = task.b.outer - task.column;
    sums.clear();
    a.load(task.a, task.row, 0);
    b.load(task.b, task.column, 0);
    a.store(&slices.a[0]);
    b.store(&slices.b[0]);
    __syncthreads();
    for (size_t k = 0, now = 0; k < depth; k += Size<T>::DEPTH, now ^= 1) {
        bool is_more = k + Size<T>::DEPTH < depth;
        if (is_more) {
            a.load(task.a, task.row, k + Size<T>::DEPTH);
            b.load(task.b, task.column, k + Size<T>::DEPTH);
        }
        sums.add(slices.a[now], slices.b[now], rows, columns);
        if (is_more) {
            a.store(&slices.a[now ^ 1]);
            b.store(&slices.b[now ^ 1]);
        }
        __syncthreads();
    }
    sums.write(task);
}

/* ---- groups --------------------------------------------------------------------------------- */

struct Ends {
    const int32_t *at;
    size_t rows, groups;
    unsigned *flag, tag;
};

struct Rows {
    size_t begin, n;
};

/* Never outside of what there is. */
__device__ Rows rows_of(const Ends &ends, size_t group) {
    size_t begin = group ? (size_t)max(ends.at[group - 1], 0) : 0;
    size_t end = min((size_t)max(ends.at[group], 0), ends.rows);
    return Rows{begin, end > begin ? end - begin : 0};
}

__device__ void check(const Ends &ends) {
    for (size_t g = threadIdx.x; blockIdx.x == 0 && g < ends.groups; g += blockDim.x) {
        bool is_last = g + 1 == ends.groups;
        if (ends.at[g] < (g ? ends.at[g - 1] : 0) || (is_last && (size_t)ends.at[g] != ends.rows)) {
            tell_bad_index(ends.flag, ends.tag);
        }
    }
}

struct Tile {
    size_t group, row, column; /* where it begins in the group's output */
    bool is_there;
};

/* The block's, where each group's output is so many tiles wide and as high as its rows take. A lane
 * looks at one group of 32. */
template <unsigned TILE> __device__ Tile tile_of_rows(const Ends &ends, unsigned across) {
    unsigned lane = threadIdx.x % LANES, before = 0;
    for (size_t first = 0; first < ends.groups; first += LANES) {
        size_t group = first + lane;
        size_t rows = group < ends.groups ? rows_of(ends, group).n : 0;
        unsigned mine = (unsigned)((rows + TILE - 1) / TILE) * across, sum = mine;
        for (unsigned by = 1; by < LANES; by *= 2) {
            unsigned below = __shfl_up_sync(0xffffffffu, sum, by);
            sum += lane >= by ? below : 0;
        }
        unsigned past = __ballot_sync(0xffffffffu, before + sum > blockIdx.x);
        if (past) {
            int found = __ffs((int)past) - 1;
            unsigned start = before + __shfl_sync(0xffffffffu, sum - mine, found);
            unsigned down = __shfl_sync(0xffffffffu, mine, found) / across;
            unsigned at = blockIdx.x - start;
            return Tile{first + (size_t)found, (size_t)(at % down) * TILE,
                        (size_t)(at / down) * TILE, true};
        }
        before += __shfl_sync(0xffffffffu, sum, LANES - 1);
    }
    return Tile{0, 0, 0, false};
}

/* Whether VECTOR elements begin on 16 bytes in each row of cols, and in each matrix of such. */
template <typename T> __device__ bool is_whole(const T *at, size_t cols) {
    return is_aligned(at) && cols % VECTOR<T> == 0;
}

/* Rows of `from` columns times their group's matrix, as rows of `to`: matrices are [to, from], or
 * [from, to] if W_DEEP, and begin w_apart elements behind each other. */
template <typename T, bool W_DEEP>
__global__ void __launch_bounds__(BLOCK)
    rows_kernel(T *out, const T *in, const T *w, Ends ends, size_t to, size_t from, size_t w_apart,
                unsigned across) {
    check(ends);
    Tile tile = tile_of_rows<Size<T>::TILE>(ends, across);
    if (tile.is_there) {
        Rows rows = rows_of(ends, tile.group);
        bool w_is_whole = is_whole(w, W_DEEP ? to : from) && w_apart % VECTOR<T> == 0;
        multiply<T, false, W_DEEP>(
            Task<T>{{in + rows.begin * from, rows.n, from, is_whole(in, from)},
                    {w + tile.group * w_apart, to, from, w_is_whole},
                    out + rows.begin * to,
                    tile.row,
                    tile.column});
    }
}

/* What is summed are a group's rows. */
template <typename T>
__global__ void __launch_bounds__(BLOCK)
    weight_kernel(T *dw, const T *dy, const T *x, Ends ends, size_t n, size_t k, unsigned down,
                  unsigned across) {
    check(ends);
    size_t group = blockIdx.x / (down * across), at = blockIdx.x % (down * across);
    Rows rows = rows_of(ends, group);
    multiply<T, true, true>(Task<T>{{dy + rows.begin * n, n, rows.n, is_whole(dy, n)},
                                    {x + rows.begin * k, k, rows.n, is_whole(x, k)},
                                    dw + group * n * k,
                                    at % down * Size<T>::TILE,
                                    at / down * Size<T>::TILE});
}

/* Tiles that rows take at most, however they are dealt out to groups. */
size_t most_down(size_t m, size_t groups, size_t tile) {
    size_t most = m / tile + groups;
    return most < m ? most : m;
}

KernelCudaFault check_grid(const char *name, size_t blocks) {
    return blocks > INT32_MAX ? kernel_cuda_fault("%s: %zu tiles are too many", name, blocks)
                              : NULL;
}

template <typename T, bool W_DEEP>
KernelCudaFault launch_rows(KernelCuda *lane, const char *name, void *out, const void *in,
                            const void *w, size_t w_apart, const int32_t *ends, size_t m, size_t to,
                            size_t from, size_t groups) {
    size_t across = divide_up(to, Size<T>::TILE);
    size_t blocks = across * most_down(m, groups, Size<T>::TILE);
    if (!blocks) {
        return NULL;
    }
    KERNEL_CUDA_TRY(check_grid(name, blocks));
    return launch(lane, name, rows_kernel<T, W_DEEP>, dim3((unsigned)blocks), dim3(BLOCK), 0,
                  (T *)out, (const T *)in, (const T *)w,
                  Ends{ends, m, groups, lane->flag, lane->tag}, to, from, w_apart,
                  (unsigned)across);
}

} // namespace

KernelCudaFault kernel_cuda_grouped_linear_forward(KernelCuda *lane, void *y, const void *x,
                                                   const void *w, const int32_t *ends, size_t m,
                                                   size_t n, size_t k, size_t groups,
                                                   KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch_rows<T, false>(lane, "grouped_linear", y, x, w, n * k, ends, m, n, k, groups);
    });
}

KernelCudaFault kernel_cuda_grouped_parts_forward(KernelCuda *lane, void *y, const void *x,
                                                  const void *w, const int32_t *ends, size_t m,
                                                  size_t n, size_t k, size_t groups, size_t parts,
                                                  KernelCudaType type) {
    size_t cols = n / parts;
    return with_type(type, [&](auto t) -> KernelCudaFault {
        using T = decltype(t);
        for (size_t part = 0; part < parts; part++) {
            KERNEL_CUDA_TRY((launch_rows<T, false>(lane, "grouped_parts", (T *)y + part * m * cols,
                                                   x, (const T *)w + part * cols * k, n * k, ends,
                                                   m, cols, k, groups)));
        }
        return NULL;
    });
}

KernelCudaFault kernel_cuda_grouped_linear_backward_input(KernelCuda *lane, void *dx,
                                                          const void *dy, const void *w,
                                                          const int32_t *ends, size_t m, size_t n,
                                                          size_t k, size_t groups,
                                                          KernelCudaType type) {
    return with_type(type, [&](auto t) {
        using T = decltype(t);
        return launch_rows<T, true>(lane, "grouped_linear_dx", dx, dy, w, n * k, ends, m, k, n,
                                    groups);
    });
}

KernelCudaFault kernel_cuda_grouped_linear_backward_weight(KernelCuda *lane, void *dw,
                                                           const void *dy, const void *x,
                                                           const int32_t *ends, size_t m, size_t n,
                                                           size_t k, size_t groups,
                                                           KernelCudaType type) {
    return with_type(type, [&](auto t) -> KernelCudaFault {
        using T = decltype(t);
        size_t down = divide_up(n, Size<T>::TILE), across = divide_up(k, Size<T>::TILE);
        size_t blocks = groups * down * across;
        if (!blocks) {
            return NULL;
        }
        KERNEL_CUDA_TRY(check_grid("grouped_linear_dw", blocks));
        return launch(lane, "grouped_linear_dw", weight_kernel<T>, dim3((unsigned)blocks),
                      dim3(BLOCK), 0, (T *)dw, (const T *)dy, (const T *)x,
                      Ends{ends, m, groups, lane->flag, lane->tag}, n, k, (unsigned)down,
                      (unsigned)across);
    });
}
