#include "exec/watch/warden.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/error.h"
#include "plan/text/text.h"

static const uint32_t UNKNOWN = UINT32_MAX;

struct _ExecWarden {
    _Atomic uint32_t rank; /* UNKNOWN until MPI has told */
    ExecDoing doing;
};

void exec_warden_speak(const ExecDoing *doing, const char *plan_path, uint32_t rank, int signal) {
    g_autoptr(Plan) plan = plan_path ? plan_read_file(plan_path, NULL) : NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    exec_doing_tell(doing, plan, rank, signal, text);
    fprintf(stderr, "foreshard-exec: %s; the others have been ended\n", text->str);
}

void exec_warden_stay_with(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) { /* it has died meanwhile */
        _exit(1);
    }
}

/* ---- the parent ----------------------------------------------------------------------------- */

/* Those by which a process is asked to end; whoever asks knows why. */
static bool asks_to_end(int signal) {
    return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

static sigset_t signals_of_parent(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    return set;
}

/* The status to end with. */
static int judge(const ExecWarden *warden, const char *plan_path, int status) {
    if (!WIFSIGNALED(status)) {
        return WEXITSTATUS(status); /* it has said why itself */
    }
    int signal = WTERMSIG(status);
    uint32_t rank = atomic_load(&warden->rank);
    if (asks_to_end(signal) || signal == SIGPIPE) { /* or closed the pipe */
        return 128 + signal;
    }
    if (rank == UNKNOWN) {
        fprintf(stderr,
                "foreshard-exec: a rank was killed by signal %d (%s) before it had found "
                "the others; they have been ended\n",
                signal, g_strsignal(signal));
    } else {
        exec_warden_speak(&warden->doing, plan_path, rank, signal);
    }
    return 1;
}

static void watch(const ExecWarden *warden, const char *plan_path, pid_t child) G_GNUC_NORETURN;
static void watch(const ExecWarden *warden, const char *plan_path, pid_t child) {
    sigset_t set = signals_of_parent();
    int status;
    while (waitpid(child, &status, WNOHANG) == 0) {
        int signal = sigwaitinfo(&set, NULL);
        if (asks_to_end(signal)) {
            kill(child, signal);
        }
    }
    _exit(judge(warden, plan_path, status));
}

/* ---- both ----------------------------------------------------------------------------------- */

ExecWarden *exec_warden_new(const char *plan_path, GError **error) {
    ExecWarden *warden =
        mmap(NULL, sizeof *warden, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (warden == MAP_FAILED) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED, "no memory to share: %s",
                    g_strerror(errno));
        return NULL;
    }
    atomic_store(&warden->rank, UNKNOWN);
    sigset_t set = signals_of_parent(), before;
    pid_t parent = getpid();
    sigprocmask(SIG_BLOCK, &set, &before); /* so that none is missed */
    pid_t child = fork();
    if (child > 0) {
        watch(warden, plan_path, child);
    }
    int why = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (child < 0) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED, "fork failed: %s", g_strerror(why));
        exec_warden_free(warden);
        return NULL;
    }
    exec_warden_stay_with(parent);
    return warden;
}

void exec_warden_free(ExecWarden *warden) {
    if (warden) {
        munmap(warden, sizeof *warden);
    }
}

ExecDoing *exec_warden_doing(ExecWarden *warden, uint32_t rank) {
    atomic_store(&warden->rank, rank);
    return &warden->doing;
}
