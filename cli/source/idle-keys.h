/* cli/source/idle-keys.h - keys that were given and change nothing beside the others.
 *
 * They are no error, since scripts sweep settings. A key that a command tries with several values
 * is idle whatever its value; another is so only with a value that is not its default. What a key
 * that is tried decides is left unsaid: the next value may make it matter.
 */
#pragma once

#include <glib.h>

#include "plan/strategy/strategy.h"

/* Complains of each, in a note. tried: the keys that the command gives values itself, NULL at their
 * end. */
void cli_idle_keys_note(const PlanStrategy *settled, const char *const *tried);
