/* tests/memory/pretend-device.h - a device of nothing but counts, which reports what is asked of
 * it.
 *
 * Memory is finite by number; an event is over when the test says so or when somebody waits for
 * it. Each request is one line of text in the report, in the words of
 * tests/memory/allocator/README.md. Runs of lines whose order means nothing (waits and finished
 * blocks; recordings) come out sorted.
 */
#pragma once

#include "memory/source.h"

typedef struct _PretendDevice PretendDevice;

PretendDevice *pretend_device_new(uint64_t total_bytes, uint64_t budget_bytes);
void pretend_device_free(PretendDevice *device);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PretendDevice, pretend_device_free)

/* Giving memory back then completes all events, as a real cudaFree does. */
void pretend_device_set_free_synchronizes(PretendDevice *device);

/* The oldest (UINT64_MAX: all) events of a stream are over; how many that were. */
uint64_t pretend_device_complete(PretendDevice *device, uint32_t stream, uint64_t oldest);
void pretend_device_sync(PretendDevice *device);

void pretend_device_note_done(PretendDevice *device, uint64_t id);
/* Appends the report, two blanks before each line, and empties it. */
void pretend_device_take_report(PretendDevice *device, GString *text);

extern const MemorySource pretend_device_source;
