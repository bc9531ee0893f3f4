/* The sections of a report's part: pictures, tables, and what is needed to repeat it. */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "cli/options/setting.h"
#include "cli/plot/pictures.h"
#include "cli/predict/every-rank.h"
#include "cli/report/private.h"
#include "cli/report/svg.h"
#include "cli/what-if/what-if.h"
#include "sim/settings.h"
#include "trace/files.h"
#include "trace/moments.h"
#include "trace/scale.h"

static const double MIB = 1024 * 1024;

/* ---- pictures ---- */

static bool draw(const ReportPart *part, PlotPicture picture, char **ret_svg, GError **error) {
    g_autofree char *folder = trace_folder_new("foreshard-report-XXXXXX", error);
    if (folder == NULL) {
        return false;
    }
    g_autofree char *path = g_build_filename(folder, "picture.svg", NULL);
    g_autofree char *script = plot_script(picture, path);
    g_autofree char *scripts = cli_plots_folder(script, error);
    g_autofree char *text = NULL;
    PlotOptions options = {.scripts = scripts, .output = path};
    cli_choose_steps(picture, part->panels, part->n_panels, &options);
    bool drawn = scripts != NULL &&
                 plot_panels(picture, part->panels, part->n_panels, &options, &text, error) &&
                 g_file_get_contents(path, ret_svg, NULL, error);
    trace_folder_remove(folder);
    return drawn;
}

bool report_append_pictures(GString *page, const ReportPart *part, GError **error) {
    static const struct {
        PlotPicture picture;
        const char *name, *caption;
    } pictures[] = {
        {PLOT_PICTURE_MEMORY, "memory",
         "Memory over time: what is allocated by category, the allocator's figures as lines, the "
         "peak with its unit and phase."},
        {PLOT_PICTURE_LANES, "lanes",
         "What each lane does in the last step, and which communication nothing hides."},
    };
    for (guint i = 0; i < G_N_ELEMENTS(pictures); i++) {
        g_autofree char *svg = NULL;
        if (!draw(part, pictures[i].picture, &svg, error)) {
            return false;
        }
        g_autofree char *prefix = g_strdup_printf("plan-%u-%s", part->number, pictures[i].name);
        g_autofree char *drawing = cli_svg_inline(svg, prefix, pictures[i].caption);
        g_string_append_printf(
            page, "<figure id=\"%s\" tabindex=\"0\">\n%s<figcaption>%s</figcaption>\n</figure>\n",
            prefix, drawing, pictures[i].caption);
    }
    return true;
}

/* ---- tables ---- */

static void open_table(GString *page, const char *name, const ReportPart *part, bool words,
                       const char *caption) {
    g_string_append_printf(page, "<h3>%s</h3>\n<table%s id=\"plan-%u-%s\">\n", caption,
                           words ? " class=\"words\"" : "", part->number, name);
}

/* A column for each run. */
static void append_heads(GString *page, const ReportPart *part, const char *first) {
    g_string_append_printf(page, "<tr><th>%s</th>", first);
    for (guint i = 0; i < part->n_panels; i++) {
        g_string_append(page, "<th>");
        report_append_text(page, trace_get(part->panels[i].trace, "side"));
        g_string_append(page, "</th>");
    }
    g_string_append(page, "</tr>\n");
}

static void append_cell_bytes(GString *page, double bytes, TraceScale scale) {
    g_string_append_printf(page, "<td>%.3f</td>", bytes / scale.per_unit);
}

void report_append_peaks(GString *page, const ReportPart *part) {
    TraceSummary *summaries[PLOT_MAX_PANELS] = {NULL, NULL};
    double most = 0;
    for (guint i = 0; i < part->n_panels; i++) {
        summaries[i] = trace_summary_new(part->panels[i].trace, part->panels[i].rank);
        most = MAX(most, (double)summaries[i]->peaks[TRACE_RESERVED].bytes);
    }
    TraceScale scale = trace_scale_bytes(most);
    g_autofree char *first =
        g_strdup_printf("%s (1 %s is %.0f bytes)", scale.unit, scale.unit, scale.per_unit);
    g_autoptr(GPtrArray) categories = trace_folded_categories(part->panels[0].trace);
    open_table(page, "peaks", part, false,
               "Peaks of memory, and what the peak of allocated is made of");
    append_heads(page, part, first);
    for (guint statistic = 0; statistic < TRACE_N_STATISTICS; statistic++) {
        g_string_append_printf(page, "<tr><td>peak %s</td>", trace_statistic_name(statistic));
        for (guint i = 0; i < part->n_panels; i++) {
            append_cell_bytes(page, (double)summaries[i]->peaks[statistic].bytes, scale);
        }
        g_string_append(page, "</tr>\n");
    }
    for (guint k = 0; k < categories->len; k++) {
        const char *category = categories->pdata[k];
        g_string_append(page, "<tr><td>");
        report_append_text(page, category);
        g_string_append(page, " at the peak</td>");
        for (guint i = 0; i < part->n_panels; i++) {
            const TracePeak *peak = &summaries[i]->peaks[TRACE_ALLOCATED];
            uint64_t held =
                peak->known ? trace_peak_category(part->panels[i].trace, peak, category) : 0;
            append_cell_bytes(page, (double)held, scale);
        }
        g_string_append(page, "</tr>\n");
    }
    g_string_append(page, "</table>\n");
    for (guint i = 0; i < part->n_panels; i++) {
        trace_summary_free(summaries[i]);
    }
}

static char *error_text(double error) {
    return isnan(error) ? g_strdup("-") : g_strdup_printf("%+.1f %%", 100 * error);
}

static void append_comparison_rows(GString *page, const TraceComparison *comparison, bool bytes) {
    for (guint i = 0; i < comparison->rows->len; i++) {
        const TraceCompareRow *row = &g_array_index(comparison->rows, TraceCompareRow, i);
        if (trace_compare_is_bytes(row->group) != bytes) {
            continue;
        }
        double most = MAX(row->value[0], row->value[1]);
        TraceScale scale = bytes ? trace_scale_bytes(most) : trace_scale_time(most);
        g_autofree char *name = trace_compare_row_name(row);
        g_autofree char *first =
            g_strdup_printf("%.3f %s", row->value[0] / scale.per_unit, scale.unit);
        g_autofree char *second =
            g_strdup_printf("%.3f %s", row->value[1] / scale.per_unit, scale.unit);
        g_autofree char *error = error_text(row->error);
        report_append_row(page, name, first, second, error, NULL);
    }
}

void report_append_comparison(GString *page, const TraceComparison *comparison) {
    g_string_append(page, "<h3>Predicted and measured</h3>\n<table>\n<tr><th>median of the steady "
                          "steps</th><th>predicted</th><th>measured</th><th>error</th></tr>\n");
    append_comparison_rows(page, comparison, false);
    append_comparison_rows(page, comparison, true);
    g_string_append(page, "</table>\n");
}

/* ---- units ---- */

typedef struct {
    double compute_ns, collective_ns; /* mean of a steady step */
    double gathered_bytes;            /* the largest tensor that a collective of it moves */
} UnitFigures;

static UnitFigures *find_unit_figures(const Trace *trace, uint32_t rank) {
    UnitFigures *units = g_new0(UnitFigures, trace->units->len + 1);
    g_autoptr(TraceSummary) summary = trace_summary_new(trace, rank);
    double n_steps = MAX(1, trace_summary_spread(summary).n);
    for (guint i = 0; i < trace->ops->len; i++) {
        const TraceOpRow *row = trace_op(trace, i);
        if (row->rank != rank || !trace_summary_step_is_steady(summary, row->step)) {
            continue;
        }
        const TraceInstruction *op = trace_instruction(trace, summary->role, row->instruction);
        bool collective = trace_kind(trace, op->kind)->kind_class == TRACE_KIND_COLLECTIVE;
        if (op->what != TRACE_OP || op->unit == TRACE_NONE) {
            continue;
        }
        UnitFigures *unit = &units[op->unit];
        *(collective ? &unit->collective_ns : &unit->compute_ns) +=
            (double)(row->end_ns - row->start_ns) / n_steps;
        unit->gathered_bytes = MAX(unit->gathered_bytes, collective ? (double)op->bytes : 0);
    }
    return units;
}

/* What a row says of a unit. */
static char *unit_cells(UnitFigures *figures[], guint n_panels, guint unit) {
    GString *cells = g_string_new(NULL);
    g_string_append_printf(cells, "<td>%.3f</td>", figures[0][unit].gathered_bytes / MIB);
    for (guint i = 0; i < n_panels; i++) {
        g_string_append_printf(cells, "<td>%.3f</td><td>%.3f</td>",
                               figures[i][unit].compute_ns / 1e6,
                               figures[i][unit].collective_ns / 1e6);
    }
    return g_string_free(cells, FALSE);
}

/* The first unit behind it of which the row would say something else: blocks are often alike. */
static guint end_of_alike(UnitFigures *figures[], guint n_panels, guint first, guint n_units) {
    g_autofree char *cells = unit_cells(figures, n_panels, first);
    for (guint unit = first + 1; unit < n_units; unit++) {
        g_autofree char *others = unit_cells(figures, n_panels, unit);
        if (!g_str_equal(cells, others)) {
            return unit;
        }
    }
    return n_units;
}

void report_append_units(GString *page, const ReportPart *part) {
    const Trace *trace = part->panels[0].trace;
    UnitFigures *figures[PLOT_MAX_PANELS] = {NULL, NULL};
    open_table(page, "units", part, false, "Units");
    g_string_append(page, "<tr><th>unit</th><th>largest collective (MiB)</th>");
    for (guint i = 0; i < part->n_panels; i++) {
        figures[i] = find_unit_figures(part->panels[i].trace, part->panels[i].rank);
        g_string_append_printf(page, "<th>kernels, %s (ms)</th><th>collectives, %s (ms)</th>",
                               trace_get(part->panels[i].trace, "side"),
                               trace_get(part->panels[i].trace, "side"));
    }
    g_string_append(page, "</tr>\n");
    for (guint first = 0, end; first < trace->units->len; first = end) {
        g_autofree char *cells = unit_cells(figures, part->n_panels, first);
        end = end_of_alike(figures, part->n_panels, first, trace->units->len);
        g_string_append(page, "<tr><td>");
        report_append_text(page, trace->units->pdata[first]);
        if (end > first + 1) {
            g_string_append(page, " to ");
            report_append_text(page, trace->units->pdata[end - 1]);
        }
        g_string_append_printf(page, "</td>%s</tr>\n", cells);
    }
    g_string_append(page, "</table>\n");
    for (guint i = 0; i < part->n_panels; i++) {
        g_free(figures[i]);
    }
}

/* ---- settings and what is needed to repeat ---- */

/* A trace has all keys; most have the value that they have where nothing is said. Those of another
 * version of this program may be unknown, and then none is left out. */
static char **settings_told(const char *settings) {
    g_auto(GStrv) pairs = cli_settings_split(settings);
    GPtrArray *told = g_ptr_array_new();
    PlanStrategy strategy;
    plan_strategy_init(&strategy);
    bool is_known = true;
    for (char **pair = pairs; *pair != NULL; pair += 2) {
        is_known &= plan_strategy_set(&strategy, pair[0], pair[1], NULL);
    }
    for (char **pair = pairs; *pair != NULL; pair += 2) {
        if (!is_known || !plan_strategy_is_default(&strategy, pair[0])) {
            g_ptr_array_add(told, g_strdup(pair[0]));
            g_ptr_array_add(told, g_strdup(pair[1]));
        }
    }
    g_ptr_array_add(told, NULL);
    return (char **)g_ptr_array_free(told, FALSE);
}

void report_append_settings(GString *page, const ReportPart *part) {
    const Trace *trace = part->panels[0].trace;
    g_auto(GStrv) told = settings_told(trace_get(trace, "strategy"));
    open_table(page, "settings", part, true,
               "Settings of the plan that are not PyTorch's defaults");
    for (char **pair = told; *pair != NULL; pair += 2) {
        report_append_row(page, pair[0], pair[1], NULL);
    }
    g_string_append(page, "</table>\n");
    open_table(page, "facts", part, true, "Facts of the runs: versions, seeds, machines");
    for (guint i = 0; i < part->n_panels; i++) {
        const Trace *run = part->panels[i].trace;
        for (guint k = 0; k < run->keys->len; k++) {
            const char *key = run->keys->pdata[k];
            if (!g_str_equal(key, "strategy") && !g_str_equal(key, "network")) {
                report_append_row(page, trace_get(run, "side"), key, run->values->pdata[k], NULL);
            }
        }
    }
    g_string_append(page, "</table>\n");
}

static void append_ini(GString *page, const char *section, char **pairs) {
    g_string_append_printf(page, "[%s]\n", section);
    for (char **pair = pairs; *pair != NULL; pair += 2) {
        g_autofree char *line = g_strdup_printf("%s = %s\n", pair[0], pair[1]);
        report_append_text(page, line);
    }
}

static const Trace *side_of(const ReportPart *part, const char *side) {
    for (guint i = 0; i < part->n_panels; i++) {
        if (g_str_equal(trace_get(part->panels[i].trace, "side"), side)) {
            return part->panels[i].trace;
        }
    }
    return NULL;
}

/* A word of a command for a shell: quoted where a file or a cluster is called what it must be. */
static void append_word(GString *page, const char *word) {
    static const char plain[] = G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "._/:=,@%+-";
    bool is_plain = strspn(word, plain) == strlen(word);
    g_autofree char *quoted = is_plain ? g_strdup(word) : g_shell_quote(word);
    report_append_text(page, quoted);
}

/* " --option VALUE" for a key of the header, where it is there. */
static void append_option(GString *page, const Trace *trace, const char *key, const char *option) {
    const char *value = trace_get(trace, key);
    if (value != NULL) {
        g_string_append_printf(page, " %s ", option);
        append_word(page, value);
    }
}

static void append_trouble(GString *page, const SimTrouble *trouble) {
    static const char *const options[] = {[SIM_TROUBLE_SLOW] = "--slow rank",
                                          [SIM_TROUBLE_NVLINK] = "--degrade nvlink",
                                          [SIM_TROUBLE_NIC] = "--degrade nic"};
    g_string_append_printf(page, " %s=%u-%u:%.15g", options[trouble->kind], trouble->first_rank,
                           trouble->last_rank, trouble->factor);
}

/* What foreshard predict was given beside plan and cluster. */
static void append_asked(GString *page, const ReportPart *part) {
    const Trace *trace = side_of(part, "predicted");
    g_autoptr(SimSettings) asked = trace != NULL ? sim_settings_read(trace, NULL) : NULL;
    if (asked == NULL) {
        return;
    }
    append_option(page, trace, "steps", "--steps");
    append_option(page, trace, "nccl_algo", "--nccl-algo");
    append_option(page, trace, "nccl_proto", "--nccl-proto");
    g_string_append(page, asked->options.no_sharing ? " --no-sharing" : "");
    if (asked->options.every_rank) {
        g_string_append(page, " --every-rank");
        append_option(page, trace, "seed", "--seed");
        for (unsigned kind = 0; kind < SIM_N_JITTERS; kind++) {
            append_option(page, trace, sim_jitter_keys[kind], cli_jitter_options[kind]);
        }
        for (uint32_t i = 0; i < asked->options.n_troubles; i++) {
            append_trouble(page, &asked->options.troubles[i]);
        }
    }
}

/* The command that measured: foreshard run, or rehearse of the one rank that was recorded. */
static void append_measuring(GString *page, const ReportPart *part) {
    const Trace *trace = side_of(part, "measured");
    if (trace == NULL) {
        g_string_append(page, "foreshard run run.plan");
        return;
    }
    if (g_strcmp0(trace_get(trace, "rehearsed"), "yes") == 0) {
        g_string_append_printf(page, "foreshard rehearse run.plan --rank %u",
                               g_array_index(trace->ranks, TraceRank, 0).rank);
        append_option(page, trace, "pace", "--cluster");
    } else {
        g_string_append(page, "foreshard run run.plan");
        append_option(page, trace, "pace", "--pace");
    }
    if (g_strcmp0(trace_get(trace, "device"), "host") != 0) {
        append_option(page, trace, "device", "--device");
    }
    append_option(page, trace, "steps", "--steps");
    append_option(page, trace, "seed", "--seed");
    append_option(page, trace, "memory_limit_bytes", "--memory-limit");
}

void report_append_repeat(GString *page, const ReportPart *part) {
    const Trace *trace = part->panels[0].trace;
    const char *network = trace_get(trace, "network"), *strategy = trace_get(trace, "strategy");
    if (network == NULL || strategy == NULL) {
        return;
    }
    const char *cluster = trace_get(trace, "cluster");
    g_autofree char *traced = cli_traced_file(network);
    g_autofree char *name = cli_network_name(trace);
    g_autofree char *file = traced ? g_strdup(traced) : g_strconcat(name, ".ini", NULL);
    g_string_append(page, "<h3>To repeat it</h3>\n");
    if (traced == NULL) {
        g_string_append(page, "<p>Save as ");
        report_append_text(page, file);
        g_string_append(page, ":</p>\n<pre tabindex=\"0\">");
        g_auto(GStrv) keys = cli_settings_split(network);
        append_ini(page, "network", keys);
        g_string_append(page, "</pre>\n");
    }
    g_string_append(page, "<p>Save as strategy.ini:</p>\n<pre tabindex=\"0\">");
    g_auto(GStrv) told = settings_told(strategy);
    append_ini(page, "strategy", told);
    g_string_append(page, "</pre>\n<pre tabindex=\"0\">foreshard plan ");
    append_word(page, file);
    g_string_append(page, " --strategy strategy.ini -o run.plan\n"
                          "foreshard predict run.plan --cluster ");
    append_word(page, cluster != NULL ? cluster : "this-machine");
    append_asked(page, part);
    g_string_append(page, " --trace predicted.trace\n");
    append_measuring(page, part);
    g_string_append(page, " --trace measured.trace\n"
                          "foreshard report predicted.trace measured.trace -o report.html</pre>\n");
}
