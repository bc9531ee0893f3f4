#include "plan/files/leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "plan/plan.h"

enum {
    LEFTOVERS_MOST = 16, /* a command has three at most, and each thread that writes one more */
    ENTRIES_BYTES = 4096,
    TRIES = 5 /* what another process still writes into a folder may come after its listing */
};

static struct {
    _Atomic pid_t owner; /* 0: none; a forked child has the table, but nothing that is in it */
    char path[PATH_MAX];
} leftovers[LEFTOVERS_MOST];

static GMutex lock;

/* What getdents64(2) fills in; readdir() may not be called where a signal is caught. */
typedef struct {
    ino64_t inode;
    off64_t next;
    unsigned short length;
    unsigned char kind;
    char name[];
} Entry;

static void empty_folder(int folder) {
    _Alignas(Entry) char entries[ENTRIES_BYTES];
    long n;
    while ((n = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0) {
        for (long at = 0; at < n;) {
            const Entry *entry = (const Entry *)(entries + at);
            unlinkat(folder, entry->name, 0); /* which does nothing to . and .. */
            at += entry->length;
        }
    }
}

/* Calls nothing but what signal-safety(7) allows. */
static void remove_now(const char *path) {
    if (unlink(path) == 0 || errno == ENOENT) {
        return;
    }
    for (int i = 0; i < TRIES && rmdir(path) != 0 && errno != ENOENT; i++) {
        int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0) {
            return;
        }
        empty_folder(folder);
        close(folder);
    }
}

/* The default action has come back (SA_RESETHAND), and ends the program. */
static void on_signal(int signal) {
    for (int i = 0; i < LEFTOVERS_MOST; i++) {
        if (atomic_load(&leftovers[i].owner) == getpid()) {
            remove_now(leftovers[i].path);
        }
    }
    raise(signal);
}

static void catch_signals(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (unsigned i = 0; i < G_N_ELEMENTS(signals); i++) {
        struct sigaction now,
            ours = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_NODEFER};
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL) {
            sigaction(signals[i], &ours, NULL);
        }
    }
}

void plan_leftover(const char *path) {
    g_autofree char *whole = g_canonicalize_filename(path, NULL);
    bool noted = strlen(whole) >= PATH_MAX;
    g_mutex_lock(&lock);
    catch_signals(); /* anew: GLib puts the default back where it has listened itself */
    for (int i = 0; i < LEFTOVERS_MOST && !noted; i++) {
        if (atomic_load(&leftovers[i].owner) == 0) {
            g_strlcpy(leftovers[i].path, whole, PATH_MAX);
            atomic_store(&leftovers[i].owner, getpid());
            noted = true;
        }
    }
    g_mutex_unlock(&lock);
}

void plan_leftover_over(const char *path) {
    g_autofree char *whole = g_canonicalize_filename(path, NULL);
    g_mutex_lock(&lock);
    for (int i = 0; i < LEFTOVERS_MOST; i++) {
        if (atomic_load(&leftovers[i].owner) == getpid() && strcmp(leftovers[i].path, whole) == 0) {
            atomic_store(&leftovers[i].owner, 0);
            break;
        }
    }
    g_mutex_unlock(&lock);
}

char *plan_leftover_folder(const char *name, GError **error) {
    g_autoptr(GError) cause = NULL;
    char *folder = g_dir_make_tmp(name, &cause);
    if (folder) {
        plan_leftover(folder);
    } else {
        g_set_error(error, PLAN_ERROR, PLAN_ERROR_FILE,
                    "no folder can be made in %s: %s; let TMPDIR name one that can be written",
                    g_get_tmp_dir(), cause->message);
    }
    return folder;
}

void plan_leftover_remove_folder(const char *folder) {
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    for (const char *name; dir && (name = g_dir_read_name(dir));) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_unlink(path);
    }
    g_rmdir(folder);
    plan_leftover_over(folder);
}
