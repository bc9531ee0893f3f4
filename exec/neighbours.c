#include "exec/neighbours.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "plan/text/text.h"

struct _ExecNeighbours {
    ExecBlackBox *box;
    uint32_t *ranks, n, mine;
    char *plan_path;
    pthread_t thread;
    atomic_bool ends;
};

/* ---- the signal ----------------------------------------------------------------------------- */

static void mask(int how) {
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(how, &term, NULL);
}

void exec_neighbours_prepare(void) {
    mask(SIG_BLOCK);
}

void exec_neighbours_forget(void) {
    mask(SIG_UNBLOCK);
}

/* At most a second: the signal, or 0. */
static int wait_for_signal(void) {
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    int sig = sigtimedwait(&term, NULL, &(struct timespec){.tv_sec = 1});
    return sig == SIGTERM ? sig : 0;
}

/* ---- who is gone ---------------------------------------------------------------------------- */

static bool is_gone(const ExecNeighbours *around, uint32_t rank) {
    return rank != around->mine && !exec_black_box_lives(around->box, rank);
}

/* -1: nobody. */
static int64_t who_died(const ExecNeighbours *around) {
    for (uint32_t i = 0; i < around->n; i++) {
        uint32_t rank = around->ranks[i];
        if (is_gone(around, rank) &&
            !atomic_load(&exec_black_box_doing(around->box, rank)->has_spoken)) {
            return rank;
        }
    }
    return -1;
}

static void speak_for(const ExecNeighbours *around, uint32_t dead) {
    g_autoptr(Plan) plan = around->plan_path ? plan_read_file(around->plan_path, NULL) : NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    exec_doing_tell(exec_black_box_doing(around->box, dead), plan, dead, 0, text);
    fprintf(stderr, "foreshard-exec: %s; the others are ended\n", text->str);
    fflush(NULL);
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* Its own end is no surprise to the others. */
static void end(const ExecNeighbours *around, int sig) {
    exec_doing_say_no_more(exec_black_box_doing(around->box, around->mine));
    if (sig) {
        signal(sig, SIG_DFL);
        mask(SIG_UNBLOCK);
        raise(sig);
    }
    _exit(1);
}

static void *look_on(void *data) {
    const ExecNeighbours *around = data;
    for (;;) {
        int sig = wait_for_signal();
        if (atomic_load(&around->ends)) {
            return NULL;
        }
        int64_t dead = who_died(around);
        if (dead >= 0 && exec_doing_may_tell(exec_black_box_doing(around->box, (uint32_t)dead))) {
            speak_for(around, (uint32_t)dead);
        }
        if (dead >= 0 || sig) {
            end(around, sig);
        }
    }
}

ExecNeighbours *exec_neighbours_new(ExecBlackBox *box, uint32_t *ranks, uint32_t n, uint32_t mine,
                                    const char *plan_path) {
    ExecNeighbours *around = g_new0(ExecNeighbours, 1);
    around->box = box;
    around->ranks = ranks;
    around->n = n;
    around->mine = mine;
    around->plan_path = g_strdup(plan_path);
    g_assert(pthread_create(&around->thread, NULL, look_on, around) == 0);
    return around;
}

void exec_neighbours_free(ExecNeighbours *around) {
    if (!around) {
        return;
    }
    exec_doing_say_no_more(exec_black_box_doing(around->box, around->mine));
    atomic_store(&around->ends, true);
    pthread_kill(around->thread, SIGTERM);
    pthread_join(around->thread, NULL);
    exec_neighbours_forget();
    exec_black_box_free(around->box);
    g_free(around->ranks);
    g_free(around->plan_path);
    g_free(around);
}
