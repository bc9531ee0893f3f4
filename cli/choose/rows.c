#include "cli/choose/rows.h"

#include <string.h>

#include "cli/choose/table.h"
#include "cli/options/setting.h"
#include "cli/predict/edge.h"
#include "trace/scale.h"

static const double BILLION = 1e9, KWH_A_MWH = 1e3;

/* ---- columns ---- */

typedef struct {
    bool cluster, accumulate, energy, price;
    bool cluster_below; /* it is too long a name for a column */
    bool training;      /* energy and price are of all of it, else of a billion tokens */
    bool span;          /* and all of it is so many days, else so many tokens */
    bool below;         /* keys have no columns: each row's are said below it, as options */
    uint32_t said; /* a bit for each key that has one value in all rows: it is said above them */
} Columns;

/* Keys with one value in all of several rows. */
static uint32_t same_in_all(const CliChosen *chosen, const GArray *shown) {
    uint32_t same = 0;
    const CliChoice *first = cli_choice_at(chosen, g_array_index(shown, guint, 0));
    for (guint key = 0; shown->len > 1 && first->settings[key] != NULL && key < 32; key++) {
        bool is_same = true;
        for (guint i = 1; i < shown->len; i++) {
            const CliChoice *choice = cli_choice_at(chosen, g_array_index(shown, guint, i));
            is_same &= g_str_equal(choice->settings[key], first->settings[key]);
        }
        same |= is_same ? UINT32_C(1) << key : 0;
    }
    return same;
}

static bool is_said(const Columns *columns, guint key) {
    return key < 32 && (columns->said >> key & 1) != 0;
}

/* Numbers of GPUs are a column in any case. */
static bool is_column(const Columns *columns, const CliChosen *chosen, guint key) {
    return !is_said(columns, key) && (!columns->below || g_str_equal(chosen->keys[key], "ranks"));
}

static Columns columns_of(const CliChosen *chosen, const GArray *shown, const CliChooseView *view) {
    Columns columns = {.training = view->tokens > 0 || view->span_days > 0,
                       .span = view->span_days > 0,
                       .said = same_in_all(chosen, shown)};
    for (guint i = 0; i < shown->len; i++) {
        const CliChoice *choice = cli_choice_at(chosen, g_array_index(shown, guint, i));
        columns.cluster |= choice->cluster != cli_choice_at(chosen, 0)->cluster;
        columns.accumulate |= choice->accumulate > 1;
        columns.energy |= choice->kwh_per_billion > 0;
        columns.price |= choice->price_per_billion > 0;
    }
    for (guint i = 0; chosen->keys[i] != NULL; i++) {
        columns.accumulate &= !g_str_equal(chosen->keys[i], "accumulate");
    }
    return columns;
}

/* The first row's machine says what computes. */
static const ModelCluster *device_of(const CliChosen *chosen) {
    return cli_choice_at(chosen, 0)->cluster;
}

/* A long key on two lines, as an option is written: "micro-", "batch". */
static void add_head_of_key(CliTable *table, const char *key) {
    const char *last = strrchr(key, '_');
    bool is_ranks = g_str_equal(key, "ranks"), is_long = last != NULL && strlen(key) > 10;
    g_autofree char *broken =
        is_long ? g_strdup_printf("%.*s-\n%s", (int)(last - key), key, last + 1) : g_strdup(key);
    cli_table_add_head(table, is_ranks ? "GPUs" : broken, !is_ranks);
}

static void add_heads(CliTable *table, const CliChosen *chosen, const Columns *columns) {
    cli_table_add_head(table, "", false);
    if (columns->cluster) {
        cli_table_add_head(table, "cluster", true);
    }
    for (guint i = 0; chosen->keys[i] != NULL; i++) {
        if (is_column(columns, chosen, i)) {
            add_head_of_key(table, chosen->keys[i]);
        }
    }
    if (columns->accumulate) {
        cli_table_add_head(table, "accumulate", false);
    }
    cli_table_add_head(table, "step\n(s)", false);
    g_autofree char *rate =
        g_strdup_printf("tokens/s\n/%s", model_cluster_device_word(device_of(chosen)));
    cli_table_add_head(table, rate, false);
    cli_table_add_head(table, "MFU\n%", false);
    cli_table_add_head(table, "useful\n%", false);
    cli_table_add_head(table, "reserved\n(GiB)", false);
    cli_table_add_head(table, "of\n(GiB)", false);
    if (columns->energy) {
        cli_table_add_head(table, columns->training ? "MWh" : "kWh/1e9\ntokens", false);
    }
    if (columns->price) {
        cli_table_add_head(table, columns->training ? "price" : "price/1e9\ntokens", false);
    }
    if (columns->training) {
        cli_table_add_head(table, columns->span ? "1e9\ntokens" : "days", false);
    }
    cli_table_add_head(table, "", true);
}

/* A toy's, and what a short training takes, is shown, too. */
static char *small_or_not(double value, int digits) {
    return value >= 0.1 ? g_strdup_printf("%.*f", digits, value) : g_strdup_printf("%#.3g", value);
}

char *cli_choose_amount(double value) {
    return value > 0 ? small_or_not(value, value >= 100 ? 0 : value >= 10 ? 1 : 2) : g_strdup("?");
}

static double share_left(const CliChoice *choice) {
    return 1 - (double)choice->reserved_bytes / (double)choice->allocator_bytes;
}

/* Whoever keeps as much free as that has no need to be told. */
static bool is_tight(const CliChoice *choice, const CliChooseView *view) {
    return choice->retries == 0 && choice->trains_well && share_left(choice) < CLI_EDGE_SHARE &&
           view->spare_percent < 100 * CLI_EDGE_SHARE;
}

static char *note_on(const CliChoice *choice, const CliChooseView *view) {
    if (choice->retries > 0) {
        return trace_retries_text(choice->retries, choice->n_steps);
    }
    if (is_tight(choice, view)) {
        return g_strdup_printf("%.1f %% left", 100 * share_left(choice));
    }
    return choice->trains_well
               ? g_strdup("")
               : g_strdup_printf("does not train well: most is lost to %s", choice->lost_to);
}

/* Transfer full. */
static char *settings_text(const CliChoice *choice, const CliChosen *chosen, const Columns *columns,
                           const char *note) {
    g_autoptr(GString) changes = g_string_new(NULL);
    for (guint i = 0; choice->settings[i] != NULL; i++) {
        if (!is_said(columns, i) && !is_column(columns, chosen, i)) {
            g_string_append_printf(changes, "%s%s", changes->len > 0 ? " " : "",
                                   choice->settings[i]);
        }
    }
    g_autofree char *options = cli_settings_as_options(changes->str);
    GString *text = g_string_new(NULL);
    const char *parts[] = {columns->cluster_below ? choice->cluster->name : "", options, note};
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        bool is_behind = *parts[i] != '\0' && text->len > 0;
        g_string_append_printf(text, "%s%s", is_behind ? "; " : "", parts[i]);
    }
    return g_string_free(text, FALSE);
}

static void add_row(CliTable *table, const CliChosen *chosen, const CliChoice *choice, guint place,
                    const Columns *columns, const CliChooseView *view) {
    double billions = cli_choice_tokens(choice, view) / BILLION;
    cli_table_add_cell(table, g_strdup_printf("%u", place));
    if (columns->cluster) {
        cli_table_add_cell(table, g_strdup(choice->cluster->name));
    }
    for (guint i = 0; choice->settings[i] != NULL; i++) {
        if (is_column(columns, chosen, i)) {
            cli_table_add_cell(table, g_strdup(strchr(choice->settings[i], '=') + 1));
        }
    }
    if (columns->accumulate) {
        cli_table_add_cell(table,
                           g_strdup_printf("%" G_GUINT64_FORMAT, (guint64)choice->accumulate));
    }
    cli_table_add_cell(table, small_or_not(choice->step_ns / 1e9, 3));
    cli_table_add_cell(table, g_strdup_printf("%.1f", cli_choice_tokens_per_s_per_gpu(choice)));
    cli_table_add_cell(table, g_strdup_printf("%.1f", 100 * choice->mfu));
    cli_table_add_cell(table, g_strdup_printf("%.1f", 100 * choice->works));
    cli_table_add_cell(table, small_or_not((double)choice->reserved_bytes / CLI_CHOOSE_GIB, 2));
    cli_table_add_cell(table,
                       g_strdup_printf("%.2f", (double)choice->allocator_bytes / CLI_CHOOSE_GIB));
    if (columns->energy) {
        cli_table_add_cell(table, cli_choose_amount(columns->training ? choice->kwh_per_billion *
                                                                            billions / KWH_A_MWH
                                                                      : choice->kwh_per_billion));
    }
    if (columns->price) {
        cli_table_add_cell(table, cli_choose_amount(choice->price_per_billion *
                                                    (columns->training ? billions : 1)));
    }
    if (columns->training) {
        cli_table_add_cell(
            table,
            cli_choose_amount(columns->span ? billions : cli_choice_days(choice, view->tokens)));
    }
    g_autofree char *note = note_on(choice, view);
    cli_table_add_cell(table, columns->below ? settings_text(choice, chosen, columns, note)
                                             : g_steal_pointer(&note));
}

static void append_rank(GString *text, const CliChosen *chosen, const CliChooseView *view) {
    g_autofree char *speed =
        g_strdup_printf("tokens/s per %s", model_cluster_device_word(device_of(chosen)));
    g_string_append_printf(text, ": ranked by %s", chosen->by_price ? "price per token" : speed);
    if (view->most_days > 0) {
        g_autofree char *most_days = cli_choose_days(view->most_days);
        g_string_append_printf(text, ", of what finishes in %s", most_days);
    }
    if (view->most_price > 0) {
        g_autofree char *most = cli_choose_amount(view->most_price);
        g_string_append_printf(text, "%s costs %s or less",
                               view->most_days > 0 ? " and" : ", of what", most);
    }
    g_string_append_c(text, '\n');
}

/* What all rows have, as options. */
static void append_said(GString *text, const CliChosen *chosen, const Columns *columns) {
    g_autoptr(GString) changes = g_string_new(NULL);
    const CliChoice *first = cli_choice_at(chosen, 0);
    for (guint i = 0; first->settings[i] != NULL; i++) {
        if (is_said(columns, i)) {
            g_string_append_printf(changes, "%s%s", changes->len > 0 ? " " : "",
                                   first->settings[i]);
        }
    }
    if (changes->len > 0) {
        g_autofree char *options = cli_settings_as_options(changes->str);
        g_string_append_printf(text, "all rows have %s\n", options);
    }
}

/* "100 billion". */
static char *tokens_text(double tokens) {
    static const struct {
        double factor;
        const char *word;
    } scales[] = {{1e12, " trillion"}, {1e9, " billion"}, {1e6, " million"}, {1, ""}};
    guint i = 0;
    while (i + 1 < G_N_ELEMENTS(scales) && tokens < scales[i].factor) {
        i++;
    }
    return g_strdup_printf("%g%s", tokens / scales[i].factor, scales[i].word);
}

static void append_legend(GString *text, const Columns *columns, const CliChosen *chosen,
                          const GArray *shown, const CliChooseView *view) {
    g_string_append_printf(
        text, "useful: share of a step in which the %s works, not slowed and not waiting",
        model_cluster_device_word(device_of(chosen)));
    if (view->spare_percent > 0) {
        g_string_append_printf(text, "; of: its memory less %g %%", view->spare_percent);
    }
    g_string_append_c(text, '\n');
    if (columns->training) {
        g_autofree char *tokens = tokens_text(view->tokens);
        g_autofree char *days = cli_choose_days(view->span_days);
        g_autofree char *of = columns->span ? g_strdup_printf("tokens: in %s", days)
                                            : g_strdup_printf("days: for %s tokens", tokens);
        bool evaluates = strstr(cli_choice_at(chosen, 0)->strategy, "\neval_batches = ") != NULL;
        g_string_append_printf(text, "%s%s%s%s, without the time of restarts%s\n",
                               columns->energy ? "MWh, " : "",
                               columns->price ? "price (in the currency of --price), " : "", of,
                               columns->energy || columns->price ? ", GPUs only" : "",
                               evaluates ? ", saving and evaluations" : " and saving");
    }
    bool any_tight = false;
    for (guint i = 0; i < shown->len; i++) {
        any_tight |= is_tight(cli_choice_at(chosen, g_array_index(shown, guint, i)), view);
    }
    if (any_tight) {
        g_string_append_printf(
            text,
            "left: memory to spare; where all settings of a run are known, nine in "
            "ten peaks are predicted within %.0f %%, and --spare %.0f keeps that "
            "much free\n",
            100 * CLI_EDGE_SHARE, 100 * CLI_EDGE_SHARE);
    }
}

static void fill(CliTable *table, const CliChosen *chosen, const GArray *shown,
                 const Columns *columns, const CliChooseView *view) {
    g_ptr_array_set_size(table->cells, 0);
    table->n_columns = 0;
    table->notes_below = columns->below;
    add_heads(table, chosen, columns);
    for (guint i = 0; i < shown->len; i++) {
        add_row(table, chosen, cli_choice_at(chosen, g_array_index(shown, guint, i)), i + 1,
                columns, view);
    }
}

void cli_choose_append_precision(GString *text, const CliChosen *chosen) {
    if (chosen->took_bf16) {
        g_string_append(text, "in bf16, since no dtype was given (other commands then plan "
                              "PyTorch's default, fp32)\n");
    }
    if (chosen->took_bf16 && !chosen->took_storage && chosen->choices->len > 0 &&
        strstr(cli_choice_at(chosen, 0)->strategy, "\nlora_rank = ") != NULL) {
        g_string_append(text, "frozen weights are kept in fp32; --model-dtype bf16 halves them\n");
    }
    if (chosen->took_storage) {
        g_string_append_printf(text,
                               "with %s--lora-base-storage model, which FSDP wants of weights in 4 "
                               "bits\n",
                               chosen->took_bf16 ? "--model-dtype bf16 " : "");
    }
}

void cli_choose_append_rows(GString *text, const CliChosen *chosen, const CliChooseView *view) {
    g_autoptr(GArray) shown = cli_chosen_shown(chosen, view->top);
    g_autoptr(GPtrArray) cells = g_ptr_array_new_with_free_func(g_free);
    CliTable table = {.cells = cells, .width = view->columns};
    Columns columns = columns_of(chosen, shown, view);
    if (!columns.cluster) {
        g_string_append_printf(text, " on %s", cli_choice_at(chosen, 0)->cluster->name);
    }
    append_rank(text, chosen, view);
    cli_choose_append_precision(text, chosen);
    append_said(text, chosen, &columns);
    fill(&table, chosen, shown, &columns, view);
    if (cli_table_is_too_wide(&table, 1)) {
        columns.below = true;
        fill(&table, chosen, shown, &columns, view);
    }
    if (cli_table_is_too_wide(&table, 1) && columns.cluster) {
        columns.cluster = false;
        columns.cluster_below = true;
        fill(&table, chosen, shown, &columns, view);
    }
    cli_table_append(text, &table);
    append_legend(text, &columns, chosen, shown, view);
}
