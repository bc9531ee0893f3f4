/* tests/emulator/include/cuda_runtime.h - the CUDA language, as far as kernels/cuda speaks it, for
 * a C++ compiler.
 *
 * A kernel is an ordinary function. Each thread of a block is a fiber of the calling thread. What
 * C++ cannot say, kernels/cuda/device.cuh has names for: a launch through <<<>>> is a function that
 * calls emulator_launch(), and shared variables are declared by BLOCK_SHARED(), here references to
 * what emulator_shared_at() gives (C++ has no way to gather a template's static variables).
 */
#pragma once
#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

#include <algorithm>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __grid_constant__
#define __restrict__ __restrict

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {
    }
};

struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(8) float2 {
    float x, y;
};

static inline float4 make_float4(float x, float y, float z, float w) {
    return float4{x, y, z, w};
}
static inline uint2 make_uint2(unsigned x, unsigned y) {
    return uint2{x, y};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
    return uint4{x, y, z, w};
}

/* What the running fiber is; set by the emulator whenever it goes from one to another. */
extern dim3 emulator_thread, emulator_block, emulator_block_size, emulator_grid_size;
#define threadIdx emulator_thread
#define blockIdx  emulator_block
#define blockDim  emulator_block_size
#define gridDim   emulator_grid_size

/* The block's dynamic shared memory, and a shared variable's place, the same for all threads of a
 * block; `site`: of its declaration. All is NaN when a block begins. */
struct EmulatorSite {
    uint64_t block_run;
    void *at;
};
void *emulator_shared_memory();
/* Of what an instruction of global memory writes: a fault where it is a block's or a thread's. */
void emulator_must_be_global(const void *at);
void *emulator_shared_at(EmulatorSite *site, size_t bytes);

/* All threads of the block, or the lanes of mask, wait for each other. Each leaves 32 bits, and
 * reads those that lane `from` of its warp left. */
void __syncthreads();
void __syncwarp(unsigned mask = 0xffffffffu);
uint32_t emulator_exchange(unsigned mask, uint32_t bits, unsigned from);
unsigned __ballot_sync(unsigned mask, int predicate);
unsigned emulator_lane();

template <typename T> static inline T emulator_shuffle(unsigned mask, T value, unsigned from) {
    static_assert(sizeof(T) == 4, "32 bits a lane");
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = emulator_exchange(mask, bits, from & 31);
    memcpy(&value, &bits, sizeof bits);
    return value;
}
template <typename T> static inline T __shfl_sync(unsigned mask, T value, int from) {
    return emulator_shuffle(mask, value, (unsigned)from);
}
template <typename T> static inline T __shfl_xor_sync(unsigned mask, T value, int bits) {
    return emulator_shuffle(mask, value, emulator_lane() ^ (unsigned)bits);
}
template <typename T> static inline T __shfl_up_sync(unsigned mask, T value, unsigned by) {
    unsigned lane = emulator_lane();
    return emulator_shuffle(mask, value, lane < by ? lane : lane - by);
}
template <typename T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned by) {
    unsigned lane = emulator_lane();
    return emulator_shuffle(mask, value, lane + by > 31 ? lane : lane + by);
}

/* One fiber runs at a time, so these need no lock. They are no accesses like others (races.cc). */
void emulator_atomic(const void *at, size_t bytes);
#define EMULATOR_ATOMIC static __attribute__((noinline, unused, no_sanitize("thread")))
template <typename T> EMULATOR_ATOMIC T atomicAdd(T *at, T value) {
    T old = *at;
    emulator_atomic(at, sizeof *at);
    *at = old + value;
    return old;
}
template <typename T> EMULATOR_ATOMIC T atomicCAS(T *at, T compare, T value) {
    T old = *at;
    emulator_atomic(at, sizeof *at);
    *at = old == compare ? value : old;
    return old;
}
EMULATOR_ATOMIC unsigned atomicInc(unsigned *at, unsigned last) {
    unsigned old = *at;
    emulator_atomic(at, sizeof *at);
    *at = old >= last ? 0 : old + 1;
    return old;
}
static inline unsigned atomicCAS_system(unsigned *at, unsigned compare, unsigned value) {
    return atomicCAS(at, compare, value);
}
static inline void __threadfence() {
}
static inline void __threadfence_system() {
}
long long clock64();
void __nanosleep(unsigned ns);

template <typename T> static inline T __ldg(const T *at) {
    return *at;
}
/* Never part of a fused multiply-add, whatever the compiler makes of others. */
static inline float __fmul_rn(float a, float b) {
    volatile float product = a * b;
    return product;
}
static inline float __fadd_rn(float a, float b) {
    volatile float sum = a + b;
    return sum;
}
static inline float __fsub_rn(float a, float b) {
    return __fadd_rn(a, -b);
}
static inline float __fsqrt_rn(float a) {
    return sqrtf(a);
}
static inline float __int_as_float(int bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline int __float_as_int(float value) {
    int bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
static inline unsigned __float_as_uint(float value) {
    return (unsigned)__float_as_int(value);
}
static inline float __uint_as_float(unsigned bits) {
    return __int_as_float((int)bits);
}

/* ---- functions that are not exact ------------------------------------------------------------
 *
 * A GPU's are off by some last places (CUDA C++ Programming Guide, "Mathematical Functions", the
 * most that it has seen); here they are off by as many, more or less as the result's bits have it.
 * Only a result that is a number exactly (1 of exp(0)) is what it should be. */
static inline float emulator_off(double exact, int places) {
    float near = (float)exact;
    unsigned bits = __float_as_uint(near), turn = bits * 2654435761u >> 24;
    bool is_plain = std::isnormal(near) && (double)near != exact;
    return is_plain ? __uint_as_float(bits + turn % (2 * places + 1) - places) : near;
}

/* By a number beyond 2^126 it gives 0, or NaN for infinity. */
static inline float __fdividef(float a, float b) {
    return fabsf(b) > 0x1p126f && !isinf(b) ? a * 0 : emulator_off((double)a / b, 2);
}

#define EMULATOR_OFF(name, of_double, places)                                                      \
    static inline float emulator_##name(float x) {                                                 \
        return emulator_off(of_double, places);                                                    \
    }
EMULATOR_OFF(rsqrtf, 1 / sqrt((double)x), 2)
EMULATOR_OFF(expf, exp((double)x), 2)
EMULATOR_OFF(exp2f, exp2((double)x), 4) /* ex2.approx: 2^-22 of it (PTX ISA) */
EMULATOR_OFF(logf, log((double)x), 1)
EMULATOR_OFF(tanhf, tanh((double)x), 2)
EMULATOR_OFF(erfcf, erfc((double)x), 4)
EMULATOR_OFF(cosf, cos((double)x), 2)
EMULATOR_OFF(sinf, sin((double)x), 2)
#define rsqrtf emulator_rsqrtf
#define expf   emulator_expf
#define exp2f  emulator_exp2f
#define logf   emulator_logf
#define tanhf  emulator_tanhf
#define erfcf  emulator_erfcf
#define cosf   emulator_cosf
#define sinf   emulator_sinf
static inline unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)((unsigned long long)a * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline int __popc(unsigned bits) {
    return __builtin_popcount(bits);
}
static inline int __ffs(int bits) {
    return __builtin_ffs(bits);
}
using std::max;
using std::min;

/* Puts a kernel on a stream: body is what each thread of each block runs. */
void emulator_launch(const char *name, const void *kernel, dim3 grid, dim3 block,
                     size_t shared_bytes, cudaStream_t stream, std::function<void()> body);

/* How much dynamic shared memory a kernel may be launched with; 48 KiB, where nobody has asked. */
cudaError_t emulator_allow_shared(const void *kernel, int bytes);
template <typename F>
static inline cudaError_t cudaFuncSetAttribute(F *kernel, cudaFuncAttribute, int value) {
    return emulator_allow_shared((const void *)kernel, value);
}
