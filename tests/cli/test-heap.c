/* tests/cli/test-heap.c - the heap comes in large pages where the system gives any. */
#include <glib.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "cli/host/heap.h"

enum {
    LARGE_PAGE = 2 << 20,
    BYTES = 3 * LARGE_PAGE, /* in small pages 1536 faults */
    FEW = 16                /* faults: three, and what else happens to be new */
};

static long faults(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

static long faults_to_touch(char *bytes) {
    long before = faults();
    memset(bytes, 1, BYTES);
    return faults() - before;
}

/* Whether there are such pages here and now: memory that is nobody's comes in them. */
static bool system_gives_any(void) {
    char *pages =
        mmap(NULL, BYTES + LARGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    g_assert_true(pages != MAP_FAILED);
    char *first = pages + -(guintptr)pages % LARGE_PAGE;
    madvise(first, BYTES, MADV_HUGEPAGE);
    bool given = faults_to_touch(first) <= FEW;
    munmap(pages, BYTES + LARGE_PAGE);
    return given;
}

static void large_pages(void) {
#if !defined(__GLIBC__) || defined(__SANITIZE_ADDRESS__)
    g_test_skip("another allocator than glibc's");
    return;
#endif
    if (!system_gives_any()) {
        g_test_skip("the system gives no large pages now");
        return;
    }
    for (unsigned turn = 0; turn < 2; turn++) { /* the second in what the first has left */
        g_autofree char *piece = g_malloc(BYTES);
        g_assert_cmpint(faults_to_touch(piece), <=, FEW);
    }
}

static void small_pieces(void) {
    g_autoptr(GPtrArray) pieces = g_ptr_array_new_with_free_func(g_free);
    for (unsigned i = 0; i < 10000; i++) {
        unsigned *piece = g_new(unsigned, 1 + i % 100);
        *piece = i;
        g_ptr_array_add(pieces, piece);
    }
    for (unsigned i = 0; i < pieces->len; i++) {
        g_assert_cmpuint(*(const unsigned *)pieces->pdata[i], ==, i);
    }
}

int main(int argc, char **argv) {
    cli_heap_in_large_pages();
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/heap/large pieces come in large pages, and stay", large_pages);
    g_test_add_func("/cli/heap/small pieces are whole", small_pieces);
    return g_test_run();
}
