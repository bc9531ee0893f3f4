#include "plan/build/roles.h"

#include "plan/mesh.h"

/* Where the ranks of a role are gathered; it is a new one if no rank before has that shape. */
static GArray *ranks_of_role(GHashTable *roles, GPtrArray *all, uint32_t stage, const char *shape) {
    g_autofree char *name = g_strdup_printf("%u: %s", stage, shape ? shape : "");
    GArray *ranks = g_hash_table_lookup(roles, name);
    if (!ranks) {
        ranks = g_array_new(FALSE, FALSE, sizeof(uint32_t));
        g_ptr_array_add(all, ranks);
        g_hash_table_insert(roles, g_steal_pointer(&name), ranks);
    }
    return ranks;
}

void plan_find_roles(Plan *plan, const PlanRun *run) {
    g_autoptr(GHashTable) roles = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GPtrArray) members = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    g_auto(GStrv) shapes = g_new0(char *, plan->world + 1);
    if (run->flavour->shapes_of_ranks) {
        run->flavour->shapes_of_ranks(run, shapes);
    }
    GArray *ranks = NULL;
    for (uint32_t rank = 0; rank < plan->world; rank++) {
        uint32_t per_stage = plan_ranks_of_stage(plan);
        bool as_before = rank % per_stage > 0 && g_strcmp0(shapes[rank], shapes[rank - 1]) == 0;
        if (!as_before) {
            ranks = ranks_of_role(roles, members, rank / per_stage, shapes[rank]);
        }
        g_array_append_val(ranks, rank);
    }
    plan->n_roles = members->len;
    plan->roles = plan_arena_array(plan->arena, PlanRole, plan->n_roles);
    for (uint32_t i = 0; i < plan->n_roles; i++) {
        const GArray *own = members->pdata[i];
        plan->roles[i] = (PlanRole){
            .ranks = plan_arena_copy(plan->arena, own->data, own->len * sizeof(uint32_t)),
            .n_ranks = own->len};
    }
}
