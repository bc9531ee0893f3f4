/* tests/emulator/emulator-private.h - what the parts of the emulator share. */
#pragma once
#include <cuda_runtime.h>
#include <stdarg.h>

#include <functional>

#include "tests/emulator/emulator.h"

/* Prints and aborts. */
[[noreturn]] void emulator_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Bytes of shared memory beside a kernel's variables: what its launch asks for, and what it may. */
struct EmulatorSharing {
    size_t asked, allowed;
};

/* Runs all blocks of a kernel, here and now. */
void emulator_run_grid(const char *name, dim3 grid, dim3 block, EmulatorSharing shared,
                       const std::function<void()> &thread_body, uint64_t seed);

/* What runs now: a thread of a block of a kernel. Of the host's thread that plays it. */
struct EmulatorNow {
    const char *kernel;         /* NULL: no kernel does */
    uint64_t launch, block_run; /* so many before it, and this one */
    uint32_t block;             /* of the grid */
    uint16_t thread;            /* of the block */
    uint16_t epoch;             /* barriers that the block is past */
};
extern thread_local EmulatorNow emulator_now;

/* Whether [at, at + 1) is a fiber's own. */
bool emulator_is_on_stack(uintptr_t at);

/* The interface is entered: one thread at a time. */
void emulator_lock();
void emulator_unlock();
struct EmulatorEntry {
    EmulatorEntry() {
        emulator_lock();
    }
    ~EmulatorEntry() {
        emulator_unlock();
    }
};

/* ---- queues; the caller has entered --------------------------------------------------------- */
uint64_t emulator_seed();
size_t emulator_tasks();    /* that were done */
void emulator_break_next(); /* the device, before the next call */
void emulator_push(cudaStream_t stream, std::function<void()> work);
void emulator_finish(cudaStream_t stream); /* and what it needs of other streams */
void emulator_finish_all();

/* ---- memory; the caller has entered --------------------------------------------------------- */
enum EmulatorPlace {
    EMULATOR_PAGEABLE,
    EMULATOR_PINNED,
    EMULATOR_DEVICE
};
/* Where [at, at + bytes) lies. A fault if it begins inside an allocation and ends outside. */
EmulatorPlace emulator_place_of(const void *at, size_t bytes);

enum EmulatorKind {
    EMULATOR_HOST,
    EMULATOR_SHARED,
    EMULATOR_GLOBAL
};
struct EmulatorSpan {
    EmulatorKind kind;
    uintptr_t begin, end; /* of its allocation's bytes, which may be less than is mapped */
};
/* What lies there, at bytes that are no more than the guards between two allocations. */
EmulatorSpan emulator_span_of(uintptr_t at, size_t bytes);
/* Of the running block, when it lies there; `at` is a multiple of 64 bytes. */
bool emulator_shared_span(uintptr_t at, EmulatorSpan *ret_span);

/* Of the device's memory: false where there is not so much left. */
bool emulator_take_bytes(size_t bytes);
void emulator_give_bytes(size_t bytes);
/* Addresses of the device over which pages are mapped (pages.cc). */
void emulator_add_range(uintptr_t at, size_t bytes);
void emulator_drop_range(uintptr_t at);
extern size_t emulator_page_objects; /* pages and ranges that live */

size_t emulator_device_allocations();
size_t emulator_pinned_allocations();
extern size_t emulator_blas_objects; /* that live */

/* Keeps the error for cudaGetLastError() and returns it. */
cudaError_t emulator_error(cudaError_t error);
int emulator_capability();

/* FORESHARD_EMULATOR_FAULT=N: the N-th kernel of the process touches what it may not. As on a GPU
 * that shows when it runs, which is later than its launch, and from then on in every call: also in
 * those that ask for memory or events, and give them back. What its streams still have to do is
 * never done. FORESHARD_EMULATOR_FAULT=N! does so before the next call: of a GPU that keeps up. */
enum EmulatorFault {
    EMULATOR_NO_FAULT,
    EMULATOR_FAULT_IN_TURN,
    EMULATOR_FAULT_AT_ONCE
};
EmulatorFault emulator_is_to_fault(); /* counts launches; the caller has entered */
void emulator_break();
cudaError_t emulator_state(); /* success, until the device has broken */
