/* cli/commands/predict.c - foreshard predict: does a plan fit a cluster, and how long does a step
 * take?
 *
 * Reads plan and cluster, lets sim/predict.h play it, prints what came of it. Two verdicts are
 * always given: whether it fits, and what a step costs (for a plan that does not fit: with memory
 * enough).
 */

#include <stdio.h>
#include <string.h>

#include "cli/commands/commands.h"
#include "cli/data-dir.h"
#include "cli/every-rank.h"
#include "cli/options.h"
#include "cli/plan-source.h"
#include "cli/spending.h"
#include "cli/trains-well.h"
#include "cli/ways-to-fit.h"
#include "models/cluster.h"
#include "sim/nccl.h"
#include "sim/predict.h"
#include "sim/settings.h"
#include "trace/from-plan.h"
#include "trace/json.h"
#include "trace/text.h"

enum {
    OK = 0,
    FAILED = 1,
    BAD_INPUT = 2
};

typedef struct {
    char *cluster, *trace, *nccl_algo, *nccl_proto;
    gboolean no_sharing;
    int steps;
    gboolean json;
} Options;

typedef struct {
    const Plan *plan;
    const ModelCluster *cluster;
    const SimPrediction *prediction;
    const CliEveryRank *every;
    const char *cluster_name; /* as it was given */
    const SimOptions *asked;
} Report;

/* ---- figures that both outputs show ---- */

static double ms(SimTime ns) {
    return (double)ns / 1e6;
}

/* Nearest rank: the smallest time that at least 95 % of the steady steps do not exceed. */
static SimTime p95_step_ns(const SimPrediction *prediction) {
    uint32_t n = prediction->n_steady;
    const SimTime *steady = prediction->step_ns + (prediction->n_steps - n);
    uint32_t needed = (95 * n + 99) / 100;
    SimTime best = SIM_NEVER;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at_most = 0;
        for (uint32_t j = 0; j < n; j++) {
            at_most += steady[j] <= steady[i];
        }
        if (at_most >= needed) {
            best = MIN(best, steady[i]);
        }
    }
    return best;
}

static double a_second(const SimPrediction *prediction, double amount) {
    SimTime step = prediction->median_step_ns;
    return step > 0 ? amount / ((double)step / 1e9) : 0;
}

static uint64_t category_bytes(const uint64_t *by_sub, unsigned category) {
    uint64_t sum = 0;
    for (unsigned sub = 0; sub < PLAN_N_SUBCATEGORIES; sub++) {
        sum += plan_subcategory_category(sub) == category ? by_sub[sub] : 0;
    }
    return sum;
}

/* ---- text ---- */

/* In a unit that fits the size; binary ones, and the unit says so. */
static char *bytes_text(double bytes) {
    const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    unsigned unit = 0;
    while (bytes >= 1024 && unit + 1 < G_N_ELEMENTS(units)) {
        bytes /= 1024;
        unit++;
    }
    return g_strdup_printf(unit ? "%.2f %s" : "%.0f %s", bytes, units[unit]);
}

static void print_bytes(const char *name, uint64_t bytes) {
    g_autofree char *text = bytes_text((double)bytes);
    printf("  %-28s %12s\n", name, text);
}

static char *unit_text(const Plan *plan, uint32_t unit) {
    return unit == PLAN_NONE ? g_strdup("no unit")
                             : g_strconcat("unit ", plan->units[unit].name, NULL);
}

static char *moment_text(const Plan *plan, const SimMoment *at) {
    g_autofree char *unit = unit_text(plan, at->unit);
    g_autofree char *when =
        at->step < 0 ? g_strdup("during construction")
                     : g_strdup_printf("at %.3f ms, in step %d", ms(at->host_ns), at->step);
    return g_strdup_printf("%s, %s, %s (section %s, instruction %u)", when,
                           plan_phase_name(at->phase), unit, plan_section_name(at->section),
                           at->index);
}

static void print_subs(const uint64_t *by_sub) {
    for (unsigned sub = 0; sub < PLAN_N_SUBCATEGORIES; sub++) {
        if (by_sub[sub]) {
            print_bytes(plan_subcategory_name(sub), by_sub[sub]);
        }
    }
}

static void print_fit(const Report *report) {
    const SimPrediction *prediction = report->prediction;
    uint64_t need = prediction->peak_reserved_bytes, have = prediction->allocator_bytes;
    g_autofree char *left = bytes_text(need > have ? (double)(need - have) : (double)(have - need));
    g_autofree char *room = bytes_text((double)have);
    g_autofree char *outside = bytes_text((double)prediction->outside_allocator_bytes);
    if (prediction->fits) {
        printf("fits: yes, %s of %s left (%s more lie outside the allocator)\n", left, room,
               outside);
        return;
    }
    g_autofree char *asked = bytes_text((double)prediction->oom.bytes);
    g_autofree char *at = moment_text(report->plan, &prediction->oom.at);
    g_autofree char *allocated = bytes_text((double)prediction->oom.at.allocated_bytes);
    g_autofree char *reserved = bytes_text((double)prediction->oom.at.reserved_bytes);
    printf("fits: NO, out of memory %s\n", at);
    printf("  %s for %s (%s) cannot be had: %s allocated, %s reserved of %s (%s more lie outside "
           "the allocator)\n",
           asked, prediction->oom.buffer, plan_subcategory_name(prediction->oom.sub), allocated,
           reserved, room, outside);
    if (need > have) {
        printf("  with memory enough it would reserve %s more than there is\n", left);
    }
    printf("  held then:\n");
    print_subs(prediction->oom.by_sub);
}

static void print_units(const Report *report) {
    const SimPeak *peak = &report->prediction->peak;
    uint32_t n = report->prediction->n_units;
    bool *shown = g_newa(bool, n + 1);
    memset(shown, 0, n + 1);
    for (int row = 0; row < 4; row++) {
        uint32_t most = n + 1;
        for (uint32_t unit = 0; unit <= n; unit++) {
            if (!shown[unit] && peak->by_unit[unit] &&
                (most > n || peak->by_unit[unit] > peak->by_unit[most])) {
                most = unit;
            }
        }
        if (most > n) {
            return;
        }
        shown[most] = true;
        g_autofree char *name = unit_text(report->plan, most == n ? PLAN_NONE : most);
        print_bytes(name, peak->by_unit[most]);
    }
}

static uint64_t least_reserved(const SimPrediction *prediction) {
    uint64_t least = UINT64_MAX;
    for (uint32_t rank = 0; rank < prediction->n_ranks; rank++) {
        least = MIN(least, prediction->ranks[rank].peak_reserved_bytes);
    }
    return least;
}

static void print_memory(const Report *report) {
    const SimPrediction *prediction = report->prediction;
    g_autofree char *at = moment_text(report->plan, &prediction->peak.at);
    g_autofree char *whose = prediction->n_ranks
                                 ? g_strdup_printf("rank %u, the fullest", prediction->rank)
                                 : g_strdup("a GPU");
    printf("\nmemory of %s%s\n", whose, prediction->fits ? "" : ", had it enough");
    print_bytes("peak allocated", prediction->peak.at.allocated_bytes);
    print_bytes("peak active", prediction->peak_active_bytes);
    print_bytes("peak reserved", prediction->peak_reserved_bytes);
    if (prediction->n_ranks) {
        print_bytes("peak reserved, least rank's", least_reserved(prediction));
    }
    printf("  allocation retries           %12" G_GUINT64_FORMAT "\n", prediction->alloc_retries);
    printf("at the peak of allocated, %s\n", at);
    print_subs(prediction->peak.by_sub);
    printf("of it, the largest holders\n");
    print_units(report);
}

static void print_time_row(const char *name, SimTime ns, SimTime step) {
    printf("  %-28s %9.3f ms %6.1f %%\n", name, ms(ns),
           step > 0 ? 100 * (double)ns / (double)step : 0);
}

static void print_collectives(const SimPrediction *prediction) {
    bool any = false;
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        const SimCollectiveSum *sum = &prediction->collectives[kind];
        if (!sum->count) {
            continue;
        }
        if (!any) {
            printf(
                "communication of a step             total      exposed       hidden    bytes of "
                "tensors\n");
            any = true;
        }
        SimTime hidden = sum->total_ns - sum->exposed_ns;
        g_autofree char *bytes = bytes_text(sum->bytes);
        printf("  %4u %-20s %9.3f ms %9.3f ms %9.3f ms (%.0f %%) %s\n", sum->count,
               plan_op_info(kind)->name, ms(sum->total_ns), ms(sum->exposed_ns), ms(hidden),
               sum->total_ns ? 100 * (double)hidden / (double)sum->total_ns : 0, bytes);
    }
}

/* A step is over when its last rank is through. */
static void print_rank_steps(const SimPrediction *prediction) {
    SimTime least = SIM_NEVER, most = 0;
    for (uint32_t rank = 0; rank < prediction->n_ranks; rank++) {
        least = MIN(least, prediction->ranks[rank].step_ns);
        most = MAX(most, prediction->ranks[rank].step_ns);
    }
    printf("  95 %% of the steps within %.3f ms; over %u ranks, a rank's own from %.3f to %.3f ms "
           "in the mean\n",
           ms(p95_step_ns(prediction)), prediction->n_ranks, ms(least), ms(most));
    printf("  below: rank %u, which loses least to others\n", prediction->time_rank);
}

static void print_spending(const Report *report) {
    CliSpending spent = cli_spending(report->plan, report->cluster, report->prediction);
    if (spent.kwh_per_million > 0) {
        printf("  %.4g kWh per million tokens (GPUs alone, each at its full power)\n",
               spent.kwh_per_million);
    }
    if (spent.price_per_million > 0) {
        printf("  price of a million tokens: %.4g (of an hour and GPU: as the cluster says)\n",
               spent.price_per_million);
    }
}

static void print_time(const Report *report) {
    const SimPrediction *prediction = report->prediction;
    SimTime mean = (SimTime)cli_mean_step_ns(prediction);
    printf("\ntime%s\n", prediction->fits ? "" : ", had it memory enough");
    printf("  step %.3f ms (median of %u steady steps, %.3f to %.3f ms)\n",
           ms(prediction->median_step_ns), prediction->n_steady, ms(prediction->least_step_ns),
           ms(prediction->most_step_ns));
    if (prediction->n_ranks) {
        print_rank_steps(prediction);
    }
    if (report->plan->tokens_per_rank) {
        printf("  %.1f tokens/s/GPU\n",
               a_second(prediction, (double)report->plan->tokens_per_rank));
    }
    printf("  %.3f TFLOP/s/GPU, MFU %.2f %% (operations of matrix products and attention, nothing "
           "counted twice for recomputation, over step time; MFU: over peak of their dtype)\n",
           a_second(prediction, prediction->flops) / 1e12, 100 * prediction->mfu);
    print_spending(report);
    printf("  bound by: %s\n", prediction->bound_by);
    printf("where the compute lane's time goes (mean of a step)\n");
    for (unsigned share = 0; share < SIM_N_SHARES; share++) {
        if (prediction->shares_ns[share]) {
            bool waits = share >= SIM_SHARE_NETWORK;
            g_autofree char *name =
                g_strconcat(waits ? "idle, waits for " : "", prediction->share_names[share], NULL);
            print_time_row(name, prediction->shares_ns[share], mean);
        }
    }
    printf("busy in a step\n");
    for (uint32_t lane = 0; lane < prediction->n_lanes; lane++) {
        g_autofree char *name = g_strconcat("lane ", report->plan->lanes[lane], NULL);
        print_time_row(name, prediction->lane_busy_ns[lane], mean);
    }
    print_time_row("host", prediction->host_ns, mean);
    print_time_row("host, blocked", prediction->host_blocked_ns, mean);
    print_collectives(prediction);
}

static void print_retries(const SimPrediction *prediction) {
    uint64_t least = prediction->alloc_retries, most = least;
    for (uint32_t rank = 0; rank < prediction->n_ranks; rank++) {
        least = MIN(least, prediction->ranks[rank].alloc_retries);
        most = MAX(most, prediction->ranks[rank].alloc_retries);
    }
    printf("trains well: NO, the allocator gave memory back and tried again %" G_GUINT64_FORMAT
           " times",
           most);
    if (prediction->n_ranks) {
        printf(" (the rank that did least: %" G_GUINT64_FORMAT ")\n", least);
    } else {
        printf(";\n             where ranks are unequal each does so at another moment, and all "
               "wait for each:\n             --every-rank --spread 1 --jitter 5 says what that "
               "does\n");
    }
}

/* Why not: the share of the step that is lost most to one thing. */
static void print_verdict(const SimPrediction *prediction) {
    double works = 100 * cli_working_share(prediction);
    if (cli_trains_well(prediction)) {
        printf("trains well: yes, the compute lane works %.1f %% of a step\n", works);
    } else if (prediction->fits && prediction->alloc_retries) {
        print_retries(prediction);
    } else if (prediction->fits) {
        printf("trains well: NO, the compute lane works only %.1f %% of a step (%.0f %% are "
               "wanted); most is lost to %s\n",
               works, 100 * CLI_WORKS_WELL, prediction->share_names[cli_worst_share(prediction)]);
    }
    if (prediction->fits && !cli_trains_well(prediction)) {
        printf("  what would help: --trace FILE here, then foreshard diagnose FILE\n");
    }
}

/* What would make it fit, told at once; the rest is for foreshard diagnose. */
static void print_ways(const Report *report) {
    g_autoptr(Trace) header = trace_new();
    trace_describe_plan(header, report->plan);
    sim_settings_write(header, report->cluster, report->asked);
    g_autoptr(CliWhatIf) what_if = cli_what_if_new(header, report->cluster_name, NULL);
    if (!what_if) { /* a plan made by hand has no network */
        return;
    }
    g_autoptr(GArray) ways = cli_ways_to_fit(what_if);
    for (guint i = 0; i < ways->len; i++) {
        g_autofree char *way = cli_way_text(&g_array_index(ways, CliWay, i));
        printf("  fits with %s\n", way);
    }
    if (!ways->len) {
        printf("  no setting tried makes it fit: a shorter sequence, a smaller network, GPUs with "
               "more memory\n");
    }
}

static void print_text(const Report *report) {
    printf("%s\n", report->plan->title ? report->plan->title : plan_digest(report->plan));
    printf("on %s: %s\n", report->cluster->name, report->cluster->title);
    if (report->prediction->unsupported_dtype) {
        printf("fits: no, %s cannot compute in %s\n", report->prediction->unsupported_on,
               report->prediction->unsupported_dtype);
        return;
    }
    print_fit(report);
    if (!report->prediction->fits) {
        print_ways(report);
    }
    print_verdict(report->prediction);
    print_memory(report);
    print_time(report);
    cli_every_rank_print(report->every, report->prediction, report->cluster);
}

/* ---- JSON ---- */

static void add_categories(JsonBuilder *json, const char *key, const uint64_t *by_sub) {
    trace_json_begin_object(json, key);
    for (unsigned category = 0; category < PLAN_N_CATEGORIES; category++) {
        trace_json_add_int(json, plan_category_name(category), category_bytes(by_sub, category));
    }
    json_builder_end_object(json);
}

static void add_comm(JsonBuilder *json, const SimPrediction *prediction) {
    trace_json_begin_object(json, "comm");
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        const SimCollectiveSum *sum = &prediction->collectives[kind];
        if (sum->count) {
            trace_json_begin_object(json, plan_op_info(kind)->name);
            trace_json_add_int(json, "count", sum->count);
            trace_json_add_real(json, "total_ms", ms(sum->total_ns));
            trace_json_add_real(json, "exposed_ms", ms(sum->exposed_ns));
            trace_json_add_int(json, "bytes", (uint64_t)sum->bytes);
            json_builder_end_object(json);
        }
    }
    json_builder_end_object(json);
}

static void add_oom(JsonBuilder *json, const Report *report) {
    const SimOom *oom = &report->prediction->oom;
    trace_json_begin_object(json, "oom");
    trace_json_add_text(json, "buffer", oom->buffer);
    trace_json_add_text(json, "category", plan_subcategory_name(oom->sub));
    trace_json_add_int(json, "bytes", oom->bytes);
    trace_json_add_text(json, "section", plan_section_name(oom->at.section));
    trace_json_add_int(json, "instruction", oom->at.index);
    trace_json_add_text(json, "phase", plan_phase_name(oom->at.phase));
    if (oom->at.unit != PLAN_NONE) {
        trace_json_add_text(json, "unit", report->plan->units[oom->at.unit].name);
    }
    trace_json_add_int(json, "allocated_bytes", oom->at.allocated_bytes);
    trace_json_add_int(json, "reserved_bytes", oom->at.reserved_bytes);
    add_categories(json, "held_by_category", oom->by_sub);
    json_builder_end_object(json);
}

static void add_figures(JsonBuilder *json, const Report *report) {
    const SimPrediction *prediction = report->prediction;
    trace_json_add_real(json, "step_ms", ms(prediction->median_step_ns));
    trace_json_add_real(json, "step_ms_p95", ms(p95_step_ns(prediction)));
    trace_json_add_real(json, "tokens_per_s_per_gpu",
                        a_second(prediction, (double)report->plan->tokens_per_rank));
    trace_json_add_real(json, "tflops_per_gpu", a_second(prediction, prediction->flops) / 1e12);
    trace_json_add_real(json, "mfu", prediction->mfu);
    trace_json_add_int(json, "peak_allocated_bytes", prediction->peak.at.allocated_bytes);
    trace_json_add_int(json, "peak_active_bytes", prediction->peak_active_bytes);
    trace_json_add_int(json, "peak_reserved_bytes", prediction->peak_reserved_bytes);
    trace_json_add_real(json, "peak_at_ms", ms(prediction->peak.at.host_ns));
    add_categories(json, "peak_by_category", prediction->peak.by_sub);
    trace_json_add_int(json, "outside_allocator_bytes", prediction->outside_allocator_bytes);
    trace_json_add_int(json, "allocator_bytes", prediction->allocator_bytes);
    trace_json_add_int(json, "alloc_retries", prediction->alloc_retries);
    add_comm(json, prediction);
    trace_json_add_real(json, "compute_ms", ms(prediction->compute_ns));
    trace_json_add_real(json, "host_ms", ms(prediction->host_ns));
    trace_json_add_text(json, "bound_by", prediction->bound_by);
    CliSpending spent = cli_spending(report->plan, report->cluster, prediction);
    if (spent.kwh_per_million > 0) {
        trace_json_add_real(json, "kwh_per_million_tokens", spent.kwh_per_million);
    }
    if (spent.price_per_million > 0) {
        trace_json_add_real(json, "price_per_million_tokens", spent.price_per_million);
    }
    cli_every_rank_add_json(report->every, prediction, report->cluster, json);
}

static void print_json(const Report *report) {
    const SimPrediction *prediction = report->prediction;
    g_autoptr(JsonBuilder) json = json_builder_new();
    json_builder_begin_object(json);
    trace_json_add_text(json, "plan_digest", plan_digest(report->plan));
    trace_json_add_text(json, "cluster", report->cluster->name);
    trace_json_add_bool(json, "fits", prediction->fits && !prediction->unsupported_dtype);
    trace_json_add_bool(json, "trains_well", cli_trains_well(prediction));
    if (prediction->unsupported_dtype) {
        trace_json_add_text(json, "unsupported_dtype", prediction->unsupported_dtype);
    } else {
        add_figures(json, report);
    }
    if (!prediction->fits) {
        add_oom(json, report);
    }
    json_builder_end_object(json);
    g_autofree char *text = trace_json_text(json);
    printf("%s\n", text);
}

/* ---- the command ---- */

static int complain(const GError *error, int status) {
    fprintf(stderr, "foreshard predict: %s\n", error->message);
    return status;
}

static int predict(const Plan *plan, const Options *options, CliEveryRank *every) {
    g_autoptr(GError) error = NULL;
    g_autofree char *path = cli_data_find(CLI_DATA_CLUSTERS, options->cluster, &error);
    g_autoptr(ModelCluster) cluster = path ? model_cluster_read_file(path, &error) : NULL;
    if (!cluster) {
        return complain(error, BAD_INPUT);
    }
    model_cluster_force_nccl(cluster, options->nccl_algo, options->nccl_proto);
    g_autoptr(Trace) trace = options->trace ? trace_new() : NULL;
    SimOptions sim_options = {.steps = (uint32_t)options->steps, .alone = options->no_sharing};
    if (!cli_every_rank_settle(every, plan, cluster, &sim_options, &error)) {
        return complain(error, BAD_INPUT);
    }
    g_autoptr(SimPrediction) prediction = sim_predict(plan, cluster, &sim_options, trace, &error);
    cli_every_rank_played(every);
    if (!prediction) {
        return complain(error, BAD_INPUT);
    }
    if (trace && prediction->unsupported_dtype) {
        fprintf(stderr, "foreshard predict: nothing was played, so %s was not written\n",
                options->trace);
    } else if (trace && !trace_write_file(trace, options->trace, &error)) {
        return complain(error, FAILED);
    }
    Report report = {plan, cluster, prediction, every, options->cluster, &sim_options};
    if (options->json) {
        print_json(&report);
    } else {
        print_text(&report);
    }
    return OK;
}

static bool check_options(const Options *options, int n_words, GError **error) {
    const char *wrong = NULL;
    SimNcclAlgo algo;
    SimNcclProto proto;
    if (n_words != 2) {
        wrong = "give one plan file or network, as in: foreshard predict gpt-toy --cluster "
                "a100-node";
    } else if (!options->cluster) {
        wrong = "give a cluster, as in: --cluster a100-node";
    } else if (options->nccl_algo && !sim_nccl_algo_parse(options->nccl_algo, &algo)) {
        wrong = "--nccl-algo is one of ring, tree, nvls, nvlstree, pat";
    } else if (options->nccl_proto && !sim_nccl_proto_parse(options->nccl_proto, &proto)) {
        wrong = "--nccl-proto is one of ll, ll128, simple";
    } else if (options->steps < 1 || options->steps > 10000) {
        wrong = "--steps takes a number from 1 to 10000";
    }
    if (wrong) {
        g_set_error_literal(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, wrong);
    }
    return !wrong;
}

int cmd_predict(int argc, char **argv) {
    g_autofree char *cluster = NULL, *trace = NULL, *nccl_algo = NULL, *nccl_proto = NULL;
    Options options = {.steps = SIM_DEFAULT_STEPS};
    const GOptionEntry entries[] = {
        {"cluster", 'c', 0, G_OPTION_ARG_STRING, &cluster, "the machine: a name or a file", "C"},
        {"steps", 0, 0, G_OPTION_ARG_INT, &options.steps,
         "steps to play, the first two of which make state (default 4)", "K"},
        {"trace", 0, 0, G_OPTION_ARG_FILENAME, &trace, "write every op and allocation", "FILE"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &options.json, "print one JSON object", NULL},
        {"nccl-algo", 0, 0, G_OPTION_ARG_STRING, &nccl_algo, "force it, as NCCL_ALGO does", "NAME"},
        {"no-sharing", 0, 0, G_OPTION_ARG_NONE, &options.no_sharing,
         "ops beside each other run as fast as alone", NULL},
        {"nccl-proto", 0, 0, G_OPTION_ARG_STRING, &nccl_proto, "force it, as NCCL_PROTO does",
         "NAME"},
        {0},
    };
    g_autoptr(GOptionContext) context = g_option_context_new("(PLAN | NETWORK)");
    g_option_context_set_summary(context, "Predicts memory and time of a plan on a cluster.");
    g_option_context_set_description(
        context,
        "Examples:\n"
        "  foreshard predict gpt-toy --sharding full --ranks 2 --cluster a100-node\n"
        "  foreshard predict gpt.plan --cluster mine.ini --trace gpt.trace --json\n"
        "  foreshard predict gpt-toy -n 16 --cluster a100-roce --every-rank --jitter 5 \\\n"
        "      --slow rank=3:1.2 --degrade nic=8:0.5 --steps 20 --trace-ranks 0,3 --trace t\n\n"
        "Exit status: 0 predicted, whether the plan fits or not; 1 the trace cannot be "
        "written; 2 the\ninput cannot be read, or a setting is refused.");
    g_option_context_add_main_entries(context, entries, NULL);
    g_autoptr(CliEveryRank) every = cli_every_rank_new(context);
    g_autoptr(CliPlanSource) source = cli_plan_source_new(context);
    g_autoptr(GError) error = NULL;
    if (!cli_options_parse(context, &argc, &argv, &error)) {
        return complain(error, BAD_INPUT);
    }
    options.cluster = cluster;
    options.trace = trace;
    options.nccl_algo = nccl_algo;
    options.nccl_proto = nccl_proto;
    if (!check_options(&options, argc, &error)) {
        return complain(error, BAD_INPUT);
    }
    g_autoptr(Plan) plan = cli_plan_source_load(source, argv[1], &error);
    return plan ? predict(plan, &options, every) : complain(error, BAD_INPUT);
}
