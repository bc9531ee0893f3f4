/* tests/kernels-cuda/copies.c - pieces that are copied, however they lie, and beyond 2^32 elements;
 * against the host's, or loops written here. */
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/rows/embedding.h"
#include "tests/kernels-cuda/device.h"

/* Enough pieces for several launches, of all sizes, from the case's type to each; zeros between. */
static void test_pieces(const DeviceCase *c) {
    enum {
        PIECES = 50
    };
    for (int to = KERNEL_CUDA_F32; to <= KERNEL_CUDA_F16; to++) {
        DeviceCase other = {(KernelCudaType)to, 0, 0};
        KernelCudaPiece pieces[PIECES];
        size_t n = 0, size = kernel_cuda_type_bytes(other.type);
        for (size_t i = 0; i < PIECES; i++) {
            n += i % 7 * (i % 11 + 3);
        }
        n += 20000;
        g_autofree float *want = g_new(float, n), *x = device_random(c, n, -1, 1, 1);
        char *out = device_new(&other, n), *in = device_put(c, x, n);
        for (size_t i = 0, at = 0; i < PIECES; i++) {
            size_t rows = i == 20 ? 2 : i % 7, width = i == 20 ? 10000 : i % 11 + 3;
            rows = i == 20 ? 2 : rows;
            pieces[i] = (KernelCudaPiece){out + at * size,
                                          i % 5 ? in + at * kernel_cuda_type_bytes(c->type) : NULL,
                                          rows,
                                          width,
                                          width,
                                          width,
                                          other.type,
                                          c->type};
            for (size_t k = 0; k < rows * width; k++, at++) {
                want[at] = i % 5 ? x[at] : 0;
            }
            n = at;
        }
        DEVICE_OK(kernel_cuda_copy_pieces(device_lane, pieces, PIECES));
        device_equal("pieces", &other, out, want, n);
    }
}

/* A gathered slice dealt out: rows of ranks, a stride apart. */
static void test_strided_piece(const DeviceCase *c) {
    enum {
        RANKS = 3,
        SLICE = 40,
        CHUNK = 13
    };
    g_autofree float *x = device_random(c, RANKS * SLICE, -1, 1, 1);
    float want[RANKS * CHUNK];
    for (size_t i = 0; i < RANKS * CHUNK; i++) {
        want[i] = x[i / CHUNK * SLICE + 9 + i % CHUNK];
    }
    void *in = device_put(c, x, RANKS * SLICE), *out = device_new(c, RANKS * CHUNK);
    KernelCudaPiece piece = {out,     (char *)in + 9 * kernel_cuda_type_bytes(c->type),
                             RANKS,   CHUNK,
                             CHUNK,   SLICE,
                             c->type, c->type};
    DEVICE_OK(kernel_cuda_copy_pieces(device_lane, &piece, 1));
    device_equal("strided piece", c, out, want, RANKS * CHUNK);
}

/* From every place within 16 bytes to every other; what lies between the rows is left alone. */
static void test_pieces_anywhere(const DeviceCase *c) {
    enum {
        PLACES = 8,
        ROWS = 3,
        WIDTH = 45,
        FROM = 47, /* elements from row to row */
        TO = 52,
        EACH = (ROWS + 1) * TO
    };
    size_t n = (size_t)PLACES * PLACES * EACH, size = kernel_cuda_type_bytes(c->type);
    g_autofree float *x = device_random(c, ROWS * FROM + PLACES, -1, 1, 1);
    g_autofree float *want = g_new(float, n + 1);
    char *in = device_put(c, x, ROWS * FROM + PLACES), *out = device_new(c, n);
    KernelCudaPiece pieces[PLACES * PLACES];
    for (size_t i = 0; i <= n; i++) {
        want[i] = NAN;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(pieces); i++) {
        size_t from = i % PLACES, to = i * EACH + i / PLACES;
        pieces[i] = (KernelCudaPiece){out + to * size, in + from * size, ROWS, WIDTH, TO - 1, FROM,
                                      c->type,         c->type};
        for (size_t k = 0; k < ROWS * WIDTH; k++) {
            want[to + k / WIDTH * (TO - 1) + k % WIDTH] = x[from + k / WIDTH * FROM + k % WIDTH];
        }
    }
    DEVICE_OK(kernel_cuda_copy_pieces(device_lane, pieces, G_N_ELEMENTS(pieces)));
    device_equal("pieces anywhere", c, out, want, n);
}

/* Memory that only a few pages are touched of. */
static void *new_far(size_t bytes) {
#ifdef KERNEL_EMULATED
    void *far = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    g_assert_true(far != MAP_FAILED);
    cudaHostRegister(far, bytes, 0); /* a place that the emulator knows */
#else
    void *far = NULL;
    g_assert_cmpint(cudaMalloc(&far, bytes), ==, cudaSuccess);
#endif
    return far;
}

static void free_far(void *far, size_t bytes) {
#ifdef KERNEL_EMULATED
    cudaHostUnregister(far);
    munmap(far, bytes);
#else
    cudaFree(far);
#endif
}

/* Two rows of a table that lie 2^32 elements and one row apart: written, read and looked up. */
static void test_far(void) {
    enum {
        WIDTH = 8
    };
    DeviceCase c = {KERNEL_CUDA_BF16, 0, 0};
    const size_t apart = ((size_t)1 << 32) + WIDTH, bytes = (apart + WIDTH) * 2;
    const gint64 rows[] = {(gint64)(apart / WIDTH), 0};
    g_autofree float *x = device_random(&c, 2 * WIDTH, -1, 1, 1);
    float turned[2 * WIDTH + 1];
    memcpy(turned, x + WIDTH, WIDTH * sizeof *x);
    memcpy(turned + WIDTH, x, WIDTH * sizeof *x);
    void *far = new_far(bytes), *out = device_new(&c, 2 * WIDTH);
    void *in = device_put(&c, x, 2 * WIDTH), *found = device_new(&c, 2 * WIDTH);
    KernelCudaPiece there = {far, in, 2, WIDTH, apart, WIDTH, c.type, c.type};
    KernelCudaPiece back = {out, far, 2, WIDTH, WIDTH, apart, c.type, c.type};
    DEVICE_OK(kernel_cuda_copy_pieces(device_lane, &there, 1));
    DEVICE_OK(kernel_cuda_copy_pieces(device_lane, &back, 1));
    device_equal("there and back", &c, out, x, 2 * WIDTH);
    DEVICE_OK(kernel_cuda_embedding_forward(device_lane, found, far, device_put_i64(rows, 2), 2,
                                            apart / WIDTH + 1, WIDTH, c.type));
    device_equal("looked up", &c, found, turned, 2 * WIDTH);
    free_far(far, bytes);
}

static void add_tests(void) {
    DEVICE_TEST("/kernels-cuda/copy/pieces", test_pieces);
    DEVICE_TEST("/kernels-cuda/copy/strided", test_strided_piece);
    DEVICE_TEST("/kernels-cuda/copy/anywhere", test_pieces_anywhere);
    DEVICE_TEST_ONCE("/kernels-cuda/copy/far", test_far);
}

int main(int argc, char **argv) {
    return device_main(argc, argv, add_tests);
}
