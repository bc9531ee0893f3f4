/* tests/exec/runs.h - `foreshard` started by tests, on as many ranks as its words say. */
#pragma once

#include <gio/gio.h>
#include <stdbool.h>

#include "trace/trace.h"

/* Words that several programs have: fewer experts than ranks, blocks for stages of one rank (six,
 * or seven, which leave stages uneven), how several of a rank take turns, and the units that PEFT
 * makes of adapters. */
#define TEST_RUN_FEW_EXPERTS   "moe-toy --network-key routing=in-turn --network-key experts=4"
#define TEST_RUN_STAGES        "llama-toy --network-key layers=6"
#define TEST_RUN_SEVERAL       "llama-toy --network-key layers=7"
#define TEST_RUN_INTERLEAVED   " --pipeline-schedule interleaved-1f1b --pipeline-stages "
#define TEST_RUN_BREADTH_FIRST " --pipeline-schedule looped-bfs --pipeline-stages "
#define TEST_RUN_PEFTS         "--flavour fsdp1 --wrap module=.*\\.\\d+|.*lora_[AB] "

extern const char *test_run_program; /* the path of foreshard; set it first */
/* A variable of its environment; no name: none. */
extern const char *test_run_name, *test_run_value;
/* The program finds no mpirun: it forks its ranks, which share memory. They begin and end in a
 * tenth of the time of MPI's, and what they compute must not depend on what binds them. */
extern bool test_run_forks;

typedef struct {
    int status;
    char *out, *err;
} TestRun;

/* Sets test_run_forks for a program of many runs: MPI binds the ranks of a plan, a file, where that
 * has a collective that none before had in this process, of a kind, on an axis, in a dtype, of so
 * many ranks of so many. Of what ranks do, that alone is MPI's; the other plans' ranks fork. */
void test_run_bind(const char *plan_path);

/* words are split at blanks. */
GSubprocess *test_run_start(const char *words);
GSubprocess *test_run_start_into(const char *words, const char *path); /* its standard output */
TestRun test_run_finish(GSubprocess *process);
void test_run_clear(TestRun *run);

/* Ends well, or the test fails. */
void test_run_ok(const char *format, ...) G_GNUC_PRINTF(1, 2);
/* The losses of `foreshard run WORDS` of n steps. */
void test_run_losses(const char *words, double *losses, unsigned n);
/* The losses that the program's own words leave; n of them. */
void test_run_losses_of(const char *words, double *losses, unsigned n);

/* In folder, slow.ini: this-machine of the folder of clusters, but any collective takes so long to
 * begin. Transfer full. */
char *test_run_slow_cluster(const char *clusters, const char *folder, unsigned latency_us);

/* A trace that the program has left, which is removed. Transfer full. */
Trace *test_run_take_trace(const char *path);
uint64_t test_run_most_reserved(const Trace *trace); /* bytes of rank 0 */

/* Of a weights file that the program wrote, its numbers, behind its header. Transfer full. */
float *test_run_read_floats(const char *folder, const char *name, gsize *ret_n);

/* With the files in it. */
void test_run_remove_folder(const char *folder);
