#include "exec/pace.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "exec/clock.h"
#include "exec/error.h"
#include "plan/files/file.h"
#include "plan/files/ini.h"

enum {
    N_HEADER = 3, /* lines */
    UNKNOWN = -1  /* how long, until a line says so */
};

struct _ExecPace {
    char *cluster;
    ExecPaced **of; /* of each role, of each op */
    uint32_t n_roles;
};

static bool take_line(ExecPace *pace, const Plan *plan, char **words) {
    uint64_t role, op, ns, channels;
    if (g_strv_length(words) != 4 || !plan_parse_u64(words[0], &role) ||
        !plan_parse_u64(words[1], &op) || !plan_parse_u64(words[2], &ns) ||
        !plan_parse_u64(words[3], &channels) || role >= plan->n_roles ||
        op >= plan->roles[role].n_ops || ns > INT64_MAX / 2 || channels > UINT32_MAX) {
        return false;
    }
    pace->of[role][op] = (ExecPaced){(int64_t)ns, (uint32_t)channels};
    return true;
}

static bool is_digest(const Plan *plan, char **words) {
    return g_strv_length(words) == 2 && g_str_equal(words[0], "digest") &&
           g_str_equal(words[1], plan_digest(plan));
}

static bool take_lines(ExecPace *pace, const Plan *plan, char **lines, const char *path,
                       GError **error) {
    for (unsigned i = 0; i < N_HEADER || lines[i]; i++) {
        g_auto(GStrv) words = g_strsplit(lines[i] ? lines[i] : "", " ", -1);
        bool ok = i == 0   ? g_strcmp0(lines[i], EXEC_PACE_FORM) == 0
                  : i == 1 ? g_strv_length(words) >= 2 && g_str_equal(words[0], "cluster")
                  : i == 2 ? is_digest(plan, words)
                           : take_line(pace, plan, words);
        if (!ok) {
            g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                        "%s:%u: not a line of a pace for this plan; foreshard run --pace makes one",
                        path, i + 1);
            return false;
        }
    }
    return true;
}

/* A table that was cut short has too few. */
static bool has_all(const ExecPace *pace, const Plan *plan, const char *path, GError **error) {
    for (uint32_t r = 0; r < plan->n_roles; r++) {
        const PlanRole *role = &plan->roles[r];
        for (uint32_t op = 0; op < role->n_ops; op++) {
            if (plan_op_is_collective((PlanOpKind)role->ops[op].kind) &&
                pace->of[r][op].least_ns == UNKNOWN) {
                g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                            "%s: has no line for op %u of role %u (%s); foreshard run --pace makes "
                            "a whole one",
                            path, op, r, plan_op_info((PlanOpKind)role->ops[op].kind)->name);
                return false;
            }
        }
    }
    return true;
}

static ExecPace *pace_new(const Plan *plan) {
    ExecPace *pace = g_new0(ExecPace, 1);
    pace->n_roles = plan->n_roles;
    pace->of = g_new0(ExecPaced *, plan->n_roles);
    for (uint32_t r = 0; r < plan->n_roles; r++) {
        pace->of[r] = g_new(ExecPaced, plan->roles[r].n_ops);
        for (uint32_t op = 0; op < plan->roles[r].n_ops; op++) {
            pace->of[r][op] = (ExecPaced){.least_ns = UNKNOWN};
        }
    }
    return pace;
}

ExecPace *exec_pace_read(const char *path, const Plan *plan, GError **error) {
    g_autofree char *text = plan_file_text(path, NULL, error);
    if (!text) {
        return NULL;
    }
    g_autoptr(ExecPace) pace = pace_new(plan);
    bool ends_a_line = g_str_has_suffix(text, "\n");
    if (ends_a_line) {
        text[strlen(text) - 1] = 0;
    }
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    if (!take_lines(pace, plan, lines, path, error)) {
        return NULL;
    }
    if (!ends_a_line) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_INPUT,
                    "%s:%u: ends within a line; foreshard run --pace makes a whole one", path,
                    g_strv_length(lines));
        return NULL;
    }
    pace->cluster = g_strdup(strchr(lines[1], ' ') + 1);
    return has_all(pace, plan, path, error) ? g_steal_pointer(&pace) : NULL;
}

void exec_pace_free(ExecPace *pace) {
    if (!pace) {
        return;
    }
    for (uint32_t r = 0; r < pace->n_roles; r++) {
        g_free(pace->of[r]);
    }
    g_free(pace->of);
    g_free(pace->cluster);
    g_free(pace);
}

const char *exec_pace_cluster(const ExecPace *pace) {
    return pace->cluster;
}

ExecPaced exec_pace_of(const ExecPace *pace, uint32_t role, uint32_t op) {
    return pace->of[role][op];
}

/* A core that rests wakes up late, 40 to 100 us on a virtual one (exec/README.md). So a thread asks
 * to be woken as much earlier as its sleeps have lately ended late, at their median: every other
 * one then ends too early, by less than that, and the rest of it is spent looking at the clock. */
void exec_pace_sleep_until(int64_t monotonic_ns) {
    enum {
        STEP_NS =
            5000 /* by which one sleep, late as it may be, moves what is expected of the next */
    };
    static _Thread_local int64_t late_ns;
    int64_t asked_ns = monotonic_ns - late_ns;
    if (exec_now_ns() < asked_ns) {
        struct timespec until = {asked_ns / 1000000000, asked_ns % 1000000000};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
        }
        late_ns += CLAMP(exec_now_ns() - asked_ns - late_ns, -STEP_NS, STEP_NS);
    }
    while (exec_now_ns() < monotonic_ns) {
    }
}
