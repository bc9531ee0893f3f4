#include "plan/player.h"

struct _PlanPlayer {
    const PlanDevice *device;
    gpointer self;
    uint32_t steps;
    PlanPosition at;
    PlanInstr boundary; /* what instr points to before the first instruction of a section */
    bool begun;         /* the section */
    bool at_end;
    bool alternates; /* plan_steps_alternate() */
};

PlanPlayer *plan_player_new(const Plan *plan, uint32_t role, uint32_t steps,
                            const PlanDevice *device, gpointer self) {
    g_assert(role < plan->n_roles);
    PlanPlayer *player = g_new0(PlanPlayer, 1);
    player->device = device;
    player->self = self;
    player->steps = steps;
    player->alternates = plan_steps_alternate(&plan->roles[role]);
    player->boundary = (PlanInstr){.unit = PLAN_NONE, .module = PLAN_NONE};
    player->at = (PlanPosition){.plan = plan,
                                .role = &plan->roles[role],
                                .section = PLAN_SECTION_CONSTRUCT,
                                .step = -1,
                                .instr = &player->boundary};
    return player;
}

void plan_player_free(PlanPlayer *player) {
    g_free(player);
}

#define ASK(hook, ...) (device->hook ? device->hook(self, at, __VA_ARGS__) : PLAN_DONE)

static PlanAnswer ask(PlanPlayer *player, const PlanInstr *instr, GError **error) {
    const PlanDevice *device = player->device;
    const PlanPosition *at = &player->at;
    gpointer self = player->self;
    switch ((PlanInstrKind)instr->kind) {
    case PLAN_ALLOC:
        return ASK(alloc, instr->arg, error);
    case PLAN_FREE:
        return ASK(free, instr->arg, error);
    case PLAN_MARK:
        return ASK(mark, instr->arg, instr->lane, error);
    case PLAN_LAUNCH:
        return ASK(launch, &at->role->ops[instr->arg], instr->lane, error);
    case PLAN_RECORD:
        return ASK(record, instr->arg, instr->lane, error);
    case PLAN_WAIT:
        return ASK(wait, instr->arg, instr->before, instr->lane, error);
    case PLAN_HOST_WAIT:
        return ASK(host_wait, instr->arg, instr->before, error);
    case PLAN_HOST_OP:
        return ASK(host_op, &at->role->ops[instr->arg], error);
    case PLAN_N_INSTRS:
        break;
    }
    g_assert_not_reached();
}

static void next_section(PlanPlayer *player) {
    player->at.step++;
    player->at.index = 0;
    player->at.instr = &player->boundary;
    player->begun = false;
    if (player->at.section < PLAN_SECTION_STEADY) {
        player->at.section++;
    } else if (player->alternates) {
        player->at.section = PLAN_SECTION_SECOND;
    }
    player->at_end = player->at.step >= (int32_t)player->steps;
}

/* Up to that instruction of the section at hand. */
static PlanAnswer play_instrs(PlanPlayer *player, uint32_t end, GError **error) {
    PlanPosition *at = &player->at;
    const PlanInstr *instrs = at->role->sections[at->section];
    PlanAnswer answer = PLAN_DONE;
    for (; at->index < end; at->index++) {
        at->instr = &instrs[at->index];
        answer = ask(player, at->instr, error);
        if (answer != PLAN_DONE) {
            break;
        }
    }
    return answer;
}

/* At most so many instructions and boundaries, and no step after `last`. */
static PlanAnswer play(PlanPlayer *player, uint64_t most, int32_t last, GError **error) {
    const PlanDevice *device = player->device;
    gpointer self = player->self;
    PlanPosition *at = &player->at;
    PlanAnswer answer = PLAN_DONE;
    while (most > 0 && answer == PLAN_DONE && !player->at_end && at->step <= last) {
        uint32_t begin = at->index, n = at->role->n_instrs[at->section];
        if (player->begun && begin < n) {
            answer = play_instrs(player, most < n - begin ? begin + (uint32_t)most : n, error);
            most -= at->index - begin;
            continue;
        }
        most--;
        if (!player->begun) {
            answer = ASK(section_begins, error);
            player->begun = answer == PLAN_DONE;
        } else {
            at->instr = &player->boundary;
            answer = ASK(section_ends, error);
            if (answer == PLAN_DONE) {
                next_section(player);
            }
        }
    }
    return answer;
}

PlanAnswer plan_player_step(PlanPlayer *player, GError **error) {
    return play(player, 1, INT32_MAX, error);
}

PlanAnswer plan_player_run_section(PlanPlayer *player, GError **error) {
    return play(player, UINT64_MAX, player->at.step, error);
}

PlanAnswer plan_player_run_to(PlanPlayer *player, uint32_t index, GError **error) {
    const PlanPosition *at = &player->at;
    g_assert(index >= at->index && index <= at->role->n_instrs[at->section]);
    uint64_t most = (uint64_t)(index - at->index) + !player->begun;
    return play(player, most, at->step, error);
}

void plan_player_pass_over(PlanPlayer *player, uint32_t n) {
    g_assert(n <= player->at.role->n_instrs[player->at.section] - player->at.index);
    player->at.index += n;
}

PlanAnswer plan_player_run(PlanPlayer *player, GError **error) {
    return play(player, UINT64_MAX, INT32_MAX, error);
}

bool plan_player_at_end(const PlanPlayer *player) {
    return player->at_end;
}

const PlanPosition *plan_player_position(const PlanPlayer *player) {
    return &player->at;
}
