/* tests/trace/toy-trace.h - a made-up play, small enough to know every answer by heart.
 *
 * Two units, three lanes (compute, gather, reduce). One role, ranks as asked. A step takes 1000 us
 * on the compute lane's clock; within step s (base = s * 1000 us):
 *
 *   compute  forward  unit 0  100..300   forward  unit 1  350..600   backward 650..900,
 *            optimizer 950..1000
 *   gather   unit 0    50..150 (50 exposed)        unit 1 200..400 (50 exposed: 300..350)
 *   reduce   unit 1   850..980 (50 exposed: 900..950)
 *
 * Construction allocates 4096 bytes of sharded parameters. A step allocates 1024 (gathered, unit
 * 0), 2048 (saved activation, unit 1) and 512 (gradient), and frees them in the same order.
 * Reserved is allocated rounded up to 8192 and never falls; active lags behind by the last freed
 * block.
 */
#pragma once

#include "trace/trace.h"

typedef struct {
    uint32_t n_ranks;
    int32_t steps;
    int64_t slower_us; /* the second forward op lasts so much longer, and the rest shifts */
    int64_t
        wrong_from; /* memory row from which on all sizes of rank 0 are 256 too large; -1 never */
    const char *side, *digest;
    bool leaks; /* the last step does not free what was gathered */
} ToyOptions;

#define TOY_DEFAULT ((ToyOptions){1, 4, 0, -1, "predicted", "sha256:0123", false})

/* One rank's part with all tables. */
Trace *toy_trace_rank(const ToyOptions *options, uint32_t rank);
/* All ranks. */
Trace *toy_trace(const ToyOptions *options);
