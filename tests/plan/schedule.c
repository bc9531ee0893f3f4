/* Schedules: the counts and orders that PyTorch's own documentation and recordings promise. */
#include <string.h>

#include "plan/check.h"
#include "plan/op-work.h"
#include "plan/player.h"
#include "tests/plan/plans.h"

typedef struct {
    unsigned n[PLAN_N_OP_KINDS];
    uint64_t bytes[PLAN_N_OP_KINDS];
} Counts;

static Counts count_steady(const Plan *plan) {
    Counts counts = {0};
    const PlanRole *role = &plan->roles[0];
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][i];
        if (instr->kind == PLAN_LAUNCH) {
            const PlanOp *op = &role->ops[instr->arg];
            counts.n[op->kind]++;
            counts.bytes[op->kind] += (uint64_t)plan_op_work(role, op).bytes;
        }
    }
    return counts;
}

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

/* The lanes that the host waits for where a section ends, a bit each. */
static unsigned waited_for_at_end(const PlanRole *role, PlanSection section) {
    const PlanInstr *instrs = role->sections[section];
    unsigned lanes = 0;
    for (uint32_t i = role->n_instrs[section]; i > 1; i -= 2) {
        const PlanInstr *record = &instrs[i - 2], *wait = &instrs[i - 1];
        if (record->kind != PLAN_RECORD || wait->kind != PLAN_HOST_WAIT || wait->before ||
            wait->arg != record->arg) {
            break;
        }
        lanes |= 1u << record->lane;
    }
    return lanes;
}

/* The host waits for each lane that works in the step, or else for none; nothing else changes. */
static void synchronized_steps(void) {
    static const char *const words[] = {"ranks=2",
                                        "ranks=2 flavour=fsdp1 param_dtype=bf16",
                                        "ranks=2 sharding=none",
                                        "ranks=2 sharding=optimizer-only",
                                        "ranks=1 sharding=none accumulate=2",
                                        "ranks=2 checkpointing=full offload=activations"};
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autofree char *free_words = g_strconcat(words[i], " step_sync=no", NULL);
        g_autoptr(Plan) synced = test_plan(GPT_TOY, words[i]);
        g_autoptr(Plan) unsynced = test_plan(GPT_TOY, free_words);
        const PlanRole *with = &synced->roles[0], *without = &unsynced->roles[0];
        g_assert_cmpstr(plan_digest(synced), !=, plan_digest(unsynced));
        g_assert_cmpuint(with->n_instrs[PLAN_SECTION_CONSTRUCT], ==,
                         without->n_instrs[PLAN_SECTION_CONSTRUCT]);
        for (PlanSection s = PLAN_SECTION_FIRST; s < PLAN_N_SECTIONS; s++) {
            unsigned lanes = 0;
            for (uint32_t j = 0; j < with->n_instrs[s]; j++) {
                const PlanInstr *instr = &with->sections[s][j];
                lanes |= instr->kind == PLAN_LAUNCH ? 1u << instr->lane : 0;
            }
            g_assert_cmpuint(lanes, !=, 0);
            g_assert_cmpuint(waited_for_at_end(with, s), ==, lanes);
            g_assert_cmpuint(waited_for_at_end(without, s), ==, 0);
            g_assert_cmpuint(with->n_instrs[s] - without->n_instrs[s], ==,
                             2 * (uint32_t)__builtin_popcount(lanes));
        }
    }
}

/* ---- what the host reads ---- */

/* The instruction sends a number to the host, and the next two make the host wait for that lane. */
static bool is_read(const PlanRole *role, const PlanInstr *instr) {
    const PlanInstr *record = instr + 1, *wait = instr + 2;
    return instr->kind == PLAN_LAUNCH && role->ops[instr->arg].kind == PLAN_OP_TO_HOST &&
           plan_op_dims(role, &role->ops[instr->arg])[0] == 1 && record->kind == PLAN_RECORD &&
           record->lane == instr->lane && wait->kind == PLAN_HOST_WAIT &&
           wait->arg == record->arg && wait->before == 0;
}

static uint32_t passed_by(const PlanRole *role, PlanSection section, uint32_t end,
                          PlanOpKind kind) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < end; i++) {
        const PlanInstr *instr = &role->sections[section][i];
        n += instr->kind == PLAN_LAUNCH && role->ops[instr->arg].kind == kind;
    }
    return n;
}

/* Reads apart, the two sections are one program; returns how many reads there are. Each stands
 * where it should: a loss's after its pass's backward, the norm's between clipping and the step. */
static uint32_t reads_of(const PlanRole *with, const PlanRole *without, PlanSection section,
                         uint32_t passes) {
    const PlanInstr *a = with->sections[section], *b = without->sections[section];
    uint32_t n = without->n_instrs[section], reads = 0;
    uint32_t scales = passed_by(without, section, n, PLAN_OP_SCALE_ALL);
    uint32_t batches = passed_by(without, section, n, PLAN_OP_BATCH);
    g_assert_cmpuint(batches, ==, passes);
    for (uint32_t i = 0, j = 0; i < n; j++) {
        if (j + 2 < with->n_instrs[section] && is_read(with, &a[j])) {
            bool is_norm = a[j].phase == PLAN_PHASE_OPTIMIZER;
            g_assert_true(is_norm || a[j].phase == PLAN_PHASE_BACKWARD);
            g_assert_cmpuint(a[j].lane, ==, 0); /* compute, and no other */
            g_assert_cmpuint(passed_by(with, section, j, PLAN_OP_BATCH), ==,
                             is_norm ? passes : reads + 1);
            g_assert_cmpuint(passed_by(with, section, j, PLAN_OP_SCALE_ALL), ==,
                             is_norm ? scales : 0);
            g_assert_cmpuint(passed_by(with, section, j, PLAN_OP_ADAM_UPDATE), ==, 0);
            reads++;
            j += 2;
            continue;
        }
        g_assert_cmpuint(a[j].kind, ==, b[i].kind);
        g_assert_cmpuint(a[j].lane, ==, b[i].lane);
        g_assert_cmpuint(a[j].phase, ==, b[i].phase);
        g_assert_cmpuint(a[j].unit, ==, b[i].unit);
        if (a[j].kind == PLAN_ALLOC || a[j].kind == PLAN_FREE || a[j].kind == PLAN_MARK) {
            g_assert_cmpuint(a[j].arg, ==, b[i].arg);
        }
        i++;
    }
    g_assert_cmpuint(with->n_instrs[section], ==, n + 3 * reads);
    return reads;
}

static void numbers_read(void) {
    static const char *const words[] = {
        "ranks=2",
        "ranks=2 accumulate=3",
        "ranks=3 accumulate=2 accumulate_sync=every param_dtype=bf16",
        "ranks=2 flavour=fsdp1 param_dtype=bf16 keep_low_precision_grads=no",
        "ranks=2 flavour=fsdp1 sharding=none accumulate=2",
        "ranks=4 flavour=fsdp1 pytorch=2.0",
        "ranks=4 sharding=hybrid replicate=2 checkpointing=full",
        "ranks=2 sharding=none step_sync=no",
        "ranks=2 sharding=none pytorch=1.13",
        "ranks=2 sharding=optimizer-only",
        "ranks=1 sharding=none accumulate=2",
        "ranks=2 checkpointing=full offload=activations",
    };
    static const struct {
        const char *reads;
        bool loss, norm;
    } rows[] = {
        {"none", false, false}, {"loss", true, false}, {"norm", false, true}, {"both", true, true}};
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autofree char *plain = g_strconcat(words[i], " clip=1", NULL);
        g_autoptr(Plan) without = test_plan(GPT_TOY, plain);
        uint32_t passes = strstr(words[i], "accumulate=3")   ? 3
                          : strstr(words[i], "accumulate=2") ? 2
                                                             : 1;
        for (unsigned j = 0; j < G_N_ELEMENTS(rows); j++) {
            g_autofree char *reading = g_strconcat(plain, " host_reads=", rows[j].reads, NULL);
            g_autoptr(Plan) with = test_plan(GPT_TOY, reading);
            uint32_t expected = rows[j].loss * passes + rows[j].norm;
            for (uint32_t r = 0; r < with->n_roles; r++) {
                for (PlanSection s = PLAN_SECTION_FIRST; s < PLAN_N_SECTIONS; s++) {
                    g_assert_cmpuint(reads_of(&with->roles[r], &without->roles[r], s, passes), ==,
                                     expected);
                }
            }
            g_assert_true(g_str_equal(plan_digest(with), plan_digest(without)) == !expected);
        }
    }
}

/* Adam's loop on the device's counts: each is one more, then the host reads it, then its parameter
 * is stepped; and nothing else changes. */
static void counts_read(void) {
    static const char *const words[] = {
        "ranks=1 sharding=none optimizer_kernel=loop",
        "ranks=2 optimizer_kernel=loop",
        "ranks=2 optimizer_kernel=loop flavour=fsdp1 use_orig_params=yes optimizer=adam",
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autofree char *counting = g_strconcat(words[i], " optimizer_count=device", NULL);
        g_autoptr(Plan) host = test_plan(GPT_TOY, words[i]);
        g_autoptr(Plan) device = test_plan(GPT_TOY, counting);
        for (uint32_t r = 0; r < device->n_roles; r++) {
            const PlanRole *with = &device->roles[r], *without = &host->roles[r];
            PlanSection s = PLAN_SECTION_STEADY;
            uint32_t n = with->n_instrs[s], reads = 0, counted = 0;
            for (uint32_t j = 0; j < n; j++) {
                const PlanInstr *instr = &with->sections[s][j];
                if (is_read(with, instr)) {
                    uint32_t stepped = passed_by(with, s, j, PLAN_OP_ADAM_UPDATE);
                    counted = passed_by(with, s, j, PLAN_OP_ADD_NUMBER);
                    g_assert_cmpuint(stepped, ==, reads++);
                }
            }
            g_assert_cmpuint(reads, >, 0);
            g_assert_cmpuint(reads, ==, passed_by(with, s, n, PLAN_OP_ADAM_UPDATE));
            g_assert_cmpuint(reads, ==, counted);
            g_assert_cmpuint(n, ==, without->n_instrs[s] + 4 * reads);
        }
    }
}

/* Where clipping hands back a part of the norm it is added up over the ranks to be read, and where
 * it lies on the host nothing is read of the device. */
static void norms_read_elsewhere(void) {
    static const struct {
        const char *words;
        uint32_t more_reductions, more_reads;
    } rows[] = {{"ranks=2 clip=1 pytorch=2.4", 1, 1},
                {"ranks=2 clip=1 offload=params", 0, 0},
                {"ranks=2 clip=1 offload=params flavour=fsdp1", 0, 0}};
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *reading = g_strconcat(rows[i].words, " host_reads=norm", NULL);
        g_autoptr(Plan) without = test_plan(GPT_TOY, rows[i].words);
        g_autoptr(Plan) with = test_plan(GPT_TOY, reading);
        const PlanRole *a = &without->roles[0], *b = &with->roles[0];
        uint32_t n = a->n_instrs[PLAN_SECTION_STEADY], m = b->n_instrs[PLAN_SECTION_STEADY];
        PlanSection s = PLAN_SECTION_STEADY;
        g_assert_cmpuint(passed_by(b, s, m, PLAN_OP_ALL_REDUCE), ==,
                         passed_by(a, s, n, PLAN_OP_ALL_REDUCE) + rows[i].more_reductions);
        g_assert_cmpuint(passed_by(b, s, m, PLAN_OP_TO_HOST), ==,
                         passed_by(a, s, n, PLAN_OP_TO_HOST) + rows[i].more_reads);
    }
}

/* Blocks are gathered twice, the root once; every unit is reduced once. */
static void gathers_and_reduces(void) {
    for (unsigned blocks = 1; blocks < 6; blocks++) {
        g_autofree char *network = g_strdup_printf(
            "[network]\nfamily=gpt\nlayers=%u\nwidth=16\nheads=2\nvocab=16\nseq=8\n", blocks);
        g_autoptr(Plan) plan = test_plan(network, "ranks=4");
        Counts counts = count_steady(plan);
        g_assert_cmpuint(counts.n[PLAN_OP_ALL_GATHER], ==, 2 * blocks + 1);
        g_assert_cmpuint(counts.n[PLAN_OP_REDUCE_SCATTER], ==, blocks + 1);
    }
}

/* Without padding: full sharding gathers all but the root twice and reduces all once. */
static void volumes(void) {
    const char *network = "[network]\nfamily=gpt\nlayers=3\nwidth=32\nheads=2\nvocab=64\nseq=16\n";
    g_autoptr(Plan) full = test_plan(network, "ranks=4");
    uint64_t all = 0, root = full->units[0].elements * 4;
    for (uint32_t u = 0; u < full->n_units; u++) {
        g_assert_cmpuint(full->units[u].shard_elements * 4, ==, full->units[u].elements);
        all += full->units[u].elements * 4;
    }
    Counts counts = count_steady(full);
    g_assert_cmpuint(counts.bytes[PLAN_OP_ALL_GATHER], ==, 2 * all - root);
    g_assert_cmpuint(counts.bytes[PLAN_OP_REDUCE_SCATTER], ==, all);
    g_autoptr(Plan) ddp = test_plan(network, "ranks=4 sharding=none");
    g_assert_cmpuint(count_steady(ddp).bytes[PLAN_OP_ALL_REDUCE], ==, all);
}

/* What a rank sends, by axis: grad-op as much as replicated training; hybrid within its group what
 * full sharding does there, and between groups one all-reduce of its shard. */
static void volumes_of_other_strategies(void) {
    const char *network = "[network]\nfamily=gpt\nlayers=3\nwidth=32\nheads=2\nvocab=64\nseq=16\n";
    static const char *const flavours[] = {"fsdp1", "fsdp2"};
    for (unsigned i = 0; i < G_N_ELEMENTS(flavours); i++) {
        g_autofree char *grad_op =
            g_strdup_printf("ranks=4 sharding=grad-op flavour=%s", flavours[i]);
        g_autoptr(Plan) plan = test_plan(network, grad_op);
        uint64_t all = 0, root = plan->units[0].elements * 4;
        for (uint32_t u = 0; u < plan->n_units; u++) {
            all += plan->units[u].elements * 4;
        }
        Counts counts = count_steady(plan);
        g_assert_cmpuint(counts.bytes[PLAN_OP_ALL_GATHER], ==, all);
        g_assert_cmpuint(counts.bytes[PLAN_OP_REDUCE_SCATTER], ==, all);
        g_autofree char *hybrid =
            g_strdup_printf("ranks=8 sharding=hybrid replicate=2 flavour=%s", flavours[i]);
        g_autoptr(Plan) mixed = test_plan(network, hybrid);
        counts = count_steady(mixed);
        g_assert_cmpuint(counts.bytes[PLAN_OP_ALL_GATHER], ==, 2 * all - root);
        g_assert_cmpuint(counts.bytes[PLAN_OP_REDUCE_SCATTER], ==, all);
        g_assert_cmpuint(counts.bytes[PLAN_OP_ALL_REDUCE], ==, all / 4);
        g_assert_cmpuint(mixed->axes[PLAN_AXIS_SHARD], ==, 4);
        g_assert_cmpuint(mixed->axes[PLAN_AXIS_REPLICATE], ==, 2);
    }
}

/* Parameters, their gradients and Adam's two states, each of 4 bytes: 16 bytes a parameter before
 * activations. gpt-10b: not on one card of 80 GB (1e9) replicated, but sharded over 8. */
/* The optimizer alone sharded: DDP's volume, a gather and a reduction for each unit; between steps
 * whole parameters, and 3 of 16 bytes over the ranks: the part of the parameters and Adam's two. */
static void optimizer_only(void) {
    const char *network = "[network]\nfamily=gpt\nlayers=3\nwidth=32\nheads=2\nvocab=64\nseq=16\n";
    g_autoptr(Plan) plan = test_plan(network, "ranks=4 sharding=optimizer-only");
    uint64_t all = 0;
    for (uint32_t u = 0; u < plan->n_units; u++) {
        all += plan->units[u].elements * 4;
    }
    Counts counts = count_steady(plan);
    g_assert_cmpuint(counts.bytes[PLAN_OP_ALL_GATHER], ==, all);
    g_assert_cmpuint(counts.bytes[PLAN_OP_REDUCE_SCATTER], ==, all);
    g_assert_cmpuint(counts.n[PLAN_OP_ALL_REDUCE], ==, 0);
    const PlanRole *role = &plan->roles[0];
    uint64_t floor[PLAN_N_CATEGORIES] = {0};
    for (uint32_t b = 0; b < role->n_buffers; b++) {
        if (role->buffers[b].carried >> PLAN_SECTION_STEADY & 1) {
            floor[plan_subcategory_category((PlanSubcategory)role->buffers[b].sub)] +=
                role->buffers[b].bytes;
        }
    }
    g_assert_cmpuint(floor[PLAN_CATEGORY_PARAMETERS], ==, all + all / 4);
    g_assert_cmpuint(floor[PLAN_CATEGORY_GRADIENTS], ==, 0);
    g_assert_cmpuint(floor[PLAN_CATEGORY_OPTIMIZER], >=, 2 * all / 4); /* and a step count each */
    g_assert_cmpuint(floor[PLAN_CATEGORY_OPTIMIZER], <=, 2 * all / 4 + 8 * plan->n_units);
}

/* All but the last block's argument goes to the host and comes back, and is held nowhere between:
 * the peak loses most of it. */
static void offloaded_activations(void) {
    const char *network =
        "[network]\nfamily=gpt\nlayers=12\nwidth=32\nheads=2\nvocab=64\nseq=512\n";
    uint64_t peaks[2];
    for (unsigned i = 0; i < 2; i++) {
        g_autofree char *words =
            g_strdup_printf("ranks=4 checkpointing=full offload=%s", i ? "activations" : "none");
        g_autoptr(Plan) plan = test_plan(network, words);
        Counts counts = count_steady(plan);
        uint64_t argument = 512 * 32 * 4;
        g_assert_cmpuint(counts.n[PLAN_OP_TO_HOST], ==, i ? 11 : 0);
        g_assert_cmpuint(counts.bytes[PLAN_OP_TO_HOST], ==, i ? 11 * argument : 0);
        g_assert_cmpuint(counts.bytes[PLAN_OP_FROM_HOST], ==, i ? 11 * argument : 0);
        PlanNullCounts bytes = {0};
        g_autoptr(PlanPlayer) play = plan_player_new(plan, 0, 3, &plan_null_device, &bytes);
        g_assert_cmpint(plan_player_run(play, NULL), ==, PLAN_DONE);
        peaks[i] = bytes.peak_bytes;
        if (i) {
            g_test_message("peak %" G_GUINT64_FORMAT " bytes, offloaded %" G_GUINT64_FORMAT,
                           peaks[0], peaks[1]);
            g_assert_cmpuint(peaks[1] + 7 * argument, <=, peaks[0]); /* two are on their way */
        }
    }
}

/* Nothing of the optimizer is left on the GPU; a gradient goes to the host and a parameter comes
 * back for each one there is, and the host waits for each before it steps. */
static void offloaded_optimizer(void) {
    g_autoptr(Plan) plan = test_plan(GPT_TOY, "ranks=2 offload=optimizer");
    const PlanRole *role = &plan->roles[0];
    uint64_t owned = role->n_parameter_elements;
    for (uint32_t b = 0; b < role->n_buffers; b++) {
        g_assert_cmpuint(role->buffers[b].sub, !=, PLAN_OPTIMIZER_STATE);
    }
    Counts counts = count_steady(plan);
    g_assert_cmpuint(counts.n[PLAN_OP_TO_HOST], ==, plan->n_parameters);
    g_assert_cmpuint(counts.bytes[PLAN_OP_TO_HOST], ==, 4 * owned);
    g_assert_cmpuint(counts.bytes[PLAN_OP_FROM_HOST], ==, 4 * owned);
    unsigned n_steps = 0, n_waits = 0;
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][i];
        n_waits += instr->kind == PLAN_HOST_WAIT;
        n_steps += instr->kind == PLAN_HOST_OP;
        g_assert_cmpuint(n_steps, <=, n_waits);
    }
    g_assert_cmpuint(n_steps, ==, plan->n_parameters);
}

/* Between steps nothing of the model is on the GPU. A shard comes for each gather, also in
 * backward; each gradient goes to the host once, and the host waits for it before it steps. */
static void offloaded_parameters(void) {
    static const char *const flavours[] = {"fsdp1", "fsdp2"};
    for (unsigned i = 0; i < G_N_ELEMENTS(flavours); i++) {
        g_autofree char *words = g_strdup_printf("ranks=2 offload=params flavour=%s", flavours[i]);
        g_autoptr(Plan) plan = test_plan(GPT_TOY, words);
        const PlanRole *role = &plan->roles[0];
        uint64_t root = plan->units[0].elements, all = 0;
        for (uint32_t b = 0; b < role->n_buffers; b++) {
            g_assert_true(!role->buffers[b].carried ||
                          role->buffers[b].sub == PLAN_ACTIVATIONS_INPUT);
        }
        for (uint32_t u = 0; u < plan->n_units; u++) {
            all += plan->units[u].elements;
        }
        Counts counts = count_steady(plan);
        /* FSDP1 also asks for the root, which is whole. */
        uint64_t again = i == 0 ? all : all - root;
        g_assert_cmpuint(counts.bytes[PLAN_OP_FROM_HOST], ==, 4 * (all + again) / 2);
        g_assert_cmpuint(counts.bytes[PLAN_OP_TO_HOST], ==, 4 * all / 2);
        bool waited = false, stepped = false;
        for (uint32_t n = 0; n < role->n_instrs[PLAN_SECTION_STEADY]; n++) {
            const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][n];
            waited |= instr->kind == PLAN_HOST_WAIT && instr->phase == PLAN_PHASE_BACKWARD;
            stepped |= instr->kind == PLAN_HOST_OP;
            g_assert_true(waited || !stepped);
        }
        g_assert_true(stepped);
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
                on_host += (uint64_t)plan_op_dims(role, op)[1];
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

/* Each step leaves its gradients where the step before it had none. */
static void steps_by_turns(void) {
    static const PlanSection sections[] = {PLAN_SECTION_FIRST, PLAN_SECTION_SECOND,
                                           PLAN_SECTION_STEADY, PLAN_SECTION_SECOND,
                                           PLAN_SECTION_STEADY};
    const char *words = "ranks=2 flavour=fsdp1 sharding=none param_dtype=bf16 zero_grad=keep "
                        "accumulate_sync=every accumulate=%u";
    for (unsigned accumulate = 1; accumulate <= 4; accumulate++) {
        g_autofree char *strategy = g_strdup_printf(words, accumulate);
        g_autoptr(Plan) plan = test_plan(GPT_TOY, strategy);
        bool by_turns = accumulate % 2;
        g_assert_true(plan_steps_alternate(&plan->roles[0]) == by_turns);
        g_assert_true(plan_check(plan, NULL));
        PlanNullCounts counts = {0};
        g_autoptr(PlanPlayer) player =
            plan_player_new(plan, 0, G_N_ELEMENTS(sections), &plan_null_device, &counts);
        const PlanPosition *at = plan_player_position(player);
        while (!plan_player_at_end(player)) {
            bool is_late = at->step > 1;
            g_assert_true(at->step < 0 || (is_late && !by_turns) ||
                          at->section == sections[at->step]);
            g_assert_cmpint(plan_player_step(player, NULL), ==, PLAN_DONE);
        }
    }
}

static void known_sums(void) {
    const char *one = "[network]\nfamily=mlp\nlayers=10\nwidth=10000\nseq=1\n"; /* 1.0001e9 */
    g_autoptr(Plan) plan = test_plan(one, "ranks=1 sharding=none optimizer_kernel=fused");
    PlanNullCounts counts = {0};
    g_autoptr(PlanPlayer) player = plan_player_new(plan, 0, 3, &plan_null_device, &counts);
    g_assert_cmpint(plan_player_run(player, NULL), ==, PLAN_DONE);
    uint64_t n = 10 * (uint64_t)(10000 * 10000 + 10000);
    g_test_message("%.4g parameters: %.4g bytes at the peak", (double)n, (double)counts.peak_bytes);
    g_assert_cmpuint(counts.peak_bytes, >=, 16 * n);
    g_assert_cmpuint(counts.peak_bytes, <=, 16 * n + 10000 * 10000); /* one layer's activations */

    const char *ten =
        "[network]\nfamily=gpt\nlayers=48\nwidth=4096\nheads=32\nvocab=51200\nseq=2048\ntied=yes\n";
    static const char *const words[] = {"ranks=8 sharding=none", "ranks=8 sharding=full"};
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autoptr(Plan) large = test_plan(ten, words[i]);
        PlanNullCounts bytes = {0};
        g_autoptr(PlanPlayer) play = plan_player_new(large, 0, 3, &plan_null_device, &bytes);
        g_assert_cmpint(plan_player_run(play, NULL), ==, PLAN_DONE);
        g_test_message("10 B, %s: %.1f GB (1e9)", words[i], (double)bytes.peak_bytes / 1e9);
        g_assert_true((bytes.peak_bytes > 80e9) == (i == 0));
    }
}

/* DDP: one bucket in the first step, PyTorch's limits afterwards. */
static void buckets(void) {
    const char *network = "[network]\nfamily=mlp\nlayers=10\nwidth=1024\nseq=1\n";
    g_autoptr(Plan) plan = test_plan(network, "ranks=2 sharding=none");
    static const uint64_t expected[] = {4198400, 29388800, 8396800}; /* 4.004, 28.027, 8.008 MiB */
    const PlanRole *role = &plan->roles[0];
    unsigned n[PLAN_N_SECTIONS] = {0};
    for (unsigned s = 0; s < PLAN_N_SECTIONS; s++) {
        for (uint32_t i = 0; i < role->n_instrs[s]; i++) {
            const PlanInstr *instr = &role->sections[s][i];
            if (instr->kind != PLAN_LAUNCH || role->ops[instr->arg].kind != PLAN_OP_ALL_REDUCE) {
                continue;
            }
            uint64_t bytes = (uint64_t)plan_op_work(role, &role->ops[instr->arg]).bytes;
            g_assert_cmpuint(bytes, ==, s == PLAN_SECTION_FIRST ? 41984000 : expected[n[s]]);
            n[s]++;
        }
    }
    g_assert_cmpuint(n[PLAN_SECTION_FIRST], ==, 1);
    g_assert_cmpuint(n[PLAN_SECTION_SECOND], ==, 3);
    g_assert_cmpuint(n[PLAN_SECTION_STEADY], ==, 3);
}

/* The gather of the block before stands ahead of this block's gradients, or behind them. */
static void prefetch_order(void) {
    static const char *const words[] = {"ranks=2", "ranks=2 backward_prefetch=none"};
    for (unsigned with = 0; with < 2; with++) {
        g_autoptr(Plan) plan = test_plan(GPT_TOY, words[with]);
        const PlanRole *role = &plan->roles[0];
        bool gathered_ahead = false;
        for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
            const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][i];
            if (instr->kind != PLAN_LAUNCH || instr->phase != PLAN_PHASE_BACKWARD) {
                continue;
            }
            unsigned kind = role->ops[instr->arg].kind;
            gathered_ahead |= kind == PLAN_OP_ALL_GATHER && instr->unit == 1;
            if (kind == PLAN_OP_LINEAR_DW && instr->unit == 2) {
                g_assert_true(gathered_ahead == (with == 0));
                break;
            }
        }
    }
}

/* ---- FSDP1's limiter ------------------------------------------------------------------------- */

typedef struct {
    uint32_t unit; /* whose compute the freed parameters served */
    PlanPhase phase;
    unsigned before;
} Freed;

/* In steady: what the host waits for right before the unit is gathered, with NONE for nothing. */
static Freed waited_for(const Plan *plan, uint32_t unit, PlanPhase phase) {
    const PlanRole *role = &plan->roles[0];
    const PlanInstr *instrs = role->sections[PLAN_SECTION_STEADY], *wait = NULL;
    uint32_t n = role->n_instrs[PLAN_SECTION_STEADY];
    for (uint32_t i = 0; i < n; i++) {
        bool gathers = instrs[i].kind == PLAN_LAUNCH && instrs[i].unit == unit &&
                       role->ops[instrs[i].arg].kind == PLAN_OP_ALL_GATHER;
        if (instrs[i].kind == PLAN_HOST_WAIT) {
            wait = &instrs[i];
        } else if (gathers && instrs[i].phase == phase) {
            break;
        } else if (instrs[i].kind == PLAN_LAUNCH) {
            wait = NULL; /* that was another's */
        }
    }
    for (uint32_t i = 0; wait && i < n; i++) {
        if (instrs[i].kind == PLAN_RECORD && instrs[i].arg == wait->arg) {
            return (Freed){instrs[i].unit, (PlanPhase)instrs[i].phase, wait->before};
        }
    }
    return (Freed){.unit = PLAN_NONE};
}

/* The steady state that replaying PyTorch's queue gives: with L blocks numbered from 1 here, the
 * gather of block i in forward waits for the forward of i - back; in backward, for the backward of
 * i + ahead. So many blocks at most are gathered at once, besides the root. */
static void limiter_steady_state(void) {
    static const struct {
        const char *keys;
        unsigned back, ahead;
    } rows[] = {{"backward_prefetch=pre", 3, 3},
                {"backward_prefetch=post", 2, 2},
                {"backward_prefetch=none", 2, 2},
                {"backward_prefetch=pre forward_prefetch=yes", 4, 4},
                {"backward_prefetch=post forward_prefetch=yes", 3, 3},
                {"backward_prefetch=none forward_prefetch=yes", 3, 3}};
    enum {
        BLOCKS = 9
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *keys = g_strconcat("ranks=4 flavour=fsdp1 ", rows[i].keys, NULL);
        g_autoptr(Plan) plan = test_plan(
            "[network]\nfamily=gpt\nlayers=9\nwidth=16\nheads=2\nvocab=16\nseq=8\n", keys);
        for (uint32_t block = 6; block <= BLOCKS; block++) {
            Freed freed = waited_for(plan, block, PLAN_PHASE_FORWARD);
            g_assert_cmpuint(freed.unit, ==, block - rows[i].back);
            g_assert_cmpuint(freed.phase, ==, PLAN_PHASE_FORWARD);
            g_assert_cmpuint(freed.before, ==, 0);
        }
        for (uint32_t block = 1; block <= 4; block++) {
            Freed freed = waited_for(plan, block, PLAN_PHASE_BACKWARD);
            g_assert_cmpuint(freed.unit, ==, block + rows[i].ahead);
            g_assert_cmpuint(freed.phase, ==, PLAN_PHASE_BACKWARD);
        }
        Freed root = waited_for(plan, 0, PLAN_PHASE_FORWARD);
        g_assert_cmpuint(root.before, ==, 1); /* left over from the step before */
    }
}

static void limiter_off(void) {
    g_autoptr(Plan) plan =
        test_plan(GPT_TOY, "ranks=4 flavour=fsdp1 limit_all_gathers=0 step_sync=no");
    const PlanRole *role = &plan->roles[0];
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        g_assert_cmpuint(role->sections[PLAN_SECTION_STEADY][i].kind, !=, PLAN_HOST_WAIT);
    }
}

/* Which buffer an instruction of the section frees, marks or allocates is its arg. */
static bool is_marked_next(const PlanInstr *instrs, uint32_t n, uint32_t from, uint32_t buffer,
                           uint32_t lane) {
    for (uint32_t i = from; i < n && instrs[i].kind == PLAN_MARK; i++) {
        if (instrs[i].arg == buffer && instrs[i].lane == lane) {
            return true;
        }
    }
    return false;
}

/* PyTorch 2.0: each collective on c10d's own lane, which marks what it reads and writes. */
static void collectives_of_2_0(void) {
    g_autoptr(Plan) plan = test_plan(GPT_TOY, "ranks=4 flavour=fsdp1 param_dtype=bf16 pytorch=2.0");
    const PlanRole *role = &plan->roles[0];
    const PlanInstr *instrs = role->sections[PLAN_SECTION_STEADY];
    uint32_t n = role->n_instrs[PLAN_SECTION_STEADY], seen = 0, c10d = plan->n_lanes - 1;
    g_assert_cmpstr(plan->lanes[c10d], ==, "c10d");
    for (uint32_t i = 0; i < n; i++) {
        const PlanOp *op = &role->ops[instrs[i].arg];
        if (instrs[i].kind != PLAN_LAUNCH || !plan_op_is_collective(op->kind)) {
            continue;
        }
        const PlanOperand *operands = plan_op_operands(role, op);
        g_assert_cmpuint(instrs[i].lane, ==, c10d);
        g_assert_true(is_marked_next(instrs, n, i + 1, operands[0].buffer, c10d));
        g_assert_true(is_marked_next(instrs, n, i + 1, operands[1].buffer, c10d));
        seen++;
    }
    g_assert_cmpuint(seen, >, 0);
}

static unsigned packed_gradients(const char *version) {
    g_autofree char *keys =
        g_strconcat("ranks=4 flavour=fsdp1 limit_all_gathers=2 pytorch=", version, NULL);
    g_autoptr(Plan) plan =
        test_plan("[network]\nfamily=gpt\nlayers=3\nwidth=16\nheads=2\nvocab=16\nseq=8\n", keys);
    const PlanRole *role = &plan->roles[0];
    unsigned packed = 0;
    for (uint32_t i = 0; i < role->n_buffers; i++) {
        packed += role->buffers[i].sub == PLAN_COMMUNICATION_REDUCE;
    }
    return packed;
}

/* 1.13 copies the gradient of each unit before it is reduced, also where nothing is padded. */
static void gradients_of_1_13(void) {
    g_assert_cmpuint(packed_gradients("2.0"), ==, 0);
    g_assert_cmpuint(packed_gradients("1.13"), ==, 4);
}

static void uneven_roles(void) {
    g_autoptr(Plan) plan =
        test_plan("[network]\nfamily=mlp\nlayers=2\nwidth=10\nseq=2\n", "ranks=4");
    g_assert_cmpuint(plan->n_roles, ==, 2); /* 3, 3, 3 and 1 rows */
    g_assert_cmpuint(plan->roles[0].n_ranks, ==, 3);
    g_assert_cmpuint(plan_role_of_rank(plan, 3), ==, 1);
    g_assert_cmpuint(plan->roles[0].n_parameter_elements, ==, 2 * (3 * 10 + 3));
    g_assert_cmpuint(plan->roles[1].n_parameter_elements, ==, 2 * (1 * 10 + 1));
}

static const PlanInstr *next_of_passes(const PlanRole *role, PlanSection section, uint32_t *at) {
    while (*at < role->n_instrs[section]) {
        const PlanInstr *instr = &role->sections[section][(*at)++];
        if (instr->phase == PLAN_PHASE_BACKWARD || instr->phase == PLAN_PHASE_RECOMPUTE) {
            return instr;
        }
    }
    return NULL;
}

/* Forward and backward are one program, whatever rows a rank has; the buffers are others. */
static void roles_have_one_program(void) {
    static const char *const words[] = {"ranks=7 checkpointing=full accumulate=2 param_dtype=bf16",
                                        "ranks=5 reshard_after_forward=no", "ranks=100"};
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autoptr(Plan) plan = test_plan(GPT_TOY, words[i]);
        g_assert_cmpuint(plan->n_roles, >, 1);
        for (uint32_t r = 1; r < plan->n_roles; r++) {
            for (PlanSection s = PLAN_SECTION_FIRST; s < PLAN_N_SECTIONS; s++) {
                uint32_t m = 0, n = 0;
                const PlanInstr *a, *b;
                while ((a = next_of_passes(&plan->roles[0], s, &m))) {
                    b = next_of_passes(&plan->roles[r], s, &n);
                    g_assert_true(b && a->kind == b->kind && a->lane == b->lane &&
                                  a->phase == b->phase && a->unit == b->unit &&
                                  a->module == b->module);
                }
                g_assert_null(next_of_passes(&plan->roles[r], s, &n));
            }
        }
    }
}

static uint64_t bytes_of(const Plan *plan) {
    uint64_t bytes = 0;
    for (uint32_t r = 0; r < plan->n_roles; r++) {
        const PlanRole *role = &plan->roles[r];
        for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
            bytes += plan_section_repeats(role, s) ? 0 : role->n_instrs[s] * sizeof(PlanInstr);
        }
        bytes += role->n_buffers * sizeof(PlanBuffer) + role->n_ops * sizeof(PlanOp) +
                 role->n_operands * sizeof(PlanOperand) + role->n_dims * sizeof(int64_t) +
                 role->n_attrs * sizeof(double);
    }
    return bytes;
}

/* GPT-175B on 512 ranks, each block checkpointed: the plan is small, and each block adds as much.
 */
static void large_plans(void) {
    uint64_t n[4] = {0};
    for (uint32_t i = 1; i <= 3; i++) {
        g_autofree char *network = g_strdup_printf("[network]\nfamily=gpt\nlayers=%u\nwidth=12288\n"
                                                   "heads=96\nvocab=50000\nseq=2048\n",
                                                   32 * i);
        g_autoptr(Plan) plan =
            test_plan(network, "ranks=512 checkpointing=full param_dtype=bf16 reduce_dtype=fp32");
        for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
            n[i] += plan->roles[0].n_instrs[s];
        }
        g_test_message("%u blocks: %" G_GUINT64_FORMAT " instructions, %.1f MiB", 32 * i, n[i],
                       (double)bytes_of(plan) / (1 << 20));
        g_assert_cmpuint(bytes_of(plan), <, (uint64_t)64 << 20);
    }
    g_assert_cmpuint(n[3] - n[2], ==, n[2] - n[1]);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/schedule/construction of fsdp1", construction_of_fsdp1);
    g_test_add_func("/plan/schedule/constructions", constructions);
    g_test_add_func("/plan/schedule/synchronized steps", synchronized_steps);
    g_test_add_func("/plan/schedule/numbers read", numbers_read);
    g_test_add_func("/plan/schedule/counts read", counts_read);
    g_test_add_func("/plan/schedule/norms read elsewhere", norms_read_elsewhere);
    g_test_add_func("/plan/schedule/gathers and reduces", gathers_and_reduces);
    g_test_add_func("/plan/schedule/volumes", volumes);
    g_test_add_func("/plan/schedule/volumes of other strategies", volumes_of_other_strategies);
    g_test_add_func("/plan/schedule/optimizer only", optimizer_only);
    g_test_add_func("/plan/schedule/offloaded activations", offloaded_activations);
    g_test_add_func("/plan/schedule/offloaded optimizer", offloaded_optimizer);
    g_test_add_func("/plan/schedule/steps by turns", steps_by_turns);
    g_test_add_func("/plan/schedule/offloaded parameters", offloaded_parameters);
    g_test_add_func("/plan/schedule/offloaded construction", offloaded_construction);
    g_test_add_func("/plan/schedule/known sums", known_sums);
    g_test_add_func("/plan/schedule/DDP buckets", buckets);
    g_test_add_func("/plan/schedule/prefetch order", prefetch_order);
    g_test_add_func("/plan/schedule/limiter, steady state", limiter_steady_state);
    g_test_add_func("/plan/schedule/limiter off", limiter_off);
    g_test_add_func("/plan/schedule/PyTorch 2.0, collectives", collectives_of_2_0);
    g_test_add_func("/plan/schedule/PyTorch 1.13, gradients", gradients_of_1_13);
    g_test_add_func("/plan/schedule/uneven roles", uneven_roles);
    g_test_add_func("/plan/schedule/roles have one program", roles_have_one_program);
    g_test_add_func("/plan/schedule/large plans", large_plans);
    return g_test_run();
}
