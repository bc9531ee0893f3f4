/* tests/exec/room.c - exec/cuda/memory/room.h on an emulated GPU of 64 MiB: kernels want a
 * workspace of 32 MiB for themselves, or their code does, while the allocator has reserved 40. */
#include "exec/cuda/memory/room.h"

#include <cuda_runtime_api.h>
#include <string.h>

#include "exec/cuda/memory/segments.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/products/matmul.h"
#include "kernels/cuda/ranks/standin.h"
#include "tests/emulator/emulator.h"

enum {
    SIDE = 16,            /* of small matrices */
    TOKENS = 256,         /* of a layer whose rows of output are no whole 16 bytes */
    ODD = 1025,           /* its outputs */
    KEPT = 16 << 20,      /* bytes */
    RESERVED = 40 << 20,  /* bytes */
    WORKSPACE = 32 << 20, /* bytes: cuBLAS's */
    DEVICE = 64 << 20,    /* bytes */
    CODE = 32 << 20       /* bytes: a kernel's */
};

typedef struct {
    cudaStream_t stream;
    KernelCuda *kernels;
    ExecCudaSegments segments;
    ExecCudaRoom room;
    char *matrices;
    MemoryBlock *block;
} Fixture;

static const char *const pages = "in pages"; /* segments are not one piece */

static void open_all(Fixture *f, gconstpointer how) {
    MemoryOptions options;
    g_autoptr(GError) error = NULL;
    memory_options_init(&options);
    options.expandable_segments = how == pages;
    g_assert_cmpint(cudaStreamCreate(&f->stream), ==, cudaSuccess);
    g_assert_cmpstr(kernel_cuda_new(&f->kernels, f->stream, KERNEL_CUDA_EXACT), ==, NULL);
    g_assert_true(exec_cuda_segments_init(&f->segments, &f->stream, UINT64_MAX, &error));
    f->room.caching =
        memory_caching_new(&options, exec_cuda_segments_source(), &f->segments, &error);
    g_assert_no_error(error);
    gsize bytes = 3 * SIDE * SIDE * sizeof(float);
    g_assert_cmpint(cudaMalloc((void **)&f->matrices, bytes), ==, cudaSuccess);
    g_assert_cmpint(cudaMemset(f->matrices, 0, bytes), ==, cudaSuccess);
    g_assert_true(memory_caching_alloc(f->room.caching, 0, RESERVED, &f->block));
}

static void close_all(Fixture *f, gconstpointer unused) {
    kernel_cuda_free(f->kernels);
    memory_caching_free(f->room.caching);
    exec_cuda_segments_clear(&f->segments);
    cudaFree(f->matrices);
    cudaStreamDestroy(f->stream);
}

static KernelCudaFault multiply(const Fixture *f) {
    float *y = (float *)(gpointer)f->matrices;
    return kernel_cuda_linear_forward(f->kernels, y, y + SIDE * SIDE, y + 2 * SIDE * SIDE, NULL,
                                      SIDE, SIDE, SIDE, KERNEL_CUDA_F32);
}

/* They are waited for first: what the stream still has to do is done where it should be. */
static void kept_segments_make_room(Fixture *f, gconstpointer unused) {
    char *data = (char *)memory_block_handle(f->block) + memory_block_offset(f->block);
    g_assert_cmpint(cudaMemsetAsync(data, 1, RESERVED, f->stream), ==, cudaSuccess);
    memory_caching_drop(f->room.caching, f->block);
    g_assert_cmpuint(memory_caching_reserved(f->room.caching), ==, RESERVED);
    exec_cuda_room_for(&f->room, f->kernels);
    g_assert_cmpstr(multiply(f), ==, NULL);
    g_assert_cmpuint(f->room.given_bytes, ==, RESERVED);
    g_assert_cmpuint(memory_caching_reserved(f->room.caching), ==, 0);
    g_assert_cmpuint(f->segments.held_bytes, ==, 0);
    g_assert_cmpuint(kernel_cuda_scratch_bytes(f->kernels), ==, WORKSPACE);
    g_assert_cmpint(cudaStreamSynchronize(f->stream), ==, cudaSuccess);
}

/* The lane that they are of has gone on, and knows nothing of another that still reads them: as an
 * optimizer reads gradients that the lane of reductions has made. */
static void what_another_lane_reads_is_waited_for(Fixture *f, gconstpointer unused) {
    char *data = (char *)memory_block_handle(f->block) + memory_block_offset(f->block);
    unsigned char *copy, last = 0;
    cudaStream_t other;
    g_assert_cmpint(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), ==, cudaSuccess);
    g_assert_cmpint(cudaMalloc((void **)&copy, KEPT), ==, cudaSuccess);
    g_assert_cmpint(cudaMemsetAsync(data, 7, RESERVED, f->stream), ==, cudaSuccess);
    g_assert_cmpint(cudaStreamSynchronize(f->stream), ==, cudaSuccess);
    g_assert_cmpint(cudaMemcpyAsync(copy, data, KEPT, cudaMemcpyDeviceToDevice, other), ==,
                    cudaSuccess);
    memory_caching_drop(f->room.caching, f->block);
    memory_caching_empty(f->room.caching);
    g_assert_cmpuint(memory_caching_reserved(f->room.caching), ==, 0);
    g_assert_cmpint(cudaStreamSynchronize(other), ==, cudaSuccess);
    g_assert_cmpint(cudaMemcpy(&last, copy + KEPT - 1, 1, cudaMemcpyDeviceToHost), ==, cudaSuccess);
    g_assert_cmpuint(last, ==, 7);
    cudaFree(copy);
    cudaStreamDestroy(other);
}

/* Nor is what nobody gives room for a fault of the next launch. */
static void tensors_do_not(Fixture *f, gconstpointer unused) {
    exec_cuda_room_for(&f->room, f->kernels);
    KernelCudaFault fault = multiply(f);
    g_assert_nonnull(fault);
    g_assert_nonnull(strstr(fault, "cudaMalloc of 33554432 bytes (for cuBLAS): "));
    g_assert_cmpuint(f->room.given_bytes, ==, 0);
    g_assert_cmpuint(memory_caching_reserved(f->room.caching), ==, RESERVED);
    memory_caching_drop(f->room.caching, f->block);
    g_assert_cmpstr(multiply(f), ==, NULL);
    g_assert_cmpint(cudaStreamSynchronize(f->stream), ==, cudaSuccess);
}

/* All that the GPU has left, so that not even a row fits. */
static GPtrArray *fill_up(void) {
    GPtrArray *fillers = g_ptr_array_new();
    for (gsize bytes = 8 << 20; bytes >= 4096; bytes /= 2) {
        gpointer filler;
        while (cudaMalloc(&filler, bytes) == cudaSuccess) {
            g_ptr_array_add(fillers, filler);
        }
    }
    cudaGetLastError();
    return fillers;
}

/* Rows that are made whole for speed alone are not worth it: the product is made as it is. */
static void speed_alone_is_not_worth_it(Fixture *f, gconstpointer unused) {
    guint16 *x, *w, *y;
    gsize x_bytes = TOKENS * TOKENS * sizeof *x, w_bytes = ODD * TOKENS * sizeof *w;
    g_assert_cmpint(cudaMalloc((void **)&x, x_bytes), ==, cudaSuccess);
    g_assert_cmpint(cudaMalloc((void **)&w, w_bytes), ==, cudaSuccess);
    g_assert_cmpint(cudaMalloc((void **)&y, w_bytes), ==, cudaSuccess);
    g_assert_cmpint(cudaMemset(x, 0, x_bytes), ==, cudaSuccess);
    g_assert_cmpint(cudaMemset(w, 0, w_bytes), ==, cudaSuccess);
    memory_caching_drop(f->room.caching, f->block);
    exec_cuda_room_for(&f->room, f->kernels);
    g_assert_cmpstr(multiply(f), ==, NULL); /* which takes the workspace */
    g_assert_true(memory_caching_alloc(f->room.caching, 0, KEPT, &f->block));
    memory_caching_drop(f->room.caching, f->block);
    GPtrArray *fillers = fill_up();
    g_assert_cmpstr(kernel_cuda_linear_forward(f->kernels, y, x, w, NULL, TOKENS, ODD, TOKENS,
                                               KERNEL_CUDA_BF16),
                    ==, NULL);
    g_assert_cmpuint(f->room.given_bytes, ==, RESERVED);
    g_assert_cmpuint(memory_caching_reserved(f->room.caching), ==, KEPT);
    g_assert_cmpuint(kernel_cuda_scratch_bytes(f->kernels), ==, WORKSPACE);
    g_assert_cmpint(cudaStreamSynchronize(f->stream), ==, cudaSuccess);
    for (guint i = 0; i < fillers->len; i++) {
        cudaFree(fillers->pdata[i]);
    }
    g_ptr_array_free(fillers, TRUE);
    cudaFree(x);
    cudaFree(w);
    cudaFree(y);
}

/* The code of kernels that were launched before has its place. */
static void open_with_code(Fixture *f, gconstpointer how) {
    open_all(f, how);
    emulator_set_kernel_bytes(CODE);
}

static void close_with_code(Fixture *f, gconstpointer unused) {
    static size_t bytes = DEVICE;
    emulator_set_kernel_bytes(0);
    emulator_set_memory(bytes += CODE); /* this test's is never given back */
    close_all(f, unused);
}

static KernelCudaFault fill(const Fixture *f) {
    return kernel_cuda_fill(f->kernels, f->matrices, SIDE * SIDE, 3, KERNEL_CUDA_F32);
}

/* A kernel is launched for the first time, and the GPU has no room for its code. */
static void code_is_loaded_behind_kept_segments(Fixture *f, gconstpointer unused) {
    float filled = 0;
    exec_cuda_room_for(&f->room, f->kernels);
    KernelCudaFault fault = fill(f);
    g_assert_nonnull(fault);
    g_assert_nonnull(strstr(fault, "fill: "));
    g_assert_nonnull(strstr(fault, "(cudaErrorMemoryAllocation)"));
    g_assert_cmpuint(f->room.given_bytes, ==, 0);
    memory_caching_drop(f->room.caching, f->block);
    g_assert_cmpstr(fill(f), ==, NULL);
    g_assert_cmpuint(f->room.given_bytes, ==, RESERVED);
    g_assert_cmpint(cudaStreamSynchronize(f->stream), ==, cudaSuccess);
    g_assert_cmpint(cudaMemcpy(&filled, f->matrices, sizeof filled, cudaMemcpyDeviceToHost), ==,
                    cudaSuccess);
    g_assert_cmpfloat(filled, ==, 3);
}

/* Likewise where it is asked for more shared memory before it is launched. */
static void asked_code_is_loaded_behind_kept_segments(Fixture *f, gconstpointer unused) {
    KernelCudaStandIn nothing = {.kind = KERNEL_CUDA_STAND_IN_NOTHING, .blocks = 1};
    exec_cuda_room_for(&f->room, f->kernels);
    KernelCudaFault fault = kernel_cuda_stand_in(f->kernels, &nothing);
    g_assert_nonnull(fault);
    g_assert_nonnull(strstr(fault, "cudaFuncSetAttribute: "));
    memory_caching_drop(f->room.caching, f->block);
    g_assert_cmpstr(kernel_cuda_stand_in(f->kernels, &nothing), ==, NULL);
    g_assert_cmpuint(f->room.given_bytes, ==, RESERVED);
    g_assert_cmpint(cudaStreamSynchronize(f->stream), ==, cudaSuccess);
}

int main(int argc, char **argv) {
    g_setenv("FORESHARD_EMULATOR_MIB", "64", TRUE);
    g_test_init(&argc, &argv, NULL);
    g_test_add("/exec/room/kept segments make room", Fixture, NULL, open_all,
               kept_segments_make_room, close_all);
    g_test_add("/exec/room/kept pages make room", Fixture, pages, open_all, kept_segments_make_room,
               close_all);
    g_test_add("/exec/room/what another lane reads is waited for", Fixture, NULL, open_all,
               what_another_lane_reads_is_waited_for, close_all);
    g_test_add("/exec/room/what another lane reads in pages is, too", Fixture, pages, open_all,
               what_another_lane_reads_is_waited_for, close_all);
    g_test_add("/exec/room/tensors do not", Fixture, NULL, open_all, tensors_do_not, close_all);
    g_test_add("/exec/room/speed alone is not worth it", Fixture, NULL, open_all,
               speed_alone_is_not_worth_it, close_all);
    g_test_add("/exec/room/code is loaded behind kept segments", Fixture, NULL, open_with_code,
               code_is_loaded_behind_kept_segments, close_with_code);
    g_test_add("/exec/room/code that is asked first is, too", Fixture, NULL, open_with_code,
               asked_code_is_loaded_behind_kept_segments, close_with_code);
    return g_test_run();
}
