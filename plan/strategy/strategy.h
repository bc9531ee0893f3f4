/* plan/strategy/strategy.h - every choice about a run that is not the network.
 *
 * A strategy is an ini file with one section [strategy], and every key of it is a command-line
 * option as well. Both go through plan_strategy_set(), so they agree on names, bounds and messages.
 *
 * A strategy is set up in three steps: plan_strategy_init() gives it PyTorch's defaults, keys are
 * set, and plan_strategy_settle() fills in what follows and refuses what does not go together. What
 * is asked of it below "settled" wants all three.
 *
 * To add a key: a row in keys.def, and for choices an enum in choices.h, in the row's order.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "plan/dtype.h"
#include "plan/strategy/choices.h"
#include "plan/strategy/pytorch.h"

/* The value of a key whose choices may have an argument, as "every=2" or "module=layers.*". */
typedef struct {
    unsigned choice;
    double number;    /* of a choice that takes one */
    const char *text; /* of a choice that takes text; interned */
} PlanVariant;

/* How many keys there are: each row of keys.def adds one. */
enum {
    PLAN_N_KEYS = 0
#define INT(...)     +1
#define REAL(...)    +1
#define CHOICE(...)  +1
#define VARIANT(...) +1
#include "plan/strategy/keys.def"
#undef INT
#undef REAL
#undef CHOICE
#undef VARIANT
};

/* A field for each row of keys.def. A CHOICE is one of the key's enum in choices.h. */
typedef struct {
#define INT(field, ...)     uint64_t field;
#define REAL(field, ...)    double field;
#define CHOICE(field, ...)  unsigned field;
#define VARIANT(field, ...) PlanVariant field;
#include "plan/strategy/keys.def"
#undef INT
#undef REAL
#undef CHOICE
#undef VARIANT
    bool given[PLAN_N_KEYS]; /* in the order of keys.def: whether the user has set it */
} PlanStrategy;

typedef struct {
    const char *key;
    const char *help;
    const char *choices; /* NULL for numbers */
} PlanStrategyKey;

/* ---- keys ------------------------------------------------------------------------------------ */

/* All keys, in the order of keys.def. */
const PlanStrategyKey *plan_strategy_keys(unsigned *ret_n);
/* The number of the key with this name; false: there is none. */
bool plan_strategy_find_key(const char *key, unsigned *ret_row);

/* The regular expression of a choice "module=PATTERN", which a whole name must match. NULL, with
 * error set, if PATTERN is no regular expression, by itself or anchored at both ends. Transfer
 * full. */
GRegex *plan_strategy_whole_regex(const char *pattern, GError **error);

/* ---- setting keys ---------------------------------------------------------------------------- */

void plan_strategy_init(PlanStrategy *strategy);
/* The message names no place: the caller knows the file and line, or the option. The key "pytorch"
 * also sets the defaults of other keys as that version has them, but never a key that is given,
 * whichever of the two comes first. */
bool plan_strategy_set(PlanStrategy *strategy, const char *key, const char *value, GError **error);
/* Sets the keys of the section [strategy] of a file; others stay as they are. */
bool plan_strategy_read(PlanStrategy *strategy, const char *text, gsize length,
                        const char *file_name, GError **error);
bool plan_strategy_read_file(PlanStrategy *strategy, const char *path, GError **error);
/* The strategy that a plan has as text. An error where the plan was written by hand, or by another
 * version. */
bool plan_strategy_of_text(PlanStrategy *ret, const char *text, GError **error);
/* Of "ranks=8 sharding=full", settled. */
bool plan_strategy_of_words(PlanStrategy *ret, const char *words, GError **error);

bool plan_strategy_is_given(const PlanStrategy *strategy, const char *key);
/* Whether a key has the value that it has by default in the strategy's version of PyTorch. */
bool plan_strategy_is_default(const PlanStrategy *strategy, const char *key);

/* ---- settling -------------------------------------------------------------------------------- */

/* Decides what "auto" means, and refuses what PyTorch refuses or what is not planned, with the
 * reason and a remedy. */
bool plan_strategy_settle(PlanStrategy *strategy, GError **error);

/* Why a key cannot change the plan of this settled strategy, whatever its value, as in "is FSDP1's
 * (flavour=fsdp1)"; NULL: it may. *ret_decided_by: the keys on which that depends, separated by
 * blanks. */
const char *plan_strategy_why_idle(const PlanStrategy *settled, const char *key,
                                   const char **ret_decided_by);

/* ---- what follows from a settled strategy (follows.c) ---------------------------------------- */

/* Groups shard the model, each a copy of it; there may be one group. */
bool plan_strategy_is_hybrid(const PlanStrategy *strategy);
/* Ranks that share one copy of the model. */
uint64_t plan_strategy_shard_ranks(const PlanStrategy *strategy);
/* Ranks that keep a unit between them from forward to backward; 0: units are not kept so. */
uint64_t plan_strategy_part_ranks(const PlanStrategy *strategy);
/* Ranks that have the same experts; 1 if ranks do not share experts. */
uint64_t plan_strategy_alike_ranks(const PlanStrategy *strategy);
/* FSDP2: how many blocks ahead of the one that begins its forward are gathered. */
uint64_t plan_strategy_forward_prefetch(const PlanStrategy *strategy);
/* Whether the host reads the gradients' norm after clipping. */
bool plan_strategy_reads_norm(const PlanStrategy *strategy);
/* How many sequences a rank evaluates at once. */
uint64_t plan_strategy_evaluated_at_once(const PlanStrategy *strategy);
/* The factor by which the loss is scaled at first; 0: it is not scaled. */
double plan_strategy_first_scale(const PlanStrategy *strategy);
/* Whether the compiler makes one program of all of forward, and one of backward: no hook of FSDP's
 * cuts them. */
bool plan_strategy_is_one_program(const PlanStrategy *strategy);
/* Whether modules inside of a block are checkpointed, each by itself, and not the block. */
bool plan_strategy_checkpoints_parts(const PlanStrategy *strategy);
/* Whether its PyTorch is newer than all versions that `version` stands for. */
bool plan_strategy_is_after(const PlanStrategy *strategy, PlanPytorch version);
/* Whether DDP copies what the network returns, at least in its first pass. */
bool plan_strategy_copies_results(const PlanStrategy *strategy);

/* The dtype of the network's parameters, that of compute, that of what units return, and that in
 * which gradients are reduced. */
PlanDtype plan_strategy_model_dtype(const PlanStrategy *strategy);
PlanDtype plan_strategy_param_dtype(const PlanStrategy *strategy);
PlanDtype plan_strategy_output_dtype(const PlanStrategy *strategy);
PlanDtype plan_strategy_reduce_dtype(const PlanStrategy *strategy);
/* The dtype of the optimizer's moments, if what it steps has dtype `owned`. */
PlanDtype plan_strategy_state_dtype(const PlanStrategy *strategy, PlanDtype owned);

/* ---- as text --------------------------------------------------------------------------------- */

/* The text of PYTORCH_ALLOC_CONF that a plan's strategy asks for: "" for none, NULL if it asks for
 * an arena instead. False with error where the text is not of this version. */
bool plan_allocator_conf(const char *strategy_text, const char **ret_conf, GError **error);

/* One key's value, as plan_strategy_set() takes it; NULL: there is no such key. Transfer full, as
 * all that follow. */
char *plan_strategy_value(const PlanStrategy *strategy, const char *key);
char *plan_strategy_text(const PlanStrategy *strategy);       /* an ini file with every key */
char *plan_strategy_given_text(const PlanStrategy *strategy); /* with the keys that are given */
char *plan_strategy_title(const PlanStrategy *strategy);      /* a few words for people */
