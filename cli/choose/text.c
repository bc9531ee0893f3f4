/* cli/choose/text.c - choices as a ranked table, and what to do next. */
#include <math.h>
#include <string.h>

#include "cli/choose/choose.h"
#include "cli/cluster.h"
#include "cli/prose.h"
#include "cli/ways-to-fit.h"

static const double GIB = 1024. * 1024 * 1024, BILLION = 1e9, KWH_A_MWH = 1e3;

/* What nine in ten peaks are predicted within, of programs whose sources tell what they do: 4.7 %
 * of 111 (tests/validation/README.md, "Memory"; 2026-11). What leaves less may not fit. */
static const double TIGHT = 0.05;

enum {
    MANY = 5 /* rows of one place */
};

static const CliChoice *choice_at(const CliChosen *chosen, guint i) {
    return &g_array_index(chosen->choices, CliChoice, i);
}

static bool are_of_one_place(const CliChosen *chosen) {
    bool one = true;
    for (guint i = 1; i < chosen->choices->len; i++) {
        one &= choice_at(chosen, i)->cluster == choice_at(chosen, 0)->cluster &&
               choice_at(chosen, i)->ranks == choice_at(chosen, 0)->ranks;
    }
    return one;
}

GArray *cli_chosen_shown(const CliChosen *chosen, guint top) {
    GArray *shown = g_array_new(FALSE, FALSE, sizeof(guint));
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    guint most = top > 0 ? top : are_of_one_place(chosen) ? MANY : 1;
    for (guint i = 0; i < chosen->choices->len; i++) {
        const CliChoice *choice = choice_at(chosen, i);
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

/* ---- the table ---- */

typedef struct {
    GPtrArray *cells; /* rows of n_columns; the first two are the head */
    guint n_columns;
    bool left[32];    /* a column of words */
    bool notes_below; /* of every row */
} Table;

enum {
    MOST_COLUMNS = 32,
    NOTE_BELOW = 5 /* columns */
};

static void add_cell(Table *table, char *cell) {
    g_ptr_array_add(table->cells, cell);
}

/* name: on two lines where they are in it. */
static void add_head(Table *table, const char *name, bool is_words) {
    if (table->n_columns < MOST_COLUMNS) {
        g_auto(GStrv) lines = g_strsplit(name, "\n", 2);
        bool has_second = lines[0] != NULL && lines[1] != NULL;
        g_ptr_array_insert(table->cells, (gint)table->n_columns,
                           g_strdup(lines[0] != NULL ? lines[0] : ""));
        table->left[table->n_columns++] = is_words;
        add_cell(table, g_strdup(has_second ? lines[1] : ""));
    }
}

/* A long key on two lines, as an option is written: "micro-", "batch". */
static void add_head_of_key(Table *table, const char *key) {
    const char *last = strrchr(key, '_');
    bool is_ranks = g_str_equal(key, "ranks"), is_long = last != NULL && strlen(key) > 10;
    g_autofree char *broken =
        is_long ? g_strdup_printf("%.*s-\n%s", (int)(last - key), key, last + 1) : g_strdup(key);
    add_head(table, is_ranks ? "GPUs" : broken, !is_ranks);
}

static guint width_of(const Table *table, guint column) {
    gsize width = 0;
    for (guint i = column; i < table->cells->len; i += table->n_columns) {
        width = MAX(width, strlen(table->cells->pdata[i]));
    }
    return (guint)width;
}

/* Without notes, which may go below their rows. */
static bool is_too_wide(const Table *table, guint gap) {
    guint width = 2;
    for (guint column = 0; column + 1 < table->n_columns; column++) {
        width += (column > 0 ? gap : 0) + width_of(table, column);
    }
    return width > CLI_COLUMNS;
}

static void append_note(GString *text, gsize row, const char *note, guint gap, bool below) {
    bool has_room = text->len - row + gap + strlen(note) <= CLI_COLUMNS;
    if (*note != '\0' && (below || !has_room)) {
        g_string_append_printf(text, "\n%*s%s", NOTE_BELOW, "", note);
    } else if (*note != '\0') {
        g_string_append_printf(text, "%*s%s", (int)gap, "", note);
    }
    while (text->str[text->len - 1] == ' ') {
        g_string_truncate(text, text->len - 1);
    }
    g_string_append_c(text, '\n');
}

/* The last column is the note. */
static void append_table(GString *text, const Table *table) {
    guint n = table->n_columns, gap = is_too_wide(table, 2) ? 1 : 2;
    gsize row = text->len;
    for (guint i = 0; i < table->cells->len; i++) {
        guint column = i % n;
        const char *cell = table->cells->pdata[i];
        if (column + 1 == n) {
            append_note(text, row, cell, gap, table->notes_below);
            row = text->len;
            continue;
        }
        int width = (int)width_of(table, column);
        g_string_append_printf(text, "%*s%*s", (int)(column > 0 ? gap : 2), "",
                               table->left[column] ? -width : width, cell);
    }
}

typedef struct {
    bool cluster, accumulate, energy, price;
    bool cluster_below; /* it is too long a name for a column */
    bool training;      /* energy and price are of all of it, else of a billion tokens */
    bool below;         /* keys have no columns: each row's are said below it, as options */
    uint32_t said; /* a bit for each key that has one value in all rows: it is said above them */
} Columns;

/* Keys with one value in all of several rows. */
static uint32_t same_in_all(const CliChosen *chosen, const GArray *shown) {
    uint32_t same = 0;
    const CliChoice *first = choice_at(chosen, g_array_index(shown, guint, 0));
    for (guint key = 0; shown->len > 1 && first->settings[key] != NULL && key < 32; key++) {
        bool is_same = true;
        for (guint i = 1; i < shown->len; i++) {
            const CliChoice *choice = choice_at(chosen, g_array_index(shown, guint, i));
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
    Columns columns = {.training = view->tokens > 0, .said = same_in_all(chosen, shown)};
    for (guint i = 0; i < shown->len; i++) {
        const CliChoice *choice = choice_at(chosen, g_array_index(shown, guint, i));
        columns.cluster |= choice->cluster != choice_at(chosen, 0)->cluster;
        columns.accumulate |= choice->accumulate > 1;
        columns.energy |= choice->kwh_per_billion > 0;
        columns.price |= choice->price_per_billion > 0;
    }
    for (guint i = 0; chosen->keys[i] != NULL; i++) {
        columns.accumulate &= !g_str_equal(chosen->keys[i], "accumulate");
    }
    return columns;
}

static void add_heads(Table *table, const CliChosen *chosen, const Columns *columns) {
    add_head(table, "", false);
    if (columns->cluster) {
        add_head(table, "cluster", true);
    }
    for (guint i = 0; chosen->keys[i] != NULL; i++) {
        if (is_column(columns, chosen, i)) {
            add_head_of_key(table, chosen->keys[i]);
        }
    }
    if (columns->accumulate) {
        add_head(table, "accumulate", false);
    }
    add_head(table, "step\n(s)", false);
    add_head(table, "tokens/s\n/GPU", false);
    add_head(table, "MFU\n%", false);
    add_head(table, "useful\n%", false);
    add_head(table, "reserved\n(GiB)", false);
    add_head(table, "of\n(GiB)", false);
    if (columns->energy) {
        add_head(table, columns->training ? "MWh" : "kWh/1e9\ntokens", false);
    }
    if (columns->price) {
        add_head(table, columns->training ? "price" : "price/1e9\ntokens", false);
    }
    if (columns->training) {
        add_head(table, "days", false);
    }
    add_head(table, "", true);
}

static char *number(double value, int digits) {
    return value > 0 ? g_strdup_printf("%.*f", digits, value) : g_strdup("?");
}

/* A toy's is shown, too. */
static char *small_or_not(double value, int digits) {
    return value >= 0.1 ? g_strdup_printf("%.*f", digits, value) : g_strdup_printf("%.3g", value);
}

/* In at least three digits. */
static char *amount(double value) {
    return number(value, value >= 100 ? 0 : value >= 10 ? 1 : 2);
}

static double share_left(const CliChoice *choice) {
    return 1 - (double)choice->reserved_bytes / (double)choice->allocator_bytes;
}

/* Whoever keeps as much free as that has no need to be told. */
static bool is_tight(const CliChoice *choice, const CliChooseView *view) {
    return choice->retries == 0 && choice->trains_well && share_left(choice) < TIGHT &&
           view->spare_percent < 100 * TIGHT;
}

static char *note_on(const CliChoice *choice, const CliChooseView *view) {
    if (choice->retries > 0) {
        return g_strdup_printf("%" G_GUINT64_FORMAT " allocation retr%s", (guint64)choice->retries,
                               choice->retries == 1 ? "y" : "ies");
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
    g_autofree char *options = cli_changes_as_options(changes->str);
    GString *text = g_string_new(NULL);
    const char *parts[] = {columns->cluster_below ? choice->cluster->name : "", options, note};
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        bool is_behind = *parts[i] != '\0' && text->len > 0;
        g_string_append_printf(text, "%s%s", is_behind ? "; " : "", parts[i]);
    }
    return g_string_free(text, FALSE);
}

static void add_row(Table *table, const CliChosen *chosen, const CliChoice *choice, guint place,
                    const Columns *columns, const CliChooseView *view) {
    double tokens = view->tokens;
    add_cell(table, g_strdup_printf("%u", place));
    if (columns->cluster) {
        add_cell(table, g_strdup(choice->cluster->name));
    }
    for (guint i = 0; choice->settings[i] != NULL; i++) {
        if (is_column(columns, chosen, i)) {
            add_cell(table, g_strdup(strchr(choice->settings[i], '=') + 1));
        }
    }
    if (columns->accumulate) {
        add_cell(table, g_strdup_printf("%" G_GUINT64_FORMAT, (guint64)choice->accumulate));
    }
    add_cell(table, small_or_not(choice->step_ns / 1e9, 3));
    add_cell(table, g_strdup_printf("%.1f", cli_choice_tokens_per_s_per_gpu(choice)));
    add_cell(table, g_strdup_printf("%.1f", 100 * choice->mfu));
    add_cell(table, g_strdup_printf("%.1f", 100 * choice->works));
    add_cell(table, small_or_not((double)choice->reserved_bytes / GIB, 2));
    add_cell(table, g_strdup_printf("%.2f", (double)choice->allocator_bytes / GIB));
    double billions = tokens / BILLION;
    if (columns->energy) {
        add_cell(table, amount(columns->training ? choice->kwh_per_billion * billions / KWH_A_MWH
                                                 : choice->kwh_per_billion));
    }
    if (columns->price) {
        add_cell(table, columns->training ? number(choice->price_per_billion * billions, 0)
                                          : amount(choice->price_per_billion));
    }
    if (columns->training) {
        add_cell(table, amount(cli_choice_days(choice, tokens)));
    }
    g_autofree char *note = note_on(choice, view);
    add_cell(table, columns->below ? settings_text(choice, chosen, columns, note)
                                   : g_steal_pointer(&note));
}

static void append_rank(GString *text, const CliChosen *chosen, const CliChooseView *view) {
    g_string_append_printf(text, ": ranked by %s",
                           chosen->by_price ? "price per token" : "tokens/s per GPU");
    if (view->most_days > 0) {
        g_string_append_printf(text, ", of what finishes in %g days", view->most_days);
    }
    g_string_append_c(text, '\n');
}

/* What all rows have, as options. */
static void append_said(GString *text, const CliChosen *chosen, const Columns *columns) {
    g_autoptr(GString) changes = g_string_new(NULL);
    const CliChoice *first = choice_at(chosen, 0);
    for (guint i = 0; first->settings[i] != NULL; i++) {
        if (is_said(columns, i)) {
            g_string_append_printf(changes, "%s%s", changes->len > 0 ? " " : "",
                                   first->settings[i]);
        }
    }
    if (changes->len > 0) {
        g_autofree char *options = cli_changes_as_options(changes->str);
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
    g_string_append(text, "useful: share of a step in which the GPU computes at full speed");
    if (view->spare_percent > 0) {
        g_string_append_printf(text, "; of: its memory less %g %%", view->spare_percent);
    }
    g_string_append_c(text, '\n');
    if (columns->training) {
        g_autofree char *tokens = tokens_text(view->tokens);
        g_string_append_printf(text, "%s%sdays: for %s tokens%s\n", columns->energy ? "MWh, " : "",
                               columns->price ? "price (in the currency of --price), " : "", tokens,
                               columns->energy || columns->price ? ", GPUs only" : "");
    }
    bool any_tight = false;
    for (guint i = 0; i < shown->len; i++) {
        any_tight |= is_tight(choice_at(chosen, g_array_index(shown, guint, i)), view);
    }
    if (any_tight) {
        g_string_append_printf(text,
                               "left: memory to spare; predicted peaks may be off by %.0f %%, and "
                               "--spare %.0f keeps that much free\n",
                               100 * TIGHT, 100 * TIGHT);
    }
}

static void fill(Table *table, const CliChosen *chosen, const GArray *shown, const Columns *columns,
                 const CliChooseView *view) {
    g_ptr_array_set_size(table->cells, 0);
    table->n_columns = 0;
    table->notes_below = columns->below;
    add_heads(table, chosen, columns);
    for (guint i = 0; i < shown->len; i++) {
        add_row(table, chosen, choice_at(chosen, g_array_index(shown, guint, i)), i + 1, columns,
                view);
    }
}

static void append_rows(GString *text, const CliChosen *chosen, const CliChooseView *view) {
    g_autoptr(GArray) shown = cli_chosen_shown(chosen, view->top);
    g_autoptr(GPtrArray) cells = g_ptr_array_new_with_free_func(g_free);
    Table table = {.cells = cells};
    Columns columns = columns_of(chosen, shown, view);
    if (!columns.cluster) {
        g_string_append_printf(text, " on %s", choice_at(chosen, 0)->cluster->name);
    }
    append_rank(text, chosen, view);
    append_said(text, chosen, &columns);
    fill(&table, chosen, shown, &columns, view);
    if (is_too_wide(&table, 1)) {
        columns.below = true;
        fill(&table, chosen, shown, &columns, view);
    }
    if (is_too_wide(&table, 1) && columns.cluster) {
        columns.cluster = false;
        columns.cluster_below = true;
        fill(&table, chosen, shown, &columns, view);
    }
    append_table(text, &table);
    append_legend(text, &columns, chosen, shown, view);
}

/* ---- beside it ---- */

/* As many nodes as would do if each GPU stayed as fast. */
static uint64_t nodes_in_time(const ModelCluster *cluster, uint64_t ranks, double days,
                              const CliChooseView *view) {
    double times = days / view->most_days;
    return (uint64_t)ceil((double)ranks * times / (double)cluster->topology_gpus_per_node);
}

/* What it was given as, by which it can be given again. */
static const char *called(const ModelCluster *cluster, const CliChosen *chosen,
                          const CliChooseView *view) {
    for (guint i = 0; i < chosen->places->len; i++) {
        if (g_array_index(chosen->places, CliPlace, i).cluster == cluster) {
            return view->called[i];
        }
    }
    return cluster->name;
}

/* The end of a sentence. */
static void append_ranks_in_time(GString *text, const CliPlace *place, const CliChosen *chosen,
                                 const CliChooseView *view) {
    const ModelCluster *cluster = place->cluster;
    uint64_t nodes = nodes_in_time(cluster, place->least_days_ranks, place->least_days, view);
    if (cli_cluster_can_grow(cluster)) {
        g_autofree char *larger = cli_cluster_name_with_nodes(called(cluster, chosen, view), nodes);
        g_string_append_printf(
            text, "; %" G_GUINT64_FORMAT " would do if each stayed as fast (--cluster %s)",
            (guint64)(nodes * cluster->topology_gpus_per_node), larger);
    }
}

/* A machine that was asked about and has no row says why. */
static void append_empty_places(GString *text, const CliChosen *chosen, const CliChooseView *view) {
    for (guint i = 0; i < chosen->places->len; i++) {
        const CliPlace *place = &g_array_index(chosen->places, CliPlace, i);
        if (!cli_place_is_empty(chosen, place)) {
            continue;
        }
        g_string_append_printf(text, "not listed: %s, where ", place->cluster->name);
        if (place->n_fit > 0) {
            g_autofree char *days = amount(place->least_days);
            g_string_append_printf(text,
                                   "nothing finishes in %g days; the fastest takes %s days, on "
                                   "%" G_GUINT64_FORMAT " GPUs",
                                   view->most_days, days, place->least_days_ranks);
            append_ranks_in_time(text, place, chosen, view);
            g_string_append_c(text, '\n');
        } else if (place->has_nearest) {
            g_string_append_printf(text, "nothing fits; the nearest needs %.2f GiB of %.2f GiB\n",
                                   (double)place->nearest_bytes / GIB,
                                   (double)place->allocator_bytes / GIB);
        } else {
            g_string_append(text, "no setting could be predicted\n");
        }
    }
}

/* Prices rank only where all are known. */
static void append_missing_prices(GString *text, const CliChosen *chosen) {
    g_autoptr(GString) names = g_string_new(NULL);
    guint n_priced = 0;
    for (guint i = 0; i < chosen->places->len; i++) {
        const CliPlace *place = &g_array_index(chosen->places, CliPlace, i);
        bool is_priced = place->cluster->device_price_per_hour > 0;
        n_priced += is_priced;
        if (!is_priced && !cli_place_is_empty(chosen, place)) {
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", place->cluster->name);
        }
    }
    if (n_priced > 0 && names->len > 0) {
        g_string_append_printf(text,
                               "no price of %s is known (--price CLUSTER=2.50), so rows are ranked "
                               "by speed\n",
                               names->str);
    }
}

static void append_counts(GString *text, const CliChosen *chosen, const CliChooseView *view) {
    g_string_append_printf(text, "%u setting%s predicted, %u of them did not fit",
                           chosen->n_predicted, chosen->n_predicted == 1 ? "" : "s",
                           chosen->n_not_fitting);
    if (chosen->n_left_out > 0) {
        g_string_append_printf(text,
                               "; %u skipped, since one that needs no more memory did not fit",
                               chosen->n_left_out);
    }
    if (chosen->n_late > 0) {
        g_string_append_printf(text, "; %u would take more than %g days", chosen->n_late,
                               view->most_days);
    }
    if (chosen->n_refused > 0) {
        g_string_append_printf(text, "; %u refused (the first: %s)", chosen->n_refused,
                               chosen->refusal);
    }
    g_string_append_c(text, '\n');
    if (chosen->took_bf16) {
        g_string_append(
            text, "in bf16, since no dtype was given (PyTorch's default is --param-dtype fp32)\n");
    }
}

static void append_baseline(GString *text, const CliChosen *chosen) {
    const CliChoice *baseline = chosen->baseline, *best = choice_at(chosen, 0);
    if (baseline == NULL) {
        g_string_append(text, "neither DDP nor FSDP2 with its defaults fits on those GPUs\n");
        return;
    }
    double rate = cli_choice_tokens_per_s(baseline);
    double more = cli_choice_tokens_per_s(best) / rate - 1;
    g_string_append_printf(text,
                           "simplest that fits on row 1's GPUs, tuned:\n  %s\n"
                           "  %.1f tokens/s/GPU, %.2f GiB reserved; ",
                           baseline->title, rate / (double)baseline->ranks,
                           (double)baseline->reserved_bytes / GIB);
    if (fabs(more) < 0.01) {
        g_string_append(text, "row 1 is as fast\n");
    } else {
        g_string_append_printf(text, "row 1 is %.1f %% %s\n", 100 * fabs(more),
                               more > 0 ? "faster" : "slower, so use this one");
    }
}

static void append_none(GString *text, const CliChosen *chosen) {
    const CliChoice *nearest = chosen->nearest;
    g_string_append(text, "nothing fits");
    if (nearest != NULL) {
        g_autofree char *all = g_strjoinv(" ", nearest->settings);
        g_autofree char *options = cli_changes_as_options(all);
        g_string_append_printf(text, "; nearest on %s: %s,\nwhich would need %.2f GiB of %.2f GiB",
                               nearest->cluster->name, options,
                               (double)nearest->reserved_bytes / GIB,
                               (double)nearest->allocator_bytes / GIB);
    }
    g_string_append_c(text, '\n');
    for (guint i = 0; chosen->ways != NULL && i < chosen->ways->len; i++) {
        const CliWay *way = &g_array_index(chosen->ways, CliWay, i);
        g_autofree char *reserved = g_strdup_printf("%.2f GiB", way->reserved_bytes / GIB);
        g_autofree char *line = cli_way_text(way, reserved);
        g_string_append_printf(text, "  fits with %s\n", line);
    }
    if (chosen->ways == NULL || chosen->ways->len == 0) {
        g_string_append(text,
                        "try more GPUs (without -n up to all of the cluster's are tried; "
                        "--cluster NAME:NODES has more),\na shorter sequence (--seq), adapters "
                        "only (--lora-rank 16), or GPUs with more memory\n");
    }
}

static void append_late(GString *text, const CliChosen *chosen, const CliChooseView *view) {
    const CliChoice *quickest = chosen->quickest;
    g_autofree char *all = g_strjoinv(" ", quickest->settings);
    g_autofree char *options = cli_changes_as_options(all);
    double least_days = cli_choice_days(quickest, view->tokens);
    g_autofree char *days = amount(least_days);
    uint64_t nodes = nodes_in_time(quickest->cluster, quickest->ranks, least_days, view);
    uint64_t ranks = nodes * quickest->cluster->topology_gpus_per_node;
    g_string_append_printf(text,
                           "nothing that fits finishes in %g days; the fastest takes %s days, on "
                           "%s:\n%s, %.1f tokens/s/GPU\n"
                           "%" G_GUINT64_FORMAT " GPUs would do if each stayed as fast",
                           view->most_days, days, quickest->cluster->name, options,
                           cli_choice_tokens_per_s_per_gpu(quickest), (guint64)ranks);
    if (cli_cluster_can_grow(quickest->cluster)) {
        g_autofree char *larger =
            cli_cluster_name_with_nodes(called(quickest->cluster, chosen, view), nodes);
        g_string_append_printf(text, ": -n %" G_GUINT64_FORMAT " --cluster %s\n", (guint64)ranks,
                               larger);
    } else {
        g_string_append(text, ", on a cluster whose file has more nodes of these\n");
    }
}

/* Those of the network among row 1's settings, as options behind those that were given. */
static char *network_keys(const CliChoice *best, const CliChooseView *view) {
    GString *keys = g_string_new(view->network_keys);
    for (char **setting = best->settings; *setting != NULL; setting++) {
        if (g_str_has_prefix(*setting, "network.")) {
            g_autofree char *option = cli_changes_as_options(*setting);
            g_string_append_printf(keys, " %s", option);
        }
    }
    return g_string_free(keys, FALSE);
}

static void append_next(GString *text, const CliChosen *chosen, const CliChooseView *view) {
    const CliChoice *best = choice_at(chosen, 0);
    bool any_price = false;
    for (guint i = 0; i < chosen->places->len; i++) {
        any_price |= g_array_index(chosen->places, CliPlace, i).cluster->device_price_per_hour > 0;
    }
    if (!any_price) {
        g_string_append(text, "no prices are known: give --price 2.50 (per GPU-hour), or "
                              "--price CLUSTER=2.50\n");
    }
    if (view->written != NULL) {
        g_autofree char *first = g_strdup_printf("%s has row 1's strategy:", view->written);
        g_autofree char *keys = network_keys(best, view);
        g_autofree char *next =
            g_strdup_printf("foreshard diagnose %s%s --strategy %s --cluster %s", view->network,
                            keys, view->written, called(best->cluster, chosen, view));
        bool is_long = strlen(first) + 1 + strlen(next) > CLI_COLUMNS; /* a command stays whole */
        g_string_append_printf(text, "%s%s%s\n", first, is_long ? "\n  " : " ", next);
    } else {
        g_string_append(text, "-o FILE writes row 1's strategy, for --strategy FILE of other "
                              "commands;\nforeshard diagnose says what else would help\n");
    }
}

/* As its plans have it: a config.json is called by its folder. */
static char *name_of_network(const CliChosen *chosen, const CliChooseView *view) {
    const CliChoice *any = chosen->choices->len > 0   ? choice_at(chosen, 0)
                           : chosen->quickest != NULL ? chosen->quickest
                                                      : chosen->nearest;
    return any != NULL ? cli_plan_network_of(any->title) : g_path_get_basename(view->network);
}

char *cli_chosen_text(const CliChosen *chosen, const CliChooseView *view) {
    GString *text = g_string_new(NULL);
    g_autofree char *name = name_of_network(chosen, view);
    g_string_append(text, name);
    if (chosen->choices->len > 0) {
        append_rows(text, chosen, view);
        append_empty_places(text, chosen, view);
        append_missing_prices(text, chosen);
        append_baseline(text, chosen);
        append_counts(text, chosen, view);
        append_next(text, chosen, view);
    } else {
        g_string_append(text, ": ");
        if (chosen->quickest != NULL) {
            append_late(text, chosen, view);
        } else {
            append_none(text, chosen);
        }
        append_counts(text, chosen, view);
    }
    return g_string_free(text, FALSE);
}
