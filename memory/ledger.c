/* memory/ledger.c - a ledger made, settled and read. */
#include "memory/ledger.h"

#include <string.h>

MemoryLedger *memory_ledger_new(uint32_t n_tags, uint32_t n_units) {
    MemoryLedger *ledger = g_new0(MemoryLedger, 1);
    ledger->n_tags = n_tags;
    ledger->n_units = n_units;
    ledger->room = n_tags + n_units;
    ledger->sums = g_new0(uint64_t, ledger->room);
    ledger->at_peak = g_new0(uint64_t, ledger->room);
    ledger->log = g_new(MemoryChange, ledger->room);
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

void memory_ledger_settle(MemoryLedger *ledger) {
    if (ledger->settled) {
        return;
    }
    memcpy(ledger->at_peak, ledger->sums, ledger->room * sizeof *ledger->sums);
    for (uint32_t i = 0; i < ledger->n_log; i++) {
        const MemoryChange *change = &ledger->log[i];
        ledger->at_peak[change->tag] -= change->bytes;
        ledger->at_peak[ledger->n_tags + change->unit] -= change->bytes;
    }
    ledger->settled = true;
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
    memory_ledger_settle(ledger);
    return ledger->at_peak;
}

const uint64_t *memory_ledger_peak_by_unit(MemoryLedger *ledger) {
    memory_ledger_settle(ledger);
    return ledger->at_peak + ledger->n_tags;
}
