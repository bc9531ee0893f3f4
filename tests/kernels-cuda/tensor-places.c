/* tests/kernels-cuda/tensor-places.c - what is looked up, written by index, repeated and added up
 * along a side, against loops over row-major numbers: new shapes, dtypes and strides in each run.
 */
#include <string.h>

#include "kernels/cuda/traced/tensor-places.h"
#include "tests/kernels-cuda/strided.h"

static KernelDtype any_dtype(void) {
    return all[between(0, KERNEL_UINT8)];
}

/* 1 to 4 sides. */
static KernelTensor sided(KernelDtype dtype) {
    KernelTensor t = {.dtype = dtype, .n_dims = (unsigned)between(1, 4)};
    for (unsigned i = 0; i < t.n_dims; i++) {
        t.sizes[i] = between(1, 5);
    }
    return t;
}

/* Row-major; transfer full. */
static float *numbers_of(const Both *b) {
    float *numbers = g_new(float, kernel_tensor_count(&b->host));
    kernel_tensor_read_f32(numbers, &b->host);
    return numbers;
}

/* Whole numbers, which are added up to the same in any dtype. */
static Both whole(KernelTensor shape) {
    Both b = filled(shape, 0, 9);
    size_t n = kernel_tensor_count(&b.host);
    g_autofree float *numbers = numbers_of(&b);
    for (size_t i = 0; i < n; i++) {
        numbers[i] = floorf(numbers[i]);
    }
    kernel_tensor_write_f32(&b.host, numbers);
    b.device.data = device_put_bytes(b.host.data, b.elements * kernel_dtype_bytes(shape.dtype));
    return b;
}

/* Where element i of one row-major array lies in another, whose sizes differ: with `named` on one
 * side. */
static size_t moved(const KernelTensor *from, size_t i, const KernelTensor *to, unsigned side,
                    size_t named) {
    size_t at = 0, step = 1;
    for (unsigned d = from->n_dims; d-- > 0;) {
        size_t here = i % from->sizes[d];
        i /= from->sizes[d];
        at += (d == side ? named : here) * step;
        step *= to->sizes[d];
    }
    return at;
}

/* As large as t at most, but for one side. */
static KernelTensor within(const KernelTensor *t, unsigned side, KernelDtype dtype) {
    KernelTensor part = {.dtype = dtype, .n_dims = t->n_dims};
    for (unsigned i = 0; i < t->n_dims; i++) {
        part.sizes[i] = i == side ? between(1, 9) : between(1, t->sizes[i]);
    }
    return part;
}

static KernelDtype of_index(void) {
    return between(0, 1) ? KERNEL_INT64 : KERNEL_INT32;
}

static void test_gather(void) {
    for (unsigned draw = 0; draw < 2 * DRAWS; draw++) {
        KernelTensor shape = sided(any_dtype());
        unsigned side = (unsigned)between(0, shape.n_dims - 1);
        KernelTensor of_indices = within(&shape, side, of_index()), made = of_indices;
        made.dtype = shape.dtype;
        g_auto(Both) x = filled(shape, 0, 9);
        g_auto(Both) index = filled(of_indices, 0, (double)shape.sizes[side] - 1);
        g_auto(Both) y = poisoned(made);
        g_autofree float *xs = numbers_of(&x), *at = numbers_of(&index);
        size_t n = kernel_tensor_count(&made);
        g_autofree float *ys = g_new(float, n);
        for (size_t i = 0; i < n; i++) {
            ys[i] = xs[moved(&made, i, &shape, side, (size_t)at[i])];
        }
        kernel_tensor_write_f32(&y.host, ys);
        DEVICE_OK(
            kernel_cuda_tensor_gather(device_lane, &y.device, &x.device, &index.device, side));
        is_close("gathered", &y, 0, 0);
    }
}

/* Of equal indices the last counts. */
static void check_scatter(bool adds, bool has_source) {
    KernelTensor shape = sided(any_dtype());
    unsigned side = (unsigned)between(0, shape.n_dims - 1);
    KernelTensor of_indices = within(&shape, side, of_index()), given = of_indices;
    for (unsigned i = 0; i < given.n_dims; i++) {
        given.sizes[i] += between(0, 2);
    }
    given.dtype = any_dtype();
    g_auto(Both) y = whole(shape);
    g_auto(Both) index = filled(of_indices, 0, (double)shape.sizes[side] - 1);
    g_auto(Both) source = whole(given);
    g_autofree float *ys = numbers_of(&y), *at = numbers_of(&index), *sources = numbers_of(&source);
    for (size_t i = 0; i < kernel_tensor_count(&of_indices); i++) {
        size_t to = moved(&of_indices, i, &shape, side, (size_t)at[i]);
        size_t beside = i;
        for (unsigned d = side + 1; d < of_indices.n_dims; d++) {
            beside /= of_indices.sizes[d];
        }
        size_t from = moved(&of_indices, i, &given, side, beside % of_indices.sizes[side]);
        float number = has_source ? sources[from] : 7;
        ys[to] = adds ? ys[to] + number : number;
    }
    kernel_tensor_write_f32(&y.host, ys);
    DEVICE_OK(kernel_cuda_tensor_scatter(device_lane, &y.device, &index.device,
                                         has_source ? &source.device : NULL, 7, side, adds));
    is_close("scattered", &y, 0, 0);
}

static void test_scatter(void) {
    for (unsigned draw = 0; draw < 4 * DRAWS; draw++) {
        check_scatter(draw % 2, draw / 2 % 2);
    }
}

static void test_index_select(void) {
    for (unsigned draw = 0; draw < 2 * DRAWS; draw++) {
        KernelTensor shape = sided(any_dtype()), made = shape;
        unsigned side = (unsigned)between(0, shape.n_dims - 1);
        made.sizes[side] = between(1, 9);
        KernelTensor of_indices = {.dtype = of_index(), .n_dims = 1, .sizes = {made.sizes[side]}};
        g_auto(Both) x = filled(shape, 0, 9);
        g_auto(Both) index = filled(of_indices, 0, (double)shape.sizes[side] - 1);
        g_auto(Both) y = poisoned(made);
        g_autofree float *xs = numbers_of(&x), *at = numbers_of(&index);
        size_t n = kernel_tensor_count(&made), inner = 1;
        g_autofree float *ys = g_new(float, n);
        for (unsigned d = side + 1; d < made.n_dims; d++) {
            inner *= made.sizes[d];
        }
        for (size_t i = 0; i < n; i++) {
            size_t named = (size_t)at[i / inner % made.sizes[side]];
            ys[i] = xs[moved(&made, i, &shape, side, named)];
        }
        kernel_tensor_write_f32(&y.host, ys);
        DEVICE_OK(kernel_cuda_tensor_index_select(device_lane, &y.device, &x.device, &index.device,
                                                  side));
        is_close("selected", &y, 0, 0);
    }
}

static void test_bad_index(void) {
    gint64 at[] = {1, 3, -1};
    float xs[] = {5, 6, 7}, want[] = {6, 0, 0}, want_scattered[] = {5, 9, 7};
    uint32_t op;
    KernelTensor x = {.data = device_put_floats(xs, 3), .n_dims = 1, .sizes = {3}, .strides = {1}};
    KernelTensor y = x, index = x;
    y.data = device_new_floats(3);
    index.dtype = KERNEL_INT64;
    index.data = device_put_i64(at, 3);
    kernel_cuda_tag(device_lane, 5);
    DEVICE_OK(kernel_cuda_tensor_gather(device_lane, &y, &x, &index, 0));
    device_equal_bytes("gathered", y.data, want, sizeof want);
    g_assert_true(kernel_cuda_bad_index(device_lane, &op));
    g_assert_cmpuint(op, ==, 5);
    kernel_cuda_tag(device_lane, 6);
    DEVICE_OK(kernel_cuda_tensor_scatter(device_lane, &x, &index, NULL, 9, 0, false));
    device_equal_bytes("scattered", x.data, want_scattered, sizeof want_scattered);
    g_assert_true(kernel_cuda_bad_index(device_lane, &op));
    g_assert_cmpuint(op, ==, 6);
}

static void test_running_sum(void) {
    for (unsigned draw = 0; draw < 2 * DRAWS; draw++) {
        KernelTensor shape = sided(any_dtype()), made = shape;
        unsigned side = (unsigned)between(0, shape.n_dims - 1);
        made.dtype = any_dtype();
        g_auto(Both) x = filled(shape, 0, 3); /* sums are below 2^8, which all hold */
        g_auto(Both) y = poisoned(made);
        g_autofree float *xs = numbers_of(&x);
        size_t n = kernel_tensor_count(&made), inner = 1;
        g_autofree float *ys = g_new(float, n);
        for (unsigned d = side + 1; d < made.n_dims; d++) {
            inner *= made.sizes[d];
        }
        g_autofree double *sums = g_new(double, n);
        for (size_t i = 0; i < n; i++) {
            bool begins = i / inner % made.sizes[side] == 0;
            sums[i] = (begins ? 0 : sums[i - inner]) + (double)xs[i];
            ys[i] = made.dtype >= KERNEL_INT64 ? (float)floor(sums[i]) : (float)sums[i];
        }
        kernel_tensor_write_f32(&y.host, ys);
        DEVICE_OK(kernel_cuda_tensor_running_sum(device_lane, &y.device, &x.device, side));
        is_close("running sum", &y, 1e-6, 0);
    }
}

static void test_repeat(void) {
    for (unsigned draw = 0; draw < 2 * DRAWS; draw++) {
        KernelTensor shape = new_shape(any_dtype()), made = {.dtype = shape.dtype};
        unsigned more = (unsigned)between(0, 2);
        made.n_dims = shape.n_dims + more;
        for (unsigned i = 0; i < made.n_dims; i++) {
            made.sizes[i] = (i < more ? 1 : shape.sizes[i - more]) * between(1, 3);
        }
        g_auto(Both) x = filled(shape, 0, 9);
        g_auto(Both) y = poisoned(made);
        g_autofree float *xs = numbers_of(&x);
        size_t n = kernel_tensor_count(&made);
        g_autofree float *ys = g_new(float, n);
        for (size_t i = 0; i < n; i++) {
            size_t rest = i, from = 0, step = 1;
            for (unsigned d = made.n_dims; d-- > more; rest /= made.sizes[d]) {
                from += rest % made.sizes[d] % shape.sizes[d - more] * step;
                step *= shape.sizes[d - more];
            }
            ys[i] = xs[from];
        }
        kernel_tensor_write_f32(&y.host, ys);
        DEVICE_OK(kernel_cuda_tensor_repeat(device_lane, &y.device, &x.device));
        is_close("repeated", &y, 0, 0);
    }
}

static void add_tests(void) {
    DEVICE_TEST_ONCE("/kernels-cuda/tensor-places/gather", test_gather);
    DEVICE_TEST_ONCE("/kernels-cuda/tensor-places/scatter", test_scatter);
    DEVICE_TEST_ONCE("/kernels-cuda/tensor-places/index-select", test_index_select);
    DEVICE_TEST_ONCE("/kernels-cuda/tensor-places/bad-index", test_bad_index);
    DEVICE_TEST_ONCE("/kernels-cuda/tensor-places/running-sum", test_running_sum);
    DEVICE_TEST_ONCE("/kernels-cuda/tensor-places/repeat", test_repeat);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
