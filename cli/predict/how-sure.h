/* cli/predict/how-sure.h - how far a prediction is to be believed: what published runs of its kind
 * were off by (models/published/errors.ini, which `foreshard validate --kinds` writes).
 *
 * Of its kind on its kind of GPU, where enough were published; else of its kind on any GPU. Not
 * known of CPUs, of a kind that hardly any published run is of, and where the file is not found.
 * Peaks of memory are all of one kind.
 *
 * Owns: nothing but its GPU's name. Cost: a small file is read.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "cli/predict/predict.h"
#include "cli/published/run-kind.h"

typedef struct {
    unsigned runs; /* 0: not known */
    double median_percent, p90_percent;
} CliErrors;

typedef struct {
    CliErrors time, memory;
    const char *kind; /* "bound by arithmetic" */
    char *gpu;        /* whose errors `time` are; NULL: those of all GPUs */
} CliHowSure;

void cli_how_sure(const CliPredictReport *report, CliHowSure *ret_sure);
void cli_how_sure_of(CliRunKind kind, const ModelCluster *cluster, CliHowSure *ret_sure);
void cli_how_sure_clear(CliHowSure *sure);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(CliHowSure, cli_how_sure_clear)

bool cli_how_sure_is_known(const CliHowSure *sure);
/* A heading, and in words the errors of a step's time and of the peak of memory. */
#define CLI_HOW_SURE_HEADING                                                                       \
    "how sure? errors of such predictions against published runs (docs/validation.md)\n"
/* "" where that is not known. Transfer full. */
char *cli_how_sure_time(const CliHowSure *sure);
char *cli_how_sure_memory(const CliHowSure *sure);
void cli_how_sure_print(const CliHowSure *sure);
void cli_how_sure_add_json(const CliHowSure *sure, JsonBuilder *json);
