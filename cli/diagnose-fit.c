/* What would make a plan fit that does not: the least change first. */
#include "cli/diagnose.h"

static bool fits_with(const CliDiagnosis *diagnosis, const char *changes) {
    g_autoptr(SimPrediction) with = cli_what_if(diagnosis->what_if, changes, NULL, NULL);
    return with != NULL && with->fits && with->unsupported_dtype == NULL;
}

/* Of the settings tried one at a time, the one with which a step is shortest. */
static const char *quickest_setting(const CliDiagnosis *diagnosis) {
    const CliRemedy *best = NULL;
    for (guint i = 0; i < diagnosis->remedies->len; i++) {
        const CliRemedy *remedy = &g_array_index(diagnosis->remedies, CliRemedy, i);
        if (remedy->changes != NULL && remedy->fits &&
            (best == NULL || remedy->step_ns < best->step_ns)) {
            best = remedy;
        }
    }
    return best != NULL ? best->changes : NULL;
}

char *cli_diagnosis_way_to_fit(const CliDiagnosis *diagnosis) {
    static const char *const together[] = {"sharding=full checkpointing=full",
                                           "sharding=full checkpointing=full micro_batch=1"};
    const char *setting = quickest_setting(diagnosis);
    if (setting != NULL) {
        return g_strdup(setting);
    }
    for (guint i = 0; i < G_N_ELEMENTS(together); i++) {
        if (fits_with(diagnosis, together[i])) {
            return g_strdup(together[i]);
        }
    }
    uint64_t place = model_cluster_ranks(diagnosis->what_if->cluster);
    for (uint64_t ranks = 2 * diagnosis->what_if->strategy.ranks; ranks <= place; ranks *= 2) {
        g_autofree char *changes =
            g_strdup_printf("ranks=%" G_GUINT64_FORMAT " sharding=full checkpointing=full", ranks);
        if (fits_with(diagnosis, changes)) {
            return g_steal_pointer(&changes);
        }
    }
    return NULL;
}
