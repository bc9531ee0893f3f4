/* memory/ledger.h - who holds what: bytes by tag and by unit, now and at the peak of allocated.
 *
 * A tag is a small number that the caller gives a meaning (a category of bytes); a unit likewise
 * (a layer). Every byte has one of each. The peak's sums are not copied at each new maximum: the
 * changes since are kept, and turned into a copy once there are as many of them as there are
 * sums.
 *
 * Owns: its arrays. Threads: one. Cost: O(1) a change, amortized.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Where in the program and when, in the caller's own words. */
typedef struct {
    uint64_t place;
    int64_t time_ns;
} MemoryMoment;

typedef struct {
    uint64_t allocated_bytes, active_bytes, reserved_bytes;
} MemoryTotals;

/* Each maximum is the first moment at which it was reached. */
typedef struct {
    MemoryTotals totals; /* all three at that moment */
    MemoryMoment moment;
} MemoryPeak;

typedef struct _MemoryLedger MemoryLedger;

MemoryLedger *memory_ledger_new(uint32_t n_tags, uint32_t n_units);
void memory_ledger_free(MemoryLedger *ledger); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MemoryLedger, memory_ledger_free)

/* Bytes come or go. The allocator's active and reserved bytes are those after it. */
void memory_ledger_add(MemoryLedger *ledger, uint32_t tag, uint32_t unit, uint64_t bytes,
                       uint64_t active_bytes, uint64_t reserved_bytes, MemoryMoment moment);
void memory_ledger_sub(MemoryLedger *ledger, uint32_t tag, uint32_t unit, uint64_t bytes,
                       uint64_t active_bytes, uint64_t reserved_bytes, MemoryMoment moment);

const MemoryTotals *memory_ledger_now(const MemoryLedger *ledger);
const uint64_t *memory_ledger_by_tag(const MemoryLedger *ledger);  /* n_tags; the ledger's own */
const uint64_t *memory_ledger_by_unit(const MemoryLedger *ledger); /* n_units */

const MemoryPeak *memory_ledger_peak_allocated(const MemoryLedger *ledger);
const MemoryPeak *memory_ledger_peak_active(const MemoryLedger *ledger);
const MemoryPeak *memory_ledger_peak_reserved(const MemoryLedger *ledger);
/* The sums at the peak of allocated. The ledger's own, until its next change. */
const uint64_t *memory_ledger_peak_by_tag(MemoryLedger *ledger);
const uint64_t *memory_ledger_peak_by_unit(MemoryLedger *ledger);

/* Peaks begin anew, from what is held now. */
void memory_ledger_reset_peaks(MemoryLedger *ledger, MemoryMoment moment);
