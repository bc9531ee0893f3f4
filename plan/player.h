/* plan/player.h - walks a role's program and asks a device for each instruction.
 *
 * The player is a cursor. A device may answer "not yet"; the player then stays where it is and asks
 * for the same instruction again at the next call. So one thread can play many simulated ranks by
 * turning from one player to another. On a real device a call blocks instead.
 *
 * Sections in order: construct (step -1), first (step 0), second (step 1), steady (steps 2 and on).
 *
 * Borrows: plan and device, which outlive it. Threads: one.
 */
#pragma once

#include "plan/plan.h"

typedef enum {
    PLAN_DONE,    /* the instruction has taken effect */
    PLAN_NOT_YET, /* ask again; the device says elsewhere when */
    PLAN_STOPPED, /* the play is over before its end, which is a result (out of memory) */
    PLAN_FAILED,  /* error is set */
} PlanAnswer;

typedef struct {
    const Plan *plan;
    const PlanRole *role;
    PlanSection section;
    int32_t step;   /* -1 in construct */
    uint32_t index; /* within the section */
    const PlanInstr *instr;
} PlanPosition;

typedef struct {
    const char *name;
    /* One function for each kind of instruction, and two for the ends of sections. NULL: the device
     * does nothing there. self is what the player was made with. */
    PlanAnswer (*section_begins)(gpointer self, const PlanPosition *at, GError **error);
    PlanAnswer (*section_ends)(gpointer self, const PlanPosition *at, GError **error);
    PlanAnswer (*alloc)(gpointer self, const PlanPosition *at, uint32_t buffer, GError **error);
    PlanAnswer (*free)(gpointer self, const PlanPosition *at, uint32_t buffer, GError **error);
    PlanAnswer (*mark)(gpointer self, const PlanPosition *at, uint32_t buffer, uint32_t lane,
                       GError **error);
    PlanAnswer (*launch)(gpointer self, const PlanPosition *at, const PlanOp *op, uint32_t lane,
                         GError **error);
    PlanAnswer (*record)(gpointer self, const PlanPosition *at, uint32_t event, uint32_t lane,
                         GError **error);
    PlanAnswer (*wait)(gpointer self, const PlanPosition *at, uint32_t event, uint32_t steps_before,
                       uint32_t lane, GError **error);
    PlanAnswer (*host_wait)(gpointer self, const PlanPosition *at, uint32_t event,
                            uint32_t steps_before, GError **error);
    PlanAnswer (*host_op)(gpointer self, const PlanPosition *at, const PlanOp *op, GError **error);
} PlanDevice;

typedef struct _PlanPlayer PlanPlayer;

/* steps: how many training steps to play, 0 for construction alone. */
PlanPlayer *plan_player_new(const Plan *plan, uint32_t role, uint32_t steps,
                            const PlanDevice *device, gpointer self);
void plan_player_free(PlanPlayer *player);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(PlanPlayer, plan_player_free)

/* Asks for one instruction, or crosses one section boundary. PLAN_DONE for the last one too: ask
 * plan_player_at_end(). */
PlanAnswer plan_player_step(PlanPlayer *player, GError **error);
bool plan_player_at_end(const PlanPlayer *player);
/* Plays to the end of the current section, or until the device answers other than PLAN_DONE. */
PlanAnswer plan_player_run_section(PlanPlayer *player, GError **error);
/* Plays up to that instruction of the current section, without it, or until the device answers
 * other than PLAN_DONE. */
PlanAnswer plan_player_run_to(PlanPlayer *player, uint32_t index, GError **error);
/* Moves on by n instructions of the current section without asking for them. The device must have
 * brought itself into the state that they would have left. */
void plan_player_pass_over(PlanPlayer *player, uint32_t n);
/* Plays to the end of the plan, or until the device answers other than PLAN_DONE. */
PlanAnswer plan_player_run(PlanPlayer *player, GError **error);
const PlanPosition *plan_player_position(const PlanPlayer *player);

/* A device that only counts instructions and live bytes: for tests, and for what a plan needs
 * whatever allocator serves it. */
typedef struct {
    uint64_t calls[PLAN_N_INSTRS];
    uint64_t live_bytes, peak_bytes; /* exact bytes of live buffers */
    uint64_t floor_bytes;            /* live at the end of the last section */
    PlanSection peak_section;
    uint64_t at_peak[PLAN_N_SUBCATEGORIES], live[PLAN_N_SUBCATEGORIES];
} PlanNullCounts;

extern const PlanDevice plan_null_device; /* self: PlanNullCounts */
