#include "cli/host/heap.h"

#include <glib.h>

#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PAGE = 2 << 20,     /* x86-64 and arm64 with pages of 4 KiB */
    AHEAD = 16 << 20,   /* addresses; four times what GPT-175B takes */
    PIECE = 32 << 20,   /* larger pieces are mapped by themselves: glibc's own upper bound */
    RETURNED = 64 << 20 /* so much that is free goes back */
};

/* What lies before the first large page. Nobody touches it. */
static gpointer gap;

void cli_heap_in_large_pages(void) {
    mallopt(M_MMAP_THRESHOLD, PIECE);
    mallopt(M_TRIM_THRESHOLD, RETURNED);
    mallopt(M_TOP_PAD, AHEAD);
    const char *old_end = sbrk(0);
    gap = g_malloc(PAGE); /* more than is there yet, so the heap grows */
    const char *end = sbrk(0), *begin = gap;
    if (begin >= end || end - old_end < AHEAD) {
        return; /* another allocator's */
    }
    /* The heap's own note of what is left stands behind the gap, in a page that is small by now. */
    const char *first = begin + PAGE + -(guintptr)begin % PAGE;
    madvise((gpointer)first, (gsize)(end - first), MADV_HUGEPAGE);
    gap = g_realloc(gap, (gsize)(first - begin));
}
#else
void cli_heap_in_large_pages(void) {
}
#endif
