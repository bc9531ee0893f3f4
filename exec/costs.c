#include "exec/costs.h"

#include "exec/clock.h"
#include "exec/error.h"
#include "memory/caching.h"
#include "trace/quantile.h"

enum {
    ROUNDS = 400
};

/* What follows may fail or hang, and the time of who asks may end: what is known is out by then. */
void exec_costs_add(const ExecCosts *costs, const char *format, ...) {
    va_list arguments;
    gsize before = costs->lines->len;
    va_start(arguments, format);
    g_string_append_vprintf(costs->lines, format, arguments);
    va_end(arguments);
    g_string_append_c(costs->lines, '\n');
    if (costs->say) {
        fputs(costs->lines->str + before, costs->say);
        fflush(costs->say);
    }
}

bool exec_costs_report(const ExecCosts *costs, const char *name, double us, GError **error) {
    if (!costs->comm->mean(costs->comm->self, &us, 1, error)) {
        return false;
    }
    exec_costs_add(costs, "%s %.4g", name, us);
    exec_watchdog_beat(costs->watchdog);
    return true;
}

/* ---- memory --------------------------------------------------------------------------------- */

static bool segment_costs(const ExecCosts *costs, const MemorySource *source, gpointer self,
                          GError **error) {
    enum {
        N = 16
    };
    const uint64_t bytes = 20 << 20; /* PyTorch's segment for most requests */
    double get[N], give_back[N];
    for (unsigned i = 0; i < N; i++) {
        gpointer handle;
        double start = exec_now_us();
        if (!source->segment_new(self, bytes, &handle)) {
            g_set_error_literal(error, EXEC_ERROR, EXEC_ERROR_FAILED, "no room for 20 MiB");
            return false;
        }
        double got = exec_now_us();
        source->segment_free(self, handle, bytes);
        get[i] = got - start;
        give_back[i] = exec_now_us() - got;
    }
    return exec_costs_report(costs, "segment_new_us", trace_median(get, N), error) &&
           exec_costs_report(costs, "segment_free_us", trace_median(give_back, N), error);
}

enum {
    BLOCKS = 64
};

/* Microseconds that a block takes, and to give it back; false where there is no room for all. */
static bool time_blocks(MemoryCaching *caching, double *take, double *drop, GError **error) {
    MemoryBlock *blocks[BLOCKS];
    unsigned n = 0;
    double start = exec_now_us();
    while (n < BLOCKS && memory_caching_alloc(caching, 0, (1 + n % 7) * 100000, &blocks[n])) {
        n++;
    }
    double taken = exec_now_us();
    for (unsigned i = 0; i < BLOCKS; i++) {
        unsigned each = i * 5 % BLOCKS; /* once */
        if (each < n) {
            memory_caching_drop(caching, blocks[each]);
        }
    }
    *take = (taken - start) / BLOCKS;
    *drop = (exec_now_us() - taken) / BLOCKS;
    if (n < BLOCKS) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED,
                    "no room for %d blocks of 0.1 to 0.7 MB (1e6 bytes); free some", BLOCKS);
    }
    return n == BLOCKS;
}

/* Requests that find their block among a few others. */
static bool block_costs(const ExecCosts *costs, const MemorySource *source, gpointer self,
                        GError **error) {
    MemoryCaching *caching = memory_caching_new(NULL, source, self, error);
    double take[ROUNDS], drop[ROUNDS];
    bool ok = caching != NULL;
    for (unsigned round = 0; ok && round < ROUNDS; round++) {
        ok = time_blocks(caching, &take[round], &drop[round], error);
    }
    memory_caching_free(caching);
    return ok && exec_costs_report(costs, "alloc_us", trace_median(take, ROUNDS), error) &&
           exec_costs_report(costs, "free_us", trace_median(drop, ROUNDS), error);
}

bool exec_costs_of_memory(const ExecCosts *costs, const MemorySource *source, gpointer self,
                          GError **error) {
    return segment_costs(costs, source, self, error) && block_costs(costs, source, self, error);
}
