/* What an instruction costs the host, and Python around it. */
#include <glib.h>
#include <math.h>

#include "sim/costs/issue.h"
#include "sim/costs/python.h"
#include "tests/sim/toy.h"

/* us, told apart by their decimals */
static ModelCluster python_host(void) {
    ModelCluster cluster = toy_cluster;
    cluster.host_launch_us = 1;
    cluster.host_collective_us = 20;
    cluster.host_unit_us = 300;
    cluster.host_parameter_us = 4000;
    cluster.host_list_us = 0.1;
    cluster.host_dtensor_us = 0.01;
    return cluster;
}

static unsigned parameters_of(const Plan *plan, uint32_t unit) {
    unsigned n = 0;
    for (uint32_t p = 0; p < plan->n_parameters; p++) {
        n += plan->parameters[p].unit == unit;
    }
    return n;
}

/* Of each launch of the kind in the second step. */
static void assert_costs(const Plan *plan, const ModelCluster *cluster, PlanOpKind kind,
                         bool of_unit, double a_tensor_us) {
    const PlanRole *role = &plan->roles[0];
    g_autoptr(SimIssueCosts) costs =
        sim_issue_costs_new(&(SimStrategy){.plan = plan}, role, cluster);
    unsigned n = 0;
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_SECOND]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_SECOND][i];
        const PlanOp *op = instr->kind == PLAN_LAUNCH ? &role->ops[instr->arg] : NULL;
        if (!op || op->kind != kind) {
            continue;
        }
        const PlanOpInfo *info = plan_op_info(op->kind);
        double us = of_unit ? 320 + 4000 * parameters_of(plan, instr->unit)
                    : plan_op_is_collective(op->kind)
                        ? 20
                        : 1 + a_tensor_us * plan_op_list_length(info, op->n_operands);
        g_assert_cmpint(sim_issue_cost(costs, instr), ==,
                        sim_time_from_us(cluster->host_cpu_factor * us));
        n++;
    }
    g_assert_cmpuint(n, >, 0);
}

static void test_python_of_units_and_parameters(void) {
    ModelCluster cluster = python_host();
    g_autoptr(Plan) two = toy_network_plan(
        "gpt-toy", "ranks=8 sharding=full flavour=fsdp2 optimizer_kernel=fused clip=1");
    assert_costs(two, &cluster, PLAN_OP_ALL_GATHER, true, 0);
    assert_costs(two, &cluster, PLAN_OP_REDUCE_SCATTER, true, 0);
    assert_costs(two, &cluster, PLAN_OP_GATHER_COPY_OUT, false, 0);         /* in the unit's */
    assert_costs(two, &cluster, PLAN_OP_ADAM_FUSED, false, 0.1 * 5 + 0.01); /* DTensors */
    assert_costs(two, &cluster, PLAN_OP_NORMS, false, 0.1 * 2 + 0.01);
    g_autoptr(Plan) one = toy_network_plan(
        "gpt-toy",
        "ranks=8 sharding=full flavour=fsdp1 use_orig_params=yes optimizer_kernel=fused");
    assert_costs(one, &cluster, PLAN_OP_ALL_GATHER, true, 0);
    assert_costs(one, &cluster, PLAN_OP_ADAM_FUSED, false, 0.1 * 5);
    g_autoptr(Plan) ddp = toy_network_plan("gpt-toy", "ranks=8 sharding=none flavour=ddp");
    assert_costs(ddp, &cluster, PLAN_OP_ALL_REDUCE, false, 0);
    cluster.host_cpu_factor = 2; /* of all of them */
    assert_costs(two, &cluster, PLAN_OP_ALL_GATHER, true, 0);
    assert_costs(two, &cluster, PLAN_OP_ADAM_FUSED, false, 0.1 * 5 + 0.01);
    assert_costs(two, &cluster, PLAN_OP_LINEAR, false, 0);
    assert_costs(ddp, &cluster, PLAN_OP_ALL_REDUCE, false, 0);
}

/* Muon's collectives are of no unit. */
static void test_moved_dtensors(void) {
    ModelCluster cluster = python_host();
    static const double want_us[] = {20, 20 + 5 * 0.01};
    static const char *const words[] = {"ranks=8 sharding=none flavour=ddp optimizer=muon",
                                        "ranks=8 sharding=full flavour=fsdp2 optimizer=muon"};
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autoptr(Plan) plan = toy_network_plan("gpt-toy", words[i]);
        const PlanRole *role = &plan->roles[0];
        g_autoptr(SimIssueCosts) costs =
            sim_issue_costs_new(&(SimStrategy){.plan = plan}, role, &cluster);
        unsigned n = 0;
        for (uint32_t j = 0; j < role->n_instrs[PLAN_SECTION_STEADY]; j++) {
            const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][j];
            if (instr->kind == PLAN_LAUNCH && role->ops[instr->arg].kind == PLAN_OP_ALL_REDUCE) {
                g_assert_cmpint(sim_issue_cost(costs, instr), ==, sim_time_from_us(want_us[i]));
                n++;
            }
        }
        g_assert_cmpuint(n, >, 0);
    }
}

static ModelCluster *cluster_of_gpus(void) {
    g_autofree char *path =
        g_build_filename(g_getenv("FORESHARD_TEST_CLUSTERS"), "dgx-h100.ini", NULL);
    ModelCluster *cluster = model_cluster_read_file(path, NULL);
    cluster->host_cpu_factor = 1; /* bench/pytorch-host.py's and wrappers-host.py's own CPU */
    return cluster;
}

/* What is around the launches of the second block's passes. */
static double us_around_block(const Plan *plan, const ModelCluster *cluster) {
    const PlanRole *role = &plan->roles[0];
    g_autofree SimTime *ns = sim_python_costs_new(&(SimStrategy){.plan = plan}, role, cluster);
    double us = 0;
    g_assert_nonnull(ns);
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_SECOND]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_SECOND][i];
        if (instr->kind == PLAN_LAUNCH && instr->module != PLAN_NONE &&
            g_str_has_prefix(plan->modules[instr->module].name, "layers.1")) {
            bool moves = role->ops[instr->arg].axis == PLAN_AXIS_TENSOR;
            us += (double)ns[instr->arg] / 1e3 + (moves ? cluster->host_collective_us : 0);
        }
    }
    return us;
}

/* bench/README.md, "PyTorch's host": what PyTorch takes for both passes of such a block beyond
 * their launches. */
static void test_python_around_blocks(void) {
    static const struct {
        const char *network, *strategy;
        double measured_us, within;
    } blocks[] = {
        {"llama-toy", "ranks=2 tensor=2 sharding=none flavour=plain", 2351 + 3368, 0.05},
        {"llama-toy", "ranks=2 checkpointing=full", 213 + 383, 0.15},
        {"llama-toy", "ranks=2 checkpointing=full rms_norm=ops", 266 + 449, 0.15},
        {"gpt-toy", "ranks=2 checkpointing=full", 182 + 301, 0.35},
        {"llama-toy", "ranks=2 checkpointing=selective-op", 1055 + 1084, 0.15},
    };
    g_autoptr(ModelCluster) cluster = cluster_of_gpus();
    for (unsigned i = 0; i < G_N_ELEMENTS(blocks); i++) {
        g_autoptr(Plan) plan = toy_network_plan(blocks[i].network, blocks[i].strategy);
        double us = us_around_block(plan, cluster);
        g_test_message("%s, %s: %.0f us, %.0f measured", blocks[i].network, blocks[i].strategy, us,
                       blocks[i].measured_us);
        g_assert_cmpfloat(fabs(us / blocks[i].measured_us - 1), <, blocks[i].within);
    }
}

static void test_no_python_around_blocks(void) {
    static const char *const strategies[] = {
        "ranks=2", "ranks=2 tensor=2 sharding=none flavour=plain kernels=compiled",
        "ranks=2 checkpointing=full kernels=compiled"};
    g_autoptr(ModelCluster) cluster = cluster_of_gpus();
    for (unsigned i = 0; i < G_N_ELEMENTS(strategies); i++) {
        g_autoptr(Plan) plan = toy_network_plan("llama-toy", strategies[i]);
        g_assert_null(sim_python_costs_new(&(SimStrategy){.plan = plan}, &plan->roles[0], cluster));
    }
}

/* A slower CPU takes as much longer, whatever it does. */
static void test_cpu_factor(void) {
    ModelCluster cluster = python_host();
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", "ranks=8 sharding=full flavour=fsdp2");
    const PlanRole *role = &plan->roles[0];
    cluster.host_alloc_us = cluster.host_free_us = cluster.host_record_us = 3;
    cluster.host_wait_us = cluster.host_host_wait_us = cluster.host_mark_us = 5;
    g_autoptr(SimIssueCosts) costs =
        sim_issue_costs_new(&(SimStrategy){.plan = plan}, role, &cluster);
    cluster.host_cpu_factor = 2;
    g_autoptr(SimIssueCosts) slow =
        sim_issue_costs_new(&(SimStrategy){.plan = plan}, role, &cluster);
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_SECOND]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_SECOND][i];
        g_assert_cmpint(sim_issue_cost(slow, instr), ==, 2 * sim_issue_cost(costs, instr));
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/host-costs/python", test_python_of_units_and_parameters);
    g_test_add_func("/sim/host-costs/moved DTensors", test_moved_dtensors);
    g_test_add_func("/sim/host-costs/python around blocks", test_python_around_blocks);
    g_test_add_func("/sim/host-costs/no python around blocks", test_no_python_around_blocks);
    g_test_add_func("/sim/host-costs/cpu-factor", test_cpu_factor);
    return g_test_run();
}
