#include "exec/watch/children.h"

#include <signal.h>
#include <sys/wait.h>

#include "exec/watch/warden.h"

enum {
    GRACE_US = 2 * G_USEC_PER_SEC /* until ranks that were asked to end are killed */
};

void exec_children_end(const pid_t *pids, unsigned n, int signal) {
    for (unsigned i = 0; i < n; i++) {
        if (pids[i]) {
            kill(pids[i], signal);
        }
    }
}

/* Reports a rank that was killed. Returns the status with which this program should end. */
static int judge(const ExecDoing *doing, const char *plan_path, unsigned rank, int status) {
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE) {
        return 128 + SIGPIPE; /* whoever closed the pipe knows */
    }
    if (WIFSIGNALED(status)) {
        exec_warden_speak(&doing[rank], plan_path, rank, WTERMSIG(status));
        return 1;
    }
    return WEXITSTATUS(status);
}

int exec_children_watch(pid_t *pids, unsigned n, const ExecDoing *doing, const char *plan_path,
                        atomic_int *ret_gone) {
    int verdict = 0;
    gint64 asked_at = 0;
    for (unsigned left = n; left;) {
        int status;
        pid_t pid = waitpid(-1, &status, verdict ? WNOHANG : 0);
        if (pid == 0) { /* only once one has failed */
            g_usleep(10000);
            if (g_get_monotonic_time() - asked_at > GRACE_US) {
                exec_children_end(pids, n, SIGKILL);
            }
            continue;
        }
        for (unsigned rank = 0; rank < n; rank++) {
            if (pids[rank] != pid) {
                continue;
            }
            pids[rank] = 0;
            left--;
            if (!verdict && (verdict = judge(doing, plan_path, rank, status))) {
                atomic_store(ret_gone, (int)rank);
                asked_at = g_get_monotonic_time();
                exec_children_end(pids, n, SIGTERM);
            }
        }
    }
    return verdict;
}
