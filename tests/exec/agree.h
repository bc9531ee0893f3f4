/* tests/exec/agree.h - one global batch, one answer: on any number of ranks and however they share
 * it, losses are those of one rank by itself.
 *
 * MPI binds the ranks, or memory that they share: what MPI has done already it does not do again
 * (test_run_bind()).
 */
#pragma once

#include "tests/exec/runs.h"

typedef struct {
    const char *name, *network;
    const char *const *runs; /* NULL behind the last; the first is one rank, which others follow */
} AgreeFamily;

/* Takes the path of foreshard. */
void agree_begin(int argc, char **argv);
/* tests: the path of the program's cases. */
void agree_add(const char *tests, const AgreeFamily *families, unsigned n);
/* The losses of n steps, of a plan, which says what its ranks do together. */
void agree_losses(const char *words, double *losses, unsigned n);
int agree_end(void);
