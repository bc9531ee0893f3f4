#include "cli/choose/choose.h"

#include "cli/choose/private.h"
#include "cli/say/progress.h"
#include "cli/what-if/ways-to-fit.h"
#include "plan/plan.h"

static void find_ways(CliChosen *chosen, const CliChoice *choice) {
    g_autoptr(CliWhatIf) what_if = cli_what_if_on(choice->header, choice->cluster, NULL);
    chosen->ways = cli_ways(what_if, choice->fits);
}

CliChosen *cli_choose(const CliChooseAsked *asked, GError **error) {
    g_autoptr(CliProgress) progress = cli_progress_new("predicting settings");
    g_autoptr(CliChosen) chosen = cli_choose_search(asked, progress, error);
    if (chosen == NULL) {
        return NULL;
    }
    if (asked->most_days > 0 && chosen->choices->len > 0) {
        cli_chosen_keep_in_time(chosen, asked->tokens, asked->most_days);
        cli_chosen_rank(chosen);
    }
    if (asked->most_price > 0 && chosen->choices->len > 0) {
        cli_chosen_keep_affordable(chosen, asked->tokens, asked->most_price);
    }
    if (chosen->choices->len > 0 && !cli_choose_baseline(asked, chosen, error)) {
        return NULL;
    }
    if (chosen->n_predicted == 0) {
        g_set_error(
            error, PLAN_ERROR, PLAN_ERROR_VALUE, "%s",
            chosen->refusal != NULL
                ? chosen->refusal
                : "no batch divides the global batch over these GPUs; give --global-batch a "
                  "multiple of the GPUs (those that share a batch count once), and of "
                  "micro_batch where that is given");
        return NULL;
    }
    if (!cli_chosen_has_fitting(chosen) && chosen->nearest != NULL) {
        find_ways(chosen, chosen->nearest);
    }
    if (chosen->choices->len > 0) {
        const CliChoice *first = cli_choice_at(chosen, 0);
        if (first->retries > 0) {
            find_ways(chosen, first);
        }
    }
    return g_steal_pointer(&chosen);
}
