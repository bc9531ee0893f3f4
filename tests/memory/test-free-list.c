/* memory/free-list: order, finding, and many random changes against a plain sorted array. */
#include "memory/free-list.h"

#include <stdbool.h>
#include <string.h>

/* Words: "8@3" inserts key 8 at address 3, "-8@3" removes it, "?8@3" finds, "$" is the last. */
static char *play(const char *script) {
    MemoryFreeList list = {0};
    GString *answer = g_string_new(NULL);
    g_auto(GStrv) words = g_strsplit(script, " ", -1);
    for (char **word = words; *word; word++) {
        char sign = **word;
        const char *number = *word + (sign == '-' || sign == '?');
        char *end = NULL;
        uint64_t key = g_ascii_strtoull(number, &end, 10);
        uint64_t address = *end == '@' ? g_ascii_strtoull(end + 1, NULL, 10) : 0;
        if (sign == '$' || sign == '?') {
            gpointer block =
                sign == '$'
                    ? memory_free_list_last(&list)
                    : memory_free_list_at(&list, memory_free_list_find(&list, key, address));
            g_string_append_printf(answer, "%s ", block ? (char *)block : "none");
        } else if (sign == '-') {
            memory_free_list_remove(&list, key, address);
        } else {
            memory_free_list_insert(&list, key, address, *word);
        }
    }
    memory_free_list_clear(&list);
    return g_strchomp(g_string_free(answer, FALSE));
}

static void assert_play(const char *script, const char *expected) {
    g_autofree char *answer = play(script);
    g_assert_cmpstr(answer, ==, expected);
}

static void test_find(void) {
    assert_play("?0@0 $", "none none");
    assert_play("8@3 4@9 8@1 ?0@0 ?5@0 ?8@2 ?8@4 $", "4@9 8@1 8@3 none 8@3");
    assert_play("8@3 8@1 -8@1 ?1@0 -8@3 ?1@0 $ 2@2 ?1@1", "8@3 none none 2@2");
}

static gint compare(gconstpointer a, gconstpointer b) {
    const MemoryFreeEntry *x = a, *y = b;
    if (x->order.key != y->order.key) {
        return x->order.key < y->order.key ? -1 : 1;
    }
    return x->order.address < y->order.address ? -1 : x->order.address > y->order.address;
}

static void assert_same(const MemoryFreeList *list, const GArray *model) {
    MemoryFreeCursor cursor = memory_free_list_first();
    for (guint i = 0; i < model->len; i++) {
        g_assert_true(memory_free_list_at(list, cursor) ==
                      g_array_index(model, MemoryFreeEntry, i).block);
        cursor = memory_free_list_next(list, cursor);
    }
    g_assert_null(memory_free_list_at(list, cursor));
}

/* To any key, near or far. */
static void move_one(MemoryFreeList *list, GArray *model, GRand *random) {
    guint at = (guint)g_rand_int_range(random, 0, (gint)model->len);
    MemoryFreeEntry *entry = &g_array_index(model, MemoryFreeEntry, at);
    MemoryFreeCursor cursor = memory_free_list_find(list, entry->order.key, entry->order.address);
    entry->order.key = (uint64_t)g_rand_int_range(random, 0, 50);
    memory_free_list_move(list, cursor, entry->order.key, entry->order.address);
    g_array_sort(model, compare);
}

static void test_model(void) {
    MemoryFreeList list = {0};
    g_autoptr(GArray) model = g_array_new(FALSE, FALSE, sizeof(MemoryFreeEntry));
    g_autoptr(GRand) random = g_rand_new_with_seed(3);
    for (guint i = 0; i < 12000; i++) {
        /* Grows to some thousand, shrinks to nothing, and again. */
        bool grows = i / 3000 % 2 == 0;
        if (model->len == 0 || g_rand_int_range(random, 0, 10) < (grows ? 9 : 1)) {
            MemoryFreeEntry entry = {{(uint64_t)g_rand_int_range(random, 0, 50), i},
                                     GUINT_TO_POINTER(i + 1)};
            memory_free_list_insert(&list, entry.order.key, entry.order.address, entry.block);
            g_array_append_val(model, entry);
            g_array_sort(model, compare);
        } else {
            guint at = (guint)g_rand_int_range(random, 0, (gint)model->len);
            const MemoryFreeEntry *entry = &g_array_index(model, MemoryFreeEntry, at);
            if (i % 2) {
                memory_free_list_remove(&list, entry->order.key, entry->order.address);
            } else {
                MemoryFreeCursor cursor =
                    memory_free_list_find(&list, entry->order.key, entry->order.address);
                g_assert_true(memory_free_list_at(&list, cursor) == entry->block);
                memory_free_list_remove_at(&list, cursor);
            }
            g_array_remove_index(model, at);
        }
        if (i % 8 == 0 && model->len) {
            move_one(&list, model, random);
        }
        if (i % 100 == 0) {
            assert_same(&list, model);
        }
    }
    assert_same(&list, model);
    memory_free_list_clear(&list);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/memory/free-list/find-is-first-not-before", test_find);
    g_test_add_func("/memory/free-list/equals-a-sorted-array", test_model);
    return g_test_run();
}
