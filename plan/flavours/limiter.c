#include "plan/flavours/limiter.h"

#include "plan/plan.h"

typedef struct {
    uint32_t number;
    int32_t step;
} Free;

void plan_limiter_init(PlanLimiter *limiter, uint32_t limit) {
    *limiter = (PlanLimiter){.limit = limit};
    limiter->queue = g_array_new(FALSE, FALSE, sizeof(Free));
    limiter->at_begin = g_array_new(FALSE, FALSE, sizeof(Free));
    limiter->history = g_array_new(FALSE, FALSE, sizeof(bool));
}

void plan_limiter_clear(PlanLimiter *limiter) {
    g_clear_pointer(&limiter->queue, g_array_unref);
    g_clear_pointer(&limiter->at_begin, g_array_unref);
    g_clear_pointer(&limiter->history, g_array_unref);
}

static void remember(PlanLimiter *limiter) {
    g_array_set_size(limiter->at_begin, 0);
    g_array_append_vals(limiter->at_begin, limiter->queue->data, limiter->queue->len);
}

void plan_limiter_begin_step(PlanLimiter *limiter) {
    limiter->step++;
    limiter->n_frees = 0;
    remember(limiter);
    g_array_set_size(limiter->history, 0);
}

void plan_limiter_count_from(PlanLimiter *limiter, uint32_t first) {
    limiter->n_frees = first;
    g_array_set_size(limiter->history, 0);
}

static void push(PlanLimiter *limiter, uint32_t number) {
    Free entry = {number, limiter->step};
    g_array_append_val(limiter->queue, entry);
}

static bool pop(PlanLimiter *limiter, Free *ret_free) {
    if (!limiter->limit || limiter->queue->len < limiter->limit) {
        return false;
    }
    *ret_free = g_array_index(limiter->queue, Free, 0);
    g_array_remove_index(limiter->queue, 0);
    return true;
}

uint32_t plan_limiter_free(PlanLimiter *limiter) {
    bool is_free = true;
    g_array_append_val(limiter->history, is_free);
    push(limiter, limiter->n_frees);
    return limiter->n_frees++;
}

bool plan_limiter_gather(PlanLimiter *limiter, uint32_t *ret_free, uint8_t *ret_before) {
    bool is_free = false;
    g_array_append_val(limiter->history, is_free);
    Free oldest;
    if (!pop(limiter, &oldest) || oldest.step < limiter->step - PLAN_MAX_BEFORE) {
        return false;
    }
    *ret_free = oldest.number;
    *ret_before = (uint8_t)(limiter->step - oldest.step);
    return true;
}

/* Each entry is a step younger than its counterpart when the step began. */
bool plan_limiter_is_steady(const PlanLimiter *limiter) {
    bool same = limiter->queue->len == limiter->at_begin->len;
    for (guint i = 0; same && i < limiter->queue->len; i++) {
        const Free *now = &g_array_index(limiter->queue, Free, i);
        const Free *then = &g_array_index(limiter->at_begin, Free, i);
        same = now->number == then->number && now->step == then->step + 1;
    }
    return same;
}

void plan_limiter_settle(PlanLimiter *limiter) {
    do {
        Free ignored;
        uint32_t n_frees = 0;
        remember(limiter);
        limiter->step++;
        for (guint i = 0; i < limiter->history->len; i++) {
            if (g_array_index(limiter->history, bool, i)) {
                push(limiter, n_frees++);
            } else {
                pop(limiter, &ignored);
            }
        }
    } while (!plan_limiter_is_steady(limiter));
}
