/* tests/kernels-cuda/device.c - see device.h. */
#include "tests/kernels-cuda/device.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/host/half.h"
#include "kernels/host/random.h"

#ifdef KERNEL_EMULATED
#include "tests/emulator/emulator.h"
#endif

enum {
    GUARD = 256, /* bytes before and after an array */
    GUARD_BYTE = 0x5a,
};

typedef struct {
    char *base;
    size_t bytes; /* between the guards */
} Array;

KernelCuda *device_lane;
static GArray *arrays;     /* Array */
static guint32 fresh_seed; /* of this run; GLib tells it, and --seed gives it again */
static bool is_uneven;     /* the case: only arrays that are picked begin past a border */
static cudaStream_t stream;

/* Of the test that runs: how many comparisons failed, and the largest error as a share of what was
 * allowed there. */
static unsigned n_failed;
static double worst_share;
static const char *worst_what;

static void cuda_ok(const char *call, cudaError_t error) {
    if (error != cudaSuccess) {
        g_error("%s: %s", call, cudaGetErrorString(error));
    }
}
#define CUDA_OK(call) cuda_ok(#call, call)

/* A failure ends no program: what comes after is told too, and minutes with a GPU are few. */
G_GNUC_PRINTF(1, 2) static void fail(const char *format, ...) {
    enum {
        MOST_TOLD = 4 /* of one test */
    };
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    if (n_failed++ < MOST_TOLD) {
        g_test_message("FAILED: %s", text);
    }
    g_test_fail();
}

void device_ok(const char *call, KernelCudaFault fault) {
    if (fault) {
        fail("%s: %s", call, fault);
    }
}

/* ---- storage -------------------------------------------------------------------------------- */

static const DeviceCase bytes_case = {KERNEL_CUDA_F32, 0, 0};

static void narrow(void *to, KernelCudaType type, const float *x, size_t n) {
    switch (type) {
    case KERNEL_CUDA_F32:
        memcpy(to, x, n * sizeof *x);
        break;
    case KERNEL_CUDA_BF16:
        kernel_narrow_bf16(to, x, n);
        break;
    case KERNEL_CUDA_F16:
        kernel_narrow_f16(to, x, n);
        break;
    }
}

static void widen(float *to, KernelCudaType type, const void *x, size_t n) {
    switch (type) {
    case KERNEL_CUDA_F32:
        memcpy(to, x, n * sizeof *to);
        break;
    case KERNEL_CUDA_BF16:
        kernel_widen_bf16(to, x, n);
        break;
    case KERNEL_CUDA_F16:
        kernel_widen_f16(to, x, n);
        break;
    }
}

#ifdef KERNEL_EMULATED
/* The emulator has guards of its own, looks at them when it frees, and knows where arrays end. */
static void *new_bytes(size_t bytes, size_t lead) {
    Array array = {.bytes = MAX(lead + bytes, 1)};
    CUDA_OK(cudaMalloc((void **)&array.base, array.bytes));
    g_array_append_val(arrays, array);
    return array.base + lead;
}

static void check_guards(const Array *array) {
}
#else
static void *new_bytes(size_t bytes, size_t lead) {
    Array array = {.bytes = lead + bytes};
    CUDA_OK(cudaMalloc((void **)&array.base, array.bytes + 2 * GUARD));
    CUDA_OK(cudaMemset(array.base, GUARD_BYTE, GUARD));
    CUDA_OK(cudaMemset(array.base + GUARD, 0xff, array.bytes));
    CUDA_OK(cudaMemset(array.base + GUARD + array.bytes, GUARD_BYTE, GUARD));
    CUDA_OK(cudaDeviceSynchronize());
    g_array_append_val(arrays, array);
    return array.base + GUARD + lead;
}

static void check_guards(const Array *array) {
    char guards[2 * GUARD];
    CUDA_OK(cudaMemcpy(guards, array->base, GUARD, cudaMemcpyDeviceToHost));
    CUDA_OK(cudaMemcpy(guards + GUARD, array->base + GUARD + array->bytes, GUARD,
                       cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < 2 * GUARD; i++) {
        if (guards[i] != GUARD_BYTE) {
            fail("byte %u of the guards of an array of %zu bytes was written", i, array->bytes);
            return;
        }
    }
}
#endif

static void end_case(void) {
    CUDA_OK(cudaDeviceSynchronize());
    for (guint i = 0; i < arrays->len; i++) {
        check_guards(&g_array_index(arrays, Array, i));
        CUDA_OK(cudaFree(g_array_index(arrays, Array, i).base));
    }
    g_array_set_size(arrays, 0);
}

/* Whether the next array is one of those that begin past a border in an uneven case. */
static bool is_picked(void) {
    return fresh_seed >> arrays->len % 32 & 1;
}

void *device_new(const DeviceCase *c, size_t n) {
    size_t bytes = kernel_cuda_type_bytes(c->type);
    return new_bytes(n * bytes, is_uneven && !is_picked() ? 0 : c->shift * bytes);
}

void *device_new_bytes(size_t bytes) {
    return new_bytes(bytes, 0);
}

void *device_new_elements(size_t n, size_t bytes_each) {
    return new_bytes(n * bytes_each, is_uneven && is_picked() ? bytes_each : 0);
}

/* What the lane's stream does next finds all of it there: the copy alone does not promise that. */
static void put(void *array, const void *x, size_t bytes) {
    CUDA_OK(cudaMemcpy(array, x, bytes, cudaMemcpyHostToDevice));
    CUDA_OK(cudaDeviceSynchronize());
}

void *device_put_elements(const void *x, size_t n, size_t bytes_each) {
    void *array = device_new_elements(n, bytes_each);
    put(array, x, n * bytes_each);
    return array;
}

void *device_put_bytes(const void *x, size_t bytes) {
    void *array = new_bytes(bytes, 0);
    put(array, x, bytes);
    return array;
}

void *device_put(const DeviceCase *c, const float *x, size_t n) {
    size_t bytes = n * kernel_cuda_type_bytes(c->type);
    g_autofree char *stored = g_malloc(bytes + 1);
    void *array = device_new(c, n);
    narrow(stored, c->type, x, n);
    put(array, stored, bytes);
    return array;
}

gpointer device_get_bytes(const void *array, size_t bytes) {
    gpointer copy = g_malloc(bytes + 1);
    CUDA_OK(cudaStreamSynchronize(stream));
    CUDA_OK(cudaMemcpy(copy, array, bytes, cudaMemcpyDeviceToHost));
    return copy;
}

float *device_get(const DeviceCase *c, const void *array, size_t n) {
    g_autofree char *stored = device_get_bytes(array, n * kernel_cuda_type_bytes(c->type));
    float *x = g_new(float, n + 1);
    widen(x, c->type, stored, n);
    return x;
}

static void round_to(KernelCudaType type, float *x, size_t n) {
    g_autofree char *stored = g_malloc(n * kernel_cuda_type_bytes(type) + 1);
    narrow(stored, type, x, n);
    widen(x, type, stored, n);
}

float *device_random(const DeviceCase *c, size_t n, double low, double high, guint32 seed) {
    float *x = g_new(float, n + 1);
    kernel_philox_uniform_f32(x, n, fresh_seed, seed, 0, (float)low, (float)high);
    round_to(c->type, x, n);
    return x;
}

/* ---- checks --------------------------------------------------------------------------------- */

/* The error as a share of what is allowed: above 1 is a failure, and infinite where nothing is. */
static double share_of(float got, float want, double allowed) {
    if (isnan(want) || isinf(want)) {
        return (isnan(want) ? isnan(got) : got == want) ? 0 : INFINITY;
    }
    double error = fabs((double)got - (double)want);
    return isnan(got) ? INFINITY : error == 0 ? 0 : allowed == 0 ? INFINITY : error / allowed;
}

static void note_share(const char *what, double share) {
    if (share > worst_share) {
        worst_share = share;
        worst_what = what;
    }
}

void device_close_within(const char *what, const DeviceCase *c, const void *got, const float *want,
                         const float *slack, size_t n, double relative, double absolute) {
    g_autofree float *x = device_get(c, got, n);
    absolute += c->type == KERNEL_CUDA_F16 ? 0x1p-25 : 0; /* below its normal numbers */
    double worst = 0;
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        double allowed = (relative + c->rounding) * fabs((double)want[i]) + absolute +
                         (slack ? (double)slack[i] : 0);
        double share = share_of(x[i], want[i], allowed);
        at = share > worst ? i : at;
        worst = fmax(worst, share);
    }
    note_share(what, worst);
    if (worst > 1) {
        fail("%s (type %d, shift %u): element %zu of %zu is %.9g, not %.9g", what, c->type,
             c->shift, at, n, (double)x[at], (double)want[at]);
    }
}

void device_close(const char *what, const DeviceCase *c, const void *got, const float *want,
                  size_t n, double relative, double absolute) {
    device_close_within(what, c, got, want, NULL, n, relative, absolute);
}

void device_close_floats(const char *what, const void *got, const float *want, size_t n,
                         double relative, double absolute) {
    device_close(what, &bytes_case, got, want, n, relative, absolute);
}

void device_equal(const char *what, const DeviceCase *c, const void *got, const float *want,
                  size_t n) {
    g_autofree float *rounded = g_memdup2(want, (n + 1) * sizeof *want);
    DeviceCase exact = {c->type, c->shift, 0};
    round_to(c->type, rounded, n);
    device_close(what, &exact, got, rounded, n, 0, 0);
}

void device_equal_bytes(const char *what, const void *got, const void *want, size_t bytes) {
    g_autofree char *x = device_get_bytes(got, bytes);
    for (size_t i = 0; i < bytes; i++) {
        if (x[i] != ((const char *)want)[i]) {
            fail("%s: byte %zu of %zu is %#x, not %#x", what, i, bytes, x[i] & 0xff,
                 ((const char *)want)[i] & 0xff);
            return;
        }
    }
}

/* ---- running -------------------------------------------------------------------------------- */

static void new_lane(void) {
    n_failed = 0;
    worst_share = 0;
    worst_what = NULL;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    KernelCudaFault fault = kernel_cuda_new(&device_lane, stream, KERNEL_CUDA_EXACT);
    if (fault) {
        g_error("kernel_cuda_new: %s", fault);
    }
}

static void free_lane(void) {
    kernel_cuda_free(device_lane);
    CUDA_OK(cudaStreamDestroy(stream));
}

/* A bad index that no test meant fails it. */
static void end_lane(void) {
    uint32_t op;
    end_case();
    if (kernel_cuda_bad_index(device_lane, &op)) {
        fail("op %u met an index outside its table", op);
    }
    free_lane();
    if (worst_what) {
        g_test_message("largest error: %.3g of its bound (%s)", worst_share, worst_what);
    }
}

void device_run(gconstpointer data) {
    new_lane();
    ((void (*)(void))data)();
    end_lane();
}

void device_for_cases(void (*test)(const DeviceCase *c)) {
    static const double roundings[] = {0, 1.0 / 256, 1.0 / 2048};
    static const unsigned shifts[] = {0, 1, 3, 1}; /* the last one uneven */
    for (int type = KERNEL_CUDA_F32; type <= KERNEL_CUDA_F16; type++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(shifts); i++) {
            DeviceCase c = {(KernelCudaType)type, shifts[i], roundings[type]};
#ifdef KERNEL_RACED /* which takes ten times as long: one case for each way through the code */
            if (type == KERNEL_CUDA_F16 || i > (type == KERNEL_CUDA_BF16)) {
                continue;
            }
#endif
#ifdef KERNEL_EMULATED
            emulator_set_seed(shifts[i]);
#endif
            is_uneven = i + 1 == G_N_ELEMENTS(shifts);
            test(&c);
            is_uneven = false;
            end_case();
        }
    }
}

void device_run_cases(gconstpointer data) {
    new_lane();
    device_for_cases((void (*)(const DeviceCase *))data);
    end_lane();
}

int device_main(int argc, char **argv, void (*add_tests)(void)) {
    int count = 0;
    g_test_init(&argc, &argv, NULL);
    cudaError_t counted = cudaGetDeviceCount(&count);
    if (counted != cudaSuccess || !count) {
        printf("1..0 # SKIP no GPU: these kernels were compiled, not run (%s)\n",
               cudaGetErrorString(counted));
        return 0; /* as TAP has it: the plan says that all is skipped */
    }
    g_test_set_nonfatal_assertions(); /* one failure keeps no other test from running */
    arrays = g_array_new(FALSE, FALSE, sizeof(Array));
    fresh_seed = (guint32)g_test_rand_int();
    add_tests();
    int status = g_test_run();
    g_array_unref(arrays);
    return status;
}
