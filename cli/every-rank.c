#include "cli/every-rank.h"

#include <stdio.h>
#include <string.h>

#include "cli/progress.h"
#include "plan/ini.h"
#include "sim/settings.h"
#include "trace/json.h"

struct _CliEveryRank {
    gboolean asked;
    char *seed, *percents[SIM_N_JITTERS], *trace_ranks;
    char **slow, **degrade;

    SimJitter jitter;
    GArray *troubles; /* SimTrouble */
    bool *traced;
    CliProgress *progress;
};

const char *const cli_jitter_options[SIM_N_JITTERS] = {
    [SIM_JITTER_KERNEL] = "--jitter",
    [SIM_JITTER_GPU] = "--spread",
    [SIM_JITTER_HOST] = "--host-jitter",
    [SIM_JITTER_LINK] = "--link-jitter",
};

CliEveryRank *cli_every_rank_new(GOptionContext *context) {
    CliEveryRank *every = g_new0(CliEveryRank, 1);
    const GOptionEntry entries[] = {
        {"every-rank", 0, 0, G_OPTION_ARG_NONE, &every->asked,
         "play each rank by itself instead of one that stands for all", NULL},
        {"seed", 0, 0, G_OPTION_ARG_STRING, &every->seed, "of the jitter (default 0)", "S"},
        {"jitter", 0, 0, G_OPTION_ARG_STRING, &every->percents[SIM_JITTER_KERNEL],
         "standard deviation of a kernel's duration, of its mean (default: as the cluster says)",
         "PERCENT"},
        {"spread", 0, 0, G_OPTION_ARG_STRING, &every->percents[SIM_JITTER_GPU],
         "the same of what a GPU's kernels take all along, among GPUs (default: likewise)",
         "PERCENT"},
        {"host-jitter", 0, 0, G_OPTION_ARG_STRING, &every->percents[SIM_JITTER_HOST],
         "the same of what an instruction costs the host (default: likewise)", "PERCENT"},
        {"link-jitter", 0, 0, G_OPTION_ARG_STRING, &every->percents[SIM_JITTER_LINK],
         "the same of what a collective takes, once all have come (default: likewise)", "PERCENT"},
        {"slow", 0, 0, G_OPTION_ARG_STRING_ARRAY, &every->slow,
         "kernels there take FACTOR times as long; WHO: rank=3, rank=0-7, node=2; may be repeated",
         "WHO:FACTOR"},
        {"degrade", 0, 0, G_OPTION_ARG_STRING_ARRAY, &every->degrade,
         "links there carry FACTOR times as much; WHO: rank=3 or node=2 (all links), nvlink=3, "
         "nic=0-7 (of those ranks); may be repeated",
         "WHO:FACTOR"},
        {"trace-ranks", 0, 0, G_OPTION_ARG_STRING, &every->trace_ranks,
         "which ranks the trace holds, as in 0,8-15 or all (default: all, but 0 of more than 64)",
         "LIST"},
        {0},
    };
    GOptionGroup *group = g_option_group_new(
        "ranks", "Every rank (jitter, stragglers, unequal nodes, links that carry less):",
        "Show options of every-rank play", NULL, NULL);
    g_option_group_add_entries(group, entries);
    g_option_context_add_group(context, group);
    every->troubles = g_array_new(FALSE, FALSE, sizeof(SimTrouble));
    return every;
}

void cli_every_rank_free(CliEveryRank *every) {
    if (every) {
        g_free(every->seed);
        for (unsigned kind = 0; kind < SIM_N_JITTERS; kind++) {
            g_free(every->percents[kind]);
        }
        g_free(every->trace_ranks);
        g_strfreev(every->slow);
        g_strfreev(every->degrade);
        g_array_unref(every->troubles);
        g_free(every->traced);
        cli_progress_free(every->progress);
        g_free(every);
    }
}

enum {
    FEW_RANKS = 64,    /* traces of more hold one, unless all are asked for */
    MOST_RANKS = 32768 /* 0.12 MB (gpt-toy) to 0.36 (GPT-175B) each */
};

/* ---- reading -------------------------------------------------------------------------------- */

static bool refuse(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

static bool refuse(GError **error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error_literal(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, message);
    return false;
}

/* "3" or "0-7", below n. */
static bool read_range(const char *text, uint64_t n, const char *option, const char *what,
                       uint64_t *ret_first, uint64_t *ret_last, GError **error) {
    g_auto(GStrv) ends = g_strsplit(text, "-", 2);
    bool is_range = ends[0] && plan_parse_u64(ends[0], ret_first);
    *ret_last = *ret_first;
    if (is_range && ends[1]) {
        is_range = plan_parse_u64(ends[1], ret_last) && *ret_last >= *ret_first;
    }
    if (!is_range) {
        return refuse(error, "%s: '%s' names no %ss; write one as 3, several as 0-7", option, text,
                      what);
    }
    if (*ret_last >= n) {
        return refuse(error,
                      "%s: there is no %s %" G_GUINT64_FORMAT "; the plan has %" G_GUINT64_FORMAT
                      ", counted from 0",
                      option, what, *ret_last, n);
    }
    return true;
}

typedef struct {
    const char *option;
    uint32_t world, a_node;
    double least, most; /* factors */
} Form;

/* WHO:FACTOR. kinds of trouble by what WHO begins with; SLOW: none of that name. */
static bool read_trouble(CliEveryRank *every, const Form *form, const char *text, GError **error) {
    bool slow = g_str_equal(form->option, "--slow");
    const char *colon = strrchr(text, ':'), *equals = strchr(text, '=');
    double factor;
    if (!colon || !equals || equals > colon || !plan_parse_double(colon + 1, &factor)) {
        return refuse(error, "%s: '%s' is not WHO:FACTOR; write rank=3:%s or node=0-1:%s",
                      form->option, text, slow ? "1.2" : "0.5", slow ? "1.2" : "0.5");
    }
    if (factor < form->least || factor > form->most) {
        return refuse(error, "%s: %s is out of bounds; give a factor from %g to %g", form->option,
                      colon + 1, form->least, form->most);
    }
    g_autofree char *who = g_strndup(text, (gsize)(equals - text));
    g_autofree char *range = g_strndup(equals + 1, (gsize)(colon - equals - 1));
    bool node = g_str_equal(who, "node");
    bool nvlink = !slow && (g_str_equal(who, "rank") || g_str_equal(who, "nvlink") || node);
    bool nic = !slow && (g_str_equal(who, "rank") || g_str_equal(who, "nic") || node);
    if (!nvlink && !nic && !(slow && (node || g_str_equal(who, "rank")))) {
        return refuse(error, "%s: '%s' is unknown; give %s", form->option, who,
                      slow ? "rank or node" : "rank, node, nvlink or nic");
    }
    uint64_t first, last, n = node ? (form->world + form->a_node - 1) / form->a_node : form->world;
    if (!read_range(range, n, form->option, node ? "node" : "rank", &first, &last, error)) {
        return false;
    }
    SimTrouble trouble = {.first_rank = (uint32_t)(node ? first * form->a_node : first),
                          .last_rank = (uint32_t)(node ? (last + 1) * form->a_node - 1 : last),
                          .factor = factor};
    trouble.last_rank = MIN(trouble.last_rank, form->world - 1);
    const bool kinds[] = {
        [SIM_TROUBLE_SLOW] = slow, [SIM_TROUBLE_NVLINK] = nvlink, [SIM_TROUBLE_NIC] = nic};
    for (unsigned kind = 0; kind < G_N_ELEMENTS(kinds); kind++) {
        trouble.kind = (SimTroubleKind)kind;
        if (kinds[kind]) {
            g_array_append_val(every->troubles, trouble);
        }
    }
    return true;
}

static bool read_traced(CliEveryRank *every, uint32_t world, GError **error) {
    const char *list = every->trace_ranks ? every->trace_ranks : world > FEW_RANKS ? "0" : "all";
    if (g_str_equal(list, "all")) {
        return true;
    }
    every->traced = g_new0(bool, world);
    g_auto(GStrv) ranges = g_strsplit(list, ",", -1);
    for (char **range = ranges; *range; range++) {
        uint64_t first, last;
        if (!read_range(*range, world, "--trace-ranks", "rank", &first, &last, error)) {
            return false;
        }
        memset(every->traced + first, true, last - first + 1);
    }
    return true;
}

/* Text NULL: as the cluster says. */
static bool read_percent(const char *option, const char *text, double fallback, double *ret_share,
                         GError **error) {
    double percent = fallback;
    if (text && !(plan_parse_double(text, &percent) && percent >= 0 && percent <= 1000)) {
        return refuse(error, "%s: '%s' is no percentage from 0 to 1000", option, text);
    }
    *ret_share = percent / 100;
    return true;
}

static bool read_numbers(CliEveryRank *every, const ModelCluster *cluster, GError **error) {
    if (every->seed && !plan_parse_u64(every->seed, &every->jitter.seed)) {
        return refuse(error, "--seed: '%s' is no whole number; give digits", every->seed);
    }
    const double by_cluster[SIM_N_JITTERS] = {
        [SIM_JITTER_KERNEL] = cluster->jitter_kernel_percent,
        [SIM_JITTER_GPU] = cluster->jitter_gpu_percent,
        [SIM_JITTER_HOST] = cluster->jitter_host_percent,
        [SIM_JITTER_LINK] = cluster->jitter_link_percent,
    };
    for (unsigned kind = 0; kind < SIM_N_JITTERS; kind++) {
        if (!read_percent(cli_jitter_options[kind], every->percents[kind], by_cluster[kind],
                          &every->jitter.shares[kind], error)) {
            return false;
        }
    }
    return true;
}

static bool check_unasked(const CliEveryRank *every, GError **error) {
    const char *without = every->slow          ? "--slow"
                          : every->degrade     ? "--degrade"
                          : every->trace_ranks ? "--trace-ranks"
                                               : NULL;
    for (unsigned kind = 0; kind < SIM_N_JITTERS && !without; kind++) {
        without = every->percents[kind] ? cli_jitter_options[kind] : NULL;
    }
    return !without || refuse(error, "%s is for every-rank play; add --every-rank", without);
}

bool cli_every_rank_settle(CliEveryRank *every, const Plan *plan, const ModelCluster *cluster,
                           SimOptions *options, GError **error) {
    if (!read_numbers(every, cluster, error)) {
        return false;
    }
    if (!every->asked) {
        return check_unasked(every, error);
    }
    if (plan->world > MOST_RANKS) {
        return refuse(error,
                      "--every-rank: %u ranks are too many to play each (%d at most); plan for "
                      "fewer, or leave it out: one rank then stands for all",
                      plan->world, MOST_RANKS);
    }
    Form slow = {"--slow", plan->world, (uint32_t)cluster->topology_gpus_per_node, 1e-3, 1e3};
    Form degrade = {"--degrade", plan->world, slow.a_node, 1e-6, 1e3};
    for (char **text = every->slow; text && *text; text++) {
        if (!read_trouble(every, &slow, *text, error)) {
            return false;
        }
    }
    for (char **text = every->degrade; text && *text; text++) {
        if (!read_trouble(every, &degrade, *text, error)) {
            return false;
        }
    }
    if (!read_traced(every, plan->world, error)) {
        return false;
    }
    g_autofree char *what = g_strdup_printf("playing %u ranks", plan->world);
    every->progress = cli_progress_new(what);
    options->every_rank = true;
    options->jitter = every->jitter;
    options->troubles = (const SimTrouble *)(gconstpointer)every->troubles->data;
    options->n_troubles = every->troubles->len;
    options->traced = every->traced;
    options->progress = cli_progress_show;
    options->progress_self = every->progress;
    return true;
}

void cli_every_rank_played(CliEveryRank *every) {
    if (every->progress) {
        cli_progress_wipe(every->progress);
    }
}

/* ---- printing ------------------------------------------------------------------------------- */

enum {
    ALL_ROWS = 16, /* as many ranks are all shown; of more: */
    WORST_ROWS = 8
};

static double ms(SimTime ns) {
    return (double)ns / 1e6;
}

static SimTime held_by(const SimRankBook *book) {
    return book->held_ns;
}

static SimTime lost_by(const SimRankBook *book) {
    return book->lost_ns;
}

typedef struct {
    const SimRankBook *ranks;
    SimTime (*time_of)(const SimRankBook *book);
} Order;

/* The longest first, and ranks of equal times in order. */
static gint compare(gconstpointer a, gconstpointer b, gpointer data) {
    const Order *order = data;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    SimTime of_x = order->time_of(&order->ranks[x]), of_y = order->time_of(&order->ranks[y]);
    return of_x != of_y ? (of_x > of_y ? -1 : 1) : (x < y ? -1 : 1);
}

static void print_row(const SimPrediction *prediction, uint32_t rank, uint64_t a_node) {
    const SimRankBook *book = &prediction->ranks[rank];
    printf("  %5u %5u  %-16.16s %10.3f ms %10.3f ms %10.3f ms %8.1f x %10.3f ms\n", rank,
           (unsigned)(rank / a_node), book->node_kind, ms(book->compute_ns), ms(book->exposed_ns),
           ms(book->lost_ns), book->n_last, ms(book->held_ns));
}

/* The first rows of an order over all ranks. */
static void print_first(const SimPrediction *prediction, uint64_t a_node,
                        SimTime (*time_of)(const SimRankBook *book), const char *title) {
    Order order = {prediction->ranks, time_of};
    g_autofree uint32_t *ranks = g_new(uint32_t, prediction->n_ranks);
    for (uint32_t rank = 0; rank < prediction->n_ranks; rank++) {
        ranks[rank] = rank;
    }
    g_qsort_with_data(ranks, (gint)prediction->n_ranks, sizeof *ranks, compare, &order);
    printf("%s\n", title);
    for (uint32_t i = 0; i < WORST_ROWS; i++) {
        print_row(prediction, ranks[i], a_node);
    }
}

void cli_every_rank_print(const CliEveryRank *every, const SimPrediction *prediction,
                          const ModelCluster *cluster) {
    uint64_t a_node = cluster->topology_gpus_per_node;
    if (!prediction->n_ranks) {
        return;
    }
    SimTime lost = 0, exposed = 0;
    for (uint32_t rank = 0; rank < prediction->n_ranks; rank++) {
        lost += prediction->ranks[rank].lost_ns;
        exposed += prediction->ranks[rank].exposed_ns;
    }
    const double *shares = every->jitter.shares;
    printf("\nwho waits for whom (%u ranks, jitter %g %%, spread %g %%, of hosts %g %%, of links "
           "%g %%, seed %" G_GUINT64_FORMAT "; means of a steady step)\n",
           prediction->n_ranks, 100 * shares[SIM_JITTER_KERNEL], 100 * shares[SIM_JITTER_GPU],
           100 * shares[SIM_JITTER_HOST], 100 * shares[SIM_JITTER_LINK], every->jitter.seed);
    printf("  a rank's compute lane has nothing to do for %.3f ms while a collective waits or "
           "runs, in "
           "the mean;\n  %.3f ms of that because other ranks came late to it\n",
           ms(exposed / prediction->n_ranks), ms(lost / prediction->n_ranks));
    printf("   rank  node  kind                computes      exposed   others late   was last   "
           "held up others\n");
    if (prediction->n_ranks <= ALL_ROWS) {
        for (uint32_t rank = 0; rank < prediction->n_ranks; rank++) {
            print_row(prediction, rank, a_node);
        }
        return;
    }
    print_first(prediction, a_node, held_by, "those who hold up the others most");
    print_first(prediction, a_node, lost_by, "those who lose most to others");
}

void cli_every_rank_add_json(const CliEveryRank *every, const SimPrediction *prediction,
                             const ModelCluster *cluster, JsonBuilder *json) {
    if (!prediction->n_ranks) {
        return;
    }
    trace_json_begin_object(json, "every_rank");
    const double *shares = every->jitter.shares;
    trace_json_add_int(json, "seed", every->jitter.seed);
    for (unsigned kind = 0; kind < SIM_N_JITTERS; kind++) {
        trace_json_add_real(json, sim_jitter_keys[kind], 100 * shares[kind]);
    }
    trace_json_add_int(json, "memory_of_rank", prediction->rank);
    trace_json_add_int(json, "times_of_rank", prediction->time_rank);
    trace_json_begin_array(json, "ranks");
    for (uint32_t rank = 0; rank < prediction->n_ranks; rank++) {
        const SimRankBook *book = &prediction->ranks[rank];
        json_builder_begin_object(json);
        trace_json_add_int(json, "rank", rank);
        trace_json_add_int(json, "node", rank / cluster->topology_gpus_per_node);
        trace_json_add_text(json, "kind", book->node_kind);
        trace_json_add_real(json, "step_ms", ms(book->step_ns));
        trace_json_add_real(json, "compute_ms", ms(book->compute_ns));
        trace_json_add_real(json, "exposed_ms", ms(book->exposed_ns));
        trace_json_add_real(json, "exposed_wait_ms", ms(book->lost_ns));
        trace_json_add_real(json, "wait_ms", ms(book->waited_ns));
        trace_json_add_real(json, "times_last", book->n_last);
        trace_json_add_real(json, "held_up_others_ms", ms(book->held_ns));
        trace_json_add_int(json, "peak_reserved_bytes", book->peak_reserved_bytes);
        trace_json_add_int(json, "alloc_retries", book->alloc_retries);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
    json_builder_end_object(json);
}
