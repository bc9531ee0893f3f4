/* cli/published/run-kind.h - kinds of runs, of which predictions are off by unequal shares.
 *
 * A prediction says itself of which kind it is, so what published runs of a kind were off by is
 * what to expect of another of that kind: an error bar that is looked up, not promised. A step that
 * mostly computes is the best known; one that waits for its host is the least.
 *
 * Owns: nothing. Threads: any.
 */
#pragma once

#include "models/cluster.h"
#include "plan/plan.h"
#include "sim/predict.h"

typedef enum {
    CLI_RUN_COMPUTES, /* most of a step is arithmetic; none of those below */
    CLI_RUN_MOVES,    /* most of it is bytes of a GPU's own memory */
    CLI_RUN_LINKS,    /* most of it waits for collectives */
    CLI_RUN_HOST,     /* most of it waits for Python */
    CLI_RUN_CONTEXT,  /* GPUs share sequences */
    CLI_RUN_FLOAT8,
    CLI_RUN_RETRIES, /* the allocator gives memory back */
    CLI_RUN_TOO_LARGE,
    CLI_N_RUN_KINDS
} CliRunKind;

CliRunKind cli_run_kind(const Plan *plan, const SimPrediction *prediction);
const char *cli_run_kind_name(CliRunKind kind);  /* in files: "computes" */
const char *cli_run_kind_words(CliRunKind kind); /* "bound by arithmetic" */
/* "A100" of "A100-SXM4-80GB": GPUs of one kind, however much memory they have. Transfer full. */
char *cli_run_gpu(const ModelCluster *cluster);
