/* plan/category.h - what a byte is for.
 *
 * Six categories, each with its sub-categories; a buffer carries one sub-category, which names the
 * category too. Pictures fold the sub-categories, tables show them.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef enum {
    PLAN_CATEGORY_PARAMETERS,
    PLAN_CATEGORY_GRADIENTS,
    PLAN_CATEGORY_OPTIMIZER,
    PLAN_CATEGORY_ACTIVATIONS,
    PLAN_CATEGORY_TEMPORARY,
    PLAN_CATEGORY_COMMUNICATION,
    PLAN_N_CATEGORIES
} PlanCategory;

typedef enum {
    PLAN_PARAMETERS_SHARDED,
    PLAN_PARAMETERS_UNSHARDED,
    PLAN_GRADIENTS_SHARDED,
    PLAN_GRADIENTS_UNSHARDED,
    PLAN_OPTIMIZER_STATE,
    PLAN_ACTIVATIONS_SAVED,
    PLAN_ACTIVATIONS_INPUT,
    PLAN_TEMPORARY_OP,
    PLAN_TEMPORARY_WORKSPACE,
    PLAN_COMMUNICATION_GATHER,
    PLAN_COMMUNICATION_REDUCE,
    PLAN_COMMUNICATION_REPLICATE,
    PLAN_N_SUBCATEGORIES
} PlanSubcategory;

PlanCategory plan_subcategory_category(PlanSubcategory sub);
const char *plan_category_name(PlanCategory category);  /* "parameters" */
const char *plan_subcategory_name(PlanSubcategory sub); /* "parameters/sharded" */
bool plan_subcategory_parse(const char *name, PlanSubcategory *ret_sub);
