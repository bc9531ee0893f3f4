/* models/known.h - which strategies a network is known with: what was recorded of real programs.
 * Inside models/ only.
 */
#pragma once

#include "models/network.h"

/* What of a network only its eager kernels were recorded with, as its keys; NULL: nothing. */
const char *model_eager_alone(const ModelNetwork *network);

/* Else an error that says what to set. */
bool model_is_known_with(const ModelNetwork *network, const PlanStrategy *strategy, GError **error);
