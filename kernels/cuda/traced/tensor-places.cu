/* kernels/cuda/traced/tensor-places.cu - see tensor-places.h. Bound: memory, or divisions. A thread
 * an element, or a line.
 */
#include "kernels/cuda/traced/tensor-places.h"

#include "kernels/cuda/traced/tensor.cuh"

using namespace cu;

namespace {

/* A side that is looked along: its length in the tensor that is named, and a step of it there. */
struct Along {
    size_t size, step;
    unsigned *flag, tag; /* for a bad index */

    /* False, and told, if it is outside. */
    __device__ bool find(const Numbers &index, size_t at, size_t *ret_place) const {
        int64_t named = index.get<int64_t>(at);
        if (!is_inside(named, size)) {
            tell_bad_index(flag, tag);
            return false;
        }
        *ret_place = (size_t)named * step;
        return true;
    }
};

Along along(const KernelCuda *lane, const KernelTensor *t, unsigned side) {
    return Along{t->n_dims ? t->sizes[side] : 1, t->n_dims ? t->strides[side] : 0, lane->flag,
                 lane->tag};
}

/* Of tensors without sides there is one element, as of one side of one. */
size_t size_of(const KernelTensor *t, unsigned side) {
    return t->n_dims ? t->sizes[side] : 1;
}
size_t step_of(const KernelTensor *t, unsigned side) {
    return t->n_dims ? t->strides[side] : 0;
}

/* ---- looked up ------------------------------------------------------------------------------ */

/* Sides of the index, of y and, but for the one that is named, of x. */
__global__ void __launch_bounds__(THREADS)
    gather_kernel(Numbers y, Numbers x, Numbers index, const __grid_constant__ Sides<3> sides,
                  size_t n, Along named) {
    FOR_WORK(size_t, i, n) {
        size_t at[3], place;
        sides.find(i, at);
        bool good = named.find(index, at[0], &place);
        y.put(at[1], good ? x.get<double>(at[2] + place) : 0);
    }
}

/* A thread a line: the sides are the others. */
__global__ void __launch_bounds__(THREADS)
    scatter_kernel(Numbers y, Numbers index, Numbers source, double number,
                   const __grid_constant__ Sides<3> lines, size_t n, size_t length,
                   size_t index_step, size_t source_step, Along named, bool adds) {
    FOR_WORK(size_t, i, n) {
        size_t at[3], place;
        lines.find(i, at);
        for (size_t j = 0; j < length; j++) {
            if (!named.find(index, at[0] + j * index_step, &place)) {
                continue;
            }
            place += at[1];
            double given = source.data ? source.get<double>(at[2] + j * source_step) : number;
            y.put(place, adds ? y.get<double>(place) + given : given);
        }
    }
}

/* ---- added up ------------------------------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS)
    running_sum_kernel(Numbers y, Numbers x, const __grid_constant__ Sides<2> lines, size_t n,
                       size_t length, size_t y_step, size_t x_step) {
    FOR_WORK(size_t, i, n) {
        size_t at[2];
        double sum = 0;
        lines.find(i, at);
        for (size_t j = 0; j < length; j++) {
            sum += x.get<double>(at[1] + j * x_step);
            y.put(at[0] + j * y_step, sum);
        }
    }
}

/* ---- repeated ------------------------------------------------------------------------------- */

struct Repeated {
    unsigned n_dims;
    size_t made[KERNEL_TENSOR_SIDES], made_strides[KERNEL_TENSOR_SIDES];
    size_t sizes[KERNEL_TENSOR_SIDES], strides[KERNEL_TENSOR_SIDES]; /* of what is repeated */
};

__global__ void __launch_bounds__(THREADS)
    repeat_kernel(Numbers y, Numbers x, const __grid_constant__ Repeated r, size_t n) {
    FOR_WORK(size_t, i, n) {
        size_t to = 0, from = 0, rest = i;
        for (unsigned d = r.n_dims; d-- > 0;) {
            size_t before = rest / r.made[d], here = rest - before * r.made[d];
            to += here * r.made_strides[d];
            from += here % r.sizes[d] * r.strides[d];
            rest = before;
        }
        y.put(to, x.get<double>(from));
    }
}

} // namespace

KernelCudaFault kernel_cuda_tensor_gather(KernelCuda *lane, const KernelTensor *y,
                                          const KernelTensor *x, const KernelTensor *index,
                                          unsigned side) {
    Sides<3> sides = {};
    for (unsigned i = 0; i < index->n_dims; i++) {
        sides.add(index->sizes[i], index->strides[i], y->strides[i], i == side ? 0 : x->strides[i]);
    }
    size_t n = sides.count();
    return launch_for(lane, "gather", n, gather_kernel, numbers_of(y), numbers_of(x),
                      numbers_of(index), sides, n, along(lane, x, side));
}

KernelCudaFault kernel_cuda_tensor_scatter(KernelCuda *lane, const KernelTensor *y,
                                           const KernelTensor *index, const KernelTensor *source,
                                           double number, unsigned side, bool adds) {
    Sides<3> lines = {};
    for (unsigned i = 0; i < index->n_dims; i++) {
        if (i != side) {
            lines.add(index->sizes[i], index->strides[i], y->strides[i],
                      source ? source->strides[i] : 0);
        }
    }
    size_t n = lines.count();
    return launch_for(lane, "scatter", n, scatter_kernel, numbers_of(y), numbers_of(index),
                      numbers_of(source), number, lines, n, size_of(index, side),
                      step_of(index, side), source ? step_of(source, side) : 0,
                      along(lane, y, side), adds);
}

KernelCudaFault kernel_cuda_tensor_index_select(KernelCuda *lane, const KernelTensor *y,
                                                const KernelTensor *x, const KernelTensor *index,
                                                unsigned side) {
    Sides<3> sides = {};
    for (unsigned i = 0; i < y->n_dims; i++) {
        bool is_named = i == side;
        sides.add(y->sizes[i], is_named && index->n_dims ? index->strides[0] : 0, y->strides[i],
                  is_named ? 0 : x->strides[i]);
    }
    size_t n = sides.count();
    return launch_for(lane, "index_select", n, gather_kernel, numbers_of(y), numbers_of(x),
                      numbers_of(index), sides, n, along(lane, x, side));
}

KernelCudaFault kernel_cuda_tensor_running_sum(KernelCuda *lane, const KernelTensor *y,
                                               const KernelTensor *x, unsigned side) {
    Sides<2> lines = {};
    for (unsigned i = 0; i < y->n_dims; i++) {
        if (i != side) {
            lines.add(y->sizes[i], y->strides[i], x->strides[i]);
        }
    }
    size_t n = lines.count();
    return launch_for(lane, "running_sum", n, running_sum_kernel, numbers_of(y), numbers_of(x),
                      lines, n, size_of(y, side), step_of(y, side), step_of(x, side));
}

KernelCudaFault kernel_cuda_tensor_repeat(KernelCuda *lane, const KernelTensor *y,
                                          const KernelTensor *x) {
    Repeated r = {};
    size_t n = 1;
    r.n_dims = y->n_dims;
    for (unsigned i = 0; i < y->n_dims; i++) {
        unsigned behind = y->n_dims - i; /* sides from here to the end */
        bool is_there = behind <= x->n_dims;
        r.made[i] = y->sizes[i];
        r.made_strides[i] = y->strides[i];
        r.sizes[i] = is_there ? x->sizes[x->n_dims - behind] : 1;
        r.strides[i] = is_there ? x->strides[x->n_dims - behind] : 0;
        n *= y->sizes[i];
    }
    return launch_for(lane, "repeat", n, repeat_kernel, numbers_of(y), numbers_of(x), r, n);
}
