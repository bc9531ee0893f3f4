/* plan/strategy/private.h - what the files of a strategy have between them. Inside plan/strategy/
 * only. */
#pragma once

#include "plan/strategy/strategy.h"

/* ---- keys.c: one key, by its row in keys.def ------------------------------------------------ */

void plan_key_init(PlanStrategy *strategy, unsigned row);
/* Its name and bounds, or choices, stand in the error. */
bool plan_key_set(PlanStrategy *strategy, unsigned row, const char *value, GError **error);
void plan_key_append_value(const PlanStrategy *strategy, unsigned row, GString *text);

/* ---- what does not go together -------------------------------------------------------------- */

/* Asks a strategy whose flavour is settled. NULL: the rule holds; else why it is not planned, and
 * what to set. */
typedef const char *PlanStrategyRule(const PlanStrategy *s);

/* precision.c: the dtypes that things are made, computed and reduced in. */
PlanStrategyRule plan_rule_mixed_precision, plan_rule_autocast, plan_rule_loss_scale,
    plan_rule_low_gradients, plan_rule_output_dtype, plan_rule_float8, plan_rule_float8_gather;
/* trained.c: what is trained, and how it is stepped. */
PlanStrategyRule plan_rule_optimizer, plan_rule_muon, plan_rule_eight_bit, plan_rule_zero1,
    plan_rule_host_reads, plan_rule_frozen, plan_rule_four_bits, plan_rule_base_of_adapters;

/* ignored.c: what the wrapper is told to leave alone. */
PlanStrategyRule plan_rule_ignored;

/* rules.c: a rule's answer as an error: false, with error set, unless it is NULL. _allows() puts
 * the message together from "ASKED WHY_NOT, or INSTEAD". */
bool plan_strategy_holds(const char *wrong, GError **error);
bool plan_strategy_allows(const char *asked, const char *why_not, const char *instead,
                          GError **error);
#define PLAN_ONLY_AS_TORCHTITAN                                                                    \
    "is planned only with torchtitan's way of sharing layers; set tensor_plan=torchtitan and "     \
    "sequence_parallel=yes"

/* shared.c: what ranks share; error where it was not recorded beside the other keys. */
bool plan_strategy_tensor_is_known(const PlanStrategy *s, GError **error);
bool plan_strategy_context_is_known(const PlanStrategy *s, GError **error);
bool plan_strategy_experts_are_known(const PlanStrategy *s, GError **error);
/* Also settles reshard_after_forward, where it is not given: in stages units stay whole. */
bool plan_strategy_pipeline_is_known(PlanStrategy *s, GError **error);

/* ---- follows.c ------------------------------------------------------------------------------ */

bool plan_strategy_is_fsdp(const PlanStrategy *strategy);
/* SGD, with momentum or without. */
bool plan_strategy_is_sgd(const PlanStrategy *strategy);
/* The optimizer's state is on the host. */
bool plan_strategy_steps_on_host(const PlanStrategy *strategy);
/* As torchtitan does it, tokens cut between the layers. */
bool plan_strategy_shares_as_torchtitan(const PlanStrategy *strategy);
/* How many ranks have the same part of each layer: those that differ in neither tensor place nor
 * stage. */
uint64_t plan_strategy_ranks_of_part(const PlanStrategy *strategy);
