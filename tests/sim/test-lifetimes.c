/* The layout of an arena over many steps: whatever lives at once lies apart, in every round. */
#include <glib.h>

#include "sim/device/lifetimes.h"
#include "tests/memory/plain-arena.h"
#include "tests/sim/toy.h"

enum {
    STEPS = 9
};

static const char *const settings[] = {
    "ranks=2 flavour=fsdp2",
    "ranks=2 flavour=fsdp1 param_dtype=bf16 wrap=whole",
    "ranks=2 flavour=ddp sharding=none zero_grad=keep accumulate=2 accumulate_sync=last",
    "ranks=2 flavour=fsdp2 zero_grad=keep accumulate=2",
    "ranks=2 flavour=fsdp1 checkpointing=full offload=params",
    /* These go on by turns. */
    "ranks=2 flavour=fsdp1 sharding=none param_dtype=bf16 zero_grad=keep accumulate_sync=every",
    ("ranks=2 flavour=fsdp1 sharding=none param_dtype=bf16 zero_grad=keep accumulate_sync=every "
     "accumulate=3"),
};

typedef struct {
    const PlanRole *role;
    GArray *tenants;            /* MemoryTenant, laid out */
    const MemoryTenant **holds; /* by buffer; NULL: not alive */
    uint32_t now, rounds_from, round;
    uint64_t alive, most_alive;
} Play;

/* Who comes at a moment: of those that come back, in the first round's time. */
static const MemoryTenant *who_comes(const Play *play) {
    uint32_t at = play->now < play->rounds_from
                      ? play->now
                      : play->rounds_from + (play->now - play->rounds_from) % play->round;
    for (guint i = 0; i < play->tenants->len; i++) {
        const MemoryTenant *tenant = &g_array_index(play->tenants, MemoryTenant, i);
        if (tenant->from == at) {
            return tenant;
        }
    }
    g_assert_not_reached();
}

static void come(Play *play, uint32_t buffer) {
    const MemoryTenant *comes = who_comes(play);
    g_assert_cmpuint(comes->bytes, ==, play->role->buffers[buffer].bytes);
    g_assert_null(play->holds[buffer]);
    for (uint32_t b = 0; b < play->role->n_buffers; b++) {
        const MemoryTenant *other = play->holds[b];
        g_assert_true(!other || !other->bytes || !comes->bytes ||
                      comes->offset >= other->offset + other->bytes ||
                      other->offset >= comes->offset + comes->bytes);
    }
    play->holds[buffer] = comes;
    play->alive += comes->bytes;
    play->most_alive = MAX(play->most_alive, play->alive);
}

static void play_section(Play *play, PlanSection section) {
    for (uint32_t i = 0; i < play->role->n_instrs[section]; i++, play->now++) {
        const PlanInstr *instr = &play->role->sections[section][i];
        if (instr->kind == PLAN_ALLOC) {
            come(play, instr->arg);
        } else if (instr->kind == PLAN_FREE) {
            play->alive -= play->holds[instr->arg]->bytes;
            play->holds[instr->arg] = NULL;
        }
    }
}

static void lies_apart(gconstpointer words) {
    g_autoptr(Plan) plan = toy_network_plan("gpt-toy", words);
    const PlanRole *role = &plan->roles[0];
    bool by_turns = plan_steps_alternate(role);
    Play play = {.role = role, .tenants = sim_lifetimes(role)};
    const uint32_t *n = role->n_instrs;
    play.rounds_from =
        n[PLAN_SECTION_CONSTRUCT] + n[PLAN_SECTION_FIRST] + (by_turns ? 0 : n[PLAN_SECTION_SECOND]);
    play.round = n[PLAN_SECTION_STEADY] + (by_turns ? n[PLAN_SECTION_SECOND] : 0);
    play.holds = g_new0(const MemoryTenant *, role->n_buffers);
    uint64_t size =
        memory_arena_layout((MemoryTenant *)(gpointer)play.tenants->data, play.tenants->len);
    plain_arena_assert_same((const MemoryTenant *)(gpointer)play.tenants->data, play.tenants->len,
                            size);
    play_section(&play, PLAN_SECTION_CONSTRUCT);
    play_section(&play, PLAN_SECTION_FIRST);
    for (unsigned step = 1; step < STEPS; step++) {
        bool is_second = step == 1 || (by_turns && step % 2);
        play_section(&play, is_second ? PLAN_SECTION_SECOND : PLAN_SECTION_STEADY);
    }
    g_test_message("%" G_GUINT64_FORMAT " bytes for %" G_GUINT64_FORMAT " at once%s", size,
                   play.most_alive, by_turns ? ", by turns" : "");
    g_assert_cmpuint(size, >=, play.most_alive);
    g_assert_cmpfloat((double)size, <=, 1.25 * (double)play.most_alive);
    g_array_unref(play.tenants);
    g_free(play.holds);
}

/* The list above has both kinds, and both leave buffers to the next round. */
static void both_kinds(void) {
    unsigned by_turns = 0;
    for (unsigned i = 0; i < G_N_ELEMENTS(settings); i++) {
        g_autoptr(Plan) plan = toy_network_plan("gpt-toy", settings[i]);
        by_turns += plan_steps_alternate(&plan->roles[0]);
    }
    g_assert_cmpuint(by_turns, ==, 2);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(settings); i++) {
        g_autofree char *name = g_strdup_printf("/sim/lifetimes/%s", settings[i]);
        g_test_add_data_func(name, settings[i], lies_apart);
    }
    g_test_add_func("/sim/lifetimes/both kinds", both_kinds);
    return g_test_run();
}
