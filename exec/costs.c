#include "exec/costs.h"

#include "exec/clock.h"
#include "exec/error.h"
#include "memory/caching.h"
#include "trace/quantile.h"

enum {
    ROUNDS = 400
};

bool exec_costs_report(const ExecComm *comm, GString *lines, const char *name, double us,
                       GError **error) {
    if (!comm->mean(comm->self, &us, 1, error)) {
        return false;
    }
    g_string_append_printf(lines, "%s %.4g\n", name, us);
    return true;
}

/* ---- memory --------------------------------------------------------------------------------- */

static bool segment_costs(const ExecComm *comm, GString *lines, const MemorySource *source,
                          gpointer self, GError **error) {
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
    return exec_costs_report(comm, lines, "segment_new_us", trace_median(get, N), error) &&
           exec_costs_report(comm, lines, "segment_free_us", trace_median(give_back, N), error);
}

/* Requests that find their block among a few others. */
static bool block_costs(const ExecComm *comm, GString *lines, const MemorySource *source,
                        gpointer self, GError **error) {
    enum {
        BLOCKS = 64
    };
    MemoryCaching *caching = memory_caching_new(NULL, source, self, error);
    MemoryBlock *blocks[BLOCKS];
    double take[ROUNDS], drop[ROUNDS];
    for (unsigned round = 0; caching && round < ROUNDS; round++) {
        double start = exec_now_us();
        for (unsigned i = 0; i < BLOCKS; i++) {
            memory_caching_alloc(caching, 0, (1 + i % 7) * 100000, &blocks[i]);
        }
        double taken = exec_now_us();
        for (unsigned i = 0; i < BLOCKS; i++) {
            memory_caching_drop(caching, blocks[i * 5 % BLOCKS]);
        }
        take[round] = (taken - start) / BLOCKS;
        drop[round] = (exec_now_us() - taken) / BLOCKS;
    }
    bool ok = caching != NULL;
    memory_caching_free(caching);
    return ok && exec_costs_report(comm, lines, "alloc_us", trace_median(take, ROUNDS), error) &&
           exec_costs_report(comm, lines, "free_us", trace_median(drop, ROUNDS), error);
}

bool exec_costs_of_memory(const ExecComm *comm, GString *lines, const MemorySource *source,
                          gpointer self, GError **error) {
    return segment_costs(comm, lines, source, self, error) &&
           block_costs(comm, lines, source, self, error);
}
