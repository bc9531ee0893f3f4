/* exec/comm/ring.h - reductions of large buffers around a ring of ranks, as NCCL's ring does them.
 *
 * MPI's own nonblocking reductions keep a copy as large as the buffer, which would make the process
 * larger than the device that it models, and Open MPI's reduce-scatter adds everything up on one
 * rank. Here each rank sends partial sums of one slice after another to its neighbour, which adds
 * its own numbers. Scratch is EXEC_RING_SCRATCH_BYTES at most. (exec/README.md compares both, by
 * bench-reductions.)
 *
 * Each slice is added up in a fixed order of ranks, so every run gives the same bits.
 *
 * Borrows: all it is given. Threads: one call a communicator at a time. Bound: copies between
 * processes; each rank sends (ranks - 1) / ranks of the buffer, twice for an all-reduce.
 */
#pragma once

#include <glib.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    EXEC_RING_PIECE_BYTES = 4 << 20,
    EXEC_RING_SCRATCH_BYTES = 2 * EXEC_RING_PIECE_BYTES
};

typedef struct {
    MPI_Comm comm;
    MPI_Datatype type;
    uint64_t element_bytes;
    void (*add)(gpointer to, gconstpointer from, size_t n); /* to += from */
    char *scratch; /* the communicator's own: of two slices, but no more than that many bytes */
} ExecRing;

/* shard = the sum over ranks of slice number rank of packed; a slice has count elements. */
bool exec_ring_reduce_scatter(const ExecRing *ring, gconstpointer packed, gpointer shard,
                              uint64_t count, GError **error);
/* In place. */
bool exec_ring_all_reduce(const ExecRing *ring, gpointer buffer, uint64_t elements, GError **error);
