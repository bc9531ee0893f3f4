/* kernels/cuda/windows.cu - see windows.h.
 *
 * A product is told by where its numbers are: left(row, k), right(k, column) and put(row, column,
 * sum). Of a convolution of n samples with windows of w numbers, in each group:
 *
 *                  rows            columns             k
 *     y            channels made   samples, places     channels, w
 *     dx           channels        samples, area       channels made, w
 *     dw           channels made   channels, w         samples, places
 */
#include "kernels/cuda/windows.h"

#include <math.h>

#include "kernels/cuda/tensor.cuh"

using namespace cu;

namespace {

enum {
    SIDES = KERNEL_WINDOW_SIDES,
    TILE = 64, /* rows and columns of a block */
    DEEP = 16, /* of k that are in shared memory at once */
    EACH = 4   /* rows and columns of a thread */
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

    __device__ float left(I group, I row, I k) const {
        I in[SIDES];
        split(in, (I)(k % m.numbers), m.window);
        return weight.get(group * rows + row, k / m.numbers, place_of(in, weight.sides));
    }
    __device__ float right(I group, I k, I column) const {
        I in[SIDES], place[SIDES], at[SIDES];
        split(in, (I)(k % m.numbers), m.window);
        split(place, (I)(column % m.places), m.made);
        return look(at, place, in, m) ? x.get(column / m.places, group * channels + k / m.numbers,
                                              place_of(at, x.sides))
                                      : 0.0f;
    }
    __device__ void put(I group, I row, I column, float sum) const {
        I place[SIDES], channel = group * rows + row;
        split(place, (I)(column % m.places), m.made);
        y.put(column / m.places, channel, place_of(place, y.sides), sum + bias.of(channel));
    }
};

template <typename I> struct BackwardX {
    Moves<I> m;
    Grid dx, dy, weight;
    Bias bias;
    I rows, columns, inner, channels_made; /* of a group */

    __device__ float left(I group, I row, I k) const {
        I in[SIDES];
        split(in, (I)(k % m.numbers), m.window);
        return weight.get(group * channels_made + k / m.numbers, row, place_of(in, weight.sides));
    }
    __device__ float right(I group, I k, I column) const {
        I in[SIDES], here[SIDES], place[SIDES];
        split(in, (I)(k % m.numbers), m.window);
        split(here, (I)(column % m.area), m.size);
        return look_back(place, here, in, m)
                   ? dy.get(column / m.area, group * channels_made + k / m.numbers,
                            place_of(place, dy.sides))
                   : 0.0f;
    }
    __device__ void put(I group, I row, I column, float sum) const {
        I here[SIDES], channel = group * rows + row;
        split(here, (I)(column % m.area), m.size);
        dx.put(column / m.area, channel, place_of(here, dx.sides), sum + bias.of(channel));
    }
};

template <typename I> struct BackwardWeight {
    Moves<I> m;
    Grid dw, dy, x;
    I rows, columns, inner, channels; /* of a group */

    __device__ float left(I group, I row, I k) const {
        I place[SIDES];
        split(place, (I)(k % m.places), m.made);
        return dy.get(k / m.places, group * rows + row, place_of(place, dy.sides));
    }
    __device__ float right(I group, I k, I column) const {
        I in[SIDES], place[SIDES], at[SIDES];
        split(in, (I)(column % m.numbers), m.window);
        split(place, (I)(k % m.places), m.made);
        return look(at, place, in, m) ? x.get(k / m.places, group * channels + column / m.numbers,
                                              place_of(at, x.sides))
                                      : 0.0f;
    }
    __device__ void put(I group, I row, I column, float sum) const {
        I in[SIDES];
        split(in, (I)(column % m.numbers), m.window);
        dw.put(group * rows + row, column / m.numbers, place_of(in, dw.sides), sum);
    }
};

/* A block makes a tile of a group's product. */
template <typename I, typename P>
__global__ void __launch_bounds__(THREADS) product_kernel(const __grid_constant__ P p) {
    BLOCK_SHARED(float[DEEP][TILE + 1], lefts);
    BLOCK_SHARED(float[DEEP][TILE + 1], rights);
    I group = (I)blockIdx.z, row = (I)blockIdx.y * TILE, column = (I)blockIdx.x * TILE;
    unsigned down = threadIdx.x / (TILE / EACH), across = threadIdx.x % (TILE / EACH);
    float sums[EACH][EACH] = {};
    for (I k = 0; k < p.inner; k += DEEP) {
        for (unsigned i = threadIdx.x; i < TILE * DEEP; i += THREADS) {
            I r = row + i / DEEP, deep = k + i % DEEP;
            lefts[i % DEEP][i / DEEP] = r < p.rows && deep < p.inner ? p.left(group, r, deep) : 0;
        }
        for (unsigned i = threadIdx.x; i < TILE * DEEP; i += THREADS) {
            I c = column + i % TILE, deep = k + i / TILE;
            rights[i / TILE][i % TILE] =
                c < p.columns && deep < p.inner ? p.right(group, deep, c) : 0;
        }
        __syncthreads();
        for (unsigned deep = 0; deep < DEEP; deep++) {
            for (unsigned r = 0; r < EACH; r++) {
                for (unsigned c = 0; c < EACH; c++) {
                    sums[r][c] += lefts[deep][down + r * (TILE / EACH)] *
                                  rights[deep][across + c * (TILE / EACH)];
                }
            }
        }
        __syncthreads();
    }
    for (unsigned r = 0; r < EACH; r++) {
        for (unsigned c = 0; c < EACH; c++) {
            I to_row = row + down + r * (TILE / EACH), to = column + across + c * (TILE / EACH);
            if (to_row < p.rows && to < p.columns) {
                p.put(group, to_row, to, sums[r][c]);
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
    return with_index(n, [&](auto of) {
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
