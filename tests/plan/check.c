/* The checker: each rule refuses a plan with that rule broken, planted in the text of a sound
 * one. */
#include "plan/check/check.h"

#include <string.h>

#include "plan/op/shape.h"
#include "plan/text/text.h"
#include "tests/plan/plans.h"

/* Two lanes and one rank, of no network. */
#define HEAD                                                                                       \
    "foreshard-plan 1\n"                                                                           \
    "title t\n"                                                                                    \
    "tokens_per_rank 1\n"                                                                          \
    "network\n"                                                                                    \
    "strategy\n"                                                                                   \
    "mesh replicate=1 shard=1 part=1\n"                                                            \
    "lanes compute side\n"                                                                         \
    "modules 0\n"                                                                                  \
    "units 0\n"                                                                                    \
    "parameters 0\n"                                                                               \
    "roles 1\n"                                                                                    \
    "role 0 ranks 0\n"                                                                             \
    "owns 0\n"                                                                                     \
    "loss\n"

/* Two lanes, one buffer handed from one to the other and back, loop-carried memory, a
 * collective. */
static const char sound[] = HEAD "buffers 3\n"
                                 "b0 64 fp32 parameters/sharded compute - cfst p\n"
                                 "b1 64 fp32 communication/gather side - - g\n"
                                 "b2 64 fp32 temporary/op side - - t\n"
                                 "section construct 2\n"
                                 "@setup - -\n"
                                 "alloc b0\n"
                                 "launch compute fill n=16 value=0 y=b0\n"
                                 "section first 0\n"
                                 "section second 0\n"
                                 "section steady 16\n"
                                 "@forward - -\n"
                                 "record compute e0\n"
                                 "wait side e0\n"
                                 "alloc b1\n"
                                 "launch side copy n=16 x=b0 y=b1\n"
                                 "record side e1\n"
                                 "wait compute e1\n"
                                 "launch compute copy n=16 x=b1 y=b0\n"
                                 "record compute e2\n"
                                 "free b1\n"
                                 "wait side e2\n"
                                 "alloc b2\n"
                                 "launch side fill n=16 value=1 y=b2\n"
                                 "free b2\n"
                                 "record side e3\n"
                                 "wait compute e3\n"
                                 "launch compute fill n=16 value=0 y=b0\n"
                                 "end\n";

static char *error_of(const char *text) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = plan_read(text, strlen(text), "x.plan", &error);
    return plan ? NULL : g_strdup(error->message);
}

static void sound_is_sound(void) {
    g_autofree char *message = error_of(sound);
    g_assert_cmpstr(message, ==, NULL);
}

typedef struct {
    const char *name, *from, *to, *expected;
} Fault;

static const Fault faults[] = {
    {"use without waiting for the writer", "wait compute e1\n", "record compute e4\n",
     "lane compute uses b1 (x) without waiting for lane side, which writes it"},
    {"write without waiting for the reader",
     "wait compute e1\nlaunch compute copy n=16 x=b1 y=b0\n",
     "record compute e4\nlaunch compute fill n=16 value=0 y=b0\n",
     "lane compute writes b0 (y) without waiting for lane side, which uses it"},
    {"reuse of memory still in use", "wait side e2\n", "record side e4\n",
     "b2 may lie in memory that lane compute still uses"},
    {"the next step's use is checked too", "wait side e0\n", "wait compute e0\n",
     "lane side uses b0 (x) without waiting for lane compute, which writes it"},
    {"allocated twice", "alloc b2\n", "alloc b1\nfree b1\nalloc b0\n", "b0 is allocated twice"},
    {"freed but not alive", "free b2\n", "free b1\n", "b1 is freed but does not live"},
    {"used after free", "launch side fill n=16 value=1 y=b2\nfree b2\n",
     "free b2\nlaunch side fill n=16 value=1 y=b2\n", "operand y uses b2, which does not live"},
    {"a leak", "free b2\n", "record compute e4\n", "at the end b2 (t) lives, but is not declared"},
    {"carried but gone", "free b2\n", "free b2\nfree b0\n", "does not live"},
    {"an event never recorded", "wait compute e3\n", "wait compute e9\n",
     "event e9 is waited for but not recorded"},
    {"an event recorded twice", "record side e3\n", "record side e1\n",
     "event e1 is recorded twice"},
    {"an operand too long", "launch side fill n=16 value=1 y=b2",
     "launch side fill n=16 value=1 y=b2+8[15]", "reaches beyond b2"},
    {"a kernel larger than its operand", "launch side fill n=16 value=1 y=b2",
     "launch side fill n=17 value=1 y=b2", "operand y needs 17 elements of b2, where 16 are left"},
    {"a size that overflows", "launch side fill n=16 value=1 y=b2",
     "launch side log_softmax rows=99999999999999 cols=99999999999999 x=b2 y=b2",
     "operand x needs 18446744073709551615 elements"},
    {"read before it is written", "launch side copy n=16 x=b0 y=b1\n",
     "launch side fill n=16 value=0 y=b0\n",
     "operand x reads b1 (g), which nothing has written since it was allocated"},
    {"a sum onto nothing", "launch side fill n=16 value=1 y=b2",
     "launch side accumulate n=16 x=b0 sum=b2",
     "operand sum reads b2 (t), which nothing has written since it was allocated"},
    {"a kernel by the host", "launch side fill n=16 value=1 y=b2", "host_op fill n=16 value=1 y=b2",
     "fill is a kernel of a lane; make it a launch"},
    {"a host's op on a lane", "launch side fill n=16 value=1 y=b2",
     "launch side host_zero n=16 slot=0 offset=0",
     "host_zero is done by the host; make it a host_op"},
    {"integers where numbers should be", "b2 64 fp32", "b2 64 int64", "operand y cannot be int64"},
};

static void must_refuse(const char *text, const char *expected) {
    g_autofree char *message = error_of(text);
    g_assert_nonnull(message);
    if (!strstr(message, expected)) {
        g_test_message("expected '%s' in '%s'", expected, message);
        g_test_fail();
    }
}

static void fault_is_found(gconstpointer data) {
    const Fault *fault = data;
    g_autoptr(GString) text = g_string_new(sound);
    g_assert_cmpuint(g_string_replace(text, fault->from, fault->to, 1), ==, 1);
    if (strstr(fault->to, "free b2\nfree b0") || strstr(fault->to, "alloc b1\nfree b1")) {
        g_string_replace(text, "section steady 16",
                         strstr(fault->to, "alloc b1") ? "section steady 18" : "section steady 17",
                         1);
    }
    must_refuse(text->str, fault->expected);
}

/* Steady repeats second, and each step ends at rest: the host waits for both lanes. */
static const char rested[] = HEAD "buffers 1\n"
                                  "b0 64 fp32 parameters/sharded compute - cfst p\n"
                                  "section construct 2\n"
                                  "@setup - -\n"
                                  "alloc b0\n"
                                  "launch compute fill n=16 value=0 y=b0\n"
                                  "section first 6\n"
                                  "@forward - -\n"
                                  "mark b0 side\n"
                                  "record compute e0\n"
                                  "host_wait e0\n"
                                  "record side e1\n"
                                  "record side e2\n"
                                  "host_wait e1\n"
                                  "section second 11\n"
                                  "@forward - -\n"
                                  "wait compute e2@-1\n"
                                  "launch side fill n=16 value=1 y=b0\n"
                                  "free b0\n"
                                  "alloc b0\n"
                                  "launch compute fill n=16 value=0 y=b0\n"
                                  "mark b0 side\n"
                                  "record compute e0\n"
                                  "host_wait e0\n"
                                  "record side e1\n"
                                  "record side e2\n"
                                  "host_wait e1\n"
                                  "section steady = second\n"
                                  "end\n";

static void rested_is_sound(void) {
    g_autofree char *message = error_of(rested);
    g_assert_cmpstr(message, ==, NULL);
}

/* The second step is sound, and its very program is not in the third, which finds other things than
 * the first step had left. */
static const Fault later_faults[] = {
    {"a step without rest", "y=b0\nmark b0 side\nrecord compute e0\nhost_wait e0\n",
     "y=b0\nmark b0 side\nrecord compute e0\nwait compute e0\n",
     "section steady, instruction 1: lane side uses b0 (y) without waiting for lane compute"},
    {"a mark of the first step only", "y=b0\nmark b0 side\n", "y=b0\nmark b0 compute\n",
     "section steady, instruction 4: b0 may lie in memory that lane side still uses"},
    {"an event of the first step only", "record side e2\nhost_wait e1\nsection steady",
     "record side e3\nhost_wait e1\nsection steady",
     "section steady, instruction 0: event e2@-1 is waited for but not recorded"},
};

static void later_fault_is_found(gconstpointer data) {
    const Fault *fault = data;
    g_autoptr(GString) text = g_string_new(rested);
    g_assert_cmpuint(g_string_replace(text, fault->from, fault->to, 1), ==, 1);
    must_refuse(text->str, fault->expected);
}

/* A mark lets memory be freed while another lane uses it: the allocator waits for that lane. */
static void mark_excuses(void) {
    g_autoptr(GString) text = g_string_new(sound);
    g_string_replace(text, "free b1\nwait side e2\n", "mark b1 compute\nfree b1\n", 1);
    g_autofree char *message = error_of(text->str);
    g_assert_cmpstr(message, ==, NULL);
}

/* What the step before recorded may be waited for as e@-1. */
static void earlier_step(void) {
    g_autoptr(GString) text = g_string_new(sound);
    g_string_replace(text, "wait side e0\n", "wait side e0@-1\n", 1);
    g_autofree char *message = error_of(text->str);
    g_assert_nonnull(message); /* the first steady step has no step before it that records e0 */
    g_assert_nonnull(strstr(message, "event e0@-1 is waited for but not recorded"));
}

static void roles_must_match(void) {
    g_autoptr(Plan) plan =
        test_plan("[network]\nfamily=mlp\nlayers=2\nwidth=5\nseq=2\n", "ranks=2");
    g_assert_cmpuint(plan->n_roles, ==, 2);
    PlanRole *role = &plan->roles[1];
    for (uint32_t i = 0; i < role->n_ops; i++) {
        if (role->ops[i].kind == PLAN_OP_ALL_GATHER) {
            role->dims[role->ops[i].dims] -= 2;
            break;
        }
    }
    g_autoptr(GError) error = NULL;
    g_assert_false(plan_check(plan, &error));
    g_assert_error(error, PLAN_ERROR, PLAN_ERROR_CHECK);
    g_assert_nonnull(strstr(error->message, "do not take part in the same collective"));
}

/* What the first role leaves behind excuses nothing in the second: neither that a buffer lives, nor
 * that an op of the first is sound where the second has a smaller buffer. */
static void each_role_is_checked(void) {
    g_autoptr(Plan) plan =
        test_plan("[network]\nfamily=mlp\nlayers=2\nwidth=5\nseq=2\n", "ranks=2");
    PlanRole *role = &plan->roles[1];
    PlanInstr *instrs = role->sections[PLAN_SECTION_FIRST];
    uint32_t i = 0;
    while (instrs[i].kind != PLAN_ALLOC ||
           role->buffers[instrs[i].arg].sub != PLAN_OPTIMIZER_STATE) {
        i++;
    }
    PlanInstr alloc = instrs[i];
    instrs[i] = instrs[i + 1];
    instrs[i + 1] = alloc;
    g_autoptr(GError) early = NULL;
    g_assert_false(plan_check(plan, &early));
    g_assert_nonnull(strstr(early->message, "role 1, section first"));
    g_assert_nonnull(strstr(early->message, "which does not live"));
    instrs[i + 1] = instrs[i];
    instrs[i] = alloc;
    g_assert_true(plan_check(plan, NULL));

    const PlanOp *op = role->ops;
    while (op->kind != PLAN_OP_LINEAR) {
        op++;
    }
    PlanBuffer *buffer = &role->buffers[plan_op_buffer(role, op, 0)];
    buffer->bytes /= 2;
    g_autoptr(GError) small = NULL;
    g_assert_false(plan_check(plan, &small));
    g_assert_nonnull(strstr(small->message, "role 1, op"));
    g_assert_nonnull(strstr(small->message, "elements of"));
    buffer->bytes *= 2;

    g_assert_cmpuint(role->n_parts, >, 0);
    role->parts[0].elements *= 4;
    g_autoptr(GError) beyond = NULL;
    g_assert_false(plan_check(plan, &beyond));
    g_assert_nonnull(strstr(beyond->message, "role 1, op"));
    g_assert_nonnull(strstr(beyond->message, "reaches beyond"));
}

/* ---- what a built plan cannot do without ---------------------------------------------------- */

/* Whether the launch i makes something that a later one reads before it is made again, in memory of
 * which nothing had been written since it was allocated. */
static bool is_missed(const PlanRole *role, const PlanInstr *instrs, uint32_t n, uint32_t i,
                      const bool *written) {
    const PlanOp *op = &role->ops[instrs[i].arg];
    const PlanOpInfo *info = plan_op_info((PlanOpKind)op->kind);
    for (unsigned o = 0; o < op->n_operands; o++) {
        uint32_t b = plan_op_buffer(role, op, o);
        PlanSlotFlags flags = info->slots[plan_op_slot_of(info, op->n_operands, o)].flags;
        if (b == PLAN_NONE || !(flags & PLAN_SLOT_WRITE) || written[b]) {
            continue;
        }
        for (uint32_t j = i + 1; j < n; j++) {
            if (instrs[j].kind == PLAN_FREE && instrs[j].arg == b) {
                break;
            }
            if (instrs[j].kind != PLAN_LAUNCH) {
                continue;
            }
            const PlanOp *later = &role->ops[instrs[j].arg];
            const PlanOpInfo *what = plan_op_info((PlanOpKind)later->kind);
            bool reads = false, makes = false;
            for (unsigned k = 0; k < later->n_operands; k++) {
                if (plan_op_buffer(role, later, k) == b) {
                    unsigned slot = plan_op_slot_of(what, later->n_operands, k);
                    PlanSlotFlags with = what->slots[slot].flags;
                    makes |= !(with & PLAN_SLOT_READ) || with & PLAN_SLOT_PARTS;
                    reads |= !(with & PLAN_SLOT_WRITE);
                }
            }
            if (reads || makes) {
                return reads && !makes;
            }
        }
    }
    return false;
}

static void note_written(const PlanRole *role, const PlanInstr *instr, bool *written) {
    if (instr->kind == PLAN_ALLOC) {
        written[instr->arg] = false;
    }
    for (unsigned o = 0; instr->kind == PLAN_LAUNCH && o < role->ops[instr->arg].n_operands; o++) {
        const PlanOp *op = &role->ops[instr->arg];
        const PlanOpInfo *info = plan_op_info((PlanOpKind)op->kind);
        uint32_t b = plan_op_buffer(role, op, o);
        unsigned slot = plan_op_slot_of(info, op->n_operands, o);
        if (b != PLAN_NONE && info->slots[slot].flags & PLAN_SLOT_WRITE) {
            written[b] = true;
        }
    }
}

static void must_be_refused(const Plan *plan, const char *what, uint32_t at) {
    g_autoptr(GError) error = NULL;
    if (plan_check(plan, &error)) {
        g_test_message("%s %u: not refused", what, at);
        g_test_fail();
    } else if (!g_str_has_prefix(error->message, "role ") &&
               !g_str_has_prefix(error->message, "section ")) {
        g_test_message("%s %u: no place in '%s'", what, at, error->message);
        g_test_fail();
    }
}

/* Each allocation, each free, and each launch that makes what is read, one by one, of each section
 * of the first role. */
static void nothing_is_left_away(gconstpointer words) {
    g_autoptr(Plan) plan = test_plan(GPT_TOY, words);
    PlanRole *role = &plan->roles[0];
    g_autofree bool *written = g_new0(bool, role->n_buffers);
    unsigned n_refused[PLAN_N_INSTRS] = {0};
    for (PlanSection s = 0; s < PLAN_N_SECTIONS; s++) {
        PlanInstr *instrs = role->sections[s];
        uint32_t n = role->n_instrs[s];
        for (uint32_t i = 0; i < n && !plan_section_repeats(role, s); i++) {
            PlanInstr gone = instrs[i];
            bool counts = gone.kind == PLAN_ALLOC || gone.kind == PLAN_FREE ||
                          (gone.kind == PLAN_LAUNCH && is_missed(role, instrs, n, i, written));
            note_written(role, &gone, written);
            if (!counts) {
                continue;
            }
            memmove(&instrs[i], &instrs[i + 1], (n - i - 1) * sizeof *instrs);
            role->n_instrs[s] = n - 1;
            must_be_refused(plan, plan_section_name(s), i);
            n_refused[gone.kind]++;
            memmove(&instrs[i + 1], &instrs[i], (n - i - 1) * sizeof *instrs);
            instrs[i] = gone;
            role->n_instrs[s] = n;
        }
    }
    g_assert_true(plan_check(plan, NULL));
    g_assert_cmpuint(n_refused[PLAN_ALLOC], >, 100);
    g_assert_cmpuint(n_refused[PLAN_FREE], >, 100);
    g_assert_cmpuint(n_refused[PLAN_LAUNCH], >, 100);
}

/* Whether some op uses the buffer's last number. Some buffers nothing uses: they are only there, as
 * PyTorch has them. */
static bool is_used_to_end(const PlanRole *role, uint32_t b) {
    const PlanBuffer *buffer = &role->buffers[b];
    uint64_t size = plan_dtype_bytes((PlanDtype)buffer->dtype);
    for (uint32_t i = 0; i < role->n_ops; i++) {
        for (unsigned o = 0; o < role->ops[i].n_operands; o++) {
            PlanOperand operand = plan_op_operand(role, &role->ops[i], o);
            if (operand.buffer == b) {
                uint64_t touched = plan_op_elements_touched(role, &role->ops[i], o);
                uint64_t end = operand.offset_bytes + touched * size;
                if (end == buffer->bytes) {
                    return true;
                }
            }
        }
    }
    return false;
}

static void no_buffer_is_smaller(gconstpointer words) {
    g_autoptr(Plan) plan = test_plan(GPT_TOY, words);
    PlanRole *role = &plan->roles[0];
    for (uint32_t b = 0; b < role->n_buffers; b++) {
        PlanBuffer *buffer = &role->buffers[b];
        uint64_t bytes = buffer->bytes;
        if (is_used_to_end(role, b)) {
            buffer->bytes -= plan_dtype_bytes((PlanDtype)buffer->dtype);
            must_be_refused(plan, buffer->name, b);
            buffer->bytes = bytes;
        }
    }
}

/* An optimizer's state may be made by the very op that brings parameters up to date. */
static void optimizers_are_sound(void) {
    static const char *const optimizers[] = {"adamw",    "adam", "sgd",
                                             "momentum", "muon", "adamw-torch-8bit"};
    static const char *const kernels[] = {"foreach", "loop", "fused"};
    for (unsigned i = 0; i < G_N_ELEMENTS(optimizers) * G_N_ELEMENTS(kernels); i++) {
        g_autofree char *words =
            g_strdup_printf("ranks=2 sharding=none optimizer=%s optimizer_kernel=%s",
                            optimizers[i / 3], kernels[i % 3]);
        g_autoptr(Plan) plan = test_plan(GPT_TOY, words);
        g_autoptr(GError) error = NULL;
        plan_check(plan, &error);
        g_assert_no_error(error);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/check/a sound plan is sound", sound_is_sound);
    g_test_add_func("/plan/check/optimizers are sound", optimizers_are_sound);
    for (unsigned i = 0; i < G_N_ELEMENTS(faults); i++) {
        g_autofree char *name = g_strdup_printf("/plan/check/%s", faults[i].name);
        g_test_add_data_func(name, &faults[i], fault_is_found);
    }
    g_test_add_func("/plan/check/steps that end at rest", rested_is_sound);
    for (unsigned i = 0; i < G_N_ELEMENTS(later_faults); i++) {
        g_autofree char *name = g_strdup_printf("/plan/check/%s", later_faults[i].name);
        g_test_add_data_func(name, &later_faults[i], later_fault_is_found);
    }
    g_test_add_func("/plan/check/a mark excuses", mark_excuses);
    g_test_add_func("/plan/check/an earlier step's event", earlier_step);
    g_test_add_func("/plan/check/roles must match", roles_must_match);
    g_test_add_func("/plan/check/each role is checked", each_role_is_checked);
    static const char *const words[] = {"ranks=2", "ranks=2 sharding=none",
                                        "ranks=2 flavour=fsdp1 checkpointing=full",
                                        "ranks=2 kernels=compiled param_dtype=bf16"};
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autofree char *name = g_strdup_printf("/plan/check/nothing is left away/%s", words[i]);
        g_test_add_data_func(name, words[i], nothing_is_left_away);
        g_autofree char *small = g_strdup_printf("/plan/check/no buffer is smaller/%s", words[i]);
        g_test_add_data_func(small, words[i], no_buffer_is_smaller);
    }
    return g_test_run();
}
