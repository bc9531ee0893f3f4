/* memory/options.h - the choices of PyTorch's allocator, and the text in which users give them.
 *
 * The text is that of the environment variable PYTORCH_ALLOC_CONF: "key:value,key:value". Keys that
 * concern only host memory or locking are accepted and have no effect; another backend is refused.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define MEMORY_ERROR (memory_error_quark())
GQuark memory_error_quark(void);

typedef enum {
    MEMORY_ERROR_OPTION,      /* the text is wrong; the message says where and what to do */
    MEMORY_ERROR_UNSUPPORTED, /* this source, or this project, cannot do that */
} MemoryError;

/* Intervals of roundup_power2_divisions: [1, 2) MiB, [2, 4) MiB ... 32 GiB and more. Smaller
 * requests belong to the first. */
#define MEMORY_N_ROUNDUPS 16

typedef struct {
    /* Blocks of this size and more are not split, nor used for less; UINT64_MAX: there are none. */
    uint64_t max_split_bytes;
    /* How much larger such a block may be than its request. */
    uint64_t max_non_split_rounding_bytes;
    uint64_t large_segment_bytes;                  /* segment of a request of 1 to 10 MiB */
    uint32_t roundup_divisions[MEMORY_N_ROUNDUPS]; /* by interval; 0 and 1: off */
    double garbage_collection_threshold;           /* of the limit; 0: off */
    double memory_fraction; /* limit, as a part of all memory; 1: no limit and no collection */
    bool expandable_segments;
    /* A request that would lift reserved above this part of all memory fails at once, before any
     * cached memory is released. */
    bool throw_on_cudamalloc_oom;
    double throw_fraction;
} MemoryOptions;

/* per_process_memory_fraction sets both fractions. PyTorch's set_per_process_memory_fraction(),
 * called later, changes memory_fraction alone. */

/* PyTorch 2.13's defaults. */
void memory_options_init(MemoryOptions *options);
/* Defaults, then what text says (NULL and "" say nothing). On failure *ret_options stays as it
 * was. */
bool memory_options_parse(const char *text, MemoryOptions *ret_options, GError **error);
