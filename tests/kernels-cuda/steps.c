/* tests/kernels-cuda/steps.c - random numbers and optimizer steps against the host's. */
#include <math.h>
#include <string.h>

#include "kernels/cuda/lists/optimizer.h"
#include "kernels/cuda/random.h"
#include "kernels/host/dropout.h"
#include "kernels/host/lists/optimizer.h"
#include "kernels/host/products/float8.h"
#include "kernels/host/random.h"
#include "kernels/host/reduce.h"
#include "tests/kernels-cuda/device.h"

/* ---- random numbers: the host's, bit by bit -------------------------------------------------- */

static const KernelCudaRandom randoms[] = {
    {1, 2, 0}, {77, UINT64_C(5) << 32, 3}, {UINT64_C(1) << 63, 9, (UINT64_C(1) << 34) + 1}};

static void test_philox(const DeviceCase *c) {
    enum {
        N = 2050
    };
    float want[N];
    for (size_t r = 0; r < G_N_ELEMENTS(randoms); r++) {
        const KernelCudaRandom *k = &randoms[r];
        void *out = device_new(c, N);
        kernel_philox_normal_f32(want, N, k->seed, k->stream_id, k->first_index, 0.5f, 2);
        DEVICE_OK(kernel_cuda_philox_normal(device_lane, out, N, *k, 0.5f, 2, c->type));
        device_equal("normal", c, out, want, N);
        kernel_philox_uniform_f32(want, N, k->seed, k->stream_id, k->first_index, -1, 3);
        DEVICE_OK(kernel_cuda_philox_uniform(device_lane, out, N, *k, -1, 3, c->type));
        device_equal("uniform", c, out, want, N);
    }
}

static void check_dropout(const DeviceCase *c, size_t n, const KernelCudaRandom *k) {
    g_autofree float *x = device_random(c, n, -1, 1, 1), *want = g_new(float, n);
    g_autofree guint8 *want_mask = g_malloc(n);
    guint8 *mask = (guint8 *)device_new_bytes(n + c->shift) + c->shift;
    void *y = device_new(c, n), *dx = device_put(c, x, n);
    kernel_dropout_forward_f32(want, want_mask, x, n, 0.3f, k->seed, k->stream_id, k->first_index);
    DEVICE_OK(kernel_cuda_dropout_forward(device_lane, y, mask, device_put(c, x, n), n, 0.3f, *k,
                                          c->type));
    device_equal("dropout", c, y, want, n);
    device_equal_bytes("mask", mask, want_mask, n);
    kernel_dropout_backward_f32(want, x, want_mask, n, 0.3f);
    DEVICE_OK(kernel_cuda_dropout_backward(device_lane, dx, dx, mask, n, 0.3f, c->type));
    device_equal("dropout backward", c, dx, want, n);
}

/* Blocks of random numbers begin anywhere among the 16 bytes that a thread takes. */
static void test_dropout(const DeviceCase *c) {
    static const size_t sizes[] = {1, 9, 2050};
    for (size_t s = 0; s < G_N_ELEMENTS(sizes); s++) {
        for (unsigned first = 0; first < 4; first++) {
            KernelCudaRandom random = randoms[s];
            random.first_index += first;
            check_dropout(c, sizes[s], &random);
        }
    }
}

/* ---- lists of tensors ----------------------------------------------------------------------- */

enum {
    TENSORS = 55, /* more than a launch takes */
    LISTS = KERNEL_CUDA_MAX_LISTS,
};

/* The lists of a step, on the host and on the device. Every third tensor's list 0 has another type,
 * and one of its lists begins elsewhere; tensor 7 is empty, tensor 11 large. */
typedef struct {
    size_t elements[TENSORS];
    DeviceCase cases[LISTS][TENSORS];
    float *host[LISTS][TENSORS];
    void *device[LISTS][TENSORS];
    KernelCudaType types[LISTS][TENSORS];
    KernelCudaTensors tensors;
} Lists;

static void lists_free(Lists *l) {
    for (unsigned j = 0; j < LISTS; j++) {
        for (unsigned i = 0; i < TENSORS; i++) {
            g_free(l->host[j][i]);
        }
    }
    g_free(l);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Lists, lists_free)

static Lists *new_lists(const DeviceCase *c) {
    Lists *l = g_new0(Lists, 1);
    l->tensors = (KernelCudaTensors){.n = TENSORS, .elements = l->elements};
    for (unsigned i = 0; i < TENSORS; i++) {
        l->elements[i] = i == 7 ? 0 : i == 11 ? 40001 : i * 13 % 50 + 1;
    }
    for (unsigned j = 0; j < LISTS; j++) {
        l->tensors.data[j] = l->device[j];
        l->tensors.types[j] = l->types[j];
        for (unsigned i = 0; i < TENSORS; i++) {
            DeviceCase *own = &l->cases[j][i];
            *own = *c;
            if (i % 3 == 0 && j == 0) {
                *own = (DeviceCase){KERNEL_CUDA_F32, i % 2, 0};
            }
            l->types[j][i] = own->type;
            l->host[j][i] = device_random(own, l->elements[i], j < 2 ? -1 : 0.1, 1, 100 * j + i);
            l->device[j][i] = device_put(own, l->host[j][i], l->elements[i]);
        }
    }
    return l;
}

static void check_list(const char *what, const Lists *l, unsigned j, double relative,
                       double absolute) {
    for (unsigned i = 0; i < TENSORS; i++) {
        device_close(what, &l->cases[j][i], l->device[j][i], l->host[j][i], l->elements[i],
                     relative, absolute);
    }
}

static void host_each(Lists *l, KernelCudaEach op, unsigned i, float number) {
    float *x = l->host[0][i], *y = l->host[1][i], *z = l->host[2][i];
    size_t n = l->elements[i];
    for (size_t k = 0; k < n; k++) {
        switch (op) {
        case KERNEL_CUDA_EACH_ZERO:
            x[k] = 0;
            break;
        case KERNEL_CUDA_EACH_MUL:
            x[k] *= number;
            break;
        case KERNEL_CUDA_EACH_DIV:
            x[k] /= number;
            break;
        case KERNEL_CUDA_EACH_ADD:
            x[k] += number;
            break;
        case KERNEL_CUDA_EACH_COPY:
            y[k] = x[k];
            break;
        case KERNEL_CUDA_EACH_SQRT:
            y[k] = sqrtf(x[k]);
            break;
        case KERNEL_CUDA_EACH_DIV_TO:
            y[k] = x[k] / number;
            break;
        case KERNEL_CUDA_EACH_SUM:
            y[k] += x[k];
            break;
        case KERNEL_CUDA_EACH_ADD_SCALED:
            y[k] += number * x[k];
            break;
        case KERNEL_CUDA_EACH_LERP:
            kernel_lerp_inplace_f32(&y[k], &x[k], number, 1);
            break;
        case KERNEL_CUDA_EACH_ADDCMUL:
            y[k] += number * x[k] * x[k];
            break;
        case KERNEL_CUDA_EACH_ADDCDIV:
            z[k] += number * x[k] / y[k];
            break;
        case KERNEL_CUDA_EACH_ADD_TO:
            z[k] = x[k] + number * y[k];
            break;
        case KERNEL_CUDA_EACH_LERP_TO:
            z[k] = x[k];
            kernel_lerp_inplace_f32(&z[k], &y[k], number, 1);
            break;
        }
    }
}

static void test_foreach(const DeviceCase *c) {
    static const unsigned written[] = {0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2};
    for (int op = KERNEL_CUDA_EACH_ZERO; op <= KERNEL_CUDA_EACH_LERP_TO; op++) {
        g_autoptr(Lists) l = new_lists(c);
        float number = op == KERNEL_CUDA_EACH_LERP ? 0.7f : 0.3f;
        for (unsigned i = 0; i < TENSORS; i++) {
            for (size_t k = 0; k < l->elements[i]; k++) { /* no root of less than 0 */
                l->host[0][i][k] = fabsf(l->host[0][i][k]);
                l->host[1][i][k] = fabsf(l->host[1][i][k]) + 0.25f;
            }
            for (unsigned j = 0; j < 2; j++) {
                l->device[j][i] = device_put(&l->cases[j][i], l->host[j][i], l->elements[i]);
                g_free(l->host[j][i]);
                l->host[j][i] = device_get(&l->cases[j][i], l->device[j][i], l->elements[i]);
            }
            host_each(l, (KernelCudaEach)op, i, number);
        }
        DEVICE_OK(kernel_cuda_foreach(device_lane, &l->tensors, (KernelCudaEach)op, number));
        check_list("foreach", l, written[op], 1e-6, 1e-6);
    }
}

static void test_scale_by(const DeviceCase *c) {
    g_autoptr(Lists) l = new_lists(c);
    float factor = 0.25f;
    void *on_device = device_put(c, &factor, 1);
    for (unsigned i = 0; i < TENSORS; i++) {
        kernel_scale_by_inplace_f32(l->host[0][i], &factor, l->elements[i]);
    }
    DEVICE_OK(kernel_cuda_foreach_scale_by(device_lane, &l->tensors, on_device, c->type));
    check_list("scale by", l, 0, 1e-7, 0);
}

static void test_norms(const DeviceCase *c) {
    g_autoptr(Lists) l = new_lists(c);
    l->device[1][7] = device_new(&l->cases[1][7], 1); /* the norm of an empty one */
    DEVICE_OK(kernel_cuda_norms(device_lane, &l->tensors));
    for (unsigned i = 0; i < TENSORS; i++) {
        float norm;
        kernel_norm_f32(&norm, l->host[0][i], l->elements[i]);
        device_close("norms", &l->cases[1][i], l->device[1][i], &norm, 1, 1e-6, 0);
    }
}

static void test_largest_of_each(const DeviceCase *c) {
    for (unsigned with_nan = 0; with_nan < 2; with_nan++) {
        g_autoptr(Lists) l = new_lists(c);
        l->device[1][7] = device_new(&l->cases[1][7], 1); /* the largest of an empty one: 0 */
        for (unsigned i = 0; i < TENSORS && with_nan; i++) {
            size_t n = l->elements[i];
            if (n) {
                l->host[0][i][n / 2] = NAN;
                l->device[0][i] = device_put(&l->cases[0][i], l->host[0][i], n);
            }
        }
        DEVICE_OK(kernel_cuda_largest_of_each(device_lane, &l->tensors));
        for (unsigned i = 0; i < TENSORS; i++) {
            float largest = kernel_magnitude_f32(l->host[0][i], l->elements[i]);
            device_close("largest", &l->cases[1][i], l->device[1][i], &largest, 1, 0, 0);
        }
    }
}

/* Two steps, each from what was stored. */
static void check_adam(const DeviceCase *c, bool decoupled, bool counts) {
    g_autoptr(Lists) l = new_lists(c);
    KernelAdam host = {
        1e-2, 0.9, 0.99, 1e-8, 0.1, decoupled ? KERNEL_ADAM_DECOUPLED : KERNEL_ADAM_COUPLED, 0};
    KernelCudaAdam adam = {1e-2, 0.9, 0.99, 1e-8, 0.1, decoupled, 0};
    float *steps[TENSORS], start = 4;
    for (unsigned i = 0; i < TENSORS; i++) {
        steps[i] = device_put_floats(&start, 1);
    }
    for (host.step = 5; host.step <= 6; host.step++) {
        adam.step = counts ? 0 : host.step;
        for (unsigned i = 0; i < TENSORS; i++) {
            kernel_adam_f32(l->host[1][i], l->host[2][i], l->host[3][i], l->host[0][i],
                            l->elements[i], &host);
        }
        DEVICE_OK(kernel_cuda_adam(device_lane, &l->tensors, counts ? steps : NULL, &adam));
        for (unsigned j = 1; j < LISTS; j++) {
            check_list("adam", l, j, 1e-6, 2e-6);
            for (unsigned i = 0; i < TENSORS; i++) {
                g_free(l->host[j][i]);
                l->host[j][i] = device_get(&l->cases[j][i], l->device[j][i], l->elements[i]);
            }
        }
    }
    start = 6;
    device_close_floats("steps", steps[TENSORS - 1], counts ? &start : &(float){4}, 1, 0, 0);
    device_close_floats("steps of an empty one", steps[7], counts ? &start : &(float){4}, 1, 0, 0);
}

static void test_adam(const DeviceCase *c) {
    check_adam(c, true, true);
    check_adam(c, true, false);
    check_adam(c, false, true);
}

/* ---- a scaled loss -------------------------------------------------------------------------- */

/* Finite, then with one number in one tensor that is not: in the last, the large and an odd one. */
static void test_unscale(const DeviceCase *c) {
    static const struct {
        unsigned tensor;
        size_t at;
        float number;
    } bad[] = {{0, 0, 0}, {TENSORS - 1, 0, INFINITY}, {11, 40000, -INFINITY}, {3, 2, NAN}};
    for (unsigned b = 0; b < G_N_ELEMENTS(bad); b++) {
        g_autoptr(Lists) l = new_lists(c);
        unsigned which = bad[b].tensor;
        float inverse = 0.125f, none = 0, found = b ? 1 : 0;
        float *by = device_put_floats(&inverse, 1), *flag = device_put_floats(&none, 1);
        if (b) {
            l->host[0][which][bad[b].at] = bad[b].number;
            l->device[0][which] =
                device_put(&l->cases[0][which], l->host[0][which], l->elements[which]);
        }
        for (unsigned i = 0; i < TENSORS; i++) {
            kernel_unscale_inplace_f32(l->host[0][i], inverse, l->elements[i]);
        }
        DEVICE_OK(kernel_cuda_unscale(device_lane, &l->tensors, by, flag));
        device_close_floats("found", flag, &found, 1, 0, 0);
        for (unsigned i = 0; i < TENSORS; i++) {
            if (!b || i != which) {
                device_close("unscaled", &l->cases[0][i], l->device[0][i], l->host[0][i],
                             l->elements[i], 0, 0);
            }
        }
    }
}

/* Divided by the scale and stepped, stepped alone, or left as they are. */
static void test_adam_if_finite(const DeviceCase *c) {
    for (unsigned way = 0; way < 3; way++) {
        g_autoptr(Lists) l = new_lists(c);
        bool is_scaled = way == 0, is_finite = way < 2;
        KernelAdam host = {1e-2, 0.9, 0.99, 1e-8, 0.1, KERNEL_ADAM_DECOUPLED, 5};
        KernelCudaAdam adam = {1e-2, 0.9, 0.99, 1e-8, 0.1, true, 0};
        float *steps[TENSORS], start = 4, end = is_finite ? 5 : 4, scale = 8, found = !is_finite;
        for (unsigned i = 0; i < TENSORS; i++) {
            float inverse = 1 / scale;
            steps[i] = device_put_floats(&start, 1);
            if (is_scaled) {
                kernel_scale_by_inplace_f32(l->host[0][i], &inverse, l->elements[i]);
            }
            if (is_finite) {
                kernel_adam_f32(l->host[1][i], l->host[2][i], l->host[3][i], l->host[0][i],
                                l->elements[i], &host);
            }
        }
        DEVICE_OK(kernel_cuda_adam_if_finite(device_lane, &l->tensors, steps, &adam,
                                             device_put_floats(&found, 1),
                                             is_scaled ? device_put_floats(&scale, 1) : NULL));
        for (unsigned j = 0; j < LISTS; j++) {
            check_list("adam if finite", l, j, is_finite ? 1e-6 : 0, is_finite ? 2e-6 : 0);
        }
        device_close_floats("steps", steps[0], &end, 1, 0, 0);
        device_close_floats("steps of the last", steps[TENSORS - 1], &end, 1, 0, 0);
    }
}

/* Scale and tracker, before and after; grows by 2 after three steps, or is halved. */
static void test_update_scale(void) {
    static const struct {
        float found, scale, tracker, new_scale, new_tracker;
    } cases[] = {{0, 1024, 0, 1024, 1}, {0, 1024, 2, 2048, 0},         {1, 1024, 2, 512, 0},
                 {2, 1024, 0, 512, 0},  {0, 0x1p127f, 2, 0x1p127f, 0}, {0, 3, 1, 3, 2}};
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        float *scale = device_put_floats(&cases[i].scale, 1);
        float *tracker = device_put_floats(&cases[i].tracker, 1);
        DEVICE_OK(kernel_cuda_update_scale(device_lane, device_put_floats(&cases[i].found, 1),
                                           scale, tracker, 2, 0.5, 3));
        device_close_floats("scale", scale, &cases[i].new_scale, 1, 0, 0);
        device_close_floats("tracker", tracker, &cases[i].new_tracker, 1, 0, 0);
    }
}

static void test_sgd(const DeviceCase *c) {
    for (unsigned way = 0; way < 3; way++) { /* plain, first with momentum, later */
        g_autoptr(Lists) l = new_lists(c);
        KernelSgd host = {1e-2, way ? 0.9 : 0, 0.1, way == 1 ? 1 : 2};
        KernelCudaSgd sgd = {1e-2, way ? 0.9 : 0, 0.1, way == 1};
        for (unsigned i = 0; i < TENSORS; i++) {
            if (way == 1) {
                l->device[2][i] = device_new(&l->cases[2][i], l->elements[i]);
            }
            kernel_sgd_f32(l->host[1][i], way ? l->host[2][i] : NULL, l->host[0][i], l->elements[i],
                           &host);
        }
        DEVICE_OK(kernel_cuda_sgd(device_lane, &l->tensors, &sgd));
        check_list("parameter", l, 1, 1e-6, 1e-6);
        check_list("momentum", l, 2, 1e-6, 1e-6);
    }
}

static void add_tests(void) {
    DEVICE_TEST("/kernels-cuda/random/philox", test_philox);
    DEVICE_TEST("/kernels-cuda/random/dropout", test_dropout);
    DEVICE_TEST("/kernels-cuda/optimizer/foreach", test_foreach);
    DEVICE_TEST("/kernels-cuda/optimizer/scale-by", test_scale_by);
    DEVICE_TEST("/kernels-cuda/optimizer/norms", test_norms);
    DEVICE_TEST("/kernels-cuda/optimizer/largest", test_largest_of_each);
    DEVICE_TEST("/kernels-cuda/optimizer/adam", test_adam);
    DEVICE_TEST("/kernels-cuda/optimizer/sgd", test_sgd);
    DEVICE_TEST("/kernels-cuda/optimizer/unscale", test_unscale);
    DEVICE_TEST("/kernels-cuda/optimizer/adam-if-finite", test_adam_if_finite);
    DEVICE_TEST_ONCE("/kernels-cuda/optimizer/update-scale", test_update_scale);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
