/* sim/costs/lists: kernels as PyTorch launches them, chunk by chunk, and published times. */
#include "sim/costs/lists.h"

#include <math.h>

#include "plan/op/op.h"
#include "sim/costs/compute.h"
#include "sim/costs/issue.h"
#include "tests/sim/toy.h"

enum {
    CHUNK = 65536
};

/* ---- plans of one op over lists -------------------------------------------------------------- */

/* Its lists that are cut, and then numbers of one element for each tensor. */
typedef struct {
    const char *begins;
    const char *lists[4];
    const char *numbers;
    unsigned most; /* tensors of a kernel of 320 blocks: depth_to_max_tensors */
} Kind;

static const Kind scale_all = {"scale_all factor=b4", {"gradient"}, NULL, 110};
static const Kind norms = {"norms", {"gradient"}, "norm", 110};
static const Kind moment = {"adam_moment beta1=0.9", {"gradient", "exp_avg"}, NULL, 64};
static const Kind update = {
    "adam_update lr=1 beta1=0.9", {"exp_avg", "root", "parameter"}, NULL, 48};
static const Kind fused = {"adam_fused lr=1 beta1=0.9 beta2=0.9 eps=1 weight_decay=0 decoupled=1",
                           {"gradient", "parameter", "exp_avg", "exp_avg_sq"},
                           "steps",
                           36};

static void append_list(GString *op, const char *name, unsigned buffer, unsigned element_bytes,
                        const uint64_t *sizes, unsigned n) {
    uint64_t at = 0;
    g_string_append_printf(op, " %s=", name);
    for (unsigned i = 0; i < n; i++) {
        g_string_append_printf(op, "%sb%u+%" G_GUINT64_FORMAT "[%" G_GUINT64_FORMAT "]",
                               i ? "," : "", buffer, at, sizes ? sizes[i] : 1);
        at += (sizes ? sizes[i] : 1) * element_bytes;
    }
}

static Plan *plan_of(const Kind *kind, const char *dtype, const uint64_t *sizes, unsigned n) {
    unsigned bytes = g_str_equal(dtype, "bf16") ? 2 : 4, buffer = 5;
    uint64_t sum = 0;
    for (unsigned i = 0; i < n; i++) {
        sum += sizes[i];
    }
    g_autoptr(GString) buffers = g_string_new(NULL);
    g_autoptr(GString) op = g_string_new(NULL);
    g_string_printf(buffers, "b4 4 fp32 temporary/op compute - cfst factor\n");
    g_string_printf(op, "launch compute %s", kind->begins);
    for (unsigned l = 0; l < G_N_ELEMENTS(kind->lists) && kind->lists[l]; l++) {
        append_list(op, kind->lists[l], buffer, bytes, sizes, n);
        g_string_append_printf(buffers,
                               "b%u %" G_GUINT64_FORMAT " %s temporary/op compute - cfst x\n",
                               buffer++, sum * bytes, dtype);
    }
    if (kind->numbers) {
        append_list(op, kind->numbers, buffer, 4, NULL, n);
        g_string_append_printf(buffers, "b%u %u fp32 temporary/op compute - cfst numbers\n", buffer,
                               4 * n);
    }
    g_string_append_c(op, '\n');
    return toy_plan(op->str, buffers->str);
}

static const PlanOp *op_of(const Plan *plan) {
    return &plan->roles[0].ops[plan->roles[0].sections[PLAN_SECTION_FIRST][0].arg];
}

static ModelCluster *cluster_of(const char *name) {
    g_autoptr(GError) error = NULL;
    g_autofree char *file = g_strconcat(name, ".ini", NULL);
    g_autofree char *path = g_build_filename(g_getenv("FORESHARD_TEST_CLUSTERS"), file, NULL);
    ModelCluster *cluster = model_cluster_read_file(path, &error);
    g_assert_no_error(error);
    return cluster;
}

static double us_of(const ModelCluster *cluster, const Plan *plan, const PlanOp *op) {
    SimComputeCost cost;
    g_assert_true(sim_compute_cost(cluster, &plan->roles[0], op, (SimKernels){0}, &cost));
    return (cost.overhead_ns + cost.bytes_ns) / 1e3;
}

static unsigned kernels_of(const ModelCluster *cluster, const Plan *plan) {
    return sim_list_cost(cluster, &plan->roles[0], op_of(plan), 0).kernels;
}

/* ---- how many -------------------------------------------------------------------------------- */

/* As PyTorch's loop goes: chunk after chunk, launching where it is full. */
static unsigned launches(const uint64_t *sizes, unsigned n, unsigned most_tensors,
                         unsigned most_blocks) {
    unsigned count = 0, tensors = 0, blocks = 0;
    for (unsigned t = 0; t < n; t++) {
        tensors++;
        for (uint64_t at = 0; at < sizes[t]; at += CHUNK) {
            bool is_last = at + CHUNK >= sizes[t];
            blocks++;
            if (blocks == most_blocks || (is_last && tensors == most_tensors)) {
                count++;
                blocks = 0;
                tensors = is_last ? 0 : 1;
            }
        }
    }
    return count + (blocks > 0);
}

static void kernels_of_drawn_lists(void) {
    const Kind *const kinds[] = {&scale_all, &norms, &moment, &update, &fused};
    ModelCluster cluster = toy_cluster;
    for (unsigned draw = 0; draw < 200; draw++) {
        const Kind *kind = kinds[draw % G_N_ELEMENTS(kinds)];
        unsigned more = draw % 2 ? 7 : 1, n = (unsigned)g_test_rand_int_range(2, 400);
        int largest = g_test_rand_bit() ? 40 * CHUNK : 2 * CHUNK;
        g_autofree uint64_t *sizes = g_new(uint64_t, n);
        for (unsigned t = 0; t < n; t++) {
            bool is_whole = g_test_rand_bit();
            int drawn = g_test_rand_int_range(1, largest);
            sizes[t] = (uint64_t)(is_whole ? (drawn + CHUNK - 1) / CHUNK * CHUNK : drawn);
        }
        g_autoptr(Plan) plan = plan_of(kind, "fp32", sizes, n);
        cluster.device_list_blocks = 320 * more;
        unsigned beside = kind == &norms ? 2 : 0; /* set to zero, and added up */
        g_assert_cmpuint(kernels_of(&cluster, plan), ==,
                         launches(sizes, n, kind->most * more, 320 * more) + beside);
    }
}

/* By hand: 36 tensors fill a kernel, or 320 chunks, which may end within a tensor; the other 35 of
 * the second case then find room in the same kernel as its rest. */
static void kernels_by_hand(void) {
    static const struct {
        unsigned n;
        uint64_t first, others;
        unsigned kernels;
    } cases[] = {
        {36, 1, 1, 1},
        {37, 1, 1, 2},
        {36, 321 * CHUNK, 1, 2},
        {37, 321 * CHUNK, 1, 3},
        {37, 320 * CHUNK, 1, 2},
        {38, 320 * CHUNK, 1, 3},
        {2, 320 * CHUNK, 320 * CHUNK + 1, 3},
    };
    ModelCluster cluster = toy_cluster;
    cluster.device_list_blocks = 320;
    for (unsigned c = 0; c < G_N_ELEMENTS(cases); c++) {
        uint64_t sizes[38];
        for (unsigned t = 0; t < cases[c].n; t++) {
            sizes[t] = t ? cases[c].others : cases[c].first;
        }
        g_autoptr(Plan) plan = plan_of(&fused, "fp32", sizes, cases[c].n);
        g_assert_cmpuint(kernels_of(&cluster, plan), ==, cases[c].kernels);
    }
}

/* CPU ranks, kernels that were measured as a whole, loops, and a file that says so. */
static void lists_that_are_not_cut(void) {
    static const uint64_t sizes[] = {400 * CHUNK, 400 * CHUNK};
    g_autoptr(Plan) plan = plan_of(&moment, "fp32", sizes, 2);
    g_autoptr(Plan) one = plan_of(&moment, "fp32", sizes, 1);
    ModelCluster cluster = toy_cluster;
    g_assert_cmpuint(kernels_of(&cluster, plan), ==, 0);
    cluster.device_list_blocks = 320;
    g_assert_cmpuint(kernels_of(&cluster, plan), ==, 3);
    g_assert_cmpuint(kernels_of(&cluster, one), ==, 0);
    cluster.kernel_gb_per_s[PLAN_OP_ADAM_MOMENT] = 1;
    g_assert_cmpuint(kernels_of(&cluster, plan), ==, 0);
    cluster.kernel_gb_per_s[PLAN_OP_ADAM_MOMENT] = 0;
    cluster.device_kind = MODEL_DEVICE_CPU;
    g_assert_cmpuint(kernels_of(&cluster, plan), ==, 0);
}

/* Three kernels: the host launches the second and the third behind the first, 4 us each. */
static void host_launches_the_others(void) {
    static const uint64_t sizes[] = {400 * CHUNK, 400 * CHUNK};
    g_autoptr(Plan) plan = plan_of(&moment, "fp32", sizes, 2);
    const PlanRole *role = &plan->roles[0];
    ModelCluster cluster = toy_cluster;
    for (unsigned is_cut = 0; is_cut < 2; is_cut++) {
        cluster.device_list_blocks = is_cut ? 320 : 0;
        cluster.host_cpu_factor = 2;
        cluster.host_list_kernel_us = 4;
        g_autoptr(SimIssueCosts) costs =
            sim_issue_costs_new(&(SimStrategy){.plan = plan}, role, &cluster);
        SimComputeCost cost;
        g_assert_true(sim_compute_cost(&cluster, role, op_of(plan), (SimKernels){0}, &cost));
        SimTime further = sim_issue_further_cost(costs, PLAN_OP_ADAM_MOMENT, cost.kernels);
        g_assert_cmpint(further, ==, is_cut * 2 * 2 * 4000);
    }
}

/* ---- how long -------------------------------------------------------------------------------- */

/* Two whole chunks of 32 turns and half of one: one kernel, whose bytes count, or its longest
 * block; with room for two blocks the third runs behind them; or three kernels. */
static void kernels_by_hand_take(void) {
    static const uint64_t sizes[] = {2 * CHUNK, CHUNK / 2};
    g_autoptr(Plan) plan = plan_of(&scale_all, "fp32", sizes, 2);
    const PlanOp *op = op_of(plan);
    ModelCluster cluster = toy_cluster; /* a byte a nanosecond */
    cluster.device_list_blocks = 320;
    cluster.device_list_turn_us = 1.6;
    cluster.device_start_us = 3;
    double bytes_us = (2.5 * CHUNK * 8 + 4) / 1e3;
    g_assert_cmpfloat_with_epsilon(us_of(&cluster, plan, op), bytes_us + 3, 1e-6);
    cluster.device_memory_gb_per_s = 1e6;
    g_assert_cmpfloat_with_epsilon(us_of(&cluster, plan, op), 32 * 1.6 + 3, 1e-6);
    cluster.device_sms = 1; /* four blocks */
    g_assert_cmpfloat_with_epsilon(us_of(&cluster, plan, op), 32 * 1.6 + 3, 1e-6);
    cluster.device_compute_capability = 75; /* two */
    g_assert_cmpfloat_with_epsilon(us_of(&cluster, plan, op), 48 * 1.6 + 3, 1e-6);
    cluster.device_list_blocks = 1;
    cluster.device_launch_overhead_ns = 100; /* before each of three */
    g_assert_cmpfloat_with_epsilon(us_of(&cluster, plan, op), 80 * 1.6 + 3 * 3.1, 1e-6);
}

static void assert_published(const char *what, double us, double published_ms, double most) {
    double miss = us / 1e3 / published_ms - 1;
    g_test_message("%s: %.3f ms, published %.3f (%+.1f %%)", what, us / 1e3, published_ms,
                   100 * miss);
    g_assert_cmpfloat(fabs(miss), <, most);
}

/* pytorch pull request 119842, an H100 of 2.4 TB/s: AdamW over a 128th of Llama 2 70B in bf16; and
 * with all its blocks in one kernel. */
static void adam_as_published(void) {
    g_autoptr(Plan) plan =
        toy_network_plan("llama2-70b", "ranks=128 sharding=full flavour=fsdp2 "
                                       "model_dtype=bf16 optimizer_kernel=fused");
    const PlanRole *role = &plan->roles[0];
    const PlanOp *op = role->ops;
    while (op->kind != PLAN_OP_ADAM_FUSED) {
        op++;
    }
    g_autoptr(ModelCluster) cluster = cluster_of("dgx-h100");
    cluster->device_memory_gb_per_s = 2400;
    cluster->device_list_blocks = 320;
    assert_published("AdamW", us_of(cluster, plan, op), 4.503, 0.03);
    cluster->device_list_blocks = 1000000;
    assert_published("AdamW, one kernel", us_of(cluster, plan, op), 3.564, 0.05);
}

/* Pull request 134373, the same GPU: copies of 1.298 GB, here of what is scaled in place. */
static void copies_as_published(void) {
    uint64_t sizes[20];
    for (unsigned t = 0; t < G_N_ELEMENTS(sizes); t++) {
        sizes[t] = 1298000000 / 4 / G_N_ELEMENTS(sizes);
    }
    g_autoptr(Plan) plan = plan_of(&scale_all, "bf16", sizes, G_N_ELEMENTS(sizes));
    g_autoptr(ModelCluster) cluster = cluster_of("dgx-h100");
    cluster->device_memory_gb_per_s = 2400;
    cluster->device_list_blocks = 320;
    assert_published("copies", us_of(cluster, plan, op_of(plan)), 0.891, 0.03);
    cluster->device_list_blocks = 2240;
    assert_published("copies, 32 KB", us_of(cluster, plan, op_of(plan)), 0.683, 0.06);
}

/* Pull request 178641, H200, fp32. Which op it times the text that was read does not say; its small
 * tensors take what the host takes for fused Adam's. Nothing is fitted to it. */
static void fused_on_h200(void) {
    static const struct {
        unsigned n;
        uint64_t size;
        unsigned blocks;
        double ms;
    } rows[] = {
        {200, 1048576, 320, 1.70},
        {200, 1048576, 2240, 1.49},
        {10, 16777216, 320, 1.36},
        {10, 16777216, 2240, 1.17},
    };
    g_autoptr(ModelCluster) cluster = cluster_of("h200-node");
    for (unsigned r = 0; r < G_N_ELEMENTS(rows); r++) {
        g_autofree uint64_t *sizes = g_new(uint64_t, rows[r].n);
        for (unsigned t = 0; t < rows[r].n; t++) {
            sizes[t] = rows[r].size;
        }
        g_autoptr(Plan) plan = plan_of(&fused, "fp32", sizes, rows[r].n);
        cluster->device_list_blocks = rows[r].blocks;
        assert_published("fused on H200", us_of(cluster, plan, op_of(plan)), rows[r].ms, 0.05);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/lists/kernels of drawn lists", kernels_of_drawn_lists);
    g_test_add_func("/sim/lists/kernels by hand", kernels_by_hand);
    g_test_add_func("/sim/lists/lists that are not cut", lists_that_are_not_cut);
    g_test_add_func("/sim/lists/the host launches the others", host_launches_the_others);
    g_test_add_func("/sim/lists/what kernels take, by hand", kernels_by_hand_take);
    g_test_add_func("/sim/lists/Adam as published", adam_as_published);
    g_test_add_func("/sim/lists/copies as published", copies_as_published);
    g_test_add_func("/sim/lists/fused on an H200", fused_on_h200);
    return g_test_run();
}
