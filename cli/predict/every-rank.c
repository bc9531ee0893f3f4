#include "cli/predict/every-rank.h"

#include <string.h>

#include "cli/options/command.h"
#include "cli/say/progress.h"
#include "plan/files/ini.h"
#include "sim/settings.h"

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

static char **place_of(CliEveryRank *every, const char *option) {
    for (unsigned kind = 0; kind < SIM_N_JITTERS; kind++) {
        if (g_str_equal(option, cli_jitter_options[kind])) {
            return &every->percents[kind];
        }
    }
    return g_str_equal(option, "--seed") ? &every->seed : &every->trace_ranks;
}

static gboolean take(const char *option, const char *value, gpointer every, GError **error) {
    return cli_take_once(place_of(every, option), option, value, "", error);
}

CliEveryRank *cli_every_rank_new(GOptionContext *context) {
    CliEveryRank *every = g_new0(CliEveryRank, 1);
    const GOptionEntry entries[] = {
        {"every-rank", 0, 0, G_OPTION_ARG_NONE, &every->asked,
         "play each rank by itself, instead of one for all. That one is slowed as the slowest of "
         "all is expected to be (the cluster's gpu_percent); each by itself has its own pace, so "
         "the step differs a little, and the quicker wait: whether they train well is then asked "
         "of the mean of all. Nodes of several kinds are played so in any case",
         NULL},
        {"seed", 0, 0, G_OPTION_ARG_CALLBACK, (gpointer)take, "seed of the jitter (default 0)",
         "S"},
        {"jitter", 0, 0, G_OPTION_ARG_CALLBACK, (gpointer)take,
         "standard deviation of kernel durations, in percent of the mean (default: the cluster's)",
         "PERCENT"},
        {"spread", 0, 0, G_OPTION_ARG_CALLBACK, (gpointer)take,
         "the same between GPUs, for the whole run (default: the cluster's)", "PERCENT"},
        {"host-jitter", 0, 0, G_OPTION_ARG_CALLBACK, (gpointer)take,
         "the same of host costs per instruction (default: the cluster's)", "PERCENT"},
        {"link-jitter", 0, 0, G_OPTION_ARG_CALLBACK, (gpointer)take,
         "the same of collectives, once all ranks have come (default: the cluster's)", "PERCENT"},
        {"slow", 0, 0, G_OPTION_ARG_STRING_ARRAY, &every->slow,
         "kernels take FACTOR times as long on WHO: rank=3, rank=0-7, node=2; may be repeated",
         "WHO:FACTOR"},
        {"degrade", 0, 0, G_OPTION_ARG_STRING_ARRAY, &every->degrade,
         "links of WHO carry FACTOR times as much: rank=3 or node=2 (all links), nvlink=3, nic=0-7 "
         "(of those ranks); may be repeated",
         "WHO:FACTOR"},
        {"trace-ranks", 0, 0, G_OPTION_ARG_CALLBACK, (gpointer)take,
         "ranks that --trace holds, as in 0,8-15 or all (default: all, or 0 of more than 64)",
         "LIST"},
        {0},
    };
    GOptionGroup *group = g_option_group_new(
        "ranks", "Every rank (jitter, stragglers, unequal nodes, degraded links):",
        "Show options for unequal ranks: jitter, stragglers, degraded links", every, NULL);
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

/* ---- reading -------------------------------------------------------------------------------- */

/* "3" or "0-7", below n. */
static bool read_range(const char *text, uint64_t n, const char *option, const char *what,
                       uint64_t *ret_first, uint64_t *ret_last, GError **error) {
    g_auto(GStrv) ends = g_strsplit(text, "-", 2);
    uint64_t first = 0, last = 0;
    bool is_range = ends[0] && plan_parse_u64(ends[0], &first) &&
                    plan_parse_u64(ends[1] ? ends[1] : ends[0], &last) && last >= first;
    if (!is_range) {
        return cli_refuse(error, "%s: '%s' names no %ss; write one as 3, several as 0-7", option,
                          text, what);
    }
    if (last >= n) {
        return cli_refuse(error,
                          "%s: there is no %s %" G_GUINT64_FORMAT
                          "; the plan has %" G_GUINT64_FORMAT ", counted from 0",
                          option, what, last, n);
    }
    *ret_first = first;
    *ret_last = last;
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
        return cli_refuse(error, "%s: '%s' is not WHO:FACTOR; write rank=3:%s or node=0-1:%s",
                          form->option, text, slow ? "1.2" : "0.5", slow ? "1.2" : "0.5");
    }
    if (factor < form->least || factor > form->most) {
        return cli_refuse(error, "%s: %s is out of bounds; give a factor from %g to %g",
                          form->option, colon + 1, form->least, form->most);
    }
    g_autofree char *who = g_strndup(text, (gsize)(equals - text));
    g_autofree char *range = g_strndup(equals + 1, (gsize)(colon - equals - 1));
    bool node = g_str_equal(who, "node");
    bool nvlink = !slow && (g_str_equal(who, "rank") || g_str_equal(who, "nvlink") || node);
    bool nic = !slow && (g_str_equal(who, "rank") || g_str_equal(who, "nic") || node);
    if (!nvlink && !nic && !(slow && (node || g_str_equal(who, "rank")))) {
        return cli_refuse(error, "%s: '%s' is unknown; give %s", form->option, who,
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
    const char *list = every->trace_ranks      ? every->trace_ranks
                       : world > SIM_FEW_RANKS ? "0"
                                               : "all";
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

static bool read_percent(const char *option, const char *text, double *ret_share, GError **error) {
    double percent;
    if (!(plan_parse_double(text, &percent) && percent >= 0 && percent <= SIM_MOST_PERCENT)) {
        return cli_refuse(error, "%s: '%s' is no percentage from 0 to %d", option, text,
                          SIM_MOST_PERCENT);
    }
    *ret_share = percent / 100;
    return true;
}

/* What was not given is as the cluster says. */
static bool read_numbers(CliEveryRank *every, const ModelCluster *cluster, GError **error) {
    every->jitter = sim_jitter_of(cluster);
    if (every->seed && !plan_parse_u64(every->seed, &every->jitter.seed)) {
        return cli_refuse(error, "--seed: '%s' is no whole number; give digits", every->seed);
    }
    for (unsigned kind = 0; kind < SIM_N_JITTERS; kind++) {
        const char *text = every->percents[kind];
        if (text &&
            !read_percent(cli_jitter_options[kind], text, &every->jitter.shares[kind], error)) {
            return false;
        }
    }
    return true;
}

static bool check_unasked(const CliEveryRank *every, GError **error) {
    const char *without = every->seed          ? "--seed"
                          : every->slow        ? "--slow"
                          : every->degrade     ? "--degrade"
                          : every->trace_ranks ? "--trace-ranks"
                                               : NULL;
    for (unsigned kind = 0; kind < SIM_N_JITTERS && !without; kind++) {
        without = every->percents[kind] ? cli_jitter_options[kind] : NULL;
    }
    return !without || cli_refuse(error, "%s is for every-rank play; add --every-rank", without);
}

bool cli_every_rank_is_asked(const CliEveryRank *every) {
    return every->asked;
}

bool cli_every_rank_settle(CliEveryRank *every, const Plan *plan, const ModelCluster *cluster,
                           SimOptions *options, GError **error) {
    if (!read_numbers(every, cluster, error)) {
        return false;
    }
    every->asked |= sim_told_apart(plan->world, cluster) != NULL;
    if (!every->asked) {
        return check_unasked(every, error);
    }
    Form slow = {"--slow", plan->world, (uint32_t)cluster->topology_gpus_per_node,
                 SIM_LEAST_SLOWDOWN, SIM_MOST_FACTOR};
    Form degrade = {"--degrade", plan->world, slow.a_node, SIM_LEAST_SHARE, SIM_MOST_FACTOR};
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
