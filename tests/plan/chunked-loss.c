/* A loss in chunks of rows: how many, what is computed, what is there, and what is refused. */
#include <string.h>

#include "models/layers/chunked-loss.h"
#include "plan/op/names.h"
#include "plan/op/work.h"
#include "tests/plan/plans.h"

#define LLAMA   "[network]\nfamily=llama\nlayers=1\nwidth=64\nheads=4\nffn=96\nvocab=1000\nseq=32\n"
#define CHUNKED LLAMA "loss=chunked\n"
#define LIGER   LLAMA "loss=liger\n"
#define TITAN   LLAMA "loss=torchtitan\n"

/* What LinearCrossEntropyOptions()._adjust() of PyTorch 2.13 makes of these on a GPU, that of
 * 2.15.0, and fused_linear_cross_entropy_forward() of Liger 0.5. */
static void rows_of_a_chunk(void) {
    static const uint64_t cases[][6] = {
        {8192, 4096, 128256, 128, 256, 256},
        {32768, 4096, 128256, 512, 1024, 1024},
        {4096, 4096, 32000, 256, 512, 512},
        {12000, 1024, 50257, 128, 256, 256},
        {131072, 8192, 128256, 4096, 8192, 8192},
        {14, 16, 19, 4, 4, 8},
        {99, 64, 1001, 4, 8, 8},
        {5, 64, 300, 1, 1, 1},
        {2, 64, 65, 1, 1, 1},
        {64, 64, 130, 16, 32, 32},
        {1000, 100, 101, 256, 128, 512},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        const uint64_t *c = cases[i];
        g_assert_cmpuint(model_loss_chunk(c[0], c[1], c[2], false), ==, c[3]);
        g_assert_cmpuint(model_loss_chunk(c[0], c[1], c[2], true), ==, c[4]);
        g_assert_cmpuint(model_loss_liger_chunk(c[0], c[1], c[2]), ==, c[5]);
    }
}

static double model_flops(const char *network, const char *words) {
    g_autoptr(Plan) plan = test_plan(network, words);
    const PlanRole *role = &plan->roles[0];
    double flops = 0;
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][i];
        if (instr->kind == PLAN_LAUNCH) {
            flops += plan_op_model_flops(role, &role->ops[instr->arg]);
        }
    }
    return flops;
}

/* The same products as ever, of a frozen head one less. */
static void same_arithmetic(void) {
    static const char *const words[] = {"ranks=2 param_dtype=bf16", "ranks=2 lora_rank=2",
                                        "ranks=1 sharding=none micro_batch=3",
                                        "ranks=2 freeze=module=head accumulate=2"};
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        g_assert_cmpfloat(model_flops(CHUNKED, words[i]), ==, model_flops(LLAMA, words[i]));
        g_assert_cmpfloat(model_flops(LIGER, words[i]), ==, model_flops(LLAMA, words[i]));
        g_assert_cmpfloat(model_flops(TITAN, words[i]), ==, model_flops(LLAMA, words[i]));
    }
}

/* No buffer is as large as half of the logits; and forward makes all of the head's gradient. */
static void logits_are_never_whole(void) {
    g_autoptr(Plan) plan = test_plan(CHUNKED, "ranks=1 sharding=none micro_batch=16");
    const PlanRole *role = &plan->roles[0];
    const uint64_t logits = 16 * 32 * 1000, weight = 64 * 1000;
    unsigned n = 0;
    for (uint32_t b = 0; b < role->n_buffers; b++) {
        g_assert_cmpuint(role->buffers[b].bytes, <, 4 * logits / 2);
    }
    for (uint32_t i = 0; i < role->n_ops; i++) {
        const PlanOp *op = &role->ops[i];
        if (op->kind == PLAN_OP_CHUNKED_LOSS) {
            g_assert_cmpuint(plan_op_operand(role, op, CHUNKED_LOSS_DW).elements, ==, weight);
            g_assert_cmpint(plan_op_dims(role, op)[CHUNKED_LOSS_CHUNK], ==, 16);
            n++;
        }
    }
    g_assert_cmpuint(n, >=, 1);
}

static unsigned count_zeros(const PlanRole *role, int64_t elements) {
    unsigned n = 0;
    for (uint32_t i = 0; i < role->n_ops; i++) {
        const PlanOp *op = &role->ops[i];
        n += op->kind == PLAN_OP_FILL && plan_op_dims(role, op)[FILL_N] == elements;
    }
    return n;
}

/* 512 rows in chunks of 32 (a chunk before it is still there), the loss of each row, and which
 * count. Nothing is made beside dx and dw in backward. Older versions of PyTorch run it, too. */
static void liger_writes_over_logits(void) {
    const char *words = "ranks=1 sharding=none micro_batch=16 model_dtype=bf16";
    g_autoptr(Plan) of_pytorch = test_plan(CHUNKED, words);
    g_autofree char *older = g_strconcat(words, " pytorch=2.4 rms_norm=ops", NULL);
    g_autoptr(Plan) plan = test_plan(LIGER, older);
    const PlanRole *role = &plan->roles[0];
    g_assert_cmpuint(count_zeros(role, 64 * 1000), <,
                     count_zeros(&of_pytorch->roles[0], 64 * 1000));
    unsigned n = 0, n_scaled = 0;
    for (uint32_t i = 0; i < role->n_ops; i++) {
        const PlanOp *op = &role->ops[i];
        if (op->kind == PLAN_OP_CHUNKED_LOSS) {
            g_assert_cmpint(plan_op_dims(role, op)[CHUNKED_LOSS_CHUNK], ==, 32);
            g_assert_cmpuint(plan_op_operand(role, op, CHUNKED_LOSS_ROOM).elements, ==,
                             (2 * 32 * 1000 * 2 + 512 * 4 + 512) / 4);
            n++;
        }
        n_scaled += op->kind == PLAN_OP_SCALE_ALL;
    }
    g_assert_cmpuint(n, >=, 1);
    g_assert_cmpuint(n_scaled, ==, 2 * n);
}

/* PyTorch 2.13's profiler has 1352716 bytes at most beside what was there, in torchtitan's loop
 * over 16 sequences of 32, and 1283084 over one of 512: 12 of them are sums. */
static void torchtitan_takes_eighths(void) {
    static const struct {
        const char *network, *words;
        uint64_t bytes;
    } cases[] = {
        {TITAN, "ranks=1 sharding=none micro_batch=16 model_dtype=bf16", 1352716 - 12},
        {"[network]\nfamily=llama\nlayers=1\nwidth=64\nheads=4\nffn=96\nvocab=1000\nseq=512\n"
         "loss=torchtitan\n",
         "ranks=1 sharding=none model_dtype=bf16", 1283084 - 12},
    };
    for (unsigned c = 0; c < G_N_ELEMENTS(cases); c++) {
        g_autoptr(Plan) plan = test_plan(cases[c].network, cases[c].words);
        const PlanRole *role = &plan->roles[0];
        unsigned n = 0;
        for (uint32_t i = 0; i < role->n_ops; i++) {
            const PlanOp *op = &role->ops[i];
            if (op->kind == PLAN_OP_CHUNKED_LOSS) {
                g_assert_cmpint(plan_op_dims(role, op)[CHUNKED_LOSS_CHUNK], ==, 512 / 8);
                g_assert_cmpuint(4 * plan_op_operand(role, op, CHUNKED_LOSS_ROOM).elements +
                                     2 * plan_op_operand(role, op, CHUNKED_LOSS_DX).elements +
                                     2 * plan_op_operand(role, op, CHUNKED_LOSS_DW).elements,
                                 ==, cases[c].bytes);
                n++;
            }
        }
        g_assert_cmpuint(n, >=, 1);
    }
}

static void what_is_refused(void) {
    static const struct {
        const char *network, *words, *why;
    } cases[] = {
        {CHUNKED, "ranks=2 param_dtype=fp16", "in fp32 and bf16"},
        {CHUNKED, "ranks=2 autocast=bf16", "without autocast"},
        {CHUNKED, "ranks=2 pytorch=2.4 rms_norm=ops", "since PyTorch 2.13, because older ones"},
        {CHUNKED, "ranks=2 pytorch=2.12", "since PyTorch 2.13, because older ones"},
        {CHUNKED, "ranks=1 sharding=none kernels=compiled compile=network", "compiled program"},
        {CHUNKED, "ranks=2 deterministic=yes", "without deterministic algorithms"},
        {CHUNKED, "ranks=4 tensor=2", "a metered or chunked loss"},
        {CHUNKED, "ranks=2 freeze=module=embed|norm|layers.*", "something before the head"},
        {CHUNKED "loss_at=loop\n", "ranks=2", "loss_at = model"},
        {LIGER "loss_at=loop\n", "ranks=2", "loss = liger is planned only"},
        {LIGER, "ranks=2 autocast=bf16", "without autocast, under which it casts"},
        {LIGER, "ranks=2 param_dtype=fp16", "in fp32 and bf16;"},
        {LIGER, "ranks=4 tensor=2", "a metered or chunked loss"},
        {TITAN, "ranks=2 seq=12", "torchtitan is planned only of sequences that divide by 8"},
        {TITAN, "ranks=2 autocast=bf16", "without autocast, under which it casts"},
        {CHUNKED "code=transformers\n", "ranks=2", "code = own"},
        {CHUNKED, "ranks=2 seq=1", "two tokens"},
        {"[network]\nfamily=gpt\nlayers=1\nwidth=64\nheads=2\nvocab=64\nseq=8\nloss=chunked\n",
         "ranks=2", "larger than width"},
        {"[network]\nfamily=t5\nlayers=1\nwidth=8\nheads=2\nffn=8\nvocab=50\nseq=8\nloss=chunked\n",
         "ranks=2", "gpt, mpt and llama"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = test_plan_error(cases[i].network, cases[i].words);
        g_assert_nonnull(strstr(error->message, cases[i].why));
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/chunked-loss/rows of a chunk", rows_of_a_chunk);
    g_test_add_func("/plan/chunked-loss/same arithmetic", same_arithmetic);
    g_test_add_func("/plan/chunked-loss/logits are never whole", logits_are_never_whole);
    g_test_add_func("/plan/chunked-loss/Liger writes over logits", liger_writes_over_logits);
    g_test_add_func("/plan/chunked-loss/torchtitan takes eighths", torchtitan_takes_eighths);
    g_test_add_func("/plan/chunked-loss/what is refused", what_is_refused);
    return g_test_run();
}
