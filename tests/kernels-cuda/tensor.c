/* tests/kernels-cuda/tensor.c - tensors of any dtype, seen through strides, against the host's
 * (kernels/host/traced/tensor*.h): shapes, dtypes and strides that are new in each run.
 *
 * A result's whole array is compared, gaps between its elements too, which nobody may touch.
 */
#include <math.h>
#include <string.h>

#include "kernels/cuda/traced/tensor.h"
#include "kernels/host/traced/tensor-sum.h"
#include "tests/kernels-cuda/strided.h"

/* ---- element by element --------------------------------------------------------------------- */

static const char *const names[] = {
#define EACH(id, ...) #id,
#include "kernels/host/traced/tensor-rows.def"
#undef EACH
};

/* Those that make whole numbers of such, and truths. */
static bool is_for_whole(KernelEach what) {
    return what <= KERNEL_EACH_MULTIPLY || what == KERNEL_EACH_COPY || what == KERNEL_EACH_FILL ||
           what == KERNEL_EACH_WHERE || what == KERNEL_EACH_MAXIMUM || what == KERNEL_EACH_MINIMUM;
}
static bool makes_truths(KernelEach what) {
    return what >= KERNEL_EACH_EQUAL && what <= KERNEL_EACH_OR;
}

static KernelDtype dtype_for(KernelEach what) {
    if (makes_truths(what) && between(0, 1)) {
        return KERNEL_BOOL;
    }
    return is_for_whole(what) && between(0, 2) == 0 ? (between(0, 1) ? KERNEL_INT64 : KERNEL_INT32)
                                                    : floats[between(0, G_N_ELEMENTS(floats) - 1)];
}

/* The inputs: some are numbers, some widen. */
typedef struct {
    Both x[KERNEL_EACH_INPUTS];
    double numbers[KERNEL_EACH_INPUTS];
    KernelTensor of_host[KERNEL_EACH_INPUTS], of_device[KERNEL_EACH_INPUTS];
    unsigned n;
} Given;

static void given_set(Given *g, unsigned i, Both x) {
    g->x[i] = x;
    g->of_host[i] = x.host;
    g->of_device[i] = x.device;
    if (between(0, 3) == 0) {
        g->of_host[i] = (KernelTensor){.data = &g->numbers[i], .dtype = KERNEL_FP64};
        g->of_device[i] = (KernelTensor){.dtype = KERNEL_FP64};
    }
}

static void given_clear(Given *g) {
    for (unsigned i = 0; i < g->n; i++) {
        both_clear(&g->x[i]);
    }
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Given, given_clear)

/* y's whole array is looked at; it is made where host and device say. */
static void check_made(KernelEach what, const Both *y, KernelTensor host, KernelTensor device,
                       const Given *g) {
    double p = (double)between(1, 2), q = 1.5;
    kernel_tensor_each(what, &host, g->of_host, g->n, p, q);
    DEVICE_OK(
        kernel_cuda_tensor_each(device_lane, what, &device, g->of_device, g->numbers, g->n, p, q));
    is_close(names[what], y, 1e-5, 1e-5);
}

static unsigned inputs_of(KernelEach what) {
    return what == KERNEL_EACH_FILL ? 0 : KERNEL_EACH_INPUTS;
}

static void check_each(KernelEach what) {
    g_auto(Both) y = poisoned(new_shape(dtype_for(what)));
    g_auto(Given) g = {.n = inputs_of(what)};
    bool whole = y.host.dtype >= KERNEL_INT64;
    for (unsigned i = 0; i < g.n; i++) {
        KernelDtype dtype = all[between(0, G_N_ELEMENTS(all) - 1)];
        g.numbers[i] = (double)g_test_rand_int_range(whole ? 0 : -2, 3);
        given_set(&g, i,
                  filled(narrower(&y.host, whole ? KERNEL_INT64 : dtype),
                         dtype == KERNEL_UINT8 ? 0 : -2, 2));
    }
    check_made(what, &y, y.host, y.device, &g);
}

static void test_each(void) {
    for (unsigned what = 0; what < KERNEL_N_EACH; what++) {
        for (unsigned draw = 0; draw < DRAWS; draw++) {
            check_each((KernelEach)what);
        }
    }
}

/* What lies in a line from an element on, row-major, rows so many elements longer than need be. */
static KernelTensor in_rows(KernelTensor line, KernelTensor shape, size_t from, size_t gap) {
    size_t step = 1;
    for (unsigned i = shape.n_dims; i-- > 0;) {
        shape.strides[i] = step;
        step = step * shape.sizes[i] + (i + 1 == shape.n_dims ? gap : 0);
    }
    shape.dtype = line.dtype;
    shape.data = (char *)line.data + from * kernel_dtype_bytes(line.dtype);
    return shape;
}

/* Last sides that lie 16 bytes at a time, or nearly so. */
static void check_pieces(KernelEach what) {
    static const KernelDtype dtypes[] = {KERNEL_FP32, KERNEL_BF16, KERNEL_FP16, KERNEL_BOOL,
                                         KERNEL_UINT8};
    KernelTensor line = {.n_dims = 1, .sizes = {500}}, shape = {.n_dims = 3, .sizes = {2, 5}};
    bool is_whole = between(0, 3);
    size_t unit = is_whole ? 8 : 1;
    shape.sizes[2] = 8 * between(1, 5);
    line.dtype = dtypes[between(0, makes_truths(what) ? 4 : 2)];
    g_auto(Both) y = poisoned(line);
    g_auto(Given) g = {.n = inputs_of(what)};
    for (unsigned i = 0; i < g.n; i++) {
        KernelTensor mine = narrower(&shape, line.dtype);
        size_t from = unit * between(0, 1), gap = unit * between(0, 1);
        line.dtype = dtypes[between(0, 4)];
        g.numbers[i] = (double)g_test_rand_int_range(-2, 3);
        given_set(&g, i, filled(line, line.dtype == KERNEL_UINT8 ? 0 : -2, 2));
        if (g.of_device[i].data) {
            g.of_host[i] = in_rows(g.x[i].host, mine, from, gap);
            g.of_device[i] = in_rows(g.x[i].device, mine, from, gap);
        }
    }
    size_t from = unit * between(0, 1), gap = unit * between(0, 1);
    check_made(what, &y, in_rows(y.host, shape, from, gap), in_rows(y.device, shape, from, gap),
               &g);
}

static void test_pieces(void) {
    for (unsigned what = 0; what < KERNEL_N_EACH; what++) {
        for (unsigned draw = 0; draw < DRAWS; draw++) {
            check_pieces((KernelEach)what);
        }
    }
}

/* In place, as PyTorch's ops with a _ at their end. */
static void test_in_place(void) {
    for (unsigned draw = 0; draw < DRAWS; draw++) {
        g_auto(Both) y = filled(new_shape(KERNEL_FP32), -2, 2);
        g_auto(Both) x = filled(narrower(&y.host, KERNEL_BF16), -2, 2);
        KernelTensor of_host[] = {y.host, x.host}, of_device[] = {y.device, x.device};
        kernel_tensor_each(KERNEL_EACH_ADD, &y.host, of_host, 2, 0.5, 0);
        DEVICE_OK(kernel_cuda_tensor_each(device_lane, KERNEL_EACH_ADD, &y.device, of_device, NULL,
                                          2, 0.5, 0));
        is_close("in place", &y, 1e-6, 1e-6);
    }
}

/* ---- sums ----------------------------------------------------------------------------------- */

static void check_sum(KernelTensor shape, bool keeps_sides) {
    unsigned summed = (unsigned)between(0, (1u << shape.n_dims) - 1);
    KernelTensor made = {.dtype = floats[between(0, G_N_ELEMENTS(floats) - 1)]};
    for (unsigned i = 0; i < shape.n_dims; i++) {
        if (keeps_sides || !(summed >> i & 1)) {
            made.sizes[made.n_dims++] = summed >> i & 1 ? 1 : shape.sizes[i];
        }
    }
    g_auto(Both) x = filled(shape, -2, 2);
    g_auto(Both) y = poisoned(made);
    kernel_tensor_sum(&y.host, &x.host, summed, 0.75);
    DEVICE_OK(kernel_cuda_tensor_sum(device_lane, &y.device, &x.device, summed, 0.75));
    is_close("sum", &y, 1e-6, 1e-6);
}

static void test_sum(void) {
    static const size_t long_ones[][3] = {{300, 2, 1},  {2, 300, 3},  {1, 1, 700},  {40, 33, 1},
                                          {9001, 1, 1}, {1, 3, 8700}, {21, 30, 45}, {700, 37, 1}};
    for (unsigned draw = 0; draw < 6 * DRAWS; draw++) {
        check_sum(new_shape(all[between(0, G_N_ELEMENTS(all) - 1)]), draw % 2);
    }
    for (unsigned i = 0; i < 4 * G_N_ELEMENTS(long_ones); i++) {
        KernelTensor shape = {.dtype = all[between(0, G_N_ELEMENTS(all) - 1)], .n_dims = 3};
        memcpy(shape.sizes, long_ones[i / 4], sizeof long_ones[i / 4]);
        check_sum(shape, i % 2);
    }
}

/* ---- by place ------------------------------------------------------------------------------- */

static void test_count_up(void) {
    for (unsigned i = 0; i < G_N_ELEMENTS(all) - 1; i++) { /* of truths there is none */
        KernelTensor shape = {.dtype = all[i], .n_dims = 1, .sizes = {between(1, 60)}};
        g_auto(Both) y = poisoned(shape);
        double start = (double)between(0, 9), step = (double)between(1, 3);
        for (size_t j = 0; j < shape.sizes[0]; j++) {
            double number = start + (double)j * step;
            kernel_line_store_f64((char *)y.host.data +
                                      j * y.host.strides[0] * kernel_dtype_bytes(all[i]),
                                  all[i], 1, &number, 1);
        }
        DEVICE_OK(kernel_cuda_tensor_count_up(device_lane, &y.device, start, step));
        is_close("counted up", &y, 0, 0);
    }
}

static void check_triangle(bool lower) {
    KernelTensor shape = {.dtype = all[between(0, G_N_ELEMENTS(all) - 1)],
                          .n_dims = 3,
                          .sizes = {between(1, 3), between(1, 9), between(1, 9)}};
    int64_t diagonal = g_test_rand_int_range(-4, 5);
    g_auto(Both) x = filled(shape, 0, 2);
    g_auto(Both) y = poisoned(shape);
    size_t rows = shape.sizes[1], cols = shape.sizes[2], n = kernel_tensor_count(&shape);
    g_autofree float *numbers = g_new(float, n);
    kernel_tensor_read_f32(numbers, &x.host);
    for (size_t i = 0; i < n; i++) {
        int64_t above = (int64_t)(i % cols) - (int64_t)(i / cols % rows) - diagonal;
        numbers[i] = (lower ? above <= 0 : above >= 0) ? numbers[i] : 0;
    }
    kernel_tensor_write_f32(&y.host, numbers);
    DEVICE_OK(kernel_cuda_tensor_triangle(device_lane, &y.device, &x.device, diagonal, lower));
    is_close("triangle", &y, 0, 0);
}

static void test_triangle(void) {
    for (unsigned draw = 0; draw < 2 * DRAWS; draw++) {
        check_triangle(draw % 2);
    }
}

static void test_nothing(void) {
    KernelTensor none = {
        .data = device_new_bytes(4), .n_dims = 2, .sizes = {3, 0}, .strides = {1, 1}};
    DEVICE_OK(kernel_cuda_tensor_each(device_lane, KERNEL_EACH_COPY, &none, &none, NULL, 1, 0, 0));
    KernelTensor sums = {.data = none.data, .n_dims = 1, .sizes = {0}, .strides = {1}};
    DEVICE_OK(kernel_cuda_tensor_sum(device_lane, &sums, &none, 1, 1));
    KernelTensor zeros = {
        .data = device_new_bytes(3 * sizeof(float)), .n_dims = 1, .sizes = {3}, .strides = {1}};
    DEVICE_OK(kernel_cuda_tensor_sum(device_lane, &zeros, &none, 2, 1));
    device_equal_bytes("sums of nothing", zeros.data, (const float[]){0, 0, 0}, 3 * sizeof(float));
}

static void add_tests(void) {
    DEVICE_TEST_ONCE("/kernels-cuda/tensor/each", test_each);
    DEVICE_TEST_ONCE("/kernels-cuda/tensor/pieces", test_pieces);
    DEVICE_TEST_ONCE("/kernels-cuda/tensor/in-place", test_in_place);
    DEVICE_TEST_ONCE("/kernels-cuda/tensor/sum", test_sum);
    DEVICE_TEST_ONCE("/kernels-cuda/tensor/count-up", test_count_up);
    DEVICE_TEST_ONCE("/kernels-cuda/tensor/triangle", test_triangle);
    DEVICE_TEST_ONCE("/kernels-cuda/tensor/nothing", test_nothing);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
