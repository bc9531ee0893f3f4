#include "sim/device/lifetimes.h"

#define NOBODY UINT32_MAX

typedef struct {
    const PlanRole *role;
    GArray *tenants;     /* MemoryTenant */
    uint32_t *tenant_of; /* by buffer; NOBODY: not of these tenants */
    uint32_t now;
} Walk;

static MemoryTenant *tenant_of(const Walk *walk, uint32_t buffer) {
    uint32_t tenant = walk->tenant_of[buffer];
    return tenant == NOBODY ? NULL : &g_array_index(walk->tenants, MemoryTenant, tenant);
}

/* Walks a section's allocations and frees. are_new: each allocation becomes a tenant that comes
 * back after every `every` moments (0: comes once); otherwise it is a repetition of a known one. */
static void walk_section(Walk *walk, PlanSection section, bool are_new, uint32_t every) {
    for (uint32_t i = 0; i < walk->role->n_instrs[section]; i++, walk->now++) {
        const PlanInstr *instr = &walk->role->sections[section][i];
        MemoryTenant *tenant;
        if (instr->kind == PLAN_ALLOC) {
            MemoryTenant comes = {walk->role->buffers[instr->arg].bytes, walk->now, UINT32_MAX, 0,
                                  every};
            walk->tenant_of[instr->arg] = are_new ? walk->tenants->len : NOBODY;
            g_array_append_vals(walk->tenants, &comes, are_new);
        } else if (instr->kind == PLAN_FREE && (tenant = tenant_of(walk, instr->arg))) {
            tenant->to = walk->now;
        }
    }
}

GArray *sim_lifetimes(const PlanRole *role) {
    g_autofree uint32_t *of = g_new(uint32_t, role->n_buffers);
    Walk walk = {role, g_array_new(FALSE, FALSE, sizeof(MemoryTenant)), of, 0};
    PlanSection begins = plan_steps_alternate(role) ? PLAN_SECTION_SECOND : PLAN_SECTION_STEADY;
    uint32_t round = 0;
    for (PlanSection s = begins; s < PLAN_N_SECTIONS; s++) {
        round += role->n_instrs[s];
    }
    for (uint32_t b = 0; b < role->n_buffers; b++) {
        of[b] = NOBODY;
    }
    for (PlanSection s = 0; s < begins; s++) {
        walk_section(&walk, s, true, 0);
    }
    for (PlanSection s = begins; s < PLAN_N_SECTIONS; s++) {
        walk_section(&walk, s, true, round);
    }
    for (PlanSection s = begins; s < PLAN_N_SECTIONS; s++) { /* frees what the round before left */
        walk_section(&walk, s, false, round);
    }
    return walk.tenants;
}
