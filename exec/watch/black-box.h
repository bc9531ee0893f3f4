/* exec/watch/black-box.h - a record of what each rank is doing that outlives the rank.
 *
 * A rank that the system kills (out of memory, for example) can say nothing. So each rank notes
 * what its host and its lanes do, one store an instruction, in memory that it shares with a process
 * that can report it: the one that forked it, or, by way of a file, the program that started all
 * ranks.
 *
 * Owns: the mapping. Threads: a lane or the host writes its own word; any reads. Cost: a store,
 * about a nanosecond.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "plan/player.h"

enum {
    EXEC_DOING_HOST = PLAN_MAX_LANES /* the host's word, after those of the lanes */
};

/* What one rank is doing. A word is 0 before the first instruction. */
typedef struct {
    _Atomic uint64_t words[PLAN_MAX_LANES + 1];
} ExecDoing;

/* ---- for a rank ----------------------------------------------------------------------------- */

static inline uint64_t exec_doing_word(const PlanPosition *at) {
    return (uint64_t)(at->step + 2) << 40 | (uint64_t)at->section << 36 | at->index;
}

/* doing may be NULL: nobody would read it. */
static inline void exec_doing_begin(ExecDoing *doing, unsigned place, uint64_t word) {
    if (doing) {
        atomic_store_explicit(&doing->words[place], word, memory_order_relaxed);
    }
}

static inline void exec_doing_end(ExecDoing *doing, unsigned place, uint64_t word) {
    exec_doing_begin(doing, place, word | UINT64_C(1) << 63);
}

/* ---- for the process that reports ------------------------------------------------------------ */

/* " step 3, instruction 7, op add of unit root (lane compute)": what a word says, without saying
 * whether it has ended. */
void exec_doing_tell_place(const Plan *plan, uint32_t rank, uint64_t word, GString *text);

/* "rank 1 was killed by signal 9 (Killed) at step 3, ...": up to where it was, without an end.
 * plan NULL: it could not be read. */
void exec_doing_tell(const ExecDoing *doing, const Plan *plan, uint32_t rank, int signal,
                     GString *text);

typedef struct _ExecBlackBox ExecBlackBox;

/* Opens the file and maps it; made of zeros if it is not there yet. */
ExecBlackBox *exec_black_box_open(const char *path, uint32_t world, GError **error);
void exec_black_box_free(ExecBlackBox *box); /* the file stays; NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ExecBlackBox, exec_black_box_free)
ExecDoing *exec_black_box_doing(ExecBlackBox *box, uint32_t rank);
