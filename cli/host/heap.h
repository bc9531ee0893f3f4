/* cli/host/heap.h - a program's heap in large pages.
 *
 * What is built and played lies in a few megabytes of small pieces (a network's graph, what
 * backward keeps, the allocator's blocks). Left to themselves they come in pages of 4 KiB with a
 * fault at the first touch of each, and a large one goes back to the system when it is let go of,
 * so that the next is cleared anew. In pages of 2 MiB that stay there are 4 faults for 500.
 * bench/predict.c measures it.
 *
 * Of glibc on Linux; elsewhere, and where another allocator stands in its place, nothing is done.
 */
#pragma once

/* Once, first thing in main: what has been allocated by then stays where it is. */
void cli_heap_in_large_pages(void);
