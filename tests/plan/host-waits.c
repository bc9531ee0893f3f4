/* Where the host waits: at the end of a step, and for the numbers that it reads. */
#include <string.h>

#include "plan/op/names.h"
#include "tests/plan/plans.h"

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

/* The instruction sends a number to the host, and the next two make the host wait for that lane. */
static bool is_read(const PlanRole *role, const PlanInstr *instr) {
    const PlanInstr *record = instr + 1, *wait = instr + 2;
    return instr->kind == PLAN_LAUNCH && role->ops[instr->arg].kind == PLAN_OP_TO_HOST &&
           plan_op_dims(role, &role->ops[instr->arg])[TO_HOST_N] == 1 &&
           record->kind == PLAN_RECORD && record->lane == instr->lane &&
           wait->kind == PLAN_HOST_WAIT && wait->arg == record->arg && wait->before == 0;
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

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/host-waits/synchronized steps", synchronized_steps);
    g_test_add_func("/plan/host-waits/numbers read", numbers_read);
    g_test_add_func("/plan/host-waits/counts read", counts_read);
    g_test_add_func("/plan/host-waits/norms read elsewhere", norms_read_elsewhere);
    return g_test_run();
}
