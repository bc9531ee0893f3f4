/* memory/ledger: sums, peaks, and the sums at the peak. */
#include "memory/ledger.h"

#include <stdbool.h>
#include <string.h>

static void add(MemoryLedger *ledger, uint32_t tag, uint32_t unit, uint64_t bytes, uint64_t place) {
    const MemoryTotals *now = memory_ledger_now(ledger);
    uint64_t after = now->allocated_bytes + bytes;
    memory_ledger_add(ledger, (MemoryChange){tag, unit, bytes}, after, after,
                      (MemoryMoment){place, 0});
}

static void sub(MemoryLedger *ledger, uint32_t tag, uint32_t unit, uint64_t bytes, uint64_t place) {
    const MemoryTotals *now = memory_ledger_now(ledger);
    memory_ledger_sub(ledger, (MemoryChange){tag, unit, bytes}, now->active_bytes,
                      now->reserved_bytes, (MemoryMoment){place, 0});
}

static void test_sums(void) {
    g_autoptr(MemoryLedger) ledger = memory_ledger_new(3, 2);
    add(ledger, 0, 1, 10, 1);
    add(ledger, 2, 0, 5, 2);
    add(ledger, 2, 1, 7, 3);
    sub(ledger, 0, 1, 4, 4);
    const uint64_t *tags = memory_ledger_by_tag(ledger), *units = memory_ledger_by_unit(ledger);
    g_assert_cmpuint(tags[0], ==, 6);
    g_assert_cmpuint(tags[1], ==, 0);
    g_assert_cmpuint(tags[2], ==, 12);
    g_assert_cmpuint(units[0], ==, 5);
    g_assert_cmpuint(units[1], ==, 13);
    g_assert_cmpuint(memory_ledger_now(ledger)->allocated_bytes, ==, 18);
    g_assert_cmpuint(memory_ledger_peak_by_tag(ledger)[0], ==, 10);
    g_assert_cmpuint(memory_ledger_peak_by_unit(ledger)[1], ==, 17);
}

/* Equal maxima: the first counts. Each of the three has its own moment. */
static void test_moments(void) {
    g_autoptr(MemoryLedger) ledger = memory_ledger_new(1, 1);
    memory_ledger_add(ledger, (MemoryChange){0, 0, 10}, 10, 20, (MemoryMoment){1, 100});
    memory_ledger_sub(ledger, (MemoryChange){0, 0, 5}, 12, 20, (MemoryMoment){2, 200});
    memory_ledger_add(ledger, (MemoryChange){0, 0, 5}, 11, 30, (MemoryMoment){3, 300});
    memory_ledger_sub(ledger, (MemoryChange){0, 0, 10}, 0, 30, (MemoryMoment){4, 400});
    g_assert_cmpuint(memory_ledger_peak_allocated(ledger)->moment.place, ==, 1);
    g_assert_cmpint(memory_ledger_peak_allocated(ledger)->moment.time_ns, ==, 100);
    g_assert_cmpuint(memory_ledger_peak_allocated(ledger)->totals.reserved_bytes, ==, 20);
    g_assert_cmpuint(memory_ledger_peak_active(ledger)->moment.place, ==, 2);
    g_assert_cmpuint(memory_ledger_peak_active(ledger)->totals.allocated_bytes, ==, 5);
    g_assert_cmpuint(memory_ledger_peak_reserved(ledger)->moment.place, ==, 3);
}

#define TAGS  5
#define UNITS 9

/* Against copying everything at each new maximum; the sums at the peak are asked for now and
 * then, and long pauses between maxima make the log overflow. */
static void test_model(void) {
    g_autoptr(MemoryLedger) ledger = memory_ledger_new(TAGS, UNITS);
    uint64_t held[TAGS][UNITS] = {{0}}, tags[TAGS] = {0}, units[UNITS] = {0};
    uint64_t peak_tags[TAGS] = {0}, peak_units[UNITS] = {0}, now = 0, peak = 0;
    g_autoptr(GRand) random = g_rand_new_with_seed(5);
    for (guint i = 0; i < 20000; i++) {
        uint32_t tag = (uint32_t)g_rand_int_range(random, 0, TAGS);
        uint32_t unit = (uint32_t)g_rand_int_range(random, 0, UNITS);
        bool grows = g_rand_int_range(random, 0, 100) < (i / 500 % 3 == 2 ? 30 : 55);
        uint64_t bytes = (uint64_t)g_rand_int_range(random, 0, 1000);
        bytes = grows ? bytes : MIN(bytes, held[tag][unit]);
        if (grows) {
            add(ledger, tag, unit, bytes, i);
        } else {
            sub(ledger, tag, unit, bytes, i);
        }
        uint64_t delta = grows ? bytes : -bytes;
        held[tag][unit] += delta;
        tags[tag] += delta;
        units[unit] += delta;
        now += delta;
        if (now > peak) {
            peak = now;
            memcpy(peak_tags, tags, sizeof tags);
            memcpy(peak_units, units, sizeof units);
        }
        if (g_rand_int_range(random, 0, 20) == 0) {
            g_assert_cmpmem(memory_ledger_by_tag(ledger), sizeof tags, tags, sizeof tags);
            g_assert_cmpmem(memory_ledger_by_unit(ledger), sizeof units, units, sizeof units);
            g_assert_cmpmem(memory_ledger_peak_by_tag(ledger), sizeof tags, peak_tags, sizeof tags);
            g_assert_cmpmem(memory_ledger_peak_by_unit(ledger), sizeof units, peak_units,
                            sizeof units);
            g_assert_cmpuint(memory_ledger_peak_allocated(ledger)->totals.allocated_bytes, ==,
                             peak);
        }
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/memory/ledger/sums", test_sums);
    g_test_add_func("/memory/ledger/each-peak-its-moment", test_moments);
    g_test_add_func("/memory/ledger/equals-copying-at-each-peak", test_model);
    return g_test_run();
}
