#include "plan/limiter.h"

typedef struct {
    uint32_t number;
    int32_t step;
} Free;

void plan_limiter_init(PlanLimiter *limiter, uint32_t limit) {
    *limiter = (PlanLimiter){.limit = limit};
    limiter->queue = g_array_new(FALSE, FALSE, sizeof(Free));
    limiter->history = g_array_new(FALSE, FALSE, sizeof(bool));
}

void plan_limiter_clear(PlanLimiter *limiter) {
    g_clear_pointer(&limiter->queue, g_array_unref);
    g_clear_pointer(&limiter->history, g_array_unref);
}

void plan_limiter_begin_step(PlanLimiter *limiter) {
    limiter->step++;
    limiter->n_frees = 0;
    limiter->length = limiter->queue->len;
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
    if (!pop(limiter, &oldest) || oldest.step < limiter->step - 1) {
        return false;
    }
    *ret_free = oldest.number;
    *ret_before = (uint8_t)(limiter->step - oldest.step);
    return true;
}

bool plan_limiter_is_steady(const PlanLimiter *limiter) {
    return limiter->queue->len == limiter->length;
}

/* A step takes at most one free for each it adds, or one for each gather: the queue's length tells
 * its state, for what it holds is always the last frees of the step before. */
void plan_limiter_settle(PlanLimiter *limiter) {
    guint length;
    do {
        Free ignored;
        uint32_t n_frees = 0;
        length = limiter->queue->len;
        limiter->step++;
        for (guint i = 0; i < limiter->history->len; i++) {
            if (g_array_index(limiter->history, bool, i)) {
                push(limiter, n_frees++);
            } else {
                pop(limiter, &ignored);
            }
        }
    } while (limiter->queue->len != length);
}
