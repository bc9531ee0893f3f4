#include "cli/plan/trained.h"

CliTrained cli_trained(const Plan *plan) {
    CliTrained sum = {0, 0};
    for (uint32_t p = 0; p < plan->n_parameters; p++) {
        sum.all += plan->parameters[p].elements;
        sum.trained += plan->parameters[p].frozen ? 0 : plan->parameters[p].elements;
    }
    return sum;
}

char *cli_trained_text(const Plan *plan) {
    CliTrained sum = cli_trained(plan);
    return sum.trained == sum.all
               ? NULL
               : g_strdup_printf("trained: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                                 " parameters (%.3g %%); the rest are frozen",
                                 sum.trained, sum.all, 100 * (double)sum.trained / (double)sum.all);
}
