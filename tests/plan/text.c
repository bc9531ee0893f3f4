/* The text form: what is written reads back the same, and whatever is broken ends in a message. */
#include <string.h>

#include "models/network.h"
#include "plan/build/build.h"
#include "plan/text/text.h"
#include "tests/plan/plans.h"

static const char *const strategies[] = {
    "ranks=1 sharding=none",
    "ranks=2",
    "ranks=3 wrap=whole",
    "ranks=2 wrap=linear flavour=fsdp1 checkpointing=full accumulate=2",
    "ranks=2 wrap=module=MlpBlock|Linear checkpointing=full",
    "ranks=4 sharding=none bucket_mb=0.001",
    "ranks=5 micro_batch=2 lr=0.003",
    "ranks=2 backward_prefetch=none",
};

static void round_trip(void) {
    for (unsigned i = 0; i < G_N_ELEMENTS(strategies); i++) {
        g_autoptr(Plan) plan = test_plan(i % 2 ? GPT_TOY : MLP_TOY, strategies[i]);
        g_autoptr(GString) text = plan_text(plan);
        g_autoptr(GError) error = NULL;
        g_autoptr(Plan) again = plan_read(text->str, text->len, "x.plan", &error);
        g_assert_no_error(error);
        g_autoptr(GString) text_again = plan_text(again);
        g_assert_cmpstr(text->str, ==, text_again->str);
        g_assert_cmpstr(plan_digest(plan), ==, plan_digest(again));
        g_assert_cmpuint(again->roles[0].n_loss_ops, ==, plan->roles[0].n_loss_ops);
        for (uint32_t l = 0; l < plan->roles[0].n_loss_ops; l++) {
            g_assert_cmpuint(again->roles[0].loss_ops[l], ==, plan->roles[0].loss_ops[l]);
        }
    }
}

/* A file may be called what it will. */
static void odd_names(void) {
    static const char *const names[][2] = {{"two\nlines\r", "two lines "},
                                           {"caf\xe9", "caf\xef\xbf\xbd"}}; /* U+FFFD */
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ModelNetwork) network =
            model_network_read(MLP_TOY, strlen(MLP_TOY), "toy.ini", &error);
        PlanStrategy strategy;
        plan_strategy_init(&strategy);
        g_assert_true(plan_strategy_settle(&strategy, &error));
        g_autoptr(PlanGraph) graph = model_network_emit_for(network, &strategy, &error);
        g_autoptr(Plan) plan =
            plan_build(graph, &strategy, names[i][0], network->text, PLAN_FORM_WHOLE, &error);
        g_autoptr(GString) text = plan_text(plan);
        g_autoptr(Plan) again = plan_read(text->str, text->len, "x.plan", &error);
        g_assert_no_error(error);
        g_assert_true(g_str_has_prefix(again->title, names[i][1]));
        g_assert_cmpstr(again->title, ==, plan->title);
    }
}

/* Steady steps that are as the second are held, and written, once. */
static void repeats(void) {
    g_autoptr(Plan) plan = test_plan(GPT_TOY, "ranks=2");
    const PlanRole *role = &plan->roles[0];
    g_assert_true(plan_section_repeats(role, PLAN_SECTION_STEADY));
    g_assert_false(plan_section_repeats(role, PLAN_SECTION_SECOND));
    g_autoptr(GString) text = plan_text(plan);
    g_assert_nonnull(strstr(text->str, "\nsection steady = second\n"));
    g_autoptr(Plan) again = plan_read(text->str, text->len, "x.plan", NULL);
    g_assert_true(plan_section_repeats(&again->roles[0], PLAN_SECTION_STEADY));
}

/* The digest covers mesh and instructions, and not the words about network and strategy. */
static void digest_covers_the_program(void) {
    g_autoptr(Plan) a = test_plan(MLP_TOY, "ranks=2");
    g_autoptr(Plan) b = test_plan("# another comment\n" MLP_TOY, "ranks=2");
    g_autoptr(Plan) c = test_plan(MLP_TOY, "ranks=2 micro_batch=2");
    g_assert_cmpstr(plan_digest(a), ==, plan_digest(b));
    g_assert_cmpstr(plan_digest(a), !=, plan_digest(c));
}

static char *read_error(const char *text, gsize length) {
    g_autoptr(GError) error = NULL;
    g_autoptr(Plan) plan = plan_read(text, length, "x.plan", &error);
    if (plan) {
        return NULL;
    }
    g_assert_nonnull(error);
    g_assert_true(error->domain == PLAN_ERROR);
    g_assert_true(g_str_has_prefix(error->message, "x.plan:"));
    return g_strdup(error->message);
}

static void cut_short(void) {
    g_autoptr(Plan) plan = test_plan(MLP_TOY, "ranks=2");
    g_autoptr(GString) text = plan_text(plan);
    for (gsize length = 0; length + 1 < text->len; length += 1 + length / 40) {
        g_autofree char *message = read_error(text->str, length);
        g_assert_nonnull(message);
        g_test_message("%s", message);
        g_assert_nonnull(strstr(message, "cut short"));
    }
}

/* Whatever a mutation makes of the text, reading it ends in a sound plan or in a message. */
static void mutated(void) {
    g_autoptr(Plan) plan = test_plan(GPT_TOY, "ranks=3");
    g_autoptr(GString) text = plan_text(plan);
    unsigned n_refused = 0;
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    for (unsigned i = 0; i < 400; i++) {
        g_autofree char *copy = g_strndup(text->str, text->len);
        for (unsigned j = 0; j < 1 + i % 3; j++) {
            guint32 at = (guint32)g_rand_int_range(rand, 0, (gint32)text->len);
            static const char bytes[] = "0123456789 \nb,e@-+[]/=xu\xff";
            copy[at] = bytes[g_rand_int_range(rand, 0, sizeof bytes)];
        }
        g_autofree char *message = read_error(copy, text->len);
        n_refused += message != NULL;
    }
    g_assert_cmpuint(n_refused, >, 200);
}

static void names_line(void) {
    static const struct {
        const char *from, *to, *expected; /* the message names the line of `from` */
    } cases[] = {
        {"foreshard-plan 1", "foreshard-plan 7", "version 7"},
        {"shard=2", "shard=0", "expected shard=RANKS"},
        {"part=1\n", "part=1 expert=2 now\n", "'now' is no axis of a mesh"},
        {"lanes compute", "lanes compute compute", "each with a name of its own"},
        {"launch compute linear", "launch compute linera", "'linera' is no op kind"},
        {" m=4 n=8", " m=4 o=8", "expected n=..., not 'o=8'"},
        {"role 0 ranks 0-1", "role 0 ranks 0-4", "ranks are written"},
        {"alloc b0\n", "alloc b99999\n", "expected b0 to b"},
        {"steady = second", "steady = first", "section steady can repeat second only"},
        {"end\n", "end now\n", "'now' is too much on this line"},
    };
    g_autoptr(Plan) plan = test_plan(MLP_TOY, "ranks=2");
    g_autoptr(GString) text = plan_text(plan);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GString) broken = g_string_new(text->str);
        g_assert_cmpuint(g_string_replace(broken, cases[i].from, cases[i].to, 1), ==, 1);
        unsigned line = 1;
        for (const char *c = text->str; c < strstr(text->str, cases[i].from); c++) {
            line += *c == '\n';
        }
        g_autofree char *place = g_strdup_printf("x.plan:%u: ", line);
        g_autofree char *message = read_error(broken->str, broken->len);
        g_assert_nonnull(message);
        if (!strstr(message, cases[i].expected) || !g_str_has_prefix(message, place)) {
            g_test_message("expected '%s' in '%s'", cases[i].expected, message);
            g_test_fail();
        }
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/text/reads back what was written", round_trip);
    g_test_add_func("/plan/text/odd names", odd_names);
    g_test_add_func("/plan/text/a section that repeats another stands once", repeats);
    g_test_add_func("/plan/text/digest covers the program", digest_covers_the_program);
    g_test_add_func("/plan/text/a file cut short is refused", cut_short);
    g_test_add_func("/plan/text/mutations end in a message", mutated);
    g_test_add_func("/plan/text/messages name the line", names_line);
    return g_test_run();
}
