/* cli/knob.h - "wrap=block,whole,2": a strategy key and the values it takes in turn.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

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
/* "SECTION.KEY" of "cluster.SECTION.KEY"; NULL: it is no key of a cluster. */
const char *cli_knob_of_cluster(const char *key);
