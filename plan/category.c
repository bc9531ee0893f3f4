#include "plan/category.h"

static const char *const category_names[PLAN_N_CATEGORIES] = {
    [PLAN_CATEGORY_PARAMETERS] = "parameters", [PLAN_CATEGORY_GRADIENTS] = "gradients",
    [PLAN_CATEGORY_OPTIMIZER] = "optimizer",   [PLAN_CATEGORY_ACTIVATIONS] = "activations",
    [PLAN_CATEGORY_TEMPORARY] = "temporary",   [PLAN_CATEGORY_COMMUNICATION] = "communication",
};

static const struct {
    const char *name;
    PlanCategory category;
} subs[PLAN_N_SUBCATEGORIES] = {
    [PLAN_PARAMETERS_SHARDED] = {"parameters/sharded", PLAN_CATEGORY_PARAMETERS},
    [PLAN_PARAMETERS_UNSHARDED] = {"parameters/unsharded", PLAN_CATEGORY_PARAMETERS},
    [PLAN_GRADIENTS_SHARDED] = {"gradients/sharded", PLAN_CATEGORY_GRADIENTS},
    [PLAN_GRADIENTS_UNSHARDED] = {"gradients/unsharded", PLAN_CATEGORY_GRADIENTS},
    [PLAN_OPTIMIZER_STATE] = {"optimizer/state", PLAN_CATEGORY_OPTIMIZER},
    [PLAN_ACTIVATIONS_SAVED] = {"activations/saved", PLAN_CATEGORY_ACTIVATIONS},
    [PLAN_ACTIVATIONS_INPUT] = {"activations/input", PLAN_CATEGORY_ACTIVATIONS},
    [PLAN_TEMPORARY_OP] = {"temporary/op", PLAN_CATEGORY_TEMPORARY},
    [PLAN_TEMPORARY_WORKSPACE] = {"temporary/workspace", PLAN_CATEGORY_TEMPORARY},
    [PLAN_COMMUNICATION_GATHER] = {"communication/gather", PLAN_CATEGORY_COMMUNICATION},
    [PLAN_COMMUNICATION_REDUCE] = {"communication/reduce", PLAN_CATEGORY_COMMUNICATION},
    [PLAN_COMMUNICATION_REPLICATE] = {"communication/replicate", PLAN_CATEGORY_COMMUNICATION},
};

PlanCategory plan_subcategory_category(PlanSubcategory sub) {
    g_assert(sub < PLAN_N_SUBCATEGORIES);
    return subs[sub].category;
}

const char *plan_category_name(PlanCategory category) {
    g_assert(category < PLAN_N_CATEGORIES);
    return category_names[category];
}

const char *plan_subcategory_name(PlanSubcategory sub) {
    g_assert(sub < PLAN_N_SUBCATEGORIES);
    return subs[sub].name;
}

bool plan_subcategory_parse(const char *name, PlanSubcategory *ret_sub) {
    for (unsigned i = 0; i < PLAN_N_SUBCATEGORIES; i++) {
        if (g_str_equal(subs[i].name, name)) {
            *ret_sub = (PlanSubcategory)i;
            return true;
        }
    }
    return false;
}
