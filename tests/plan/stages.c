/* Stages that share the layers: what they give each other, in text, and faults that are found. */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "models/stages.h"
#include "plan/autograd/stages/schedule.h"
#include "plan/check/check.h"
#include "plan/mesh.h"
#include "plan/op/names.h"
#include "plan/text/text.h"
#include "tests/plan/plans.h"

#define NETWORK "[network]\nfamily=llama\nlayers=6\nwidth=16\nheads=2\nffn=32\nvocab=12\nseq=8\n"

/* Has positions, biases and buffers, too. */
#define GPT_NETWORK                                                                                \
    "[network]\nfamily=gpt\nlayers=6\nwidth=16\nheads=2\nvocab=12\nseq=8\nattention=math\n"        \
    "mask_buffers=yes\ndropout=0.1\n"

static Plan *plan_of(const char *more) {
    g_autofree char *words = g_strconcat("ranks=8 pipeline=4 accumulate=6", more, NULL);
    return test_plan(NETWORK, words);
}

static const PlanRole *role_of_stage(const Plan *plan, uint32_t stage) {
    return &plan->roles[plan_role_of_rank(plan, stage * plan_ranks_of_stage(plan))];
}

/* Ops of a steady step with this peer: what is sent there, received from there, or both. */
typedef struct {
    unsigned sent, received, exchanged;
} Talk;

static Talk talk_with(const PlanRole *role, int64_t peer) {
    Talk talk = {0};
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][i];
        const PlanOp *op = &role->ops[instr->arg];
        if (instr->kind == PLAN_LAUNCH && plan_op_is_of_stages((PlanOpKind)op->kind) &&
            plan_op_dims(role, op)[STAGE_COLLECTIVE_PEER] == peer) {
            talk.sent += op->kind == PLAN_OP_SEND;
            talk.received += op->kind == PLAN_OP_RECEIVE;
            talk.exchanged += op->kind == PLAN_OP_EXCHANGE;
        }
    }
    return talk;
}

/* Each microbatch goes there once, and its gradient comes back once. */
static void check_talk(const char *more, bool exchanges) {
    g_autoptr(Plan) plan = plan_of(more);
    for (uint32_t stage = 0; stage < 4; stage++) {
        const PlanRole *role = role_of_stage(plan, stage);
        Talk before = talk_with(role, (int64_t)stage - 1), behind = talk_with(role, stage + 1);
        unsigned n_before = stage > 0 ? 6 : 0, n_behind = stage < 3 ? 6 : 0;
        g_assert_cmpuint(before.sent + before.exchanged, ==, n_before);
        g_assert_cmpuint(before.received + before.exchanged, ==, n_before);
        g_assert_cmpuint(behind.sent + behind.exchanged, ==, n_behind);
        g_assert_cmpuint(behind.received + behind.exchanged, ==, n_behind);
        /* A stage begins with as many forwards as there are stages from it on. */
        g_assert_cmpuint(behind.exchanged, ==, exchanges && stage < 3 ? 6 - (4 - stage) + 1 : 0);
        g_assert_cmpuint(role->n_loss_ops > 0, ==, stage == 3);
    }
}

static void test_talk(void) {
    check_talk("", true);
    check_talk(" pipeline_schedule=gpipe", false);
}

/* Tables and parameters of all stages, each once; ranks own what their stage has. */
static void check_tables(const char *network) {
    g_autoptr(Plan) plan = test_plan(network, "ranks=8 pipeline=4 accumulate=6 "
                                              "pipeline_split=even");
    g_autoptr(Plan) whole = test_plan(network, "ranks=2 accumulate=6");
    g_assert_cmpuint(plan->n_parameters, ==, whole->n_parameters);
    uint64_t owned = 0;
    for (uint32_t p = 0; p < plan->n_parameters; p++) {
        g_assert_cmpstr(plan->parameters[p].name, ==, whole->parameters[p].name);
        g_assert_cmpuint(plan->parameters[p].elements, ==, whole->parameters[p].elements);
    }
    for (uint32_t stage = 0; stage < 4; stage++) {
        owned += role_of_stage(plan, stage)->n_parameter_elements;
    }
    g_assert_cmpuint(owned, ==, whole->roles[0].n_parameter_elements);
    g_assert_cmpuint(plan->axes[PLAN_AXIS_PIPELINE], ==, 4);
    g_assert_cmpuint(plan->axes[PLAN_AXIS_REPLICATE], ==, 1);
    g_assert_cmpuint(plan_n_batches(plan), ==, 2);
    g_assert_cmpuint(plan_batch_of_rank(plan, 7), ==, 1);
    g_assert_cmpuint(plan->tokens_per_rank, ==, 6 * 8 / 4);
}

static void test_tables(void) {
    check_tables(NETWORK);
    check_tables(GPT_NETWORK);
}

/* As torchtitan's generate_llm_fqn_per_model_part() gives blocks out, and evenly. */
static void test_split(void) {
    static const uint64_t titan[] = {8, 9, 8, 7}, even[] = {9, 9, 8, 8};
    for (uint32_t stage = 0; stage < 4; stage++) {
        g_assert_cmpuint(model_stage_layers(32, 4, PLAN_PIPELINE_SPLIT_TORCHTITAN, stage), ==,
                         titan[stage]);
        g_assert_cmpuint(model_stage_layers(34, 4, PLAN_PIPELINE_SPLIT_EVEN, stage), ==,
                         even[stage]);
    }
    g_autoptr(GError) few = test_plan_error(NETWORK, "ranks=16 pipeline=8 accumulate=8");
    g_assert_nonnull(strstr(few->message, "6 blocks leave one of pipeline=8 stages none"));
    g_autoptr(GError) family =
        test_plan_error("[network]\nfamily=mpt\nlayers=2\nwidth=16\nheads=2\nvocab=12\nseq=8\n",
                        "ranks=4 pipeline=2 accumulate=2 flavour=fsdp2");
    g_assert_nonnull(
        strstr(family->message, "is not planned for families other than gpt and llama"));
    g_autoptr(GError) tied =
        test_plan_error(GPT_TOY "tied=yes\n", "ranks=4 pipeline=2 accumulate=2 flavour=fsdp2");
    g_assert_nonnull(
        strstr(tied->message,
               "a head that is the embedding, which would be on two stages; set tied = no"));
}

/* Of two stages of two ranks that share sequences each, every place in a stage is a role: it does
 * with the other stage's what the first does, and knows its own lane behind those of stages. */
static void test_shared_sequences(void) {
    g_autoptr(Plan) plan = test_plan(NETWORK, "ranks=8 pipeline=2 context=2 tensor=2 accumulate=2 "
                                              "param_dtype=bf16");
    g_assert_true(plan_check(plan, NULL));
    g_assert_cmpuint(plan->n_roles, ==, 4);
    g_assert_cmpstr(plan->lanes[plan->n_lanes - 1], ==, "context");
    for (uint32_t i = 0; i < plan->n_roles; i++) {
        const PlanRole *role = &plan->roles[i];
        unsigned gathered = 0, passed_on = 0;
        g_assert_cmpuint(role->n_ranks, ==, 2);
        g_assert_cmpuint(plan_rank_on_axis(plan, role->ranks[1], PLAN_AXIS_CONTEXT), ==, i % 2);
        for (uint32_t o = 0; o < role->n_instrs[PLAN_SECTION_STEADY]; o++) {
            const PlanInstr *instr = &role->sections[PLAN_SECTION_STEADY][o];
            const PlanOp *op = &role->ops[instr->arg];
            bool is_op = instr->kind == PLAN_LAUNCH && op->axis == PLAN_AXIS_CONTEXT;
            gathered += is_op && op->kind == PLAN_OP_ALL_GATHER;
            passed_on += is_op && op->kind == PLAN_OP_PASS_ON;
        }
        g_assert_cmpuint(gathered, ==, 2 * 3 * 2); /* microbatches, blocks, forward and backward */
        g_assert_cmpuint(passed_on, ==, 2 * 3 * 2);
    }
}

static void test_text(void) {
    g_autoptr(Plan) plan = plan_of("");
    g_autoptr(GString) text = plan_text(plan);
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) read = plan_read(text->str, text->len, "stages.plan", &error);
    g_assert_no_error(error);
    g_autoptr(GString) again = plan_text(read);
    g_assert_cmpstr(text->str, ==, again->str);
    g_assert_nonnull(strstr(text->str, "mesh replicate=1 shard=2 part=1 pipeline=4\n"));
}

/* A stage on its way through a step, whose every send waits for its receive, in program order. */
typedef struct {
    const PlanRole *role;
    uint32_t next;
} Walk;

/* The next that it has with another; NULL: it is through. */
static const PlanOp *talk_at(Walk *walk, PlanSection section) {
    for (; walk->next < walk->role->n_instrs[section]; walk->next++) {
        const PlanInstr *instr = &walk->role->sections[section][walk->next];
        const PlanOp *op = &walk->role->ops[instr->arg];
        if (instr->kind == PLAN_LAUNCH && plan_op_is_of_stages((PlanOpKind)op->kind)) {
            return op;
        }
    }
    return NULL;
}

static bool they_meet(Walk *walks, uint32_t stage, PlanSection section) {
    const PlanOp *x = talk_at(&walks[stage], section);
    uint32_t peer = x ? (uint32_t)plan_op_dims(walks[stage].role, x)[STAGE_COLLECTIVE_PEER] : stage;
    const PlanOp *y = peer == stage ? NULL : talk_at(&walks[peer], section);
    PlanOpKind answer = !x                           ? PLAN_N_OP_KINDS
                        : x->kind == PLAN_OP_SEND    ? PLAN_OP_RECEIVE
                        : x->kind == PLAN_OP_RECEIVE ? PLAN_OP_SEND
                                                     : PLAN_OP_EXCHANGE;
    if (!y || y->kind != answer ||
        plan_op_dims(walks[peer].role, y)[STAGE_COLLECTIVE_PEER] != stage) {
        return false;
    }
    walks[stage].next++;
    walks[peer].next++;
    return true;
}

static void must_end(const Plan *plan, uint32_t stages, PlanSection section) {
    Walk walks[8];
    for (uint32_t i = 0; i < stages; i++) {
        walks[i] = (Walk){role_of_stage(plan, i), 0};
    }
    for (bool gets_on = true; gets_on;) {
        gets_on = false;
        for (uint32_t i = 0; i < stages; i++) {
            gets_on = they_meet(walks, i, section) || gets_on;
        }
    }
    for (uint32_t i = 0; i < stages; i++) {
        g_assert_null(talk_at(&walks[i], section));
    }
}

static void must_end_as(uint32_t places, uint32_t each, uint32_t batches, const char *schedule) {
    g_autofree char *words =
        g_strdup_printf("ranks=%u pipeline=%u accumulate=%u pipeline_stages=%u "
                        "pipeline_split=even pipeline_schedule=%s",
                        2 * places, places, batches, each, schedule);
    g_autoptr(Plan) plan = test_plan(NETWORK, words);
    must_end(plan, places, PLAN_SECTION_FIRST);
    must_end(plan, places, PLAN_SECTION_STEADY);
}

/* Several stages a rank; interleaved, rounds are as long as each other. */
static void test_waiting_several(void) {
    for (uint32_t places = 2; places <= 3; places++) {
        for (uint32_t each = 2; each <= 6 / places; each++) {
            for (uint32_t batches = 1; batches <= 9; batches++) {
                must_end_as(places, each, batches, "looped-bfs");
                if (batches % plan_schedule_rounds(places, batches) == 0) {
                    must_end_as(places, each, batches, "interleaved-1f1b");
                }
            }
        }
    }
}

/* Devices may have one of a rank's collectives after the other (exec/cuda/comm/local.c). */
static void test_waiting(void) {
    static const char *const schedules[] = {"1f1b", "gpipe"};
    for (unsigned s = 0; s < G_N_ELEMENTS(schedules); s++) {
        for (uint32_t stages = 2; stages <= 6; stages++) {
            for (uint32_t batches = s ? 1 : stages; batches <= stages + 5; batches++) {
                g_autofree char *words = g_strdup_printf(
                    "ranks=%u pipeline=%u accumulate=%u pipeline_schedule=%s pipeline_split=even",
                    2 * stages, stages, batches, schedules[s]);
                g_autoptr(Plan) plan = test_plan(NETWORK, words);
                must_end(plan, stages, PLAN_SECTION_FIRST);
                must_end(plan, stages, PLAN_SECTION_STEADY);
            }
        }
    }
}

static PlanOp *first_of(PlanRole *role, PlanOpKind kind) {
    PlanOp *op = role->ops;
    while (op->kind != kind) {
        op++;
    }
    return op;
}

static void must_refuse(const Plan *plan, const char *expected) {
    g_autoptr(GError) error = NULL;
    g_assert_false(plan_check(plan, &error));
    g_assert_error(error, PLAN_ERROR, PLAN_ERROR_CHECK);
    g_test_message("%s", error->message);
    g_assert_nonnull(strstr(error->message, expected));
}

static void test_faults(void) {
    g_autoptr(Plan) plan = plan_of("");
    g_assert_true(plan_check(plan, NULL));
    PlanRole *first = (PlanRole *)role_of_stage(plan, 0), *second = first + 1;
    PlanOp *sends = first_of(first, PLAN_OP_SEND), *takes = first_of(second, PLAN_OP_RECEIVE);
    sends->kind = PLAN_OP_RECEIVE;
    must_refuse(plan, "is not answered by role 1");
    sends->kind = PLAN_OP_SEND;
    second->dims[takes->dims + STAGE_COLLECTIVE_PEER] = 2;
    must_refuse(plan, "section first: what role 0");
    second->dims[takes->dims + STAGE_COLLECTIVE_PEER] = 1;
    must_refuse(plan, "its peer is no neighbour on axis pipeline");
    second->dims[takes->dims + STAGE_COLLECTIVE_PEER] = 0;
    g_assert_true(plan_check(plan, NULL));
    const PlanOp *swaps = first_of(first, PLAN_OP_EXCHANGE);
    PlanBuffer *given = &first->buffers[plan_op_buffer(first, swaps, EXCHANGE_GIVEN)];
    given->dtype = PLAN_BF16;
    must_refuse(plan, "its tensors are of two dtypes");
    given->dtype = PLAN_FP32;
}

/* What all stages add up: another does something else there, or nothing. */
static void test_faults_of_all(void) {
    g_autoptr(Plan) plan = plan_of(" clip=1");
    g_assert_true(plan_check(plan, NULL));
    PlanRole *third = (PlanRole *)role_of_stage(plan, 2);
    PlanOp *adds = first_of(third, PLAN_OP_ALL_REDUCE);
    while (adds->axis != PLAN_AXIS_PIPELINE) {
        adds++;
    }
    adds->kind = PLAN_OP_BROADCAST;
    must_refuse(plan, "section first: what role 1 at instruction");
    adds->kind = PLAN_OP_ALL_REDUCE;
    g_assert_true(plan_check(plan, NULL));
}

/* ---- several stages a rank ------------------------------------------------------------------ */

static char *words_of(const GArray *turns) {
    static const char *const words[] = {"UNSHARD", "RESHARD", "REDUCE_GRAD", "F",     "B",
                                        "SEND_F",  "SEND_B",  "RECV_F",      "RECV_B"};
    g_autoptr(GString) text = g_string_new(NULL);
    for (uint32_t i = 0; i < turns->len; i++) {
        const PlanStageAction *turn = &g_array_index(turns, PlanStageAction, i);
        g_string_append_printf(text, " %u%s", turn->stage, words[turn->kind]);
        if (turn->kind >= PLAN_STAGE_FORWARD) {
            g_string_append_printf(text, "%u", turn->chunk);
        }
    }
    return g_strdup(text->str);
}

/* As PyTorch's own, which tests/oracle/recorder/pipeline_schedules.py writes down. */
static void test_schedules(void) {
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(g_getenv("FORESHARD_TEST_SCHEDULES"), &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    unsigned n = 0;
    for (; lines[n] && *lines[n]; n++) {
        PlanSchedule schedule = {0};
        char name[32];
        uint32_t place;
        int end;
        g_assert_cmpint(sscanf(lines[n], "%31s %u %u %u %u%n", name, &schedule.places,
                               &schedule.stages, &schedule.chunks, &place, &end),
                        ==, 5);
        schedule.breadth_first = g_str_equal(name, "looped-bfs");
        g_autoptr(GArray) turns = plan_schedule_of_place(&schedule, place);
        g_autofree char *words = words_of(turns);
        g_assert_cmpstr(words, ==, lines[n] + end);
    }
    g_assert_cmpuint(n, ==, 26);
}

#define SEVERAL " pipeline_schedule=interleaved-1f1b pipeline_split=even"

/* A place's units are its stages' own: of six stages of a block each, the two that are its. */
static void check_units_of_place(const Plan *plan, uint32_t place) {
    g_autofree char *first = g_strdup_printf("layers.%u", place);
    g_autofree char *second = g_strdup_printf("layers.%u", place + 3);
    const PlanRole *role = role_of_stage(plan, place);
    bool seen[2] = {false, false};
    for (uint32_t i = 0; i < role->n_instrs[PLAN_SECTION_STEADY]; i++) {
        uint32_t unit = role->sections[PLAN_SECTION_STEADY][i].unit;
        const char *name = unit == PLAN_NONE ? "root" : plan->units[unit].name;
        seen[0] |= g_str_equal(name, first);
        seen[1] |= g_str_equal(name, second);
        g_assert_true(g_str_equal(name, "root") || g_str_equal(name, first) ||
                      g_str_equal(name, second));
    }
    g_assert_true(seen[0] && seen[1]);
}

static void test_several(void) {
    g_autoptr(Plan) plan =
        test_plan(NETWORK, "ranks=6 pipeline=3 accumulate=6 pipeline_stages=2" SEVERAL);
    g_autoptr(Plan) whole = test_plan(NETWORK, "ranks=2 accumulate=6");
    g_autoptr(GError) error = NULL;
    g_assert_true(plan_check(plan, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(plan_stages_of_rank(plan), ==, 2);
    g_assert_cmpuint(plan->n_parameters, ==, whole->n_parameters);
    uint64_t owned = 0;
    for (uint32_t place = 0; place < 3; place++) {
        check_units_of_place(plan, place);
        owned += role_of_stage(plan, place)->n_parameter_elements;
        /* To the next place go 2 x 6 hidden states, but from the last stage; gradients back. */
        Talk next = talk_with(role_of_stage(plan, place), (place + 1) % 3);
        g_assert_cmpuint(next.sent, ==, place == 2 ? 6 : 12);
        g_assert_cmpuint(next.received, ==, place == 2 ? 6 : 12);
    }
    g_assert_cmpuint(owned, ==, whole->roles[0].n_parameter_elements);
    g_autoptr(GString) text = plan_text(plan);
    g_autoptr(Plan) read = plan_read(text->str, text->len, "several.plan", &error);
    g_assert_no_error(error);
    g_assert_cmpuint(plan_stages_of_rank(read), ==, 2);
}

static void test_several_faults(void) {
    static const struct {
        const char *words, *expected;
    } faults[] = {
        {"ranks=4 pipeline=2 accumulate=4 pipeline_stages=2",
         "has several stages per rank only with"},
        {"ranks=4 pipeline=2 accumulate=4 pipeline_schedule=interleaved-1f1b",
         "has several stages per rank only with"},
        {"ranks=4 pipeline=2 accumulate=5 pipeline_stages=2" SEVERAL, "rounds of equal length"},
        {"ranks=4 pipeline=2 accumulate=4 pipeline_stages=4" SEVERAL,
         "6 blocks leave one of pipeline=2 x pipeline_stages=4 stages none"},
        {"ranks=4 pipeline_stages=2", "pipeline_stages=1"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(faults); i++) {
        g_autoptr(GError) error = test_plan_error(NETWORK, faults[i].words);
        g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, faults[i].expected));
    }
}

/* The checker looks at the first role of each stage for all of them. */
static void roles_in_another_order(void) {
    g_autoptr(Plan) plan = plan_of("");
    PlanRole first = plan->roles[0];
    plan->roles[0] = plan->roles[1];
    plan->roles[1] = first;
    g_autoptr(GError) early = NULL;
    g_assert_false(plan_check(plan, &early));
    g_assert_nonnull(strstr(early->message, "role 1: its ranks are of an earlier stage"));
    plan->roles[1] = plan->roles[0];
    plan->roles[0] = first;
    g_assert_true(plan_check(plan, NULL));

    uint32_t last = first.n_ranks - 1, rank = first.ranks[last];
    g_assert_cmpuint(last, >, 0);
    first.ranks[last] = plan->world - 1;
    g_autoptr(GError) two = NULL;
    g_assert_false(plan_check(plan, &two));
    g_assert_nonnull(strstr(two->message, "role 0: its ranks are of two stages"));
    first.ranks[last] = rank;
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/stages/what they give each other", test_talk);
    g_test_add_func("/plan/stages/tables", test_tables);
    g_test_add_func("/plan/stages/blocks of each", test_split);
    g_test_add_func("/plan/stages/nobody waits for ever", test_waiting);
    g_test_add_func("/plan/stages/nor with several a rank", test_waiting_several);
    g_test_add_func("/plan/stages/shared sequences", test_shared_sequences);
    g_test_add_func("/plan/stages/text", test_text);
    g_test_add_func("/plan/stages/faults are found", test_faults);
    g_test_add_func("/plan/stages/faults of all are found", test_faults_of_all);
    g_test_add_func("/plan/stages/several a rank as PyTorch plays them", test_schedules);
    g_test_add_func("/plan/stages/several a rank", test_several);
    g_test_add_func("/plan/stages/several a rank, faults", test_several_faults);
    g_test_add_func("/plan/stages/roles in another order", roles_in_another_order);
    return g_test_run();
}
