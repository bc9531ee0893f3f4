/* cli/choose/chosen.c - what was chosen: what is taken into it, in which order, and what of it is
 * shown. */
#include "cli/choose/private.h"

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

/* ---- the order of what fits ---- */

static int compare(gconstpointer a, gconstpointer b, gpointer chosen) {
    const CliChoice *x = a, *y = b;
    bool calm_x = x->retries == 0, calm_y = y->retries == 0;
    if (calm_x != calm_y) {
        return calm_y - calm_x;
    }
    bool by_price = ((const CliChosen *)chosen)->by_price;
    double of_x = by_price ? -x->price_per_billion : cli_choice_tokens_per_s_per_gpu(x);
    double of_y = by_price ? -y->price_per_billion : cli_choice_tokens_per_s_per_gpu(y);
    return (of_x < of_y) - (of_x > of_y);
}

/* Equal ones stay in the order in which they were tried. */
void cli_chosen_rank(CliChosen *chosen) {
    chosen->by_price = chosen->choices->len > 0;
    for (guint i = 0; i < chosen->choices->len; i++) {
        chosen->by_price &= cli_choice_at(chosen, i)->price_per_billion > 0;
    }
    g_array_sort_with_data(chosen->choices, compare, chosen);
}

/* ---- what is shown ---- */

bool cli_chosen_has_fitting(const CliChosen *chosen) {
    return chosen->choices->len + chosen->n_late + chosen->n_dear > 0;
}

bool cli_machine_is_empty(const CliChosen *chosen, const CliMachine *machine) {
    for (guint i = 0; i < chosen->choices->len; i++) {
        if (cli_choice_at(chosen, i)->cluster == machine->cluster) {
            return false;
        }
    }
    return true;
}

static bool are_of_one_place(const CliChosen *chosen) {
    bool one = true;
    for (guint i = 1; i < chosen->choices->len; i++) {
        one &= cli_choice_at(chosen, i)->cluster == cli_choice_at(chosen, 0)->cluster &&
               cli_choice_at(chosen, i)->ranks == cli_choice_at(chosen, 0)->ranks;
    }
    return one;
}

guint cli_chosen_rows_a_place(const CliChosen *chosen, guint top) {
    return top > 0 ? top : are_of_one_place(chosen) ? CLI_ROWS_OF_ONE_PLACE : 1;
}

GArray *cli_chosen_shown(const CliChosen *chosen, guint top) {
    GArray *shown = g_array_new(FALSE, FALSE, sizeof(guint));
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    guint most = cli_chosen_rows_a_place(chosen, top);
    for (guint i = 0; i < chosen->choices->len; i++) {
        const CliChoice *choice = cli_choice_at(chosen, i);
        g_autofree char *place =
            g_strdup_printf("%s %" G_GUINT64_FORMAT, choice->cluster->name, choice->ranks);
        guint n = GPOINTER_TO_UINT(g_hash_table_lookup(seen, place));
        if (n < most) {
            g_array_append_val(shown, i);
            g_hash_table_replace(seen, g_steal_pointer(&place), GUINT_TO_POINTER(n + 1));
        }
    }
    return shown;
}
