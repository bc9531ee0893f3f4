/* exec/comm/ring.h - reductions of large buffers around a ring of ranks, as NCCL's ring does them.
 *
 * MPI's own nonblocking reductions keep copies as large as the whole buffer, which would make the
 * process larger than the device that it models, and Open MPI's adds all of a reduce-scatter up on
 * one rank. Here each rank sends its neighbour partial sums of one slice after another and adds its
 * own; scratch is EXEC_RING_SCRATCH_BYTES, whatever the buffer. (exec/README.md has both as
 * bench-reductions measures them, with an operation of our own for bf16, too.)
 *
 * A slice is added up in the order of the ranks behind its owner's, so every run gives the same
 * bits.
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
    char *scratch;                                          /* the communicator's own */
} ExecRing;

/* shard = the sum over ranks of slice number rank of packed; a slice has count elements. */
bool exec_ring_reduce_scatter(const ExecRing *ring, gconstpointer packed, gpointer shard,
                              uint64_t count, GError **error);
/* In place. */
bool exec_ring_all_reduce(const ExecRing *ring, gpointer buffer, uint64_t elements, GError **error);
