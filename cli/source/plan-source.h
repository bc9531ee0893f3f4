/* cli/source/plan-source.h - PLAN or NETWORK with strategy options: whatever a command line names,
 * as a Plan.
 *
 * Every command that takes a plan takes a network and strategy options in its place; they are read
 * here, once.
 */
#pragma once

#include "models/network.h"
#include "plan/build/build.h"

typedef struct _CliPlanSource CliPlanSource;

/* Adds "Strategy options" to the context's help. */
CliPlanSource *cli_plan_source_new(GOptionContext *context);
void cli_plan_source_free(CliPlanSource *source);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CliPlanSource, cli_plan_source_free)

/* With what was given so far. Outlived by what it was copied from. */
CliPlanSource *cli_plan_source_copy(CliPlanSource *source);
/* What was given so far, file and options, not settled. */
bool cli_plan_source_strategy(const CliPlanSource *source, PlanStrategy *ret, GError **error);
/* Sets a strategy key, over what was typed; or, as "network.KEY", the network's KEY. */
bool cli_plan_source_set(CliPlanSource *source, const char *key, const char *value, GError **error);
/* Whether an option set this key of the strategy. */
bool cli_plan_source_is_given(const CliPlanSource *source, const char *key);
/* Whether any strategy option was given. */
bool cli_plan_source_is_set(const CliPlanSource *source);
/* As cli_spares_inputs(), of the strategy's file too. */
bool cli_plan_source_spares(const CliPlanSource *source, const char *output,
                            const char *const *inputs, unsigned n, GError **error);
/* False, with a suggestion, if the name is neither a file nor a network that is known. */
bool cli_plan_source_finds(const char *name, GError **error);
/* What was given so far: "sharding=full, ranks=8". */
char *cli_plan_source_text(const CliPlanSource *source);

/* The network's keys among it, as options: " --network-key loss=chunked", one behind the other. */
char *cli_plan_source_network_keys(const CliPlanSource *source);

/* What a plan's title calls its network: "llama3-8b" of "llama3-8b (loss=kernel), FSDP2, ...".
 * Transfer full. */
char *cli_plan_network_of(const char *title);

/* name: a plan file (first line "foreshard-plan ..."), which is whole, "-" for one from standard
 * input, a network's data file, or a network's name. Options given together with a plan are an
 * error. */
Plan *cli_plan_source_load(CliPlanSource *source, const char *name, PlanForm form, GError **error);
/* A whole one, checked though it was only just built: for a file, or for real ranks. */
Plan *cli_plan_source_load_to_hand_on(CliPlanSource *source, const char *name, GError **error);
