/* What construction asks for and gives back, as PyTorch does. */
#include "plan/op/names.h"
#include "tests/plan/plans.h"

/* What FSDP1 holds when a unit's shard is cut: the parameters, the flat one and every shard so far.
 * The block is Llama-7B's, on two ranks: pytorch issue 124260 prints 1.512 GiB for it, 4 MiB of
 * them tables of the rotary embedding that are values of this plan's forward. */
static void construction_of_fsdp1(void) {
    g_autoptr(Plan) plan = test_plan(
        "[network]\nfamily=llama\nlayers=1\nwidth=4096\nheads=32\nkv_heads=32\nffn=11008\n"
        "vocab=16\nseq=8\n",
        "ranks=2 flavour=fsdp1 init=unit");
    const PlanRole *role = &plan->roles[0];
    uint64_t now = 0, most = 0;
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_CONSTRUCT]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_CONSTRUCT][i];
        if (instr->kind == PLAN_ALLOC) {
            now += role->buffers[instr->arg].bytes;
        } else if (instr->kind == PLAN_FREE) {
            now -= role->buffers[instr->arg].bytes;
        }
        most = MAX(most, now);
    }
    const uint64_t block = UINT64_C(202383360) * 4, shard = block / 2;
    g_assert_cmpuint(plan->units[1].elements * 4, ==, block);
    g_assert_cmpuint(most, >=, 2 * block + shard);
    g_assert_cmpuint(most, <=, 2 * block + shard + 16384); /* beside inputs and tables */
    g_assert_cmpfloat_with_epsilon((double)(most - shard + (4 << 20)) / (1 << 30), 1.512, 5e-4);
    /* What stays is a shard of all. */
    uint64_t kept = (plan->units[0].elements * 4 + block) / 2;
    g_assert_cmpuint(now, >=, kept);
    g_assert_cmpuint(now, <=, kept + 16384);
}

/* What construction asks for (+) and gives back (-), in bytes and in order, but for the batch. */
static char *construction(const Plan *plan) {
    const PlanRole *role = &plan->roles[0];
    GString *text = g_string_new(NULL);
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_CONSTRUCT]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_CONSTRUCT][i];
        const PlanBuffer *buffer = &role->buffers[instr->arg];
        bool is_memory = instr->kind == PLAN_ALLOC || instr->kind == PLAN_FREE;
        if (is_memory && buffer->sub != PLAN_ACTIVATIONS_INPUT) {
            g_string_append_printf(text, " %c%" G_GUINT64_FORMAT,
                                   instr->kind == PLAN_ALLOC ? '+' : '-', buffer->bytes);
        }
    }
    return g_string_free(text, FALSE);
}

/* PyTorch's FSDPs of a network that was whole on the device are as recorded of 2.13 (two linear
 * layers, two ranks); unit by unit is the same but for when the parameters come. */
static void constructions(void) {
    static const struct {
        const char *words, *construction;
    } rows[] = {
        {"flavour=fsdp1 init=whole", " +16384 +256 +16384 +256 +16640 +8320 -16640 -16384 -256"
                                     " +16640 +8320 -16640 -16384 -256"},
        {"flavour=fsdp1 init=unit", " +16384 +256 +16640 +8320 -16640 -16384 -256"
                                    " +16384 +256 +16640 +8320 -16640 -16384 -256"},
        {"flavour=fsdp1", " +8320 +8320"},
        {"flavour=fsdp1 sharding=none init=unit",
         " +16384 +256 +16640 -16384 -256 +16384 +256 +16640 -16384 -256"},
        {"init=whole", " +16384 +256 +16384 +256 +8192 +128 -16384 -256 +8192 +128 -16384 -256"},
        {"init=unit", " +16384 +256 +8192 +128 -16384 -256 +16384 +256 +8192 +128 -16384 -256"},
        {"", " +8192 +128 +8192 +128"},
        {"init=shard", " +8192 +128 +8192 +128"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *words = g_strconcat("ranks=2 ", rows[i].words, NULL);
        g_autoptr(Plan) plan =
            test_plan("[network]\nfamily=mlp\nlayers=2\nwidth=64\nseq=2\n", words);
        g_autofree char *found = construction(plan);
        g_assert_cmpstr(found, ==, rows[i].construction);
    }
}

/* As recorded: what is made on the host never comes to the device before training; what is whole
 * there first is cut there, and each shard goes to the host before the next one is made. */
static void offloaded_construction(void) {
    static const char *const flavours[] = {"fsdp1", "fsdp2"}, *const inits[] = {"shard", "whole"};
    for (unsigned i = 0; i < 4; i++) {
        g_autofree char *words = g_strdup_printf("ranks=2 offload=params flavour=%s init=%s",
                                                 flavours[i / 2], inits[i % 2]);
        g_autoptr(Plan) plan = test_plan(GPT_TOY, words);
        const PlanRole *role = &plan->roles[0];
        unsigned n_shards = 0, n_alive = 0, most = 0, n_sent = 0;
        uint64_t on_host = 0;
        for (uint32_t n = 0; n < role->n_instrs[PLAN_SECTION_CONSTRUCT]; n++) {
            const PlanInstr *instr = &role->sections[PLAN_SECTION_CONSTRUCT][n];
            bool moves = instr->kind == PLAN_ALLOC || instr->kind == PLAN_FREE;
            if (moves && role->buffers[instr->arg].sub == PLAN_PARAMETERS_SHARDED) {
                n_shards += instr->kind == PLAN_ALLOC;
                n_alive += instr->kind == PLAN_ALLOC ? 1 : -1;
                most = MAX(most, n_alive);
            } else if (instr->kind == PLAN_ALLOC) {
                g_assert_true(i % 2 || role->buffers[instr->arg].sub == PLAN_ACTIVATIONS_INPUT);
            } else if (instr->kind == PLAN_LAUNCH) {
                n_sent += role->ops[instr->arg].kind == PLAN_OP_TO_HOST;
            } else if (instr->kind == PLAN_HOST_OP) {
                const PlanOp *op = &role->ops[instr->arg];
                g_assert_true(plan_op_is_host_init((PlanOpKind)op->kind));
                on_host += (uint64_t)plan_op_dims(role, op)[HOST_INIT_NORMAL_N];
            }
        }
        uint64_t shards = 0;
        for (uint32_t p = 0; p < plan->n_parameters; p++) {
            uint32_t unit = plan->parameters[p].unit;
            shards += i / 2 ? plan->parameters[p].elements / 2 : plan->units[unit].shard_elements;
        }
        unsigned owners = i / 2 ? plan->n_parameters : plan->n_units; /* FSDP1's shards are flat */
        g_assert_cmpuint(n_shards, ==, i % 2 ? owners : 0);
        g_assert_cmpuint(n_sent, ==, n_shards);
        g_assert_cmpuint(most, ==, i % 2);
        g_assert_cmpuint(on_host, ==, i % 2 ? 0 : shards);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/construction/FSDP1", construction_of_fsdp1);
    g_test_add_func("/plan/construction/FSDP1 and FSDP2", constructions);
    g_test_add_func("/plan/construction/offloaded parameters", offloaded_construction);
    return g_test_run();
}
