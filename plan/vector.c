#include "plan/vector.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    LARGE_PAGE = 2 << 20 /* bytes; x86-64 and arm64 with pages of 4 KiB */
};

/* The first touch of each small page is a fault, and for a large plan the kernel took a third of
 * the time for them. Without large pages the advice is for nothing, and so it is not checked. */
gpointer plan_vector_grow(gpointer items, gsize used_bytes, gsize bytes) {
    if (bytes < LARGE_PAGE) {
        return g_realloc(items, bytes);
    }
    gpointer larger = NULL;
    if (posix_memalign(&larger, LARGE_PAGE, bytes) != 0) {
        g_error("no memory for %" G_GSIZE_FORMAT " bytes of a plan", bytes);
    }
    madvise(larger, bytes, MADV_HUGEPAGE);
    if (used_bytes) {
        memcpy(larger, items, used_bytes);
    }
    g_free(items);
    return larger;
}
