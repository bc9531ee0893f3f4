#include "cli/predict/every-rank-report.h"

#include <stdio.h>

#include "cli/say/prose.h"
#include "sim/settings.h"
#include "trace/json.h"

enum {
    ALL_ROWS = 16, /* as many ranks are all shown; of more: */
    WORST_ROWS = 8
};

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
           (unsigned)(rank / a_node), book->node_kind, sim_ms(book->compute_ns),
           sim_ms(book->exposed_ns), sim_ms(book->lost_ns), book->n_last, sim_ms(book->held_ns));
}

typedef struct {
    const char *name; /* a rank's node_kind */
    uint32_t n_ranks;
    SimTime compute_ns, exposed_ns, lost_ns; /* sums */
} KindBook;

/* A row for each kind of node, in the order of ranks. */
static GArray *sum_kinds(const SimPrediction *prediction) {
    GArray *kinds = g_array_new(FALSE, FALSE, sizeof(KindBook));
    for (uint32_t rank = 0; rank < prediction->n_ranks; rank++) {
        const SimRankBook *book = &prediction->ranks[rank];
        guint i = 0;
        while (i < kinds->len &&
               !g_str_equal(g_array_index(kinds, KindBook, i).name, book->node_kind)) {
            i++;
        }
        if (i == kinds->len) {
            const KindBook fresh = {.name = book->node_kind};
            g_array_append_val(kinds, fresh);
        }
        KindBook *kind = &g_array_index(kinds, KindBook, i);
        kind->n_ranks++;
        kind->compute_ns += book->compute_ns;
        kind->exposed_ns += book->exposed_ns;
        kind->lost_ns += book->lost_ns;
    }
    return kinds;
}

static void print_kinds(const SimPrediction *prediction) {
    g_autoptr(GArray) kinds = sum_kinds(prediction);
    if (kinds->len < 2) {
        return;
    }
    printf("kinds of node, the mean of their ranks\n");
    for (guint i = 0; i < kinds->len; i++) {
        const KindBook *kind = &g_array_index(kinds, KindBook, i);
        printf("  %5u ranks  %-16.16s %10.3f ms %10.3f ms %10.3f ms\n", kind->n_ranks, kind->name,
               sim_ms(kind->compute_ns / kind->n_ranks), sim_ms(kind->exposed_ns / kind->n_ranks),
               sim_ms(kind->lost_ns / kind->n_ranks));
    }
}

/* The first rows of an order over all ranks, of those that have any of such time. */
static void print_first(const SimPrediction *prediction, uint64_t a_node,
                        SimTime (*time_of)(const SimRankBook *book), const char *title) {
    Order order = {prediction->ranks, time_of};
    g_autofree uint32_t *ranks = g_new(uint32_t, prediction->n_ranks);
    for (uint32_t rank = 0; rank < prediction->n_ranks; rank++) {
        ranks[rank] = rank;
    }
    g_qsort_with_data(ranks, (gint)prediction->n_ranks, sizeof *ranks, compare, &order);
    printf("%s\n", title);
    for (uint32_t i = 0; i < WORST_ROWS && time_of(&prediction->ranks[ranks[i]]) > 0; i++) {
        print_row(prediction, ranks[i], a_node);
    }
}

void cli_every_rank_print(const SimJitter *jitter, const SimPrediction *prediction,
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
    const double *shares = jitter->shares;
    cli_say("\nwho waits for whom (%u ranks, jitter %g %%, spread %g %%, hosts %g %%, links %g %%, "
            "seed %" G_GUINT64_FORMAT "; mean of the steady steps)\n",
            prediction->n_ranks, 100 * shares[SIM_JITTER_KERNEL], 100 * shares[SIM_JITTER_GPU],
            100 * shares[SIM_JITTER_HOST], 100 * shares[SIM_JITTER_LINK], jitter->seed);
    cli_say("  exposed communication: %.3f ms a rank on average, %.3f ms of it because other ranks "
            "came late\n",
            sim_ms(exposed / prediction->n_ranks), sim_ms(lost / prediction->n_ranks));
    printf("   rank  node  kind                computes      exposed   others late   was last   "
           "held up others\n");
    print_kinds(prediction);
    if (prediction->n_ranks <= ALL_ROWS) {
        for (uint32_t rank = 0; rank < prediction->n_ranks; rank++) {
            print_row(prediction, rank, a_node);
        }
        return;
    }
    print_first(prediction, a_node, held_by, "ranks that hold up the others most");
    print_first(prediction, a_node, lost_by, "ranks that wait longest for others");
}

void cli_every_rank_add_json(const SimJitter *jitter, const SimPrediction *prediction,
                             const ModelCluster *cluster, JsonBuilder *json) {
    if (!prediction->n_ranks) {
        return;
    }
    trace_json_begin_object(json, "every_rank");
    const double *shares = jitter->shares;
    trace_json_add_int(json, "seed", jitter->seed);
    for (unsigned kind = 0; kind < SIM_N_JITTERS; kind++) {
        trace_json_add_real(json, sim_jitter_keys[kind], 100 * shares[kind]);
    }
    trace_json_add_int(json, "memory_of_rank", prediction->memory_rank);
    trace_json_add_int(json, "times_of_rank", prediction->time_rank);
    trace_json_begin_array(json, "ranks");
    for (uint32_t rank = 0; rank < prediction->n_ranks; rank++) {
        const SimRankBook *book = &prediction->ranks[rank];
        json_builder_begin_object(json);
        trace_json_add_int(json, "rank", rank);
        trace_json_add_int(json, "node", rank / cluster->topology_gpus_per_node);
        trace_json_add_text(json, "kind", book->node_kind);
        trace_json_add_real(json, "step_ms", sim_ms(book->step_ns));
        trace_json_add_real(json, "compute_ms", sim_ms(book->compute_ns));
        trace_json_add_real(json, "exposed_ms", sim_ms(book->exposed_ns));
        trace_json_add_real(json, "exposed_wait_ms", sim_ms(book->lost_ns));
        trace_json_add_real(json, "wait_ms", sim_ms(book->waited_ns));
        trace_json_add_real(json, "times_last", book->n_last);
        trace_json_add_real(json, "held_up_others_ms", sim_ms(book->held_ns));
        trace_json_add_int(json, "peak_reserved_bytes", book->peak_reserved_bytes);
        trace_json_add_int(json, "alloc_retries", book->alloc_retries);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
    json_builder_end_object(json);
}
