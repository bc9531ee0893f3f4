/* cli/predict/text.c - a prediction for people: see predict.h. */
#include "cli/predict/predict.h"
#include "plan/mesh.h"

#include <stdio.h>
#include <string.h>

#include "cli/plan/routing.h"
#include "cli/plan/trained.h"
#include "cli/predict/edge.h"
#include "cli/predict/evaluation.h"
#include "cli/predict/every-rank-report.h"
#include "cli/predict/how-sure.h"
#include "cli/predict/precision.h"
#include "cli/say/prose.h"
#include "cli/what-if/ways-to-fit.h"
#include "sim/figures.h"
#include "sim/spending.h"
#include "sim/trains-well.h"
#include "trace/scale.h"

static void print_bytes(const char *name, uint64_t bytes) {
    g_autofree char *text = trace_bytes_text((double)bytes);
    printf("  %-28s %12s\n", name, text);
}

static char *unit_text(const Plan *plan, uint32_t unit) {
    return unit == PLAN_NONE ? g_strdup("no unit")
                             : g_strconcat("unit ", plan->units[unit].name, NULL);
}

static char *moment_text(const Plan *plan, const SimMoment *at) {
    g_autofree char *unit = unit_text(plan, at->unit);
    g_autofree char *step = trace_step_name(at->step);
    g_autofree char *when = at->step < 0
                                ? g_strdup_printf("during %s", step)
                                : g_strdup_printf("at %.3f ms, in %s", sim_ms(at->host_ns), step);
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

/* "rank 24, stage 3 of 4"; where nobody is told from others, NULL. */
static char *rank_text(const CliPredictReport *report, uint32_t rank) {
    const Plan *plan = report->plan;
    return plan->axes[PLAN_AXIS_PIPELINE] > 1 || report->prediction->n_ranks
               ? plan_rank_text(plan, rank)
               : NULL;
}

/* Of the rank whose memory the verdict is about. */
static uint64_t needed_bytes(const SimPrediction *prediction) {
    return prediction->n_ranks && !prediction->fits
               ? prediction->ranks[prediction->oom.rank].peak_reserved_bytes
               : prediction->peak_reserved_bytes;
}

static void print_fit(const CliPredictReport *report) {
    const SimPrediction *prediction = report->prediction;
    uint64_t need = needed_bytes(prediction), have = prediction->allocator_bytes;
    g_autofree char *left =
        trace_bytes_text(need > have ? (double)(need - have) : (double)(have - need));
    g_autofree char *needed = trace_bytes_text((double)need);
    g_autofree char *room = trace_bytes_text((double)have);
    g_autofree char *outside = trace_bytes_text((double)prediction->outside_allocator_bytes);
    if (prediction->fits) {
        cli_say("fits: yes, %s of the allocator's %s left (outside it: %s)\n", left, room, outside);
        return;
    }
    g_autofree char *asked = trace_bytes_text((double)prediction->oom.bytes);
    g_autofree char *at = moment_text(report->plan, &prediction->oom.at);
    g_autofree char *allocated = trace_bytes_text((double)prediction->oom.at.allocated_bytes);
    g_autofree char *reserved = trace_bytes_text((double)prediction->oom.at.reserved_bytes);
    g_autofree char *rank = rank_text(report, prediction->oom.rank);
    g_autofree char *whose = rank ? g_strdup_printf("%s runs ", rank) : g_strdup("");
    cli_say("fits: NO, %sout of memory %s\n", whose, at);
    cli_say("  no room for %s of %s (%s): %s of the allocator's %s reserved, %s allocated (outside "
            "it: %s)\n",
            asked, prediction->oom.buffer, plan_subcategory_name(prediction->oom.sub), reserved,
            room, allocated, outside);
    if (need > have) {
        cli_say("  a whole step would need %s, %s more than there is\n", needed, left);
    }
    printf("  held at that moment:\n");
    print_subs(prediction->oom.by_sub);
}

static void print_edge(const CliPredictReport *report) {
    CliEdge edge = cli_edge_of(report->plan, report->cluster, report->asked, report->prediction);
    g_autofree char *text = cli_edge_text(&edge, report->prediction);
    cli_prose_print(text);
}

static void print_units(const CliPredictReport *report) {
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

static void print_retries_of_steps(const SimPrediction *prediction) {
    uint32_t n = prediction->n_steps;
    g_autofree char *name = prediction->alloc_retries > 0
                                ? g_strdup_printf("allocation retries, %u steps", n)
                                : g_strdup("allocation retries");
    printf("  %-28s %12" G_GUINT64_FORMAT "\n", name, prediction->alloc_retries);
    if (prediction->alloc_retries > 0) {
        g_autofree char *later = g_strdup_printf("a step, in the last %u", n - n / 2);
        printf("  %-28s %12.1f\n", later, prediction->retries_per_step);
    }
}

static void print_memory(const CliPredictReport *report) {
    const SimPrediction *prediction = report->prediction;
    g_autofree char *at = moment_text(report->plan, &prediction->peak.at);
    g_autofree char *rank = rank_text(report, prediction->memory_rank);
    g_autofree char *whose =
        rank ? g_strdup_printf("%s, the fullest", rank)
             : g_strdup_printf("each %s", model_cluster_device_word(report->cluster));
    cli_say("\nmemory of %s%s\n", whose, prediction->fits ? "" : " (if it had enough)");
    print_bytes("peak allocated", prediction->peak.at.allocated_bytes);
    print_bytes("peak active", prediction->peak_active_bytes);
    print_bytes("peak reserved", prediction->peak_reserved_bytes);
    if (prediction->n_ranks) {
        print_bytes("peak reserved, emptiest rank", least_reserved(prediction));
    }
    if (prediction->workspace_bytes) {
        print_bytes("cuBLAS workspaces, beside it", prediction->workspace_bytes);
    }
    print_retries_of_steps(prediction);
    cli_say("held at the peak of allocated memory, %s\n", at);
    print_subs(prediction->peak.by_sub);
    printf("largest holders at that peak\n");
    print_units(report);
}

/* A row that would say 0.0 % is left out: it tells a reader nothing, and --json has it. */
static void print_time_row(const char *name, SimTime ns, SimTime step) {
    double percent = step > 0 ? 100 * (double)ns / (double)step : 0;
    if (percent >= 0.05) {
        printf("  %-40s %12.3f ms %6.1f %%\n", name, sim_ms(ns), percent);
    }
}

static void print_collectives(const SimPrediction *prediction) {
    bool any = false;
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        const SimCollectiveSum *sum = &prediction->collectives[kind];
        if (!sum->count) {
            continue;
        }
        if (!any) {
            printf("communication in a step              total         exposed          hidden     "
                   "          tensors\n");
            any = true;
        }
        SimTime hidden = sum->total_ns - sum->exposed_ns;
        g_autofree char *bytes = trace_bytes_text(sum->bytes);
        printf("  %4u %-20s %12.3f ms %12.3f ms %12.3f ms (%3.0f %%) %12s\n", sum->count,
               plan_op_info(kind)->name, sim_ms(sum->total_ns), sim_ms(sum->exposed_ns),
               sim_ms(hidden), sum->total_ns ? 100 * (double)hidden / (double)sum->total_ns : 0,
               bytes);
    }
}

/* A step is over when its last rank is through. */
static void print_rank_steps(const SimPrediction *prediction) {
    SimTime least = SIM_NEVER, most = 0;
    for (uint32_t rank = 0; rank < prediction->n_ranks; rank++) {
        least = MIN(least, prediction->ranks[rank].step_ns);
        most = MAX(most, prediction->ranks[rank].step_ns);
    }
    cli_say("  95 %% of the steps take at most %.3f ms; mean step of each of the %u ranks: %.3f to "
            "%.3f ms\n",
            sim_ms(sim_p95_step_ns(prediction)), prediction->n_ranks, sim_ms(least), sim_ms(most));
    printf("  below: rank %u, which waits least for others\n", prediction->time_rank);
}

static void print_spending(const CliPredictReport *report) {
    SimSpending spent = sim_spending(report->plan, report->cluster, report->prediction);
    if (spent.kwh_per_million > 0) {
        printf("  %.4g kWh per million tokens (GPUs only, at full power)\n", spent.kwh_per_million);
    }
    if (spent.price_per_million > 0) {
        cli_say("  price per million tokens: %.4g (GPUs only, at the cluster's price_per_hour)\n",
                spent.price_per_million);
    }
}

static void print_causes(const CliPredictReport *report, SimTime mean) {
    const SimPrediction *prediction = report->prediction;
    printf("where the time of a step goes, on the compute lane (mean)\n");
    for (unsigned cause = 0; cause < SIM_N_CAUSES; cause++) {
        SimTime ns = sim_prediction_cause_ns(prediction, cause);
        if (ns) {
            bool in_bubbles =
                cause == SIM_CAUSE_RANKS && report->plan->axes[PLAN_AXIS_PIPELINE] > 1;
            const char *idle = in_bubbles                   ? "idle, in "
                               : cause >= SIM_CAUSE_NETWORK ? "idle, waits for "
                                                            : "";
            g_autofree char *name = g_strconcat(idle, prediction->cause_names[cause], NULL);
            print_time_row(name, ns, mean);
            if (in_bubbles) {
                print_time_row("  of it the schedule's own, if stages were even",
                               (SimTime)sim_schedule_bubble_ns(report->plan, report->prediction),
                               mean);
            }
        }
    }
}

static void print_lanes(const CliPredictReport *report, SimTime mean) {
    const SimPrediction *prediction = report->prediction;
    printf("busy in a step (lanes: slowed kernels and launch overhead included)\n");
    for (uint32_t lane = 0; lane < prediction->n_lanes; lane++) {
        if (prediction->lane_busy_ns[lane]) {
            g_autofree char *name = g_strconcat("lane ", report->plan->lanes[lane], NULL);
            print_time_row(name, prediction->lane_busy_ns[lane], mean);
        }
    }
    print_time_row("host, issuing", prediction->host_ns, mean);
    print_time_row("host, blocked", prediction->host_blocked_ns, mean);
}

static void print_time(const CliPredictReport *report) {
    const SimPrediction *prediction = report->prediction;
    SimTime mean = (SimTime)sim_mean_step_ns(prediction);
    printf("\ntime%s\n", prediction->fits ? "" : " (if memory sufficed)");
    printf("  step %.3f ms ", sim_ms(prediction->median_step_ns));
    if (prediction->n_steady > 1 && prediction->least_step_ns == prediction->most_step_ns) {
        printf("(each of %u steady steps)\n", prediction->n_steady);
    } else if (prediction->n_steady > 1) {
        printf("(median of %u steady steps, %.3f to %.3f ms)\n", prediction->n_steady,
               sim_ms(prediction->least_step_ns), sim_ms(prediction->most_step_ns));
    } else {
        printf("(one steady step)\n");
    }
    if (prediction->n_ranks) {
        print_rank_steps(prediction);
    } else if (report->plan->axes[PLAN_AXIS_PIPELINE] > 1) {
        g_autofree char *rank = rank_text(report, prediction->time_rank);
        cli_say("  below: %s, which waits least for others\n", rank);
    }
    const char *device = model_cluster_device_word(report->cluster);
    if (report->plan->tokens_per_rank) {
        printf("  %.1f tokens/s/%s (%" G_GUINT64_FORMAT " tokens per %s in a step)\n",
               sim_a_second(prediction, (double)report->plan->tokens_per_rank), device,
               report->plan->tokens_per_rank, device);
    }
    cli_say("  %.3f TFLOP/s/%s, MFU %.2f %% (matrix products and attention, recomputation not "
            "counted)\n",
            sim_a_second(prediction, prediction->flops) / 1e12, device, 100 * prediction->mfu);
    print_spending(report);
    bool gives_back = prediction->alloc_retries && g_str_equal(prediction->bound_by, "host");
    cli_say("  bound by: %s%s\n", prediction->bound_by,
            gives_back ? ", which frees GPU memory and allocates it again (allocation retries)"
                       : "");
    print_causes(report, mean);
    print_lanes(report, mean);
    print_collectives(prediction);
}

static void print_retries(const SimPrediction *prediction) {
    uint64_t least = prediction->alloc_retries, most = least;
    for (uint32_t rank = 0; rank < prediction->n_ranks; rank++) {
        least = MIN(least, prediction->ranks[rank].alloc_retries);
        most = MAX(most, prediction->ranks[rank].alloc_retries);
    }
    g_autofree char *retries = trace_retries_text(most, prediction->n_steps);
    printf("trains well: NO, %s", retries);
    if (prediction->n_ranks) {
        printf(" (the rank with fewest: %" G_GUINT64_FORMAT ")", least);
    }
    printf("\n  in each the allocator frees its cache and asks the GPU again\n");
    if (prediction->n_ranks == 0) {
        cli_say("  unequal ranks do so at different moments, and all wait for each; --every-rank "
                "--spread 1 --jitter 5 shows what that costs\n");
    }
}

/* Those that end before the steps that count. */
static void print_first_retries(const SimPrediction *prediction) {
    if (prediction->alloc_retries > 0 && !sim_keeps_retrying(prediction)) {
        uint32_t n = prediction->n_steps;
        g_autofree char *retries = trace_retries_text(prediction->alloc_retries, n);
        cli_say("  %s, none of them in the last %u\n", retries, n - n / 2);
    }
}

/* Times are of the rank that waits least; the one that waits most may do nothing else. */
static void print_idlest(const SimPrediction *prediction) {
    uint32_t idlest = 0;
    for (uint32_t rank = 0; rank < prediction->n_ranks; rank++) {
        idlest =
            prediction->ranks[rank].lost_ns > prediction->ranks[idlest].lost_ns ? rank : idlest;
    }
    double share = prediction->n_ranks ? (double)prediction->ranks[idlest].lost_ns /
                                             (double)prediction->ranks[idlest].step_ns
                                       : 0;
    if (share > 1 - SIM_WORKS_WELL) {
        cli_say("  but rank %u waits for others for %.1f %% of it: see who waits for whom\n",
                idlest, 100 * share);
    }
}

/* Why not: the share of the step that is lost most to one thing. */
static void print_verdict(const CliPredictReport *report) {
    const SimPrediction *prediction = report->prediction;
    double works = 100 * sim_working_share(prediction);
    g_autofree char *who = g_strdup_printf("%s%s", model_cluster_device_word(report->cluster),
                                           prediction->n_ranks > 1 ? "s work" : " works");
    if (sim_trains_well(prediction)) {
        cli_say("trains well: yes, the %s for %.1f %% of a step (MFU %.1f %%)\n", who, works,
                100 * prediction->mfu);
        print_idlest(prediction);
    } else if (prediction->fits && sim_keeps_retrying(prediction)) {
        print_retries(prediction);
    } else if (prediction->fits) {
        unsigned worst = sim_worst_cause(prediction);
        cli_say("trains well: NO, the %s for %.1f %% of a step (%.0f %% wanted; "
                "MFU %.1f %%)\n  most is lost to %s%s\n",
                who, works, 100 * SIM_WORKS_WELL, 100 * prediction->mfu,
                prediction->cause_names[worst],
                prediction->n_ranks && worst == SIM_CAUSE_RANKS ? ": see who waits for whom" : "");
    }
    if (prediction->fits) {
        print_first_retries(prediction);
    }
    if (prediction->fits && !sim_trains_well(prediction)) {
        cli_say("  what would help: foreshard diagnose, with the same arguments\n");
    }
}

/* What would make it fit, or do without retries, told at once; the rest is for diagnose. */
static void print_ways(const CliPredictReport *report) {
    const char *that = report->prediction->fits ? "no retries" : "fits";
    g_autoptr(GArray) ways = cli_predict_ways(report);
    for (guint i = 0; ways && i < ways->len; i++) {
        const CliWay *way = &g_array_index(ways, CliWay, i);
        g_autofree char *reserved = trace_bytes_text(way->reserved_bytes);
        g_autofree char *text = cli_way_text(way, reserved);
        cli_say("  %s with %s\n", that, text);
    }
    if (ways && !ways->len && !report->prediction->fits) {
        cli_say("  " CLI_NO_WAY_TO_FIT "\n");
    }
}

/* One rank is what is planned without -n, which is easily forgotten. */
static void print_ranks_left(const CliPredictReport *report) {
    uint64_t place = model_cluster_ranks(report->cluster);
    if (report->plan->world == 1 && place > 1 && report->cluster->device_kind == MODEL_DEVICE_GPU) {
        cli_say("on one of its %" G_GUINT64_FORMAT " GPUs; -n N plans for more\n", place);
    }
}

/* Ranks fill nodes one behind the other. */
static void print_last_node(const CliPredictReport *report) {
    uint64_t of_node = report->cluster->topology_gpus_per_node, world = report->plan->world;
    uint64_t in_last = world % of_node;
    if (world > of_node && in_last) {
        cli_say("on %" G_GUINT64_FORMAT " nodes; in the last one on %" G_GUINT64_FORMAT
                " of its %" G_GUINT64_FORMAT " %s\n",
                world / of_node + 1, in_last, of_node,
                report->cluster->device_kind == MODEL_DEVICE_GPU ? "GPUs" : "processes");
    }
}

void cli_predict_print_text(const CliPredictReport *report) {
    cli_say("%s\n", report->plan->title ? report->plan->title : plan_digest(report->plan));
    cli_say("on %s: %s\n", report->cluster->name, report->cluster->title);
    print_ranks_left(report);
    print_last_node(report);
    g_autofree char *precision = cli_precision_text(report->source, report->plan, report->cluster);
    if (precision) {
        cli_say("%s\n", precision);
    }
    g_autofree char *trained = cli_trained_text(report->plan);
    if (trained) {
        cli_say("%s\n", trained);
    }
    g_autofree char *routing = cli_routing_text(report->plan);
    if (routing) {
        cli_say("%s\n", routing);
    }
    if (report->prediction->unsupported_dtype) {
        cli_say("fits: NO, %s cannot compute in %s; %s, or use another machine\n",
                report->prediction->unsupported_on, report->prediction->unsupported_dtype,
                cli_predict_other_dtype(report->prediction));
        return;
    }
    print_fit(report);
    print_edge(report);
    if (!report->prediction->fits) {
        print_ways(report);
    }
    print_verdict(report);
    if (cli_predict_needs_calm(report)) {
        print_ways(report);
    }
    g_auto(CliHowSure) sure = {0};
    cli_how_sure(report, &sure);
    cli_how_sure_print(&sure);
    print_memory(report);
    print_time(report);
    cli_evaluation_print(report);
    cli_every_rank_print(&report->asked->jitter, report->prediction, report->cluster);
}
