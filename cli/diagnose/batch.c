/* Whether a larger micro-batch, for which there is memory, makes better use of a step. */
#include "cli/diagnose/diagnose.h"
#include "cli/what-if/larger-batch.h"

/* Another batch is another training run, so this is no cause of lost time but an offer. */
void cli_diagnosis_find_batch(CliDiagnosis *diagnosis) {
    uint64_t own = diagnosis->what_if->strategy.micro_batch;
    double share = 1;
    for (uint64_t times = 2; times * own <= CLI_MOST_BATCH && diagnosis->base->fits; times *= 2) {
        g_autofree char *changes =
            g_strdup_printf("micro_batch=%" G_GUINT64_FORMAT, (guint64)(times * own));
        g_autoptr(SimPrediction) with = cli_what_if(diagnosis->what_if, changes, NULL, NULL);
        if (with == NULL || !with->fits || with->alloc_retries > diagnosis->base->alloc_retries) {
            return;
        }
        double now =
            (double)with->median_step_ns / (double)times / (double)diagnosis->base->median_step_ns;
        if (now * CLI_BATCH_WORTH > share) {
            return;
        }
        share = now;
        diagnosis->larger_batch = times * own;
        diagnosis->larger_batch_share = share;
        diagnosis->larger_batch_bytes = (double)with->peak_reserved_bytes;
    }
}
