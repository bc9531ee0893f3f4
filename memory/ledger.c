/* The peak's sums are wanted once, the peak moves often: during a forward pass nearly every op
 * makes a new maximum. So a new maximum only empties a log of the changes since; while the log
 * is short, the sums at the peak are today's less the log. A log as long as the sums themselves
 * is settled: the sums at the peak are written out and the log is closed until the next maximum.
 * Settling thus costs each logged change O(1). */
#include "memory/ledger.h"

#include <string.h>

typedef struct {
    uint32_t tag, unit;
    uint64_t bytes; /* modulo 2^64: a loss is a very large gain */
} Change;

struct _MemoryLedger {
    uint32_t n_tags, n_units;
    uint64_t *sums;    /* by tag, then by unit */
    uint64_t *at_peak; /* likewise; meaningful once settled */
    Change *log;
    uint32_t n_log, room;
    bool settled;
    MemoryTotals now;
    MemoryPeak allocated, active, reserved;
};

MemoryLedger *memory_ledger_new(uint32_t n_tags, uint32_t n_units) {
    MemoryLedger *ledger = g_new0(MemoryLedger, 1);
    ledger->n_tags = n_tags;
    ledger->n_units = n_units;
    ledger->room = n_tags + n_units;
    ledger->sums = g_new0(uint64_t, ledger->room);
    ledger->at_peak = g_new0(uint64_t, ledger->room);
    ledger->log = g_new(Change, ledger->room);
    return ledger;
}

void memory_ledger_free(MemoryLedger *ledger) {
    if (!ledger) {
        return;
    }
    g_free(ledger->sums);
    g_free(ledger->at_peak);
    g_free(ledger->log);
    g_free(ledger);
}

static void book(uint64_t *sums, uint32_t n_tags, uint32_t tag, uint32_t unit, uint64_t bytes) {
    sums[tag] += bytes;
    sums[n_tags + unit] += bytes;
}

static void settle(MemoryLedger *ledger) {
    if (ledger->settled) {
        return;
    }
    memcpy(ledger->at_peak, ledger->sums, ledger->room * sizeof *ledger->sums);
    for (uint32_t i = 0; i < ledger->n_log; i++) {
        const Change *change = &ledger->log[i];
        book(ledger->at_peak, ledger->n_tags, change->tag, change->unit, -change->bytes);
    }
    ledger->settled = true;
}

static bool rises(MemoryPeak *peak, uint64_t now_bytes, uint64_t peak_bytes, MemoryTotals totals,
                  MemoryMoment moment) {
    if (now_bytes <= peak_bytes) {
        return false;
    }
    *peak = (MemoryPeak){totals, moment};
    return true;
}

static void update_peaks(MemoryLedger *ledger, MemoryMoment moment) {
    MemoryTotals now = ledger->now;
    if (rises(&ledger->allocated, now.allocated_bytes, ledger->allocated.totals.allocated_bytes,
              now, moment)) {
        ledger->n_log = 0;
        ledger->settled = false;
    }
    rises(&ledger->active, now.active_bytes, ledger->active.totals.active_bytes, now, moment);
    rises(&ledger->reserved, now.reserved_bytes, ledger->reserved.totals.reserved_bytes, now,
          moment);
}

static void change(MemoryLedger *ledger, uint32_t tag, uint32_t unit, uint64_t bytes,
                   MemoryTotals now, MemoryMoment moment) {
    g_assert(tag < ledger->n_tags && unit < ledger->n_units);
    if (!ledger->settled && ledger->n_log == ledger->room) {
        settle(ledger);
    }
    if (!ledger->settled) {
        ledger->log[ledger->n_log++] = (Change){tag, unit, bytes};
    }
    book(ledger->sums, ledger->n_tags, tag, unit, bytes);
    ledger->now = now;
    update_peaks(ledger, moment);
}

void memory_ledger_add(MemoryLedger *ledger, uint32_t tag, uint32_t unit, uint64_t bytes,
                       uint64_t active_bytes, uint64_t reserved_bytes, MemoryMoment moment) {
    MemoryTotals now = {ledger->now.allocated_bytes + bytes, active_bytes, reserved_bytes};
    change(ledger, tag, unit, bytes, now, moment);
}

void memory_ledger_sub(MemoryLedger *ledger, uint32_t tag, uint32_t unit, uint64_t bytes,
                       uint64_t active_bytes, uint64_t reserved_bytes, MemoryMoment moment) {
    g_assert(bytes <= ledger->sums[tag] && bytes <= ledger->sums[ledger->n_tags + unit]);
    MemoryTotals now = {ledger->now.allocated_bytes - bytes, active_bytes, reserved_bytes};
    change(ledger, tag, unit, -bytes, now, moment);
}

const MemoryTotals *memory_ledger_now(const MemoryLedger *ledger) {
    return &ledger->now;
}

const uint64_t *memory_ledger_by_tag(const MemoryLedger *ledger) {
    return ledger->sums;
}

const uint64_t *memory_ledger_by_unit(const MemoryLedger *ledger) {
    return ledger->sums + ledger->n_tags;
}

const MemoryPeak *memory_ledger_peak_allocated(const MemoryLedger *ledger) {
    return &ledger->allocated;
}

const MemoryPeak *memory_ledger_peak_active(const MemoryLedger *ledger) {
    return &ledger->active;
}

const MemoryPeak *memory_ledger_peak_reserved(const MemoryLedger *ledger) {
    return &ledger->reserved;
}

const uint64_t *memory_ledger_peak_by_tag(MemoryLedger *ledger) {
    settle(ledger);
    return ledger->at_peak;
}

const uint64_t *memory_ledger_peak_by_unit(MemoryLedger *ledger) {
    settle(ledger);
    return ledger->at_peak + ledger->n_tags;
}

void memory_ledger_reset_peaks(MemoryLedger *ledger, MemoryMoment moment) {
    MemoryPeak peak = {ledger->now, moment};
    ledger->allocated = ledger->active = ledger->reserved = peak;
    ledger->n_log = 0;
    ledger->settled = false;
}
