#include "exec/watch/watchdog.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum {
    LAST_WORDS_S = 2
};

struct _ExecWatchdog {
    unsigned seconds, opening_seconds;
    char *rank;
    void (*explain)(gpointer self, GString *text);
    gpointer self;
    GThread *thread;
    GMutex mutex;
    GCond ends;
    gboolean ended;
    gint beats; /* wraps; only that it changes counts */
};

static void end_at_once(int signal_number) {
    _exit(1);
}

/* Whoever reads our output may be stuck as well, with another thread waiting for it inside of a
 * stream that is flushed here: then the process ends without its last words. */
static void bark(const ExecWatchdog *watchdog, unsigned seconds) G_GNUC_NORETURN;
static void bark(const ExecWatchdog *watchdog, unsigned seconds) {
    g_autoptr(GString) text = g_string_new(NULL);
    signal(SIGALRM, end_at_once);
    alarm(LAST_WORDS_S);
    watchdog->explain(watchdog->self, text);
    fprintf(stderr,
            "foreshard-exec: %s: nothing has got on for %u s: %s; a rank may have died or taken "
            "another way (--watchdog sets the time, 0 turns it off)\n",
            watchdog->rank, seconds, text->str);
    fflush(NULL);
    _exit(1);
}

/* Between two looks no more is counted than twice what was to lie between them: where this thread
 * has not run, on a machine that was suspended or has too much to do, others have not either. */
static gpointer look_on(gpointer data) {
    ExecWatchdog *watchdog = data;
    gint seen = 0;
    gint64 allowed_us = MAX(watchdog->seconds, watchdog->opening_seconds) * G_USEC_PER_SEC;
    gint64 pause_us = MIN(watchdog->seconds * G_USEC_PER_SEC / 4, G_USEC_PER_SEC);
    gint64 looked_at = g_get_monotonic_time(), quiet_us = 0;
    g_mutex_lock(&watchdog->mutex);
    while (!watchdog->ended) {
        g_cond_wait_until(&watchdog->ends, &watchdog->mutex, looked_at + pause_us);
        gint64 now = g_get_monotonic_time();
        gint beats = g_atomic_int_get(&watchdog->beats);
        quiet_us += MIN(now - looked_at, 2 * pause_us);
        looked_at = now;
        if (beats != seen) {
            seen = beats;
            quiet_us = 0;
            allowed_us = watchdog->seconds * G_USEC_PER_SEC;
        } else if (!watchdog->ended && quiet_us > allowed_us) {
            bark(watchdog, (unsigned)(allowed_us / G_USEC_PER_SEC));
        }
    }
    g_mutex_unlock(&watchdog->mutex);
    return NULL;
}

ExecWatchdog *exec_watchdog_new(unsigned seconds, unsigned opening_seconds, const char *rank,
                                void (*explain)(gpointer self, GString *text), gpointer self) {
    if (!seconds) {
        return NULL;
    }
    ExecWatchdog *watchdog = g_new0(ExecWatchdog, 1);
    watchdog->seconds = seconds;
    watchdog->opening_seconds = opening_seconds;
    watchdog->rank = g_strdup(rank);
    watchdog->explain = explain;
    watchdog->self = self;
    g_mutex_init(&watchdog->mutex);
    g_cond_init(&watchdog->ends);
    watchdog->thread = g_thread_new("watchdog", look_on, watchdog);
    return watchdog;
}

void exec_watchdog_free(ExecWatchdog *watchdog) {
    if (!watchdog) {
        return;
    }
    g_mutex_lock(&watchdog->mutex);
    watchdog->ended = TRUE;
    g_cond_signal(&watchdog->ends);
    g_mutex_unlock(&watchdog->mutex);
    g_thread_join(watchdog->thread);
    g_mutex_clear(&watchdog->mutex);
    g_cond_clear(&watchdog->ends);
    g_free(watchdog->rank);
    g_free(watchdog);
}

void exec_watchdog_beat(ExecWatchdog *watchdog) {
    if (watchdog) {
        g_atomic_int_inc(&watchdog->beats);
    }
}
