/* cli/validate/kinds.h - how far off predictions of each kind of run are, as a file that
 * `foreshard predict` reads (models/published/errors.ini).
 *
 * [computes] is of all GPUs, [computes A100] of that kind of them, where FEWEST runs or more are of
 * it; [memory] is of all peaks. Errors of time are those "without": nothing that was fitted to a
 * table is used to predict it, for to no run of the reader's anything was fitted.
 */
#pragma once

#include "cli/validate/validate.h"

/* Transfer full. */
char *cli_validation_kinds(const CliValidation *validation);
