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

/* Bytes of one tag and unit that come or go. */
typedef struct {
    uint32_t tag, unit;
    uint64_t bytes;
} MemoryChange;

/* The peak's sums are wanted once, the peak moves often: during a forward pass nearly every op
 * makes a new maximum. So a new maximum only empties a log of the changes since; while the log
 * is short, the sums at the peak are today's less the log. A log as long as the sums themselves
 * is settled: the sums at the peak are written out and the log is closed until the next maximum.
 * Settling thus costs each logged change O(1).
 *
 * Read by its functions alone; it stands here because every allocation changes it. */
typedef struct {
    uint32_t n_tags, n_units;
    uint64_t *sums;    /* by tag, then by unit */
    uint64_t *at_peak; /* likewise; meaningful once settled */
    MemoryChange *log; /* bytes modulo 2^64: a loss is a very large gain */
    uint32_t n_log, room;
    bool settled;
    MemoryTotals now;
    MemoryPeak allocated, active, reserved;
} MemoryLedger;

MemoryLedger *memory_ledger_new(uint32_t n_tags, uint32_t n_units);
void memory_ledger_free(MemoryLedger *ledger); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MemoryLedger, memory_ledger_free)

void memory_ledger_settle(MemoryLedger *ledger); /* its own */

static inline bool memory_peak_rises(MemoryPeak *peak, uint64_t now_bytes, uint64_t peak_bytes,
                                     MemoryTotals totals, MemoryMoment moment) {
    if (now_bytes <= peak_bytes) {
        return false;
    }
    *peak = (MemoryPeak){totals, moment};
    return true;
}

static inline void memory_ledger_change(MemoryLedger *ledger, MemoryChange change, MemoryTotals now,
                                        MemoryMoment moment) {
    g_assert(change.tag < ledger->n_tags && change.unit < ledger->n_units);
    if (!ledger->settled && ledger->n_log == ledger->room) {
        memory_ledger_settle(ledger);
    }
    if (!ledger->settled) {
        ledger->log[ledger->n_log++] = change;
    }
    ledger->sums[change.tag] += change.bytes;
    ledger->sums[ledger->n_tags + change.unit] += change.bytes;
    ledger->now = now;
    if (memory_peak_rises(&ledger->allocated, now.allocated_bytes,
                          ledger->allocated.totals.allocated_bytes, now, moment)) {
        ledger->n_log = 0;
        ledger->settled = false;
    }
    memory_peak_rises(&ledger->active, now.active_bytes, ledger->active.totals.active_bytes, now,
                      moment);
    memory_peak_rises(&ledger->reserved, now.reserved_bytes, ledger->reserved.totals.reserved_bytes,
                      now, moment);
}

/* Bytes come or go. The allocator's active and reserved bytes are those after it. */
static inline void memory_ledger_add(MemoryLedger *ledger, MemoryChange gain, uint64_t active_bytes,
                                     uint64_t reserved_bytes, MemoryMoment moment) {
    MemoryTotals now = {ledger->now.allocated_bytes + gain.bytes, active_bytes, reserved_bytes};
    memory_ledger_change(ledger, gain, now, moment);
}

static inline void memory_ledger_sub(MemoryLedger *ledger, MemoryChange loss, uint64_t active_bytes,
                                     uint64_t reserved_bytes, MemoryMoment moment) {
    g_assert(loss.bytes <= ledger->sums[loss.tag] &&
             loss.bytes <= ledger->sums[ledger->n_tags + loss.unit]);
    MemoryTotals now = {ledger->now.allocated_bytes - loss.bytes, active_bytes, reserved_bytes};
    loss.bytes = -loss.bytes;
    memory_ledger_change(ledger, loss, now, moment);
}

const MemoryTotals *memory_ledger_now(const MemoryLedger *ledger);
const uint64_t *memory_ledger_by_tag(const MemoryLedger *ledger);  /* n_tags; the ledger's own */
const uint64_t *memory_ledger_by_unit(const MemoryLedger *ledger); /* n_units */

const MemoryPeak *memory_ledger_peak_allocated(const MemoryLedger *ledger);
const MemoryPeak *memory_ledger_peak_active(const MemoryLedger *ledger);
const MemoryPeak *memory_ledger_peak_reserved(const MemoryLedger *ledger);
/* The sums at the peak of allocated. The ledger's own, until its next change. */
const uint64_t *memory_ledger_peak_by_tag(MemoryLedger *ledger);
const uint64_t *memory_ledger_peak_by_unit(MemoryLedger *ledger);
