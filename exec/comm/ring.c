#include "exec/comm/ring.h"

#include <string.h>

#include "exec/comm/mpi-call.h"

typedef struct {
    const ExecRing *ring;
    int rank, ranks;
    uint64_t piece; /* elements */
} Walk;

static Walk walk_of(const ExecRing *ring) {
    Walk walk = {.ring = ring, .piece = EXEC_RING_PIECE_BYTES / ring->element_bytes};
    MPI_Comm_rank(ring->comm, &walk.rank);
    MPI_Comm_size(ring->comm, &walk.ranks);
    return walk;
}

/* The slice so many ranks behind this one. */
static uint64_t slice_behind(const Walk *walk, int by) {
    return (uint64_t)((walk->rank + 2 * walk->ranks - by) % walk->ranks);
}

/* Sends to the next rank what it is given, and receives as much from the one before. */
static bool pass_on(const Walk *walk, gconstpointer out, uint64_t n_out, gpointer in, uint64_t n_in,
                    GError **error) {
    const ExecRing *ring = walk->ring;
    int next = (walk->rank + 1) % walk->ranks;
    int before = (walk->rank + walk->ranks - 1) % walk->ranks;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    return exec_mpi_check(MPI_Irecv(in, (int)n_in, ring->type, before, 0, ring->comm, &requests[0]),
                          "MPI_Irecv", error) &&
           exec_mpi_check(MPI_Isend(out, (int)n_out, ring->type, next, 0, ring->comm, &requests[1]),
                          "MPI_Isend", error) &&
           exec_mpi_finish(requests, 2, "MPI_Testall", error);
}

/* ---- reduce-scatter ------------------------------------------------------------------------- */

/* One piece of every slice, all the way round: what comes is the sum so far of the slice that the
 * rank before has just added to. The last to come is this rank's own. scratch: two pieces. */
static bool reduce_piece(const Walk *walk, const char *packed, char *shard, uint64_t slice_bytes,
                         uint64_t n, char *scratch[2], GError **error) {
    const ExecRing *ring = walk->ring;
    const char *out = packed + slice_behind(walk, 1) * slice_bytes;
    for (int step = 0; step < walk->ranks - 1; step++) {
        bool last = step == walk->ranks - 2;
        char *in = last ? shard : scratch[step % 2];
        if (!pass_on(walk, out, n, in, n, error)) {
            return false;
        }
        ring->add(in, packed + slice_behind(walk, step + 2) * slice_bytes, n);
        out = in;
    }
    return true;
}

bool exec_ring_reduce_scatter(const ExecRing *ring, gconstpointer packed, gpointer shard,
                              uint64_t count, GError **error) {
    Walk walk = walk_of(ring);
    uint64_t bytes = ring->element_bytes;
    if (walk.ranks == 1) {
        memcpy(shard, packed, count * bytes);
        return true;
    }
    char *halves[2] = {ring->scratch, ring->scratch + MIN(walk.piece, count) * bytes};
    for (uint64_t at = 0; at < count; at += walk.piece) {
        if (!reduce_piece(&walk, (const char *)packed + at * bytes, (char *)shard + at * bytes,
                          count * bytes, MIN(walk.piece, count - at), halves, error)) {
            return false;
        }
    }
    return true;
}

/* ---- all-reduce ----------------------------------------------------------------------------- */

/* Slices of an all-reduce need not be even: the last ones may be short, or empty. */
typedef struct {
    char *buffer;
    uint64_t elements, slice;
} Whole;

static uint64_t slice_length(const Whole *whole, uint64_t slice) {
    uint64_t first = MIN(slice * whole->slice, whole->elements);
    return MIN(whole->slice, whole->elements - first);
}

/* The part of a slice from element number at on, at most a piece. */
static char *part_of(const Walk *walk, const Whole *whole, uint64_t slice, uint64_t at,
                     uint64_t *ret_n) {
    uint64_t length = slice_length(whole, slice);
    uint64_t from = MIN(at, length);
    *ret_n = MIN(walk->piece, length - from);
    return whole->buffer +
           MIN(slice * whole->slice + from, whole->elements) * walk->ring->element_bytes;
}

/* A step round the ring of a piece: adds what comes (to the slice behind), or takes it as it is. */
static bool step_whole(const Walk *walk, const Whole *whole, int behind, uint64_t at, char *scratch,
                       GError **error) {
    uint64_t n_out, n_in;
    const char *out = part_of(walk, whole, slice_behind(walk, behind), at, &n_out);
    char *in = part_of(walk, whole, slice_behind(walk, behind + 1), at, &n_in);
    if (!pass_on(walk, out, n_out, scratch ? scratch : in, n_in, error)) {
        return false;
    }
    if (scratch) {
        walk->ring->add(in, scratch, n_in);
    }
    return true;
}

bool exec_ring_all_reduce(const ExecRing *ring, gpointer buffer, uint64_t elements,
                          GError **error) {
    Walk walk = walk_of(ring);
    uint64_t ranks = (uint64_t)walk.ranks;
    Whole whole = {buffer, elements, (elements + ranks - 1) / ranks};
    for (uint64_t at = 0; at < whole.slice; at += walk.piece) {
        for (int step = 0; step < walk.ranks - 1; step++) { /* ends with the own slice whole */
            if (!step_whole(&walk, &whole, step + 1, at, ring->scratch, error)) {
                return false;
            }
        }
        for (int step = 0; step < walk.ranks - 1; step++) { /* hands whole slices round */
            if (!step_whole(&walk, &whole, step, at, NULL, error)) {
                return false;
            }
        }
    }
    return true;
}
