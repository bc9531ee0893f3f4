#include "cli/choose/sure.h"

#include "cli/choose/rows.h"
#include "cli/predict/how-sure.h"

/* Rows of which the same is known. */
typedef struct {
    char *time;   /* in words; "": nothing is */
    GArray *rows; /* guint, numbers as the table has them, rising */
} Alike;

static void clear_alike(gpointer data) {
    Alike *alike = data;
    g_free(alike->time);
    g_array_unref(alike->rows);
}

static void add_row(GArray *groups, guint row, char *time) {
    guint i = 0;
    while (i < groups->len && !g_str_equal(g_array_index(groups, Alike, i).time, time)) {
        i++;
    }
    if (i == groups->len) {
        Alike alike = {time, g_array_new(FALSE, FALSE, sizeof(guint))};
        g_array_append_val(groups, alike);
    } else {
        g_free(time);
    }
    g_array_append_val(g_array_index(groups, Alike, i).rows, row);
}

/* "row 2" or "rows 1, 3-5". */
static void append_numbers(GString *text, const GArray *rows) {
    g_string_append(text, rows->len > 1 ? "rows " : "row ");
    for (guint i = 0; i < rows->len;) {
        guint first = g_array_index(rows, guint, i), last = first;
        g_string_append_printf(text, "%s%u", i > 0 ? ", " : "", first);
        for (i++; i < rows->len && g_array_index(rows, guint, i) == last + 1; i++) {
            last++;
        }
        if (last > first) {
            g_string_append_printf(text, "-%u", last);
        }
    }
}

/* A line for each group; which rows it is of is said where there are several. */
static void append_times(GString *text, const GArray *groups) {
    for (guint i = 0; i < groups->len; i++) {
        const Alike *alike = &g_array_index(groups, Alike, i);
        g_string_append(text, groups->len == 1 ? "  time    " : i == 0 ? "  time\n    " : "    ");
        if (groups->len > 1) {
            append_numbers(text, alike->rows);
            g_string_append(text, ": ");
        }
        g_string_append_printf(text, "%s\n",
                               *alike->time != '\0' ? alike->time
                                                    : "hardly any such runs were published");
    }
}

static bool are_of_several_machines(const CliChosen *chosen, const GArray *shown) {
    const CliChoice *first = cli_choice_at(chosen, g_array_index(shown, guint, 0));
    bool several = false;
    for (guint i = 1; i < shown->len; i++) {
        several |= cli_choice_at(chosen, g_array_index(shown, guint, i))->cluster != first->cluster;
    }
    return several;
}

/* Of a row that an error as large as one in ten would make late, what it has to spare. */
static void append_late(GString *late, guint row, const CliChoice *choice, const CliHowSure *sure,
                        const CliChooseView *view) {
    if (view->most_days <= 0 || sure->time.runs == 0) {
        return;
    }
    double spare = 100 * (view->most_days / cli_choice_days(choice, view->tokens) - 1);
    if (spare < sure->time.p90_percent) {
        g_string_append_printf(late, "%s row %u %.1f %%", late->len > 0 ? "," : "", row, spare);
    }
}

static void append_late_rows(GString *text, const GString *late, const CliChooseView *view) {
    if (late->len > 0) {
        g_autofree char *most_days = cli_choose_days(view->most_days);
        g_string_append_printf(text,
                               "  done in %s only if steps take at most so much more than "
                               "predicted:%s\n",
                               most_days, late->str);
    }
}

void cli_choose_append_sure(GString *text, const CliChosen *chosen, const CliChooseView *view) {
    g_autoptr(GArray) shown = cli_chosen_shown(chosen, view->top);
    g_autoptr(GArray) groups = g_array_new(FALSE, FALSE, sizeof(Alike));
    g_autofree char *memory = NULL; /* the same of all GPUs */
    g_autoptr(GString) late = g_string_new(NULL);
    g_array_set_clear_func(groups, clear_alike);
    for (guint i = 0; i < shown->len; i++) {
        const CliChoice *choice = cli_choice_at(chosen, g_array_index(shown, guint, i));
        g_auto(CliHowSure) sure = {0};
        cli_how_sure_of(choice->kind, choice->cluster, &sure);
        append_late(late, i + 1, choice, &sure, view);
        if (cli_how_sure_is_known(&sure)) {
            add_row(groups, i + 1, cli_how_sure_time(&sure));
            g_free(memory);
            memory = cli_how_sure_memory(&sure);
        }
    }
    if (memory == NULL) {
        return; /* of no row */
    }
    g_string_append(text, CLI_HOW_SURE_HEADING);
    append_times(text, groups);
    append_late_rows(text, late, view);
    g_string_append_printf(text, "  memory  %s\n", memory);
    if (are_of_several_machines(chosen, shown)) {
        g_string_append(text, "rows of two machines that are nearer to each other than that may "
                              "change places\n");
    }
}
