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
        const CliChoice *first = &g_array_index(chosen->choices, CliChoice, 0);
        if (first->retries > 0) {
            find_ways(chosen, first);
        }
    }
    return g_steal_pointer(&chosen);
}

static void note_place(CliChosen *chosen, const CliChoice *choice) {
    uint64_t bytes = choice->reserved_bytes, most = choice->allocator_bytes;
    for (guint i = 0; i < chosen->machines->len; i++) {
        CliMachine *machine = &g_array_index(chosen->machines, CliMachine, i);
        if (machine->cluster != choice->cluster) {
            continue;
        }
        machine->n_fit += choice->fits;
        if (!choice->fits && (!machine->has_nearest || bytes < machine->nearest_bytes)) {
            machine->has_nearest = true;
            machine->nearest_bytes = bytes;
            machine->allocator_bytes = most;
        }
    }
}

void cli_chosen_keep(CliChosen *chosen, CliChoice *choice) {
    note_place(chosen, choice);
    if (choice->fits) {
        g_array_append_val(chosen->choices, *choice);
        return;
    }
    bool nearer =
        chosen->nearest == NULL ||
        (double)choice->reserved_bytes - (double)choice->allocator_bytes <
            (double)chosen->nearest->reserved_bytes - (double)chosen->nearest->allocator_bytes;
    if (nearer) {
        cli_choice_free(chosen->nearest);
        g_clear_pointer(&chosen->ways, g_array_unref);
        chosen->nearest = g_memdup2(choice, sizeof *choice);
    } else {
        cli_choice_clear(choice);
    }
}

bool cli_chosen_has_fitting(const CliChosen *chosen) {
    return chosen->choices->len + chosen->n_late + chosen->n_dear > 0;
}

bool cli_machine_is_empty(const CliChosen *chosen, const CliMachine *machine) {
    for (guint i = 0; i < chosen->choices->len; i++) {
        if (g_array_index(chosen->choices, CliChoice, i).cluster == machine->cluster) {
            return false;
        }
    }
    return true;
}

void cli_chosen_free(CliChosen *chosen) {
    if (chosen == NULL) {
        return;
    }
    g_array_unref(chosen->choices);
    g_array_unref(chosen->machines);
    cli_choice_free(chosen->baseline);
    cli_choice_free(chosen->nearest);
    cli_choice_free(chosen->quickest);
    cli_choice_free(chosen->cheapest);
    g_clear_pointer(&chosen->ways, g_array_unref);
    g_strfreev(chosen->keys);
    g_free(chosen->refusal);
    g_free(chosen->another);
    g_free(chosen);
}
