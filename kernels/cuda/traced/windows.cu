/* kernels/cuda/traced/windows.cu - see windows.h. Bound: finding numbers, by integer arithmetic,
 * and fp32 arithmetic without tensor cores.
 *
 * A product is told by where its numbers are: left(row, k), right(k, column) and put(row, column,
 * sum). A k and a column are numbers of a grid, which takes divisions; so that is found out once
 * for each (deep(k), across(column)). Of a convolution of n samples with windows of w numbers, in
 * each group:
 *
 *                  rows            columns             k
 *     y            channels made   samples, places     channels, w
 *     dx           channels        samples, area       channels made, w
 *     dw           channels made   channels, w         samples, places
 */
#include "kernels/cuda/traced/windows.h"

#include <math.h>

#include <algorithm>

#include "kernels/cuda/traced/tensor.cuh"

using namespace cu;

namespace {

enum {
    SIDES = KERNEL_WINDOW_SIDES,
    TILE = 64, /* rows and columns of a block */
    DEEP = 16, /* of k that are in shared memory at once */
    EACH = 4,  /* rows and columns of a thread */
    PAD = 4    /* numbers behind a row in shared memory: 16 bytes begin in each */
};

/* ---- numbers of grids ----------------------------------------------------------------------- */

/* [samples or channels made, channels, side, ..] */
struct Grid {
    Numbers numbers;
    size_t first, second, sides[SIDES]; /* steps */

    __device__ float get(size_t i, size_t j, size_t place) const {
        return numbers.get<float>(i * first + j * second + place);
    }
    __device__ void put(size_t i, size_t j, size_t place, float x) const {
        numbers.put(i * first + j * second + place, x);
    }
};

Grid grid_of(const KernelTensor *t) {
    Grid grid = {numbers_of(t), t->strides[0], t->strides[1], {}};
    unsigned n = t->n_dims - 2;
    for (unsigned s = SIDES - n; s < SIDES; s++) {
        grid.sides[s] = t->strides[2 + s - (SIDES - n)];
    }
    return grid;
}

/* A number a channel; of no bias 0. */
struct Bias {
    Numbers numbers;
    size_t step;

    __device__ float of(size_t channel) const {
        return numbers.data ? numbers.get<float>(channel * step) : 0;
    }
};

Bias bias_of(const KernelTensor *t) {
    return t ? Bias{numbers_of(t), t->strides[0]} : Bias{};
}

/* Sides as the kernels count them. I is the type that counts a product's rows and columns. */
template <typename I> struct Moves {
    I size[SIDES], made[SIDES], window[SIDES];
    int64_t stride[SIDES], padding[SIDES], apart[SIDES];
    I area, places, numbers; /* of a channel, of what is made of it, of a window */

    explicit Moves(const KernelWindows *w) {
        for (int s = 0; s < SIDES; s++) {
            size[s] = (I)w->size[s];
            made[s] = (I)w->made[s];
            window[s] = (I)w->window[s];
            stride[s] = w->stride[s];
            padding[s] = w->padding[s];
            apart[s] = w->apart[s];
        }
        area = (I)kernel_windows_area(w->size);
        places = (I)kernel_windows_area(w->made);
        numbers = (I)kernel_windows_area(w->window);
    }
};

/* Where a number of a row-major grid stands on each side. */
template <typename I> __device__ void split(I (&at)[SIDES], I place, const I (&sizes)[SIDES]) {
    for (int s = SIDES; s-- > 0;) {
        I before = place / sizes[s];
        at[s] = place - before * sizes[s];
        place = before;
    }
}

/* Number `i` of grids one behind another: which grid, and where it stands there. */
template <typename I> struct Stand { I grid, at[SIDES]; };

template <typename I> __device__ Stand<I> stand_of(I i, I numbers, const I (&sizes)[SIDES]) {
    Stand<I> stand;
    stand.grid = i / numbers;
    split(stand.at, (I)(i - stand.grid * numbers), sizes);
    return stand;
}

template <typename I>
__device__ size_t place_of(const I (&at)[SIDES], const size_t (&steps)[SIDES]) {
    size_t place = 0;
    for (int s = 0; s < SIDES; s++) {
        place += at[s] * steps[s];
    }
    return place;
}

/* Where number `in` of the window at a place lies; false: in the padding. */
template <typename I>
__device__ bool look(I (&ret_at)[SIDES], const I (&place)[SIDES], const I (&in)[SIDES],
                     const Moves<I> &m) {
    for (int s = 0; s < SIDES; s++) {
        int64_t at = (int64_t)place[s] * m.stride[s] - m.padding[s] + (int64_t)in[s] * m.apart[s];
        if (at < 0 || at >= (int64_t)m.size[s]) {
            return false;
        }
        ret_at[s] = (I)at;
    }
    return true;
}

/* Of which window what lies here is number `in`; false: of none. */
template <typename I>
__device__ bool look_back(I (&ret_place)[SIDES], const I (&here)[SIDES], const I (&in)[SIDES],
                          const Moves<I> &m) {
    for (int s = 0; s < SIDES; s++) {
        int64_t from = (int64_t)here[s] + m.padding[s] - (int64_t)in[s] * m.apart[s];
        if (from < 0 || from % m.stride[s] || from / m.stride[s] >= (int64_t)m.made[s]) {
            return false;
        }
        ret_place[s] = (I)(from / m.stride[s]);
    }
    return true;
}

/* ---- products ------------------------------------------------------------------------------- */

template <typename I> struct Forward {
    Moves<I> m;
    Grid y, x, weight;
    Bias bias;
    I rows, columns, inner, channels; /* of a group */

    __device__ Stand<I> deep(I k) const { /* channel, in the window */
        return stand_of(k, m.numbers, m.window);
    }
    __device__ Stand<I> across(I column) const { /* sample, place */
        return stand_of(column, m.places, m.made);
    }
    __device__ float left(I group, I row, const Stand<I> &k) const {
        return weight.get(group * rows + row, k.grid, place_of(k.at, weight.sides));
    }
    __device__ float right(I group, const Stand<I> &k, const Stand<I> &column) const {
        I at[SIDES];
        return look(at, column.at, k.at, m)
                   ? x.get(column.grid, group * channels + k.grid, place_of(at, x.sides))
                   : 0.0f;
    }
    __device__ void put(I group, I row, const Stand<I> &column, float sum) const {
        I channel = group * rows + row;
        y.put(column.grid, channel, place_of(column.at, y.sides), sum + bias.of(channel));
    }
};

template <typename I> struct BackwardX {
    Moves<I> m;
    Grid dx, dy, weight;
    Bias bias;
    I rows, columns, inner, channels_made; /* of a group */

    __device__ Stand<I> deep(I k) const { /* channel made, in the window */
        return stand_of(k, m.numbers, m.window);
    }
    __device__ Stand<I> across(I column) const { /* sample, place in x */
        return stand_of(column, m.area, m.size);
    }
    __device__ float left(I group, I row, const Stand<I> &k) const {
        return weight.get(group * channels_made + k.grid, row, place_of(k.at, weight.sides));
    }
    __device__ float right(I group, const Stand<I> &k, const Stand<I> &column) const {
        I place[SIDES];
        return look_back(place, column.at, k.at, m)
                   ? dy.get(column.grid, group * channels_made + k.grid, place_of(place, dy.sides))
                   : 0.0f;
    }
    __device__ void put(I group, I row, const Stand<I> &column, float sum) const {
        I channel = group * rows + row;
        dx.put(column.grid, channel, place_of(column.at, dx.sides), sum + bias.of(channel));
    }
};

template <typename I> struct BackwardWeight {
    Moves<I> m;
    Grid dw, dy, x;
    I rows, columns, inner, channels; /* of a group */

    __device__ Stand<I> deep(I k) const { /* sample, place */
        return stand_of(k, m.places, m.made);
    }
    __device__ Stand<I> across(I column) const { /* channel, in the window */
        return stand_of(column, m.numbers, m.window);
    }
    __device__ float left(I group, I row, const Stand<I> &k) const {
        return dy.get(k.grid, group * rows + row, place_of(k.at, dy.sides));
    }
    __device__ float right(I group, const Stand<I> &k, const Stand<I> &column) const {
        I at[SIDES];
        return look(at, k.at, column.at, m)
                   ? x.get(k.grid, group * channels + column.grid, place_of(at, x.sides))
                   : 0.0f;
    }
    __device__ void put(I group, I row, const Stand<I> &column, float sum) const {
        dw.put(group * rows + row, column.grid, place_of(column.at, dw.sides), sum);
    }
};

/* A slice of a product's factors in shared memory, which is read 16 bytes at a time, and where the
 * numbers of the depth stand: of this slice and the next. */
template <typename I> struct alignas(16) Slice {
    float left[DEEP][TILE + PAD], right[DEEP][TILE + PAD];
    Stand<I> deep[2][DEEP];
};

/* All that a thread takes to a slice is of one column. */
template <typename I, typename P>
__device__ void fill(Slice<I> *slice, const P &p, I group, I row, I k, const Stand<I> &column,
                     bool is_column, unsigned now) {
    unsigned across = threadIdx.x % TILE, deep = threadIdx.x % DEEP;
    for (unsigned i = threadIdx.x / DEEP; i < TILE; i += THREADS / DEEP) {
        bool is_there = row + i < p.rows && k + deep < p.inner;
        slice->left[deep][i] = is_there ? p.left(group, (I)(row + i), slice->deep[now][deep]) : 0;
    }
    for (unsigned i = threadIdx.x / TILE; i < DEEP; i += THREADS / TILE) {
        bool is_there = is_column && k + i < p.inner;
        slice->right[i][across] = is_there ? p.right(group, slice->deep[now][i], column) : 0;
    }
}

/* A thread has EACH neighbouring rows and columns. */
template <typename I>
__device__ void add_slice(float (&sums)[EACH][EACH], const Slice<I> &slice, unsigned down,
                          unsigned across) {
#pragma unroll 4
    for (unsigned deep = 0; deep < DEEP; deep++) {
        float left[EACH], right[EACH];
        memcpy(left, __builtin_assume_aligned(&slice.left[deep][down], 16), sizeof left);
        memcpy(right, __builtin_assume_aligned(&slice.right[deep][across], 16), sizeof right);
#pragma unroll
        for (unsigned r = 0; r < EACH; r++) {
#pragma unroll
            for (unsigned c = 0; c < EACH; c++) {
                sums[r][c] += left[r] * right[c];
            }
        }
    }
}

/* A block makes a tile of a group's product. */
template <typename I, typename P>
__global__ void __launch_bounds__(THREADS) product_kernel(const __grid_constant__ P p) {
    BLOCK_SHARED(Slice<I>, slice);
    I group = (I)blockIdx.z, row = (I)blockIdx.y * TILE, first = (I)blockIdx.x * TILE;
    I mine = first + threadIdx.x % TILE;
    unsigned down = threadIdx.x / (TILE / EACH) * EACH, across = threadIdx.x % (TILE / EACH) * EACH;
    bool is_column = mine < p.columns;
    Stand<I> column = is_column ? p.across(mine) : Stand<I>{};
    float sums[EACH][EACH] = {};
    if (threadIdx.x < DEEP && threadIdx.x < p.inner) {
        slice.deep[0][threadIdx.x] = p.deep((I)threadIdx.x);
    }
    __syncthreads();
    unsigned now = 0;
    for (I k = 0; k < p.inner; k += DEEP, now ^= 1) {
        I next = k + DEEP + threadIdx.x;
        fill(&slice, p, group, row, k, column, is_column, now);
        if (threadIdx.x < DEEP && next < p.inner) {
            slice.deep[now ^ 1][threadIdx.x] = p.deep(next);
        }
        __syncthreads();
        add_slice(sums, slice, down, across);
        __syncthreads();
    }
    for (unsigned c = 0; c < EACH; c++) {
        I to = first + across + c;
        if (to < p.columns) {
            Stand<I> stand = p.across(to);
            for (unsigned r = 0; r < EACH && row + down + r < p.rows; r++) {
                p.put(group, (I)(row + down + r), stand, sums[r][c]);
            }
        }
    }
}

template <typename I, typename P>
KernelCudaFault launch_product(KernelCuda *lane, const char *name, const P &p, size_t groups) {
    if (!p.rows || !p.columns) {
        return NULL;
    }
    dim3 grid((unsigned)divide_up(p.columns, TILE), (unsigned)divide_up(p.rows, TILE),
              (unsigned)groups);
    return launch(lane, name, product_kernel<I, P>, grid, dim3(THREADS), 0, p);
}

/* Products' rows, columns and depths, with room for a tile. */
size_t most_of(const KernelWindows *w) {
    size_t area = kernel_windows_area(w->size), places = kernel_windows_area(w->made);
    size_t channels = w->in > w->out ? w->in : w->out;
    size_t across = w->samples * (area > places ? area : places);
    size_t deep = channels * kernel_windows_area(w->window);
    return (across > deep ? across : deep) + TILE;
}

/* ---- the largest of a window ---------------------------------------------------------------- */

template <typename I> struct Pool {
    Moves<I> m;
    Grid y, places, x;
    I channels, n;
};

template <typename I>
__global__ void __launch_bounds__(THREADS) max_pool_kernel(const __grid_constant__ Pool<I> p) {
    FOR_WORK(I, i, p.n) {
        I channel = i / p.m.places, sample = channel / p.channels, place[SIDES];
        channel -= sample * p.channels;
        split(place, (I)(i % p.m.places), p.m.made);
        float most = -INFINITY;
        int64_t found = -1;
        for (I number = 0; number < p.m.numbers; number++) {
            I in[SIDES], at[SIDES];
            split(in, number, p.m.window);
            if (look(at, place, in, p.m)) {
                float x = p.x.get(sample, channel, place_of(at, p.x.sides));
                if (found < 0 || x > most || x != x) {
                    most = x;
                    found = (int64_t)((at[0] * p.m.size[1] + at[1]) * p.m.size[2] + at[2]);
                }
            }
        }
        size_t to = place_of(place, p.y.sides), told = place_of(place, p.places.sides);
        p.y.put(sample, channel, to, most);
        p.places.numbers.put(sample * p.places.first + channel * p.places.second + told, found);
    }
}

/* A thread a number of dx, which asks each window that it is in. */
template <typename I>
__global__ void __launch_bounds__(THREADS)
    max_pool_backward_kernel(const __grid_constant__ Pool<I> p) {
    FOR_WORK(I, i, p.n) {
        I channel = i / p.m.area, sample = channel / p.channels, here[SIDES];
        channel -= sample * p.channels;
        split(here, (I)(i % p.m.area), p.m.size);
        float sum = 0;
        for (I number = p.m.numbers; number-- > 0;) { /* in the order of places */
            I in[SIDES], place[SIDES];
            split(in, number, p.m.window);
            if (look_back(place, here, in, p.m)) {
                size_t told = sample * p.places.first + channel * p.places.second +
                              place_of(place, p.places.sides);
                bool is_largest =
                    p.places.numbers.template get<int64_t>(told) == (int64_t)(i % p.m.area);
                sum += is_largest ? p.y.get(sample, channel, place_of(place, p.y.sides)) : 0;
            }
        }
        p.x.put(sample, channel, place_of(here, p.x.sides), sum);
    }
}

} // namespace

KernelCudaFault kernel_cuda_convolution(KernelCuda *lane, const KernelTensor *y,
                                        const KernelTensor *x, const KernelTensor *weight,
                                        const KernelTensor *bias, const KernelWindows *w) {
    return with_index(most_of(w), [&](auto of) {
        using I = decltype(of);
        Moves<I> m(w);
        I channels = (I)(w->in / w->groups);
        Forward<I> p = {m,
                        grid_of(y),
                        grid_of(x),
                        grid_of(weight),
                        bias_of(bias),
                        (I)(w->out / w->groups),
                        (I)w->samples * m.places,
                        channels * m.numbers,
                        channels};
        return launch_product<I>(lane, "convolution", p, w->groups);
    });
}

KernelCudaFault kernel_cuda_convolution_dx(KernelCuda *lane, const KernelTensor *dx,
                                           const KernelTensor *dy, const KernelTensor *weight,
                                           const KernelTensor *bias, const KernelWindows *w) {
    return with_index(most_of(w), [&](auto of) {
        using I = decltype(of);
        Moves<I> m(w);
        I made = (I)(w->out / w->groups);
        BackwardX<I> p = {m,
                          grid_of(dx),
                          grid_of(dy),
                          grid_of(weight),
                          bias_of(bias),
                          (I)(w->in / w->groups),
                          (I)w->samples * m.area,
                          made * m.numbers,
                          made};
        return launch_product<I>(lane, "convolution_dx", p, w->groups);
    });
}

KernelCudaFault kernel_cuda_convolution_dw(KernelCuda *lane, const KernelTensor *dw,
                                           const KernelTensor *dy, const KernelTensor *x,
                                           const KernelWindows *w) {
    return with_index(most_of(w), [&](auto of) {
        using I = decltype(of);
        Moves<I> m(w);
        I channels = (I)(w->in / w->groups);
        BackwardWeight<I> p = {m,
                               grid_of(dw),
                               grid_of(dy),
                               grid_of(x),
                               (I)(w->out / w->groups),
                               channels * m.numbers,
                               (I)w->samples * m.places,
                               channels};
        return launch_product<I>(lane, "convolution_dw", p, w->groups);
    });
}

KernelCudaFault kernel_cuda_max_pool(KernelCuda *lane, const KernelTensor *y,
                                     const KernelTensor *places, const KernelTensor *x,
                                     const KernelWindows *w) {
    size_t n = w->samples * w->in * kernel_windows_area(w->made);
    return with_index(std::max(n, kernel_windows_area(w->size)), [&](auto of) {
        using I = decltype(of);
        Pool<I> p = {Moves<I>(w), grid_of(y), grid_of(places), grid_of(x), (I)w->in, (I)n};
        return launch_for(lane, "max_pool", n, max_pool_kernel<I>, p);
    });
}

KernelCudaFault kernel_cuda_max_pool_backward(KernelCuda *lane, const KernelTensor *dx,
                                              const KernelTensor *dy, const KernelTensor *places,
                                              const KernelWindows *w) {
    size_t n = w->samples * w->in * kernel_windows_area(w->size);
    return with_index(n, [&](auto of) {
        using I = decltype(of);
        Pool<I> p = {Moves<I>(w), grid_of(dy), grid_of(places), grid_of(dx), (I)w->in, (I)n};
        return launch_for(lane, "max_pool_backward", n, max_pool_backward_kernel<I>, p);
    });
}
