/* Why the toy's compute lane stands still: of 1000 us a step 750 are busy, the rest is known. */
#include "tests/trace/toy-trace.h"
#include "trace/idle.h"

static TraceIdleBook book_of(const Trace *trace) {
    g_autoptr(TraceSummary) summary = trace_summary_new(trace, 0);
    return trace_idle_book(trace, summary);
}

static void check(const TraceIdleBook *book, int64_t collective_us, int64_t copy_us,
                  int64_t host_us, int64_t other_us) {
    g_assert_cmpuint(book->n_steps, ==, 2);
    g_assert_cmpuint(book->n_ops, ==, 8);
    g_assert_cmpint(book->busy_ns, ==, 2 * 750000);
    g_assert_cmpint(book->idle_ns[TRACE_IDLE_COLLECTIVE], ==, 2000 * collective_us);
    g_assert_cmpint(book->idle_ns[TRACE_IDLE_COPY], ==, 2000 * copy_us);
    g_assert_cmpint(book->idle_ns[TRACE_IDLE_HOST], ==, 2000 * host_us);
    g_assert_cmpint(book->idle_ns[TRACE_IDLE_OTHER], ==, 2000 * other_us);
}

/* Gaps: 0..100 (gather from 50, issued at 80), 300..350 and 900..950 (a collective all along),
 * 600..650 (issued at 630). */
static void toy(void) {
    ToyOptions options = TOY_DEFAULT;
    g_autoptr(Trace) trace = toy_trace(&options);
    TraceIdleBook book = book_of(trace);
    check(&book, 150, 0, 80, 20);
    g_assert_cmpuint(book.n_returns, ==, 0);
}

/* The same, were the gathers copies: what an offload's lane would show. */
static void copies(void) {
    ToyOptions options = TOY_DEFAULT;
    g_autoptr(Trace) trace = toy_trace(&options);
    g_array_index(trace->kinds, TraceKind, 2).kind_class = TRACE_KIND_COPY;
    TraceIdleBook book = book_of(trace);
    check(&book, 50, 100, 80, 20);
}

/* A host that issues in time leaves gaps between kernels. */
static void early_host(void) {
    ToyOptions options = TOY_DEFAULT;
    g_autoptr(Trace) trace = toy_trace(&options);
    for (guint i = 0; i < trace->ops->len; i++) {
        g_array_index(trace->ops, TraceOpRow, i).host_issue_ns = 0;
    }
    TraceIdleBook book = book_of(trace);
    check(&book, 150, 0, 0, 100);
}

static void returns(void) {
    ToyOptions options = TOY_DEFAULT;
    g_autoptr(Trace) trace = toy_trace(&options);
    for (guint i = 5; i < 9; i++) {
        g_array_index(trace->memory, TraceMemoryRow, i).reserved = 1 << 20;
    }
    TraceIdleBook book = book_of(trace);
    g_assert_cmpuint(book.n_returns, ==, 1);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/trace/idle/toy", toy);
    g_test_add_func("/trace/idle/copies", copies);
    g_test_add_func("/trace/idle/early-host", early_host);
    g_test_add_func("/trace/idle/returns", returns);
    return g_test_run();
}
