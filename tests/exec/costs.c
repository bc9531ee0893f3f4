/* Costs of memory are measured where there is room, and where there is none, that is said. */
#include "exec/costs.h"

#include <string.h>

#include "exec/error.h"

/* Memory of the host, of which so many segments are left. */
typedef struct {
    unsigned left, held;
} Room;

static uint64_t total_bytes(gpointer self) {
    return UINT64_C(1) << 40;
}

static bool segment_new(gpointer self, uint64_t bytes, gpointer *ret_handle) {
    Room *room = self;
    if (room->left == 0) {
        return false;
    }
    room->left--;
    room->held++;
    *ret_handle = g_malloc(bytes);
    return true;
}

static void segment_free(gpointer self, gpointer handle, uint64_t bytes) {
    Room *room = self;
    room->held--;
    room->left++;
    g_free(handle);
}

static MemoryEvent event_record(gpointer self, uint32_t stream) {
    return 0;
}

static bool event_query(gpointer self, MemoryEvent event) {
    return true;
}

static void event_sync(gpointer self, MemoryEvent event) {
}

static void stream_sync(gpointer self, uint32_t stream) {
}

static const MemorySource source = {
    .total_bytes = total_bytes,
    .segment_new = segment_new,
    .segment_free = segment_free,
    .event_record = event_record,
    .event_query = event_query,
    .event_sync = event_sync,
    .stream_sync = stream_sync,
};

static void costs_need_room(void) {
    static const char *const names[] = {"segment_new_us ", "segment_free_us ", "alloc_us ",
                                        "free_us "};
    /* 64 blocks of 0.4 MB in the mean are 26 MB, in segments of 2 MiB. */
    static const unsigned cases[] = {0, 1, 8, 64};
    for (unsigned c = 0; c < G_N_ELEMENTS(cases); c++) {
        unsigned segments = cases[c];
        g_autoptr(GError) error = NULL;
        g_autoptr(GString) lines = g_string_new(NULL);
        ExecCosts costs = {.comm = &exec_comm_alone, .lines = lines};
        Room room = {.left = segments};
        bool ok = exec_costs_of_memory(&costs, &source, &room, &error);
        g_test_message("%u segments: %s", segments, ok ? lines->str : error->message);
        g_assert_cmpuint(room.held, ==, 0);
        g_assert_true(ok == (segments == 64));
        for (unsigned i = 0; ok && i < G_N_ELEMENTS(names); i++) {
            g_assert_nonnull(strstr(lines->str, names[i]));
        }
        if (!ok) {
            g_assert_error(error, EXEC_ERROR, EXEC_ERROR_FAILED);
            g_assert_nonnull(strstr(error->message, segments ? "no room for 64 blocks" : "20 MiB"));
        }
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/exec/costs/costs need room", costs_need_room);
    return g_test_run();
}
