/* exec/neighbours.h - ranks of one machine that look after one another, where nobody else does.
 *
 * Under a bare mpirun or srun, nobody who starts a rank knows its plan. So the ranks of a machine
 * share a black box, and a thread in each looks once a second, and when it is asked to end
 * (SIGTERM, as mpirun does to all when one has died), whether another is gone without a word. The
 * first that sees it says who, and where that one was; then all end, too.
 *
 * A machine whose last rank dies has nobody to speak for it.
 *
 * Owns: the thread, which takes SIGTERM. Threads: one makes and frees it.
 */
#pragma once

#include "exec/black-box.h"

typedef struct _ExecNeighbours ExecNeighbours;

/* Before any other thread is started: SIGTERM is left to the thread below. */
void exec_neighbours_prepare(void);
/* What _prepare() did is undone: there will be no thread. */
void exec_neighbours_forget(void);
/* mine has entered the box, and so have the n ranks, which mine is one of, in rising order; both
 * are handed over. plan_path: to say where a rank was; NULL: nobody can. */
ExecNeighbours *exec_neighbours_new(ExecBlackBox *box, uint32_t *ranks, uint32_t n, uint32_t mine,
                                    const char *plan_path);
void exec_neighbours_free(ExecNeighbours *neighbours); /* NULL is fine */
