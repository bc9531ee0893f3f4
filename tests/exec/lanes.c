/* Lanes: in order by themselves, beside each other, waiting as told; an error stops them all. */
#include "exec/host/lanes.h"

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "exec/host/segments.h"
#include "exec/watch/patience.h"

typedef struct {
    pthread_mutex_t mutex;
    GString *said;
} Diary;

typedef struct {
    Diary *diary;
    char letter;
    gulong sleep_us;
    bool fails;
} Entry;

static bool say(gpointer data, GError **error) {
    Entry *entry = data;
    g_usleep(entry->sleep_us);
    pthread_mutex_lock(&entry->diary->mutex);
    g_string_append_c(entry->diary->said, entry->letter);
    pthread_mutex_unlock(&entry->diary->mutex);
    if (entry->fails) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_FAILED, "%c broke", entry->letter);
    }
    return !entry->fails;
}

static void give(ExecLanes *lanes, uint32_t lane, Diary *diary, char letter, gulong sleep_us,
                 bool fails) {
    Entry *entry = g_new(Entry, 1);
    *entry = (Entry){diary, letter, sleep_us, fails};
    exec_lanes_give(lanes, lane, say, entry, g_free);
}

static void begin(Diary *diary) {
    pthread_mutex_init(&diary->mutex, NULL);
    diary->said = g_string_new(NULL);
}

static void end(Diary *diary) {
    g_string_free(diary->said, TRUE);
    pthread_mutex_destroy(&diary->mutex);
}

static void in_order(void) {
    Diary diary;
    begin(&diary);
    ExecLanes *lanes = exec_lanes_new(1);
    for (char c = 'a'; c <= 'z'; c++) { /* more than a lane's queue takes at once */
        give(lanes, 0, &diary, c, c % 3 ? 0 : 500, false);
    }
    g_assert_true(exec_lanes_drain(lanes));
    g_assert_cmpstr(diary.said->str, ==, "abcdefghijklmnopqrstuvwxyz");
    exec_lanes_free(lanes);
    end(&diary);
}

/* Lane 1 says b after lane 0's slow a, because it was told to wait, and before lane 0's c. */
static void waits(void) {
    Diary diary;
    begin(&diary);
    ExecLanes *lanes = exec_lanes_new(2);
    give(lanes, 0, &diary, 'a', 20000, false);
    ExecMoment after_a = exec_lanes_moment(lanes, 0);
    g_assert_false(exec_lanes_passed(lanes, after_a));
    exec_lanes_wait(lanes, 1, after_a);
    give(lanes, 1, &diary, 'b', 0, false);
    exec_lanes_wait(lanes, 0, exec_lanes_moment(lanes, 1));
    give(lanes, 0, &diary, 'c', 0, false);
    g_assert_true(exec_lanes_host_wait(lanes, after_a));
    g_assert_true(exec_lanes_passed(lanes, after_a));
    g_assert_true(exec_lanes_drain(lanes));
    g_assert_cmpstr(diary.said->str, ==, "abc");
    exec_lanes_free(lanes);
    end(&diary);
}

static void an_error_stops_all(void) {
    Diary diary;
    begin(&diary);
    ExecLanes *lanes = exec_lanes_new(2);
    give(lanes, 0, &diary, 'a', 0, true);
    exec_lanes_wait(lanes, 1, exec_lanes_moment(lanes, 0));
    g_assert_false(exec_lanes_drain(lanes));
    g_assert_true(exec_lanes_failed(lanes));
    g_autoptr(GError) error = exec_lanes_error(lanes);
    g_assert_cmpstr(error->message, ==, "a broke");
    for (char c = 'b'; c < 'z'; c++) { /* never blocks, never runs */
        give(lanes, 1, &diary, c, 0, false);
    }
    exec_lanes_free(lanes);
    g_assert_cmpstr(diary.said->str, ==, "a");
    end(&diary);
}

typedef struct {
    ExecLanes *lanes;
    ExecTickets *tickets;
    uint64_t ticket;
    Diary *diary;
    char letter;
    gulong sleep_us;
} Turn;

/* Work that still runs when another lane fails finds its memory where it was. */
typedef struct {
    gint has_begun;
    GMutex mutex; /* held until the memory has been given back */
    volatile char *memory;
} Writer;

static bool write_late(gpointer data, GError **error) {
    Writer *writer = data;
    g_atomic_int_set(&writer->has_begun, 1);
    g_mutex_lock(&writer->mutex);
    writer->memory[0] = 1;
    g_mutex_unlock(&writer->mutex);
    return true;
}

enum {
    PAGE = 1 << 21 /* bytes */
};

/* A page, as the allocator takes it of lane 0: a segment, or mapped (expandable). */
static gpointer take_memory(ExecSegments *segments, bool expandable) {
    const MemorySource *source = &exec_segments_source;
    gpointer handle;
    if (expandable) {
        g_assert_true(source->address_new(segments, 4 * PAGE, &handle));
        g_assert_true(source->map(segments, handle, 0, PAGE, 1));
    } else {
        g_assert_true(source->segment_new(segments, PAGE, &handle));
    }
    return handle;
}

static void give_back(ExecSegments *segments, bool expandable, gpointer handle) {
    const MemorySource *source = &exec_segments_source;
    if (expandable) {
        source->stream_sync(segments, 0);
        source->unmap(segments, handle, 0, PAGE, 1);
        source->address_free(segments, handle, 4 * PAGE);
    } else {
        source->segment_free(segments, handle, PAGE);
    }
}

static void memory_outlives_a_failure(gconstpointer expandable) {
    Diary diary;
    Writer writer = {0};
    begin(&diary);
    ExecLanes *lanes = exec_lanes_new(2);
    ExecSegments segments = {.lanes = lanes, .limit_bytes = 8 * PAGE};
    writer.memory = take_memory(&segments, expandable != NULL);
    g_mutex_init(&writer.mutex);
    g_mutex_lock(&writer.mutex);
    exec_lanes_give(lanes, 0, write_late, &writer, NULL);
    while (!g_atomic_int_get(&writer.has_begun)) {
        g_usleep(100);
    }
    give(lanes, 1, &diary, 'a', 0, true);
    g_assert_false(exec_lanes_host_wait(lanes, exec_lanes_moment(lanes, 1)));
    give_back(&segments, expandable != NULL, (gpointer)writer.memory);
    g_assert_cmpuint(segments.mapped_bytes, ==, 0);
    g_mutex_unlock(&writer.mutex);
    exec_lanes_free(lanes);
    g_assert_cmpint(writer.memory[0], ==, 1);
    g_mutex_clear(&writer.mutex);
    end(&diary);
}

/* What another lane still reads is there until it has, though the lane that it is of rests: as
 * gradients are, which a lane of reductions has made and an optimizer reads. */
static void memory_outlives_other_lanes(gconstpointer expandable) {
    enum {
        LATE_US = 50000
    };
    ExecLanes *lanes = exec_lanes_new(2);
    ExecSegments segments = {.lanes = lanes, .limit_bytes = 8 * PAGE};
    Writer writer = {0};
    Diary diary;
    begin(&diary);
    g_mutex_init(&writer.mutex);
    writer.memory = take_memory(&segments, expandable != NULL);
    give(lanes, 1, &diary, 'a', LATE_US, false);
    exec_lanes_give(lanes, 1, write_late, &writer, NULL);
    give_back(&segments, expandable != NULL, (gpointer)writer.memory);
    g_assert_cmpint(g_atomic_int_get(&writer.has_begun), ==, 1);
    g_assert_true(exec_lanes_drain(lanes));
    exec_lanes_free(lanes);
    g_mutex_clear(&writer.mutex);
    end(&diary);
}

static bool take_turn(gpointer data, GError **error) {
    Turn *turn = data;
    g_usleep(turn->sleep_us);
    g_assert_true(exec_lanes_enter(turn->lanes, turn->tickets, turn->ticket));
    Entry entry = {turn->diary, turn->letter, 0, false};
    say(&entry, error);
    exec_lanes_leave(turn->lanes, turn->tickets);
    return true;
}

/* Two lanes, one communicator: the order is the host's, though the second lane is ready first. */
static void turns_are_the_hosts(void) {
    Diary diary;
    begin(&diary);
    ExecLanes *lanes = exec_lanes_new(2);
    ExecTickets tickets = {0};
    for (unsigned i = 0; i < 6; i++) {
        Turn *turn = g_new(Turn, 1);
        *turn = (Turn){lanes,  &tickets,        tickets.next_ticket++,
                       &diary, (char)('a' + i), i % 2 ? 0 : 3000};
        exec_lanes_give(lanes, i % 2, take_turn, turn, g_free);
    }
    g_assert_true(exec_lanes_drain(lanes));
    g_assert_cmpstr(diary.said->str, ==, "abcdef");
    exec_lanes_free(lanes);
    end(&diary);
}

static bool note_sleeps(gpointer data, GError **error) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    *(long *)data = usage.ru_nvcsw; /* how often this thread has gone to sleep */
    return true;
}

/* Lane 1 sleeps until lane 0 is through, and does not look again after each of its pieces. */
static void only_those_wake_whose_wait_is_over(void) {
    enum {
        PIECES = 200
    };
    Diary diary;
    long before = 0, after = 0;
    begin(&diary);
    ExecLanes *lanes = exec_lanes_new(2);
    exec_lanes_give(lanes, 1, note_sleeps, &before, NULL);
    g_assert_true(exec_lanes_drain(lanes));
    exec_lanes_wait(lanes, 1, (ExecMoment){0, PIECES});
    exec_lanes_give(lanes, 1, note_sleeps, &after, NULL);
    for (unsigned i = 0; i < PIECES; i++) {
        give(lanes, 0, &diary, 'a', 50, false);
    }
    g_assert_true(exec_lanes_drain(lanes));
    g_test_message("lane 1 slept %ld times while lane 0 did %d pieces", after - before, PIECES);
    g_assert_cmpint(after - before, >=, 1);
    g_assert_cmpint(after - before, <, PIECES / 10);
    exec_lanes_free(lanes);
    end(&diary);
}

static bool note_slack(gpointer data, GError **error) {
    *(int *)data = prctl(PR_GET_TIMERSLACK);
    return true;
}

/* Of lanes too, which inherit it. */
static void sleeps_are_as_short_as_asked_for(void) {
    int slack_ns = 0;
    exec_patience_mind();
    ExecLanes *lanes = exec_lanes_new(1);
    exec_lanes_give(lanes, 0, note_slack, &slack_ns, NULL);
    g_assert_true(exec_lanes_drain(lanes));
    g_assert_cmpint(slack_ns, ==, 1);
    exec_lanes_free(lanes);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/exec/lanes/work runs in order", in_order);
    g_test_add_func("/exec/lanes/lanes wait for moments", waits);
    g_test_add_func("/exec/lanes/an error stops all", an_error_stops_all);
    g_test_add_data_func("/exec/lanes/memory outlives other lanes", NULL,
                         memory_outlives_other_lanes);
    g_test_add_data_func("/exec/lanes/pages outlive other lanes", "yes",
                         memory_outlives_other_lanes);
    g_test_add_data_func("/exec/lanes/memory outlives a failure", NULL, memory_outlives_a_failure);
    g_test_add_data_func("/exec/lanes/memory outlives a failure, expandable", "yes",
                         memory_outlives_a_failure);
    g_test_add_func("/exec/lanes/tickets are the host's", turns_are_the_hosts);
    g_test_add_func("/exec/lanes/only those wake whose wait is over",
                    only_those_wake_whose_wait_is_over);
    g_test_add_func("/exec/lanes/sleeps are as short as asked for",
                    sleeps_are_as_short_as_asked_for);
    return g_test_run();
}
