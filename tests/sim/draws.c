#include "tests/sim/draws.h"

#include <string.h>

#include "sim/costs/network.h"
#include "tests/sim/plays.h"
#include "tests/sim/toy.h"

enum {
    DRAWS = 500,
    MOST_RANKS = 16
};

static const char *const networks[] = {"gpt-toy",  "llama-toy", "moe-toy",  "t5-toy",
                                       "neox-toy", "llama-toy", "llama-toy"};
static const char *const clusters[] = {"a100-roce", "dgx-h100", "two-nodes-ethernet",
                                       "this-machine"};

/* Each stands in one draw of so many: few at a time, since many do not go together. */
static const struct {
    unsigned of;
    const char *words; /* one of them */
} settings[] = {
    {1, "flavour=fsdp1 flavour=fsdp2 flavour=fsdp2 flavour=ddp"},
    {9, "wrap=whole wrap=linear wrap=every=2"},
    {9, "micro_batch=2 micro_batch=5"},
    {9, "accumulate=2 accumulate=3"},
    {12, "accumulate_sync=every"},
    {9, "checkpointing=full checkpointing=every=2"},
    {9, "param_dtype=bf16"},
    {12, "reduce_dtype=fp32"},
    {12, "output_dtype=bf16 output_dtype=fp32"},
    {12, "offload=activations offload=params"},
    {12, "backward_prefetch=none backward_prefetch=post"},
    {15, "limit_all_gathers=0"},
    {12, "clip=1"},
    {12, "step_sync=no"},
    {12, "host_reads=loss host_reads=both"},
    {15, "reshard_after_forward=no reshard_after_forward=yes reshard_after_backward=no"},
    {6, "tensor=2"},
    {6, "expert=2"},
    {18, "allocator=expandable_segments:True"},
    {9, "kernels=fused kernels=compiled"},
    {6, "pipeline=2 pipeline=3"},
    {6, "context=2"},
    {15, "deterministic=yes"},
    {6, "expert_overload=1.5"},
    {15, "optimizer=sgd optimizer=momentum"},
    {15, "zero_grad=keep"},
    {12, "optimizer_kernel=loop optimizer_kernel=fused"},
    {18, "lora_rank=4"},
    {18, "autocast=bf16"},
    {18, "loss_scale=dynamic"},
    {18, "float8=tensorwise"},
    {18, "pytorch=2.4 pytorch=2.7"},
    {18, "freeze=Embedding"},
};

static uint32_t any(GRand *random, uint32_t n) {
    return (uint32_t)g_rand_int_range(random, 0, (gint32)n);
}

static void add_sharding(GString *strategy, GRand *random, uint32_t ranks) {
    static const char *const words[] = {"full", "full", "grad-op", "hybrid", "hybrid-grad-op"};
    if (strstr(strategy->str, "ddp")) {
        g_string_append(strategy, " sharding=none");
        return;
    }
    const char *word = words[any(random, G_N_ELEMENTS(words))];
    g_string_append_printf(strategy, " sharding=%s", word);
    for (uint32_t n = any(random, ranks) + 1; g_str_has_prefix(word, "hybrid"); n--) {
        if (ranks % n == 0) {
            g_string_append_printf(strategy, " replicate=%u", n);
            return;
        }
    }
}

static char *draw_strategy(GRand *random) {
    uint32_t ranks = any(random, MOST_RANKS) + 1;
    GString *strategy = g_string_new(NULL);
    g_string_printf(strategy, "ranks=%u", ranks);
    for (unsigned i = 0; i < G_N_ELEMENTS(settings); i++) {
        g_auto(GStrv) words = g_strsplit(settings[i].words, " ", -1);
        uint32_t word = any(random, g_strv_length(words));
        if (any(random, settings[i].of) == 0) {
            g_string_append_printf(strategy, " %s", words[word]);
        }
    }
    add_sharding(strategy, random, ranks);
    return g_string_free(strategy, FALSE);
}

static void clear_draw(Draw *draw) {
    model_cluster_free(draw->cluster);
    plan_free(draw->plan);
    g_free(draw->strategy);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Draw, clear_draw)

/* Its plan is NULL where it is not known, or needs more ranks than the cluster has. */
static Draw draw_one(uint32_t number) {
    g_autoptr(GRand) random = g_rand_new_with_seed(number);
    Draw draw = {.network = networks[any(random, G_N_ELEMENTS(networks))],
                 .cluster_name = clusters[any(random, G_N_ELEMENTS(clusters))],
                 .strategy = draw_strategy(random)};
    draw.cluster = plays_cluster(draw.cluster_name);
    draw.plan = toy_plan_if_known(draw.network, draw.strategy);
    if (draw.plan) {
        g_test_message("%u: %s, %s, on %s", number, draw.network, draw.strategy, draw.cluster_name);
    }
    return draw;
}

SimPrediction *draw_predict(const Draw *draw, bool every_rank) {
    const SimOptions options = {.steps = 5, .every_rank = every_rank};
    return plays_predict(draw->plan, draw->cluster, &options, NULL);
}

/* Where others are wanted than always. */
static uint32_t first_number(void) {
    const char *from = g_getenv("DRAWS_FROM");
    return from ? (uint32_t)g_ascii_strtoull(from, NULL, 10) : 0;
}

void draw_each(bool (*law)(Draw *draw), unsigned least) {
    unsigned held = 0;
    uint32_t first = first_number();
    for (uint32_t number = first; number < first + DRAWS; number++) {
        g_auto(Draw) draw = draw_one(number);
        held += draw.plan && law(&draw);
    }
    g_test_message("held to %u draws", held);
    g_assert_cmpuint(held, >=, least);
}

bool draw_is_alike(const Draw *draw) {
    const Plan *plan = draw->plan;
    for (PlanAxis axis = 0; axis < PLAN_N_AXES; axis++) {
        SimNetworkPath first = sim_network_path_of(draw->cluster, plan, axis, 0);
        for (uint32_t rank = 1; rank < plan->world; rank++) {
            SimNetworkPath path = sim_network_path_of(draw->cluster, plan, axis, rank);
            if (path.nodes != first.nodes || path.ranks_a_node != first.ranks_a_node ||
                path.least_a_node != first.least_a_node) {
                return false;
            }
        }
    }
    return plan->n_roles == 1;
}
