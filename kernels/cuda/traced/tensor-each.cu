/* kernels/cuda/traced/tensor-each.cu - see tensor.h: element by element. Bound: memory, or
 * divisions, of which there is one for each side that does not lie as one with the next.
 *
 * Where all operands' last sides lie in whole pieces of PIECE elements, or are one number along it,
 * a thread takes a piece; else an element.
 */
#include <math.h>

#include "kernels/cuda/traced/tensor.cuh"
#include "kernels/cuda/traced/tensor.h"
#include "kernels/tensor-math.h"
#include "kernels/tensor-walk.h"

using namespace cu;

namespace {

enum {
    PIECE = 8, /* elements: 16 bytes of 16-bit numbers, twice as many of fp32 */
};

/* A tensor of the walk; without data, a number. */
struct Operand {
    void *data;
    KernelDtype dtype;
    bool is_one; /* number along the last side */
    double number;
};

struct Each {
    KernelEach what;
    unsigned n_dims, n_inputs;
    size_t sizes[KERNEL_TENSOR_SIDES]; /* the last one's, and its strides, count pieces */
    size_t strides[KERNEL_EACH_INPUTS + 1][KERNEL_TENSOR_SIDES];
    Operand of[KERNEL_EACH_INPUTS + 1]; /* the output is the last */
    double p, q;
};

/* ---- pieces --------------------------------------------------------------------------------- */

/* A piece as it lies, of up to 32 bytes. Loaded first and widened later, so that those of all
 * operands are under way together; of one element it is a number already. */
template <typename R, int V> struct Piece {
    uint4 part[2];

    __device__ void get(const Operand &x, size_t at) {
        if (!x.data || x.is_one) {
            R one = x.data ? load_as<R>(x.data, x.dtype, at) : (R)x.number;
            part[0].x = __float_as_uint(one);
        } else if (x.dtype == KERNEL_FP32) {
            part[0] = ((const uint4 *)((const float *)x.data + at))[0];
            part[1] = ((const uint4 *)((const float *)x.data + at))[1];
        } else if (x.dtype == KERNEL_BF16 || x.dtype == KERNEL_FP16) {
            part[0] = *(const uint4 *)((const uint16_t *)x.data + at);
        } else {
            uint2 bytes = *(const uint2 *)((const uint8_t *)x.data + at);
            part[0].x = bytes.x;
            part[0].y = bytes.y;
        }
    }
    __device__ void widen_to(R (&z)[V], const Operand &x) const {
        if (!x.data || x.is_one) {
#pragma unroll
            for (int v = 0; v < V; v++) {
                z[v] = __uint_as_float(part[0].x);
            }
        } else if (x.dtype == KERNEL_FP32) {
            widen_part(z, part[0], float());
            widen_part(z + 4, part[1], float());
        } else if (x.dtype == KERNEL_BF16) {
            widen_part(z, part[0], __nv_bfloat16());
        } else if (x.dtype == KERNEL_FP16) {
            widen_part(z, part[0], __half());
        } else {
#pragma unroll
            for (int v = 0; v < V; v++) {
                z[v] = (R)((v < 4 ? part[0].x : part[0].y) >> v % 4 * 8 & 0xffu);
            }
        }
    }
};

template <typename R> struct Piece<R, 1> {
    R number;

    __device__ void get(const Operand &x, size_t at) {
        number = x.data ? load_as<R>(x.data, x.dtype, at) : (R)x.number;
    }
    __device__ void widen_to(R (&z)[1], const Operand &) const {
        z[0] = number;
    }
};

/* Four bytes of numbers, or of truths. */
__device__ unsigned four_bytes(const float *z, KernelDtype dtype) {
    unsigned word = 0;
#pragma unroll
    for (int v = 0; v < 4; v++) {
        word |= (dtype == KERNEL_UINT8 ? (uint8_t)z[v] : (unsigned)(z[v] != 0)) << v * 8;
    }
    return word;
}

template <typename R> __device__ void put_piece(const Operand &y, size_t at, const R (&z)[1]) {
    store_as<R>(y.data, y.dtype, at, z[0]);
}
__device__ void put_piece(const Operand &y, size_t at, const float (&z)[PIECE]) {
    if (y.dtype == KERNEL_FP32) {
        store<PIECE>((float *)y.data + at, z);
    } else if (y.dtype == KERNEL_BF16) {
        store<PIECE>((__nv_bfloat16 *)y.data + at, z);
    } else if (y.dtype == KERNEL_FP16) {
        store<PIECE>((__half *)y.data + at, z);
    } else {
        put((uint2 *)((uint8_t *)y.data + at),
            make_uint2(four_bytes(z, y.dtype), four_bytes(z + 4, y.dtype)));
    }
}

/* ---- the kernel ----------------------------------------------------------------------------- */

/* Those that take so many instructions that a piece's elements go one by one, by way of the
 * thread's own memory: side by side they would fill the cache of instructions, and take the
 * compiler long. */
constexpr __host__ __device__ bool is_long(KernelEach what) {
    return what == KERNEL_EACH_DIVIDE_ROUNDED || what == KERNEL_EACH_REMAINDER ||
           (what >= KERNEL_EACH_EXPM1 && what <= KERNEL_EACH_LOG1P) ||
           (what >= KERNEL_EACH_SIN && what <= KERNEL_EACH_ERF) || what == KERNEL_EACH_POWER ||
           (what >= KERNEL_EACH_GELU && what <= KERNEL_EACH_SOFTPLUS_BACKWARD);
}

/* What a kernel can compute. Of pieces there is one for the long ones and one for the others: a
 * kernel takes as many registers as the longest of it, and with fewer more threads read at once. */
enum Which {
    ANY,
    SHORT,
    LONG
};

constexpr __host__ __device__ bool is_of(KernelEach what, Which which) {
    return which == ANY || is_long(what) == (which == LONG);
}

template <bool ONE_BY_ONE, typename R, int V, typename F>
__device__ void compute_each(R (&y)[V], const R (&x)[KERNEL_EACH_INPUTS][V], F f) {
    if constexpr (V > 1 && ONE_BY_ONE) {
        R from[KERNEL_EACH_INPUTS][V], made[V];
#pragma unroll
        for (int v = 0; v < V; v++) {
            from[0][v] = x[0][v], from[1][v] = x[1][v], from[2][v] = x[2][v];
        }
#pragma unroll 1
        for (int v = 0; v < V; v++) {
            made[v] = f(from[0][v], from[1][v], from[2][v]);
        }
#pragma unroll
        for (int v = 0; v < V; v++) {
            y[v] = made[v];
        }
    } else {
#pragma unroll
        for (int v = 0; v < V; v++) {
            y[v] = f(x[0][v], x[1][v], x[2][v]);
        }
    }
}

template <Which WHICH, typename R, int V>
__device__ void compute(R (&y)[V], const R (&x)[KERNEL_EACH_INPUTS][V], KernelEach what, R p, R q) {
    switch (what) {
#define EACH(id, ...)                                                                              \
    case KERNEL_EACH_##id:                                                                         \
        if constexpr (is_of(KERNEL_EACH_##id, WHICH)) {                                            \
            compute_each<is_long(KERNEL_EACH_##id)>(y, x, [=](R a, R b, R c) {                     \
                GELU_FUNCTIONS;                                                                    \
                (void)a, (void)b, (void)c, (void)p, (void)q;                                       \
                return (R)(__VA_ARGS__);                                                           \
            });                                                                                    \
        }                                                                                          \
        return;
#include "kernels/host/traced/tensor-rows.def"
#undef EACH
    case KERNEL_N_EACH:
        break;
    }
}

/* n pieces of V elements, of up to INPUTS tensors or numbers. */
template <typename R, int V, typename I, Which WHICH, unsigned INPUTS>
__global__ void __launch_bounds__(THREADS) each_tensor_kernel(const __grid_constant__ Each e, I n) {
    FOR_WORK(I, i, n) {
        size_t at[KERNEL_EACH_INPUTS + 1] = {};
        I rest = i;
        for (unsigned d = e.n_dims; d-- > 0;) {
            I size = (I)e.sizes[d], before = d ? rest / size : 0, here = rest - before * size;
            rest = before;
#pragma unroll
            for (unsigned t = 0; t <= KERNEL_EACH_INPUTS; t++) {
                at[t] += (size_t)here * e.strides[t][d];
            }
        }
        Piece<R, V> piece[INPUTS];
        R x[KERNEL_EACH_INPUTS][V] = {}, y[V] = {};
#pragma unroll
        for (unsigned t = 0; t < INPUTS; t++) {
            if (t < e.n_inputs) {
                piece[t].get(e.of[t], at[t]);
            }
        }
#pragma unroll
        for (unsigned t = 0; t < INPUTS; t++) {
            if (t < e.n_inputs) {
                piece[t].widen_to(x[t], e.of[t]);
            }
        }
        compute<WHICH>(y, x, e.what, (R)e.p, (R)e.q);
        put_piece(e.of[KERNEL_EACH_INPUTS], at[KERNEL_EACH_INPUTS], y);
    }
}

/* ---- choosing ------------------------------------------------------------------------------- */

/* Whether pieces of an operand begin where such of it may be loaded, and lie side by side in them;
 * an input may be one number along the last side. */
bool lies_in_pieces(const Each &e, unsigned which) {
    const Operand &x = e.of[which];
    const size_t *strides = e.strides[which];
    size_t bytes = dtype_bytes(x.dtype), border = bytes == 1 ? PIECE : 16;
    if (!x.data || (strides[e.n_dims - 1] == 0 && which < KERNEL_EACH_INPUTS)) {
        return true;
    }
    uintptr_t all = (uintptr_t)x.data;
    for (unsigned d = 0; d + 1 < e.n_dims; d++) {
        all |= strides[d] * bytes;
    }
    return strides[e.n_dims - 1] == 1 && all % border == 0;
}

bool goes_in_pieces(const Each &e) {
    bool all = e.sizes[e.n_dims - 1] % PIECE == 0 && lies_in_pieces(e, KERNEL_EACH_INPUTS);
    for (unsigned i = 0; i < e.n_inputs; i++) {
        all = all && lies_in_pieces(e, i);
    }
    return all;
}

/* The same walk, a piece at a time. */
Each in_pieces_of(const Each &each) {
    Each e = each;
    unsigned last = e.n_dims - 1;
    e.sizes[last] /= PIECE;
    for (unsigned t = 0; t <= KERNEL_EACH_INPUTS; t++) {
        e.of[t].is_one = e.strides[t][last] == 0;
        e.strides[t][last] *= PIECE;
    }
    return e;
}

/* Element by element. */
template <typename R> KernelCudaFault launch_each(KernelCuda *lane, const Each &e, size_t n) {
    return with_index(n, [&](auto of) {
        using I = decltype(of);
        return launch_for(lane, "tensor_each", n,
                          each_tensor_kernel<R, 1, I, ANY, KERNEL_EACH_INPUTS>, e, n);
    });
}

template <Which WHICH> KernelCudaFault launch_pieces(KernelCuda *lane, const Each &e, size_t n) {
    return launch_for(lane, "tensor_each", n / PIECE,
                      e.n_inputs <= 1
                          ? each_tensor_kernel<float, PIECE, uint32_t, WHICH, 1>
                          : each_tensor_kernel<float, PIECE, uint32_t, WHICH, KERNEL_EACH_INPUTS>,
                      in_pieces_of(e), n / PIECE);
}

Each each_of(KernelEach what, const KernelWalk &walk, const KernelTensor *inputs,
             const double *numbers, double p, double q) {
    unsigned n_inputs = walk.n_tensors - 1;
    const KernelTensor *y = walk.tensors[n_inputs];
    Each e = {};
    e.what = what;
    e.n_dims = walk.n_dims;
    e.n_inputs = n_inputs;
    memcpy(e.sizes, walk.sizes, sizeof e.sizes);
    memcpy(e.strides[KERNEL_EACH_INPUTS], walk.strides[n_inputs], sizeof *e.strides);
    for (unsigned i = 0; i < n_inputs && i < KERNEL_EACH_INPUTS; i++) {
        memcpy(e.strides[i], walk.strides[i], sizeof *e.strides);
        bool is_number = !inputs[i].data;
        e.of[i] = Operand{inputs[i].data, inputs[i].dtype, false, is_number ? numbers[i] : 0};
    }
    e.of[KERNEL_EACH_INPUTS] = Operand{y->data, y->dtype, false, 0};
    e.p = p;
    e.q = q;
    return e;
}

} // namespace

KernelCudaFault kernel_cuda_tensor_each(KernelCuda *lane, KernelEach what, const KernelTensor *y,
                                        const KernelTensor *inputs, const double *numbers,
                                        unsigned n_inputs, double p, double q) {
    KernelWalk walk;
    bool wide = kernel_walk_of(&walk, y, inputs, n_inputs);
    Each e = each_of(what, walk, inputs, numbers, p, q);
    size_t n = 1;
    for (unsigned d = 0; d < e.n_dims; d++) {
        n *= e.sizes[d];
    }
    if (wide) {
        return launch_each<double>(lane, e, n);
    }
    if (n / PIECE < (size_t)1 << 31 && goes_in_pieces(e)) {
        return is_long(what) ? launch_pieces<LONG>(lane, e, n) : launch_pieces<SHORT>(lane, e, n);
    }
    return launch_each<float>(lane, e, n);
}
