/* cli/diagnose/remedies.c - what was tried, and what it changes. */
#include "cli/diagnose/diagnose.h"
#include "sim/figures.h"

enum {
    N_ROWS = 0
#define SETTING(...) +1
#define MACHINE(...) +1
#include "cli/diagnose/remedies.def"
#undef SETTING
#undef MACHINE
        ,
    N_UNEQUAL = 2, /* unequal.c */
    N_UNEVEN = 1,
    N_TRIED = N_ROWS + N_UNEQUAL + N_UNEVEN + 2 * CLI_N_BASELINES /* each checkpointed or not */
};

void cli_diagnosis_note_progress(CliDiagnosis *diagnosis) {
    cli_progress_show(diagnosis->progress, (double)++diagnosis->n_tried / N_TRIED);
}

CliRemedy cli_diagnosis_compared(const CliDiagnosis *diagnosis, CliRemedy remedy,
                                 const SimPrediction *with) {
    const SimPrediction *base = diagnosis->base;
    remedy.fits = with->fits;
    remedy.retries = with->alloc_retries;
    remedy.n_steps = with->n_steps;
    remedy.step_ns = (double)(with->median_step_ns - base->median_step_ns);
    remedy.whole_ns = (double)base->median_step_ns;
    remedy.reserved_bytes = (double)with->peak_reserved_bytes - (double)base->peak_reserved_bytes;
    for (unsigned i = 0; i < PLAN_N_CATEGORIES; i++) {
        remedy.category_bytes[i] = (double)sim_category_bytes(with->peak.by_sub, i) -
                                   (double)sim_category_bytes(base->peak.by_sub, i);
    }
    return remedy;
}

void cli_diagnosis_add_remedy(CliDiagnosis *diagnosis, CliRemedy remedy,
                              const SimPrediction *with) {
    CliRemedy added = cli_diagnosis_compared(diagnosis, remedy, with);
    g_array_append_val(diagnosis->remedies, added);
}
