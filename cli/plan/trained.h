/* cli/plan/trained.h - how much of a network a plan trains, in words.
 *
 * Owns: nothing. Threads: any number.
 */
#pragma once

#include "plan/plan.h"

typedef struct {
    uint64_t all, trained; /* elements */
} CliTrained;

CliTrained cli_trained(const Plan *plan);
/* A line without its end; NULL where all is trained. */
char *cli_trained_text(const Plan *plan);
