#include "plan/op/calls.h"

#include <string.h>

void plan_calls_init(PlanCalls *calls, PlanArena *arena) {
    *calls = (PlanCalls){arena, g_hash_table_new(g_str_hash, g_str_equal), g_ptr_array_new()};
}

void plan_calls_clear(PlanCalls *calls) {
    g_hash_table_unref(calls->numbers);
    g_ptr_array_unref(calls->texts);
}

int64_t plan_calls_number(PlanCalls *calls, const char *text) {
    gpointer known = g_hash_table_lookup(calls->numbers, text);
    if (known) {
        return GPOINTER_TO_INT(known);
    }
    const char *own = plan_arena_text(calls->arena, text);
    g_ptr_array_add(calls->texts, (gpointer)own);
    g_hash_table_insert(calls->numbers, (gpointer)own, GINT_TO_POINTER((gint)calls->texts->len));
    return calls->texts->len;
}

const char **plan_calls_take(const PlanCalls *calls, guint32 *ret_n) {
    const char **texts = plan_arena_array(calls->arena, const char *, calls->texts->len + 1);
    for (guint i = 0; i < calls->texts->len; i++) {
        texts[i] = g_ptr_array_index(calls->texts, i);
    }
    *ret_n = calls->texts->len;
    return texts;
}
