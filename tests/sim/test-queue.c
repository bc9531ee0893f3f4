/* Small scripts against sim/queue: what leaves, in which order. */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "sim/queue.h"

/* A script of words: "3@10" sets slot 3 at 10, "-3" unsets it, "." pops. Answers with what was
 * popped: "3@10", or "none". */
static char *play(const char *script) {
    g_autoptr(SimQueue) queue = sim_queue_new(8);
    g_auto(GStrv) words = g_strsplit(script, " ", -1);
    GString *answer = g_string_new(NULL);
    for (char **word = words; *word; word++) {
        unsigned slot;
        long long at;
        if (g_str_equal(*word, ".")) {
            uint32_t popped;
            SimTime when;
            if (sim_queue_pop(queue, &popped, &when)) {
                g_string_append_printf(answer, "%u@%" G_GINT64_FORMAT " ", popped, when);
            } else {
                g_string_append(answer, "none ");
            }
        } else if (sscanf(*word, "-%u", &slot) == 1) {
            sim_queue_unset(queue, slot);
        } else {
            g_assert_cmpint(sscanf(*word, "%u@%lld", &slot, &at), ==, 2);
            sim_queue_set(queue, slot, at);
        }
    }
    return g_strchomp(g_string_free(answer, FALSE));
}

static void assert_play(const char *script, const char *expected) {
    g_autofree char *answer = play(script);
    g_assert_cmpstr(answer, ==, expected);
}

static void test_order(void) {
    assert_play("0@30 1@10 2@20 . . . .", "1@10 2@20 0@30 none");
    assert_play(".", "none");
}

static void test_ties_leave_in_order_of_setting(void) {
    assert_play("5@7 1@7 3@7 0@7 . . . .", "5@7 1@7 3@7 0@7");
    /* Setting anew is a new turn, even at the same moment. */
    assert_play("5@7 1@7 3@7 5@7 . . .", "1@7 3@7 5@7");
}

static void test_moves(void) {
    assert_play("0@10 1@20 2@30 2@5 0@40 . . .", "2@5 1@20 0@40");
    assert_play("0@10 1@20 -0 . -1 -1 .", "1@20 none");
}

/* Against a plain search of the least, over many random sets, unsets and pops. */
static void test_random(void) {
    enum {
        SLOTS = 37
    };
    g_autoptr(SimQueue) queue = sim_queue_new(SLOTS);
    g_autoptr(GRand) dice = g_rand_new_with_seed(1);
    SimTime at[SLOTS];
    uint64_t turn[SLOTS], turns = 0;
    for (int i = 0; i < SLOTS; i++) {
        at[i] = SIM_NEVER;
    }
    for (int round = 0; round < 20000; round++) {
        int slot = g_rand_int_range(dice, 0, SLOTS);
        int what = g_rand_int_range(dice, 0, 3);
        if (what == 0) {
            at[slot] = g_rand_int_range(dice, 0, 50);
            turn[slot] = turns++;
            sim_queue_set(queue, (uint32_t)slot, at[slot]);
        } else if (what == 1 && g_rand_boolean(dice)) {
            at[slot] = SIM_NEVER;
            sim_queue_unset(queue, (uint32_t)slot);
        } else {
            int least = -1;
            for (int i = 0; i < SLOTS; i++) {
                if (at[i] != SIM_NEVER && (least < 0 || at[i] < at[least] ||
                                           (at[i] == at[least] && turn[i] < turn[least]))) {
                    least = i;
                }
            }
            g_assert_cmpint(sim_queue_next(queue), ==, least < 0 ? SIM_NEVER : at[least]);
            uint32_t popped;
            SimTime when;
            bool any = sim_queue_pop(queue, &popped, &when);
            g_assert_cmpint(any, ==, least >= 0);
            if (any) {
                g_assert_cmpuint(popped, ==, (uint32_t)least);
                g_assert_cmpint(when, ==, at[least]);
                at[least] = SIM_NEVER;
            }
        }
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sim/queue/earliest_first", test_order);
    g_test_add_func("/sim/queue/ties_leave_in_order", test_ties_leave_in_order_of_setting);
    g_test_add_func("/sim/queue/moments_move", test_moves);
    g_test_add_func("/sim/queue/agrees_with_plain_search", test_random);
    return g_test_run();
}
