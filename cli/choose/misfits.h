/* cli/choose/misfits.h - what did not fit, and so what need not be tried: the same with a larger
 * batch, less sharded or less recomputed.
 *
 * Owns: a CliMisfit its words; a list (GArray of CliMisfit) its misfits. Threads: one a list;
 * CliMisfitsOfAll any number.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* A setting, by its place in what holds more and what less. */
typedef struct {
    char *others; /* cluster and every other key, in one text */
    char *sharding, *checkpointing;
    uint64_t ranks, micro_batch;
    uint64_t batches; /* of a pass: ranks that share layers, sequences or stages have one */
} CliMisfit;

void cli_misfit_clear(CliMisfit *misfit);

GArray *cli_misfits_new(void);
/* Whether a candidate needs at least as much memory as one of the list. */
bool cli_misfits_rule_out(const GArray *misfits, const CliMisfit *candidate);

/* What did not fit, as soon as any thread knows. */
typedef struct _CliMisfitsOfAll CliMisfitsOfAll;

CliMisfitsOfAll *cli_misfits_of_all_new(void);
void cli_misfits_of_all_free(CliMisfitsOfAll *known);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CliMisfitsOfAll, cli_misfits_of_all_free)

void cli_misfits_of_all_add(CliMisfitsOfAll *known, const CliMisfit *misfit);
/* A list of those known by now. Transfer full. */
GArray *cli_misfits_of_all_copy(CliMisfitsOfAll *known);
