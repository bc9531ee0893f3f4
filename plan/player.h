/* plan/player.h - walks a role's program and asks a device for each instruction.
 *
 * The player is a cursor: a device may answer "not yet", and the same instruction is asked again
 * when the player is stepped next. So one thread can hold a player per simulated rank, while on a
 * real device a call simply blocks.
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
    /* All hooks are there. self is what the player was made with. */
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

/* One instruction (or one section boundary). PLAN_DONE also when it was the last: see _at_end(). */
PlanAnswer plan_player_step(PlanPlayer *player, GError **error);
bool plan_player_at_end(const PlanPlayer *player);
/* Steps to the end of the section at hand, or until a device answers other than PLAN_DONE. */
PlanAnswer plan_player_run_section(PlanPlayer *player, GError **error);
/* Steps to that instruction of the section at hand, which is not asked for yet, likewise. */
PlanAnswer plan_player_run_to(PlanPlayer *player, uint32_t index, GError **error);
/* So many instructions of the section at hand are passed over: the device stands as if it had been
 * asked for them. */
void plan_player_pass_over(PlanPlayer *player, uint32_t n);
/* Steps until the end, or until a device answers other than PLAN_DONE. */
PlanAnswer plan_player_run(PlanPlayer *player, GError **error);
const PlanPosition *plan_player_position(const PlanPlayer *player);

/* A device that does nothing and counts: for tests of programs and of the player itself. */
typedef struct {
    uint64_t calls[PLAN_N_INSTRS];
    uint64_t live_bytes, peak_bytes; /* exact bytes of live buffers */
    uint64_t floor_bytes;            /* live at the end of the last section */
    PlanSection peak_section;
    uint32_t peak_index;
    uint64_t at_peak[PLAN_N_SUBCATEGORIES], live[PLAN_N_SUBCATEGORIES];
} PlanNullCounts;

extern const PlanDevice plan_null_device; /* self: PlanNullCounts */
