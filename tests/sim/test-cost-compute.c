/* sim/costs/compute: attention with a bias, products by dtype and what starts cost, worked out by
 * hand. */
#include "sim/costs/compute.h"

#include <string.h>

#include "sim/costs/chunked-loss.h"
#include "tests/sim/toy.h"

#include "plan/op/work.h"

/* Two sequences of four tokens; a bias of 2 heads x 4 x 4 numbers. */
static const char t5[] = "[network]\nfamily=t5\nlayers=1\nwidth=8\nheads=2\nhead_dim=4\nffn=8\n"
                         "vocab=5\nseq=4\nattention=kernel\n";

static const char gpt[] = "[network]\nfamily=gpt\nlayers=1\nwidth=8\nheads=2\nvocab=5\nseq=4\n";

enum {
    BIAS_BYTES = 2 * 4 * 4 * 4,
    SEQUENCES = 2
};

/* The first of its kind with a bias, or without (attention to the encoder's output). */
static const PlanOp *find(const PlanRole *role, PlanOpKind kind, bool has_bias) {
    for (uint32_t i = 0; i < role->n_ops; i++) {
        if (role->ops[i].kind == kind && plan_op_has_bias(role, &role->ops[i]) == has_bias) {
            return &role->ops[i];
        }
    }
    g_assert_not_reached();
}

static SimComputeCost cost_by(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op,
                              PlanAttentionKernel attention) {
    SimComputeCost cost;
    g_assert_true(sim_compute_cost(cluster, role, op, (SimKernels){.attention = attention}, &cost));
    return cost;
}

static SimComputeCost cost_of(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op) {
    return cost_by(cluster, role, op, PLAN_ATTENTION_KERNEL_CUDNN);
}

/* Each sequence reads the bias and, backward, writes a gradient of it. */
static void bias_is_moved(void) {
    g_autoptr(Plan) plan = toy_written_plan(t5, "ranks=1 sharding=none micro_batch=2");
    const PlanRole *role = &plan->roles[0];
    for (unsigned backward = 0; backward < 2; backward++) {
        PlanOpKind kind = backward ? PLAN_OP_ATTENTION_BACKWARD : PLAN_OP_ATTENTION;
        const PlanOp *with = find(role, kind, true), *without = find(role, kind, false);
        double more = (1 + backward) * SEQUENCES * BIAS_BYTES;
        g_assert_cmpfloat(plan_op_work(role, with).bytes - plan_op_work(role, without).bytes, ==,
                          more);
        g_assert_cmpfloat(plan_op_flops(role, with), ==, plan_op_flops(role, without));
        g_assert_cmpfloat_with_epsilon(cost_of(&toy_cluster, role, with).bytes_ns -
                                           cost_of(&toy_cluster, role, without).bytes_ns,
                                       more, 1e-9);
    }
}

/* No flash kernel takes one: a GPU's arithmetic takes twice as long, a CPU's as long. */
static void bias_slows_a_gpu(void) {
    g_autoptr(Plan) plan = toy_written_plan(t5, "ranks=1 sharding=none micro_batch=2");
    const PlanRole *role = &plan->roles[0];
    ModelCluster gpu = toy_cluster;
    gpu.device_sms = 1;
    gpu.device_memory_gb_per_s = 1e6;
    const PlanOp *with = find(role, PLAN_OP_ATTENTION, true);
    const PlanOp *without = find(role, PLAN_OP_ATTENTION, false);
    double flops = plan_op_flops(role, with);
    g_assert_cmpfloat(flops, ==, 4 * SEQUENCES * 2 * 4 * 4 * 4);
    g_assert_cmpfloat_with_epsilon(cost_of(&gpu, role, without).flops_ns, flops, 1e-6);
    g_assert_cmpfloat_with_epsilon(cost_of(&gpu, role, with).flops_ns, 2 * flops, 1e-6);
    gpu.device_sms = 0;
    g_assert_cmpfloat_with_epsilon(cost_of(&gpu, role, with).flops_ns, flops, 1e-6);
}

/* Where a cluster's usual kernel is cuDNN's, attention with a bias is measured by the flash
 * kernel's rate, and fp32 has that rate; 16 bits without a bias have the usual kernel's, unless
 * FlashAttention-2 is asked for. */
static void flash_has_its_own_rate(void) {
    const char *const dtypes[] = {"fp32", "bf16"};
    for (unsigned i = 0; i < G_N_ELEMENTS(dtypes); i++) {
        g_autofree char *words = g_strdup_printf("ranks=1 sharding=none model_dtype=%s", dtypes[i]);
        g_autoptr(Plan) plan = toy_written_plan(t5, words);
        const PlanRole *role = &plan->roles[0];
        ModelCluster gpu = toy_cluster;
        gpu.device_sms = 1;
        gpu.device_memory_gb_per_s = 1e6;
        gpu.device_matmul_bf16_tflops = gpu.device_matmul_fp32_tflops;
        gpu.attention_flash_efficiency = 0.5;
        gpu.attention_flash_backward_efficiency = 0.25;
        bool is_usual = i == 1;
        for (unsigned backward = 0; backward < 2; backward++) {
            PlanOpKind kind = backward ? PLAN_OP_ATTENTION_BACKWARD : PLAN_OP_ATTENTION;
            const PlanOp *with = find(role, kind, true), *without = find(role, kind, false);
            ModelCluster alike = gpu;
            alike.attention_flash_efficiency = alike.attention_flash_backward_efficiency = 0;
            double slower = backward ? 4 : 2;
            g_assert_cmpfloat_with_epsilon(cost_of(&gpu, role, with).flops_ns,
                                           slower * cost_of(&alike, role, with).flops_ns, 1e-6);
            g_assert_cmpfloat_with_epsilon(
                cost_of(&gpu, role, without).flops_ns,
                (is_usual ? 1 : slower) * cost_of(&alike, role, without).flops_ns, 1e-6);
            double asked = cost_by(&gpu, role, without, PLAN_ATTENTION_KERNEL_FLASH).flops_ns;
            g_assert_cmpfloat_with_epsilon(asked, slower * cost_of(&alike, role, without).flops_ns,
                                           1e-6);
            gpu.attention_fp32_efficiency = 0.8;
            double apart = cost_of(&gpu, role, without).flops_ns;
            gpu.attention_fp32_efficiency = 0;
            g_assert_cmpfloat_with_epsilon(
                apart, (is_usual ? 1 : 1 / 0.8) * cost_of(&alike, role, without).flops_ns, 1e-6);
        }
    }
}

/* With its own share fp32 is limited by no power; 16 bits are, and fp32 without it. */
static void fp32_has_its_own_share(void) {
    const char *const words[] = {"ranks=1 sharding=none", "ranks=1 sharding=none model_dtype=bf16"};
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autoptr(Plan) plan = toy_written_plan(t5, words[i]);
        const PlanRole *role = &plan->roles[0];
        const PlanOp *product = find(role, PLAN_OP_LINEAR, false);
        ModelCluster cluster = toy_cluster;
        cluster.device_matmul_bf16_tflops = cluster.device_matmul_fp32_tflops;
        double whole = cost_of(&cluster, role, product).flops_ns;
        cluster.matmul_sustained = 0.5;
        g_assert_cmpfloat_with_epsilon(cost_of(&cluster, role, product).flops_ns, 2 * whole, 1e-6);
        cluster.matmul_fp32_efficiency = 0.8;
        g_assert_cmpfloat_with_epsilon(cost_of(&cluster, role, product).flops_ns,
                                       i == 0 ? whole / 0.8 : 2 * whole, 1e-6);
    }
}

/* What ends a product costs a GPU nothing beside it; a CPU does it by kernels of their own: through
 * GELU, dx again and what went into it are read and dx written, and rows are added up. */
static void ends_of_products(void) {
    g_autoptr(Plan) apart = toy_written_plan(gpt, "ranks=1 sharding=none");
    g_autoptr(Plan) ended = toy_written_plan(gpt, "ranks=1 sharding=none kernels=fused");
    const PlanRole *plain = &apart->roles[0], *fused = &ended->roles[0];
    static const PlanOpKind kinds[][2] = {{PLAN_OP_LINEAR_DX, PLAN_OP_LINEAR_DX_GELU},
                                          {PLAN_OP_LINEAR_DW, PLAN_OP_LINEAR_DW_DB}};
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        const PlanOp *end = find(fused, kinds[i][1], false);
        const int64_t *d = plan_op_dims(fused, end);
        const PlanOp *alone = NULL;
        for (uint32_t k = 0; k < plain->n_ops && !alone; k++) {
            const PlanOp *op = &plain->ops[k];
            bool is_it =
                op->kind == kinds[i][0] && !memcmp(plan_op_dims(plain, op), d, 3 * sizeof *d);
            alone = is_it ? op : NULL;
        }
        g_assert_nonnull(alone);
        ModelCluster cluster = toy_cluster;
        cluster.device_kind = MODEL_DEVICE_GPU;
        g_assert_cmpfloat(cost_of(&cluster, fused, end).flops_ns, ==,
                          cost_of(&cluster, plain, alone).flops_ns);
        cluster.device_kind = MODEL_DEVICE_CPU;
        double elements = (double)(d[0] * (i == 0 ? d[2] : d[1])), bytes = 4 * elements;
        g_assert_cmpfloat_with_epsilon(cost_of(&cluster, fused, end).flops_ns -
                                           cost_of(&cluster, plain, alone).flops_ns,
                                       (i == 0 ? 4 : 1) * bytes, 1e-6);
    }
}

/* Whatever moves bytes pays for its start beside them, a norm's gradients in two kernels twice; a
 * product does not, nor a kind whose rate was measured. */
static void kernels_start(void) {
    g_autoptr(Plan) plan = toy_written_plan(gpt, "ranks=1 sharding=none");
    const PlanRole *role = &plan->roles[0];
    ModelCluster at_once = toy_cluster;
    at_once.device_kind = MODEL_DEVICE_GPU;
    ModelCluster starting = at_once;
    starting.device_start_us = 3;
    static const struct {
        PlanOpKind kind;
        double us;
    } cases[] = {
        {PLAN_OP_LAYERNORM, 3},          {PLAN_OP_ADD, 3},    {PLAN_OP_LOG_SOFTMAX_BACKWARD, 3},
        {PLAN_OP_LAYERNORM_BACKWARD, 6}, {PLAN_OP_LINEAR, 0}, {PLAN_OP_ATTENTION, 0}};
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        const PlanOp *op = find(role, cases[i].kind, false);
        SimComputeCost before = cost_of(&at_once, role, op), after = cost_of(&starting, role, op);
        g_assert_cmpfloat_with_epsilon(after.bytes_ns - before.bytes_ns, 1e3 * cases[i].us, 1e-6);
        g_assert_cmpfloat(after.flops_ns, ==, before.flops_ns);
        at_once.kernel_gb_per_s[cases[i].kind] = starting.kernel_gb_per_s[cases[i].kind] = 2;
        g_assert_cmpfloat(cost_of(&at_once, role, op).bytes_ns, ==,
                          cost_of(&starting, role, op).bytes_ns);
    }
}

static const char *const head_trained_or_not[] = {
    "ranks=1 sharding=none micro_batch=2",
    "ranks=1 sharding=none micro_batch=2 freeze=module=head"};

/* Four chunks of 4 rows, 19 columns, 16 summed up. Each product is 2 x 4 x 19 x 16 operations; the
 * weight's gradient reads and writes itself, which takes longer. A logit is moved 32 bytes. */
static void chunks_of_a_loss(void) {
    static const char llama[] = "[network]\nfamily=llama\nlayers=1\nwidth=16\nheads=2\nffn=8\n"
                                "vocab=19\nseq=8\nloss=chunked\n";
    const double product = 2 * 4 * 19 * 16, dw = (19 + 16) * 4 * 4 + 19 * 16 * 8;
    const double passes = 4 * 19 * 32;
    for (unsigned frozen = 0; frozen < 2; frozen++) {
        g_autoptr(Plan) plan = toy_written_plan(llama, head_trained_or_not[frozen]);
        const PlanRole *role = &plan->roles[0];
        const PlanOp *op = find(role, PLAN_OP_CHUNKED_LOSS, false);
        double all = 4 * (2 * product + (frozen ? 0 : dw) + passes);
        unsigned kernels = 4 * (frozen ? 16 : 20);
        ModelCluster cluster = toy_cluster;
        cluster.device_kind = MODEL_DEVICE_CPU;
        cluster.device_launch_overhead_ns = 2;
        g_assert_cmpuint(sim_kernels_of(&cluster, role, op), ==, 1);
        g_assert_cmpfloat_with_epsilon(cost_of(&cluster, role, op).flops_ns, all, 1e-6);
        cluster.device_kind = MODEL_DEVICE_GPU;
        g_assert_cmpuint(sim_kernels_of(&cluster, role, op), ==, kernels);
        g_assert_cmpfloat_with_epsilon(cost_of(&cluster, role, op).flops_ns,
                                       all + 2 * (kernels - 1), 1e-6);
        cluster.device_start_us = 1; /* of all but products */
        g_assert_cmpfloat_with_epsilon(
            cost_of(&cluster, role, op).flops_ns,
            all + 2 * (kernels - 1) + 1e3 * (kernels - 4 * (frozen ? 2 : 3)), 1e-6);
        cluster.device_start_us = 0;
        cluster.host_launch_us = 1; /* slower than the device */
        g_assert_cmpfloat_with_epsilon(cost_of(&cluster, role, op).flops_ns, 1e3 * (kernels - 1),
                                       1e-6);
    }
}

/* As Liger's: two chunks of 8 rows, whose logits are moved three times and whose dx twice. */
static void chunks_of_liger(void) {
    static const char llama[] = "[network]\nfamily=llama\nlayers=1\nwidth=16\nheads=2\nffn=8\n"
                                "vocab=19\nseq=8\nloss=liger\n";
    const double product = 2 * 8 * 19 * 16, passes = 8 * (3 * 19 + 2 * 16) * 4;
    for (unsigned frozen = 0; frozen < 2; frozen++) {
        g_autoptr(Plan) plan = toy_written_plan(llama, head_trained_or_not[frozen]);
        const PlanRole *role = &plan->roles[0];
        const PlanOp *op = find(role, PLAN_OP_CHUNKED_LOSS, false);
        ModelCluster cluster = toy_cluster;
        cluster.device_kind = MODEL_DEVICE_GPU;
        g_assert_cmpuint(sim_kernels_of(&cluster, role, op), ==, frozen ? 8 : 10);
        g_assert_cmpfloat_with_epsilon(cost_of(&cluster, role, op).flops_ns,
                                       2 * ((frozen ? 2 : 3) * product + passes), 1e-6);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/cost-compute/a bias is read and its gradient written", bias_is_moved);
    g_test_add_func("/sim/cost-compute/a bias slows a GPU's attention", bias_slows_a_gpu);
    g_test_add_func("/sim/cost-compute/flash has its own rate", flash_has_its_own_rate);
    g_test_add_func("/sim/cost-compute/fp32 has a share of its own", fp32_has_its_own_share);
    g_test_add_func("/sim/cost-compute/what ends a product", ends_of_products);
    g_test_add_func("/sim/cost-compute/what moves bytes has to start", kernels_start);
    g_test_add_func("/sim/cost-compute/chunks of a loss", chunks_of_a_loss);
    g_test_add_func("/sim/cost-compute/chunks of Liger's loss", chunks_of_liger);
    return g_test_run();
}
