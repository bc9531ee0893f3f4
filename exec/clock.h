/* exec/clock.h - what time it is, by the clock that only goes on (CLOCK_MONOTONIC). Threads: any.
 */
#pragma once

#include <stdint.h>
#include <time.h>

static inline int64_t exec_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline double exec_now_us(void) {
    return (double)exec_now_ns() / 1e3;
}
