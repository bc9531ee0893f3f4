/* cli/diagnose/unequal.c - what it costs that ranks are unequal and all wait for the slowest: nodes
 * of several kinds, and what is slower or weaker than others of its kind (--slow, --degrade).
 */
#include "cli/diagnose/diagnose.h"

static void try_untroubled(CliDiagnosis *diagnosis) {
    if (diagnosis->what_if->asked->options.n_troubles == 0) {
        return;
    }
    g_autoptr(SimPrediction) with = cli_what_if_untroubled(diagnosis->what_if, NULL);
    if (with != NULL) {
        const CliRemedy remedy = {
            .price = CLI_PRICE_MACHINE,
            .cause = "some GPUs are slower, or some links weaker, than others of their kind, and "
                     "all wait for them",
            .remedy = "mend or replace what is slow, or leave its node out"};
        cli_diagnosis_add_remedy(diagnosis, remedy, with);
    }
}

/* The kind of nodes whose step would be the shortest, were all of that kind. */
static void try_one_kind(CliDiagnosis *diagnosis) {
    const ModelCluster *cluster = diagnosis->what_if->cluster;
    g_autoptr(SimPrediction) best = NULL;
    const ModelCluster *of = NULL;
    for (uint32_t kind = 0; cluster->n_kinds > 0 && kind <= cluster->n_kinds; kind++) {
        g_autoptr(ModelCluster) one = model_cluster_of_kind(cluster, kind);
        g_autoptr(SimPrediction) with = cli_what_if(diagnosis->what_if, "", one, NULL);
        if (with != NULL && with->fits && with->unsupported_dtype == NULL &&
            (best == NULL || with->median_step_ns < best->median_step_ns)) {
            g_clear_pointer(&best, sim_prediction_free);
            best = g_steal_pointer(&with);
            of = model_cluster_kind(cluster, kind);
        }
    }
    if (best != NULL) {
        g_autofree char *text =
            g_strdup_printf("train on nodes of one kind (priced: all of them %s)", of->model);
        const CliRemedy remedy = {.price = CLI_PRICE_MACHINE,
                                  .cause = "nodes are of several kinds, and the quicker ones wait "
                                           "for the slower",
                                  .remedy = g_intern_string(text)};
        cli_diagnosis_add_remedy(diagnosis, remedy, best);
    }
}

void cli_diagnosis_try_equal(CliDiagnosis *diagnosis) {
    cli_diagnosis_note_progress(diagnosis);
    try_untroubled(diagnosis);
    cli_diagnosis_note_progress(diagnosis);
    try_one_kind(diagnosis);
}
