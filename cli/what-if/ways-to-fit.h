/* cli/what-if/ways-to-fit.h - what would make a plan fit that does not.
 *
 * Each way of a short list, the least change first, is predicted; beside adapters frozen weights of
 * fewer bits, too. Where none fits without giving memory back, more is tried, fully sharded and
 * checkpointed, in the precision there is and in bf16, until one does: ranks that share a block's
 * experts, more of the cluster's ranks, ranks that share a sequence, ranks that share layers, and
 * last what learns otherwise, for it keeps fewer bits. At most three are given: the least change
 * that fits, the quickest one, and, before both, one that fits only by giving memory back, when
 * that is a smaller change.
 *
 * Cost: some thirty predictions, sixty where nothing helps.
 */
#pragma once

#include "cli/what-if/what-if.h"
#include "trace/json.h"

typedef struct {
    char *changes; /* "checkpointing=full param_dtype=bf16", what is not so already */
    double step_ns, reserved_bytes;
    uint64_t retries;
    unsigned n_steps;                  /* in which they are */
    bool is_least_change, is_quickest; /* of several that are given */
} CliWay;

/* CliWay: what makes it fit, or where it fits by giving memory back, what does without; empty: none
 * of these helps. what_if NULL: NULL. */
GArray *cli_ways(CliWhatIf *what_if, bool fits);
/* The first that gives no memory back, or else the first; NULL when there is none. */
const CliWay *cli_ways_best(const GArray *ways);
/* Where there is none. */
#define CLI_NO_WAY_TO_FIT                                                                          \
    "no setting tried makes it fit, nor do more of the cluster's GPUs; try a larger cluster, a "   \
    "shorter sequence, a smaller network, adapters only (--lora-rank 16), or GPUs with more "      \
    "memory"
/* "--checkpointing full --param-dtype bf16: step 25.310 s, 61.20 GB reserved (quickest)"; reserved:
 * the bytes in the units of whoever prints it. Transfer full. */
char *cli_way_text(const CliWay *way, const char *reserved);
/* An array, ways_to_fit or ways_without_retries; ways: NULL is empty. */
void cli_ways_add_json(JsonBuilder *json, const GArray *ways, bool fits);
