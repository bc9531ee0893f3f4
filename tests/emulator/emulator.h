/* tests/emulator/emulator.h - what a test may set and ask of the emulated GPU.
 *
 * One device, one process. Work on streams is not done when it is given but as late as the program
 * allows: when something waits for it, and then only that which it needs, in the order of its
 * streams and events. So an event wait that is missing shows as a wrong number, not as luck. With
 * a seed other than 0 other streams also run ahead, at random places; with an odd one a kernel's
 * first launch waits for all of them. A block's threads run in two directions in turn, a grid's
 * blocks in one or the other. Work that nobody waits for by a CUDA call is done after a pause (host
 * functions may be what the host waits for).
 *
 * Every allocation starts as NaN (all bits one) between guard zones, which are looked at when it is
 * freed and by emulator_check(). A fault (guard overwritten, threads that part at a barrier, memory
 * freed twice) prints what it is and aborts.
 *
 * Environment, read at the first call: FORESHARD_EMULATOR_SEED, FORESHARD_EMULATOR_MIB (memory of
 * the device; 1024), FORESHARD_EMULATOR_PINNED_MIB (of the host, that can be pinned; all),
 * FORESHARD_EMULATOR_CAPABILITY (of its compute; 90), FORESHARD_EMULATOR_PAGES ("no": memory cannot
 * be mapped in pages; "closed": no access to them is given), FORESHARD_EMULATOR_LEAKS (a process
 * that ends well and has not given back all streams, events, memory and cuBLASLt's objects says so,
 * and ends with status 3).
 *
 * Threads: any; one works at a time.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void emulator_set_seed(uint64_t seed);
void emulator_set_memory(size_t bytes);
/* What each kernel's code takes of that memory at its first launch, and keeps; 0 at first. */
void emulator_set_kernel_bytes(size_t bytes);
/* Ten times its compute capability, 90 at first. What kernels may ask of it stays an H100's. */
void emulator_set_capability(int capability);
/* So many of the algorithms that cuBLASLt proposes for a product (two), the quickest first, cannot
 * be run after all; 0 at first. */
void emulator_refuse_algorithms(unsigned n);
/* Whether products that end in more than they are (a bias, GELU, sums) are refused when they are
 * called, as if an argument were wrong. */
void emulator_refuse_endings(int refuses);

/* Looks at the guards of all that is allocated. */
void emulator_check(void);

/* Kernels, copies and the like done so far, and allocations of the device's memory that live. */
size_t emulator_tasks_done(void);
size_t emulator_allocations(void);

/* Streams, events, allocations of the device's and of pinned memory (of the former also pages, and
 * addresses that are reserved for them), cuBLASLt's objects. */
typedef struct {
    size_t streams, events, device, pinned, blas;
} EmulatorLive;
EmulatorLive emulator_live(void);

#ifdef __cplusplus
}
#endif
