/* models/known-private.h - what the files that say what is known share. */
#pragma once

#include "models/known.h"

/* What of a network no compiler was recorded with, as its keys; NULL: nothing. */
const char *model_never_compiled(const ModelNetwork *network);

/* Between what is not known and the setting that does without: some say another way out already.
 * NULL: whichever. */
const char *model_or_set(const char *why);

/* Whether why is NULL; else an error that says the rest behind the network's name. */
bool model_is_planned(const ModelNetwork *network, const char *why, GError **error,
                      const char *format, ...) G_GNUC_PRINTF(4, 5);

/* Whether why is NULL; else "KEY=NUMBER is not planned for WHY; set KEY=INSTEAD". */
bool model_is_planned_with(const ModelNetwork *network, const char *key, uint64_t number,
                           uint64_t instead, const char *why, GError **error);

/* With context, pipeline, expert and tensor; else an error that says what to set
 * (known-shared.c). */
bool model_can_be_shared(const ModelNetwork *network, const PlanStrategy *strategy, GError **error);
