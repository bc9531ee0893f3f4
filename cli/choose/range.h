/* cli/choose/range.h - what a search tries: which keys with which values, and in which precision,
 * settled before anything is predicted.
 *
 * A row is a combination of values on a machine, without the batch, which is sought in each. Values
 * are one a knob, in the knobs' order.
 *
 * Owns: the knobs. Borrows: what was asked. Threads: any number, once it is settled.
 */
#pragma once

#include "cli/choose/choose.h"
#include "cli/choose/misfits.h"
#include "cli/options/knob.h"

typedef struct {
    const CliChooseAsked *asked;
    PlanStrategy given; /* what was given, unsettled */
    GArray *knobs;      /* CliKnob: asked for, and those taken in addition */
    guint n_rows;       /* in the order in which they are tried */
    bool doubles;       /* micro_batch has no values of its own */
    bool ranks_given, shardings_given, takes_sync;
    bool takes_bf16;    /* for no dtype was given */
    bool takes_storage; /* lora_base_storage=model, for none was given and FSDP wants it */
    const char *mixed;  /* the dtype of mixed precision; NULL: none, or it is managed by autocast */
} CliRange;

bool cli_range_init(CliRange *range, const CliChooseAsked *asked, GError **error);
void cli_range_clear(CliRange *range);

const CliKnob *cli_range_knob(const CliRange *range, guint i);
char **cli_range_keys(const CliRange *range); /* of all knobs. Transfer full */

/* The values of a row, and its machine. The last knob turns first. Transfer full. */
char **cli_range_row(const CliRange *range, guint row, const ModelCluster **ret_cluster);
/* Of a key that is a knob or not. */
char *cli_range_value(const CliRange *range, char **values, const char *key);
uint64_t cli_range_number(const CliRange *range, char **values, const char *key);
CliMisfit cli_range_setting(const CliRange *range, const ModelCluster *cluster, char **values);

/* Passes that make a step of this batch one of the global batch; 0: none do. */
uint64_t cli_range_passes(const CliRange *range, const CliMisfit *setting);
/* Has the source plan it. */
bool cli_range_set(const CliRange *range, CliPlanSource *source, char **values,
                   const CliMisfit *setting, GError **error);

/* Whether the values ask for what no other row does, and what can be. */
bool cli_range_is_worth(const CliRange *range, const CliMisfit *setting, char **values);
/* For a search that found none so: why, where knobs are at fault; else NULL. */
const char *cli_range_no_row(const CliRange *range);
