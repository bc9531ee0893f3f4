/* tests/emulator/test-races.cc - what races.cc tells of, and what it lets be. Each kernel that it
 * is to tell of runs in a child process, which must abort with those words; none of them gives a
 * wrong number here, in whatever order threads and blocks run. */
#include <cuda_runtime.h>
#include <glib.h>

#include "kernels/cuda/device.cuh"

enum {
    N = 128,
    BLOCKS = 3
};

template <typename T> static void play(void (*kernel)(T *), size_t n, unsigned blocks) {
    T *x;
    g_assert_cmpint(cudaMalloc((void **)&x, n * sizeof *x), ==, cudaSuccess);
    cudaMemset(x, 0, n * sizeof *x);
    cudaDeviceSynchronize();
    emulator_launch("test", (const void *)kernel, dim3(blocks), dim3(N), 1024, nullptr,
                    [=] { kernel(x); });
    cudaDeviceSynchronize();
    cudaFree(x);
}

/* ---- to be told of -------------------------------------------------------------------------- */

/* Which thread is the last to write does not show, since all write the same. */
static __global__ void same_number(int *x) {
    BLOCK_SHARED(int, all);
    all = 1;
    __syncthreads();
    x[threadIdx.x] = all;
}

/* A neighbour is read, with whose number 0 is multiplied. */
static __global__ void neighbour(int *x) {
    BLOCK_SHARED(int[N], all);
    all[threadIdx.x] = 0;
    x[threadIdx.x] *= all[(threadIdx.x + 1) % N];
}

/* The barrier stands before what is read, and none before it is written again. */
static __global__ void again(int *x) {
    int *all = cu::shared_memory<int>();
    for (int round = 0; round < 2; round++) {
        if (threadIdx.x == 0) {
            all[0] = 1;
        }
        __syncthreads();
        x[threadIdx.x] = all[0];
    }
}

static __global__ void blocks_write(int *x) {
    x[threadIdx.x] = 1;
}

/* A sum that needs every block before it. */
static __global__ void blocks_read(int *x) {
    x[blockIdx.x * N + threadIdx.x] = 0;
    __syncthreads();
    x[gridDim.x * N + blockIdx.x * N + threadIdx.x] = x[threadIdx.x];
}

static __global__ void mixed(int *x) {
    if (threadIdx.x == 1) {
        *x = 0;
    }
    atomicAdd(x, 0);
}

/* One past the end, which changes nothing. */
static __global__ void one_more(int *x) {
    if (threadIdx.x == N - 1) {
        x[threadIdx.x] *= x[threadIdx.x + 1];
    }
}

static __global__ void shared_overrun(int *x) {
    BLOCK_SHARED(int[N], all);
    all[threadIdx.x] = 0;
    __syncthreads();
    int *first = all;
    asm volatile("" : "+r"(first)); /* the compiler does not see it coming */
    x[threadIdx.x] *= first[threadIdx.x + 1];
}

int on_host; /* seen from outside, so that it is written */

static __global__ void writes_host(int *x) {
    if (threadIdx.x == 0) {
        on_host = 1;
    }
}

static __global__ void much_shared(int *x) {
    BLOCK_SHARED(int[12289], all); /* 4 bytes more than 48 KiB */
    all[threadIdx.x] = 0;
}

static const struct {
    const char *name, *words;
    void (*kernel)(int *);
    size_t n;
    unsigned blocks;
} faults[] = {
    {"same-number", "*shared memory*which another thread writes*", same_number, N, 1},
    {"neighbour", "*shared memory*which another thread*", neighbour, N, 1},
    {"again", "*byte 0 of 1024 of shared memory*another thread*", again, N, 1},
    {"blocks-write", "*the device's memory*another thread writes*", blocks_write, N, BLOCKS},
    {"blocks-read", "*the device's memory*another thread*", blocks_read, 2 * BLOCKS *N, BLOCKS},
    {"mixed", "*another thread*", mixed, 1, 1},
    {"one-more", "*reads byte 512 of 512*outside of it*", one_more, N, 1},
    {"shared-overrun", "*of shared memory*outside of it*", shared_overrun, N, 1},
    {"writes-host", "*writes to the host's memory*", writes_host, N, 1},
    {"much-shared", "*more shared memory than there is*", much_shared, N, 1}};

static void test_told(gconstpointer data) {
    guint i = GPOINTER_TO_UINT(data);
    if (g_test_subprocess()) {
        play(faults[i].kernel, faults[i].n, faults[i].blocks);
        return;
    }
    g_test_trap_subprocess(nullptr, 0, (GTestSubprocessFlags)0);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr(faults[i].words);
}

/* ---- to be let be --------------------------------------------------------------------------- */

/* Bytes of a word, each a thread's own; what a barrier comes between; each block's shared place. */
static __global__ void proper(signed char *x) {
    BLOCK_SHARED(int[N], all);
    signed char *mine = x + blockIdx.x * N;
    mine[threadIdx.x] = (signed char)threadIdx.x;
    all[threadIdx.x] = (int)threadIdx.x;
    __syncthreads();
    int other = all[N - 1 - threadIdx.x] + mine[N - 1 - threadIdx.x];
    __syncthreads();
    mine[threadIdx.x] = (signed char)other;
    all[N - 1 - threadIdx.x] = other;
}

/* The last block to come clears what the others changed before it. */
static __global__ void last_clears(unsigned *x) {
    if (threadIdx.x == 0) {
        atomicCAS(x, 0u, 1u);
        if (atomicInc(x + 1, gridDim.x - 1) == gridDim.x - 1) {
            *x = 0;
        }
    }
}

static void test_let_be() {
    play(proper, BLOCKS * N, BLOCKS);
    play(last_clears, 2, BLOCKS);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, nullptr);
    for (guint i = 0; i < G_N_ELEMENTS(faults); i++) {
        g_autofree char *path = g_strdup_printf("/emulator/races/%s", faults[i].name);
        g_test_add_data_func(path, GUINT_TO_POINTER(i), test_told);
    }
    g_test_add_func("/emulator/races/let-be", test_let_be);
    return g_test_run();
}
