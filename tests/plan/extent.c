/* How many elements an operand's row of ops.def says that a kernel touches. */
#include "plan/op/extent.h"
#include "plan/op/op.h"

static const char *const names[] = {"rows", "cols", "each", "stride"};

static uint64_t elements(const char *text, uint64_t rows, uint64_t cols) {
    PlanExtent extent = plan_extent_parse(text, names, G_N_ELEMENTS(names));
    return plan_extent_elements(&extent, (uint64_t[]){rows, cols, 4, 100});
}

static void products(void) {
    g_assert_cmpuint(elements(NULL, 12, 7), ==, 12);
    g_assert_cmpuint(elements("1", 12, 7), ==, 1);
    g_assert_cmpuint(elements("cols", 12, 7), ==, 7);
    g_assert_cmpuint(elements("rows*cols*2", 12, 7), ==, 168);
    g_assert_cmpuint(elements("rows*(cols+1)", 12, 7), ==, 96);
    g_assert_cmpuint(elements("(rows+cols+cols)*each", 12, 7), ==, 104);
    g_assert_cmpuint(elements("rows/each*cols", 12, 7), ==, 21);
    g_assert_cmpuint(elements("rows/2", 12, 7), ==, 6);
    PlanExtent scalar = plan_extent_parse(NULL, names, 0);
    g_assert_cmpuint(plan_extent_elements(&scalar, NULL), ==, 1);
}

static void rows_apart(void) {
    g_assert_cmpuint(elements("rows@stride:cols", 12, 7), ==, 11 * 100 + 7);
    g_assert_cmpuint(elements("rows/each@stride:each*2*cols", 12, 7), ==, 2 * 100 + 56);
    g_assert_cmpuint(elements("rows@stride:cols", 12, 101), ==, UINT64_MAX);
}

static void too_large(void) {
    uint64_t half = UINT64_MAX / 2;
    g_assert_cmpuint(elements("rows*cols", half, 3), ==, UINT64_MAX);
    g_assert_cmpuint(elements("(rows+rows+cols)", half, 3), ==, UINT64_MAX);
    g_assert_cmpuint(elements("rows@stride:cols", half, 3), ==, UINT64_MAX);
}

/* Of every row: with dims of one there is one element at least, of lists none. */
static void all_rows(void) {
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        const PlanOpInfo *info = plan_op_info((PlanOpKind)kind);
        uint64_t dims[PLAN_MAX_DIMS];
        for (unsigned i = 0; i < PLAN_MAX_DIMS; i++) {
            dims[i] = 16;
        }
        for (unsigned slot = 0; slot < info->n_slots; slot++) {
            const PlanExtent *extent = &info->slots[slot].extent;
            uint64_t touched = extent->is_special ? 1 : plan_extent_elements(extent, dims);
            g_assert_cmpuint(touched, >=, 1);
        }
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/extent/products", products);
    g_test_add_func("/plan/extent/rows apart", rows_apart);
    g_test_add_func("/plan/extent/too large", too_large);
    g_test_add_func("/plan/extent/all rows", all_rows);
    return g_test_run();
}
