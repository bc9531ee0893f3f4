/* exec/host/lanes.c - one lock for all lanes of a rank, and for each wait a condition of its own.
 *
 * There are a handful of lanes and some thousand pieces of work a step, so one lock is not
 * contended. Whoever waits says for what, and whoever gets on wakes those whose waiting is over and
 * no others: a core that rests takes longer to wake than a small kernel to run, and who wakes it
 * pays a part.
 */
#include "exec/host/lanes.h"

typedef struct {
    ExecWork run; /* NULL: wait for moment */
    gpointer work;
    GDestroyNotify free_work;
    ExecMoment moment;
} Item;

typedef struct {
    ExecLanes *lanes;
    uint32_t number;
    GQueue items; /* Item */
    uint64_t given, done;
    uint32_t n_ahead; /* work given and not done */
    GThread *thread;
} Lane;

typedef enum {
    FOR_WORK,   /* the lane's next item, once it can be done */
    FOR_ROOM,   /* fewer pieces of work ahead of the lane */
    FOR_MOMENT, /* to pass */
    FOR_TICKET  /* the ticket's */
} WaitKind;

typedef struct Wait Wait;
struct Wait {
    WaitKind kind;
    const Lane *lane;           /* FOR_WORK, FOR_ROOM */
    ExecMoment moment;          /* FOR_MOMENT */
    const ExecTickets *tickets; /* FOR_TICKET */
    uint64_t ticket;
    pthread_cond_t over;
    Wait *next;
};

struct _ExecLanes {
    pthread_mutex_t mutex;
    Wait *waits; /* all that go on; each on its thread's stack */
    uint32_t n_lanes;
    Lane *lane;
    bool stopping;
    GError *error;
};

static bool passed(const ExecLanes *lanes, ExecMoment moment) {
    return lanes->lane[moment.lane].done >= moment.position;
}

/* ---- waiting; all with the lock held --------------------------------------------------------- */

static bool can_work(const ExecLanes *lanes, const Lane *lane) {
    const Item *item = g_queue_peek_head((GQueue *)&lane->items);
    return item && (item->run || passed(lanes, item->moment));
}

static bool is_over(const ExecLanes *lanes, const Wait *wait) {
    if (lanes->stopping || lanes->error) {
        return true;
    }
    switch (wait->kind) {
    case FOR_WORK:
        return can_work(lanes, wait->lane);
    case FOR_ROOM:
        return wait->lane->n_ahead < EXEC_LANE_DEPTH;
    case FOR_MOMENT:
        return passed(lanes, wait->moment);
    case FOR_TICKET:
        return wait->tickets->now_serving == wait->ticket;
    }
    g_assert_not_reached();
}

static void wait_until_over(ExecLanes *lanes, Wait wait) {
    if (is_over(lanes, &wait)) {
        return;
    }
    pthread_cond_init(&wait.over, NULL);
    wait.next = lanes->waits;
    lanes->waits = &wait;
    while (!is_over(lanes, &wait)) {
        pthread_cond_wait(&wait.over, &lanes->mutex);
    }
    Wait **at = &lanes->waits;
    while (*at != &wait) {
        at = &(*at)->next;
    }
    *at = wait.next;
    pthread_cond_destroy(&wait.over);
}

/* To be called after every change that may end a wait. */
static void wake(ExecLanes *lanes) {
    for (Wait *wait = lanes->waits; wait; wait = wait->next) {
        if (is_over(lanes, wait)) {
            pthread_cond_signal(&wait->over);
        }
    }
}

/* ---- lanes ---------------------------------------------------------------------------------- */

/* The next item, or NULL when the lane shall end. Called and returns with the lock held. */
static Item *next_item(Lane *lane) {
    ExecLanes *lanes = lane->lanes;
    wait_until_over(lanes, (Wait){.kind = FOR_WORK, .lane = lane});
    return lanes->stopping || lanes->error ? NULL : g_queue_pop_head(&lane->items);
}

static void free_item(Item *item) {
    if (item->free_work) {
        item->free_work(item->work);
    }
    g_free(item);
}

static gpointer work_on(gpointer data) {
    Lane *lane = data;
    ExecLanes *lanes = lane->lanes;
    pthread_mutex_lock(&lanes->mutex);
    for (Item *item; (item = next_item(lane));) {
        pthread_mutex_unlock(&lanes->mutex);
        GError *error = NULL;
        bool is_work = item->run != NULL;
        bool ok = !is_work || item->run(item->work, &error);
        free_item(item);
        pthread_mutex_lock(&lanes->mutex);
        lane->done++;
        lane->n_ahead -= is_work;
        if (!ok && !lanes->error) {
            lanes->error = g_steal_pointer(&error);
        }
        g_clear_error(&error);
        wake(lanes);
    }
    pthread_mutex_unlock(&lanes->mutex);
    return NULL;
}

ExecLanes *exec_lanes_new(uint32_t n_lanes) {
    ExecLanes *lanes = g_new0(ExecLanes, 1);
    pthread_mutex_init(&lanes->mutex, NULL);
    lanes->n_lanes = n_lanes;
    lanes->lane = g_new0(Lane, n_lanes);
    for (uint32_t i = 0; i < n_lanes; i++) {
        Lane *lane = &lanes->lane[i];
        lane->lanes = lanes;
        lane->number = i;
        g_queue_init(&lane->items);
        lane->thread = g_thread_new("lane", work_on, lane);
    }
    return lanes;
}

void exec_lanes_free(ExecLanes *lanes) {
    if (!lanes) {
        return;
    }
    pthread_mutex_lock(&lanes->mutex);
    lanes->stopping = true;
    wake(lanes);
    pthread_mutex_unlock(&lanes->mutex);
    for (uint32_t i = 0; i < lanes->n_lanes; i++) {
        g_thread_join(lanes->lane[i].thread);
        g_queue_clear_full(&lanes->lane[i].items, (GDestroyNotify)free_item);
    }
    g_clear_error(&lanes->error);
    pthread_mutex_destroy(&lanes->mutex);
    g_free(lanes->lane);
    g_free(lanes);
}

static void give(ExecLanes *lanes, uint32_t number, Item item) {
    Lane *lane = &lanes->lane[number];
    g_assert(number < lanes->n_lanes);
    pthread_mutex_lock(&lanes->mutex);
    if (item.run) {
        wait_until_over(lanes, (Wait){.kind = FOR_ROOM, .lane = lane});
    }
    g_queue_push_tail(&lane->items, g_memdup2(&item, sizeof item));
    lane->given++;
    lane->n_ahead += item.run != NULL;
    wake(lanes);
    pthread_mutex_unlock(&lanes->mutex);
}

void exec_lanes_give(ExecLanes *lanes, uint32_t lane, ExecWork run, gpointer work,
                     GDestroyNotify free_work) {
    give(lanes, lane, (Item){.run = run, .work = work, .free_work = free_work});
}

/* Only the host gives work, so it may read what was given without the lock. */
ExecMoment exec_lanes_moment(const ExecLanes *lanes, uint32_t lane) {
    g_assert(lane < lanes->n_lanes);
    return (ExecMoment){lane, lanes->lane[lane].given};
}

void exec_lanes_wait(ExecLanes *lanes, uint32_t lane, ExecMoment moment) {
    if (moment.lane != lane) { /* its own past a lane has always waited for */
        give(lanes, lane, (Item){.moment = moment});
    }
}

bool exec_lanes_passed(ExecLanes *lanes, ExecMoment moment) {
    pthread_mutex_lock(&lanes->mutex);
    bool answer = passed(lanes, moment);
    pthread_mutex_unlock(&lanes->mutex);
    return answer;
}

bool exec_lanes_host_wait(ExecLanes *lanes, ExecMoment moment) {
    pthread_mutex_lock(&lanes->mutex);
    wait_until_over(lanes, (Wait){.kind = FOR_MOMENT, .moment = moment});
    bool ok = !lanes->error;
    pthread_mutex_unlock(&lanes->mutex);
    return ok;
}

bool exec_lanes_drain(ExecLanes *lanes) {
    for (uint32_t i = 0; i < lanes->n_lanes; i++) {
        if (!exec_lanes_host_wait(lanes, exec_lanes_moment(lanes, i))) {
            return false;
        }
    }
    return true;
}

bool exec_lanes_enter(ExecLanes *lanes, ExecTickets *tickets, uint64_t ticket) {
    pthread_mutex_lock(&lanes->mutex);
    wait_until_over(lanes, (Wait){.kind = FOR_TICKET, .tickets = tickets, .ticket = ticket});
    bool ok = tickets->now_serving == ticket;
    pthread_mutex_unlock(&lanes->mutex);
    return ok;
}

void exec_lanes_leave(ExecLanes *lanes, ExecTickets *tickets) {
    pthread_mutex_lock(&lanes->mutex);
    tickets->now_serving++;
    wake(lanes);
    pthread_mutex_unlock(&lanes->mutex);
}

void exec_lanes_fail(ExecLanes *lanes, const GError *error) {
    pthread_mutex_lock(&lanes->mutex);
    if (!lanes->error) {
        lanes->error = g_error_copy(error);
    }
    wake(lanes);
    pthread_mutex_unlock(&lanes->mutex);
}

bool exec_lanes_failed(ExecLanes *lanes) {
    pthread_mutex_lock(&lanes->mutex);
    bool failed = lanes->error != NULL;
    pthread_mutex_unlock(&lanes->mutex);
    return failed;
}

GError *exec_lanes_error(ExecLanes *lanes) {
    pthread_mutex_lock(&lanes->mutex);
    GError *error = lanes->error ? g_error_copy(lanes->error) : NULL;
    pthread_mutex_unlock(&lanes->mutex);
    return error;
}
