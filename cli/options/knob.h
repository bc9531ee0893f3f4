/* cli/options/knob.h - "wrap=block,whole,2": a strategy key and the values it takes in turn.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#include "plan/strategy/strategy.h"

typedef struct {
    char *key;     /* as strategy/keys.def has it: "micro_batch", of "micro-batch" too */
    char **values; /* one at least */
} CliKnob;

/* Of --knob's argument; values are not looked at, and of keys only another program's word is an
 * error. */
bool cli_knob_read(const char *text, CliKnob *ret, GError **error);
GArray *cli_knobs_new(void); /* CliKnob, which it owns */
/* One more, whose key none of them has: refused otherwise. The knob is theirs, or gone. */
bool cli_knobs_add(GArray *knobs, CliKnob knob, GError **error);
/* Refuses a knob whose key is given as a setting too, which would not say what is meant. */
bool cli_knob_is_free(const CliKnob *knob, bool is_given, GError **error);
/* The one of a key; NULL: none is. */
const CliKnob *cli_knobs_find(const GArray *knobs, const char *key);
/* Whether, with what is given beside them, any of their settings has stages. */
bool cli_knobs_have_stages(const GArray *knobs, const PlanStrategy *given);
/* "SECTION.KEY" of "cluster.SECTION.KEY"; NULL: it is no key of a cluster. */
const char *cli_knob_of_cluster(const char *key);
