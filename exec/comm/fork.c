#include "exec/comm/fork.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exec/convert.h"
#include "exec/error.h"
#include "exec/watch/children.h"
#include "exec/watch/patience.h"
#include "exec/watch/warden.h"
#include "kernels/host/elementwise.h"

enum {
    BLOCK = 1 << 20 /* bytes through which a rank hands on its part, an axis */
};

/* Where the ranks of a group wait for one another. */
typedef struct {
    atomic_uint arrived, generation;
    _Atomic int64_t last_ns[2]; /* when the last one came, in even and odd generations */
} Gate;

/* What goes from a rank to a neighbour, a block at a time. */
typedef struct {
    atomic_uint filled, taken; /* blocks; not equal: there is one */
} Box;

enum {
    BOXES = 4 /* a rank: to the one before or behind, of an exchange or not */
};

typedef struct {
    atomic_int gone;   /* a rank that has ended badly; -1: none */
    ExecDoing doing[]; /* of each rank */
} Shared;

/* What a rank needs for one axis. */
typedef struct {
    Gate *gate;
    uint32_t *members; /* its ranks, in order; by their numbers of all */
    uint32_t n_members, mine;
    float *sum, *wide; /* as much of a block as has been added up yet, widened */
    gsize room;        /* elements of each */
} Group;

typedef struct {
    uint32_t rank, world;
    atomic_bool given_up; /* by this rank */
    Shared *shared;
    Gate *gates;      /* of each axis, of each color */
    Box *boxes;       /* of each rank */
    char *blocks;     /* of each axis, of each rank */
    char *box_blocks; /* of each box */
    Group groups[PLAN_N_AXES];
} Fork;

static char *block_of(const Fork *fork, PlanAxis axis, uint32_t rank) {
    return fork->blocks + ((gsize)axis * fork->world + rank) * BLOCK;
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* Waits until *number is no longer `is`. Fails once a rank has ended badly or this one has given
 * up. */
static bool wait_while(const Fork *fork, atomic_uint *number, unsigned is, GError **error) {
    ExecPatience patience = {0};
    for (; atomic_load(number) == is; exec_patience_pause(&patience)) {
        int gone = atomic_load(&fork->shared->gone);
        if (gone >= 0) {
            g_set_error(error, EXEC_ERROR, EXEC_ERROR_COMM,
                        "rank %u waits for rank %d, which has ended", fork->rank, gone);
            return false;
        }
        if (atomic_load(&fork->given_up)) {
            g_set_error(error, EXEC_ERROR, EXEC_ERROR_COMM, "rank %u has given up", fork->rank);
            return false;
        }
    }
    return true;
}

static void raise_to(_Atomic int64_t *most, int64_t ns) {
    int64_t now = atomic_load(most);
    while (now < ns && !atomic_compare_exchange_weak(most, &now, ns)) {
    }
}

/* Waits until all ranks of the group have come; what they wrote before is then visible to all. The
 * last to come clears the time of the next generation: nobody can be there yet, and all have read
 * that of the generation before, which had the same place. */
static bool meet_on(const Fork *fork, PlanAxis axis, int64_t *ns, GError **error) {
    const Group *group = &fork->groups[axis];
    Gate *gate = group->gate;
    unsigned generation = atomic_load(&gate->generation);
    _Atomic int64_t *last_ns = &gate->last_ns[generation % 2];
    raise_to(last_ns, *ns);
    if (atomic_fetch_add(&gate->arrived, 1) + 1 == group->n_members) {
        atomic_store(&gate->last_ns[(generation + 1) % 2], 0);
        atomic_store(&gate->arrived, 0);
        atomic_fetch_add(&gate->generation, 1);
    } else if (!wait_while(fork, &gate->generation, generation, error)) {
        return false;
    }
    *ns = atomic_load(last_ns);
    return true;
}

static bool meet(gpointer self, PlanAxis axis, int64_t *ns, GError **error) {
    return meet_on(self, axis, ns, error);
}

static bool all_come(const Fork *fork, PlanAxis axis, GError **error) {
    int64_t unasked = 0;
    return meet_on(fork, axis, &unasked, error);
}

static bool barrier(gpointer self, GError **error) {
    return all_come(self, PLAN_AXIS_NONE, error);
}

/* ---- collectives ---------------------------------------------------------------------------- */

static void make_room(Group *group, gsize n) {
    if (n > group->room) {
        g_free(group->sum);
        g_free(group->wide);
        group->sum = g_new(float, n);
        group->wide = g_new(float, n);
        group->room = n;
    }
}

/* to = the sum, or mean, over members of n numbers that begin at_bytes into each one's block. */
static void sum_blocks(Fork *fork, const ExecCollective *call, gsize at_bytes, gsize n,
                       gpointer to) {
    Group *group = &fork->groups[call->axis];
    make_room(group, n);
    for (uint32_t m = 0; m < group->n_members; m++) {
        const char *from = block_of(fork, call->axis, group->members[m]) + at_bytes;
        exec_convert(m ? group->wide : group->sum, PLAN_FP32, from, call->dtype, n);
        if (m) {
            kernel_add_inplace_f32(group->sum, group->wide, n);
        }
    }
    if (call->reduction == PLAN_REDUCTION_MEAN) {
        kernel_scale_f32(group->sum, group->sum, 1.0f / (float)group->n_members, n);
    }
    exec_convert(to, call->dtype, group->sum, PLAN_FP32, n);
}

static bool all_gather(gpointer self, const ExecCollective *call, GError **error) {
    const Fork *fork = self;
    PlanAxis axis = call->axis;
    const Group *group = &fork->groups[axis];
    gsize slice = call->elements / group->n_members * plan_dtype_bytes(call->dtype);
    char *gathered = call->taken;
    const char *mine = call->given ? call->given : gathered + group->mine * slice;
    for (gsize at = 0, n; at < slice; at += n) {
        n = MIN(slice - at, BLOCK);
        memcpy(block_of(fork, axis, fork->rank), mine + at, n);
        if (!all_come(fork, axis, error)) {
            return false;
        }
        for (uint32_t m = 0; m < group->n_members; m++) {
            memcpy(gathered + m * slice + at, block_of(fork, axis, group->members[m]), n);
        }
        if (!all_come(fork, axis, error)) {
            return false;
        }
    }
    return true;
}

static bool reduce_scatter(gpointer self, const ExecCollective *call, GError **error) {
    Fork *fork = self;
    PlanAxis axis = call->axis;
    const Group *group = &fork->groups[axis];
    gsize size = plan_dtype_bytes(call->dtype), slice = call->elements / group->n_members;
    gsize most = BLOCK / group->n_members / size; /* elements for each member */
    for (gsize at = 0, n; at < slice; at += n) {
        n = MIN(slice - at, most);
        for (uint32_t m = 0; m < group->n_members; m++) {
            memcpy(block_of(fork, axis, fork->rank) + m * n * size,
                   (const char *)call->given + (m * slice + at) * size, n * size);
        }
        if (!all_come(fork, axis, error)) {
            return false;
        }
        sum_blocks(fork, call, group->mine * n * size, n, (char *)call->taken + at * size);
        if (!all_come(fork, axis, error)) {
            return false;
        }
    }
    return true;
}

static bool all_reduce(gpointer self, const ExecCollective *call, GError **error) {
    Fork *fork = self;
    PlanAxis axis = call->axis;
    gsize size = plan_dtype_bytes(call->dtype);
    for (gsize at = 0, n; at < call->elements; at += n) {
        char *part = (char *)call->taken + at * size;
        n = MIN(call->elements - at, BLOCK / size);
        memcpy(block_of(fork, axis, fork->rank), part, n * size);
        if (!all_come(fork, axis, error)) {
            return false;
        }
        sum_blocks(fork, call, 0, n, part);
        if (!all_come(fork, axis, error)) {
            return false;
        }
    }
    return true;
}

/* Copies bytes from one member of the group to the others. */
static bool spread(Fork *fork, PlanAxis axis, uint32_t from, gpointer bytes, gsize n_bytes,
                   GError **error) {
    const Group *group = &fork->groups[axis];
    char *block = block_of(fork, axis, group->members[from]);
    for (gsize at = 0, n; at < n_bytes; at += n) {
        n = MIN(n_bytes - at, BLOCK);
        if (group->mine == from) {
            memcpy(block, (char *)bytes + at, n);
        }
        if (!all_come(fork, axis, error)) {
            return false;
        }
        if (group->mine != from) {
            memcpy((char *)bytes + at, block, n);
        }
        if (!all_come(fork, axis, error)) {
            return false;
        }
    }
    return true;
}

static bool broadcast(gpointer self, const ExecCollective *call, GError **error) {
    return spread(self, call->axis, 0, call->taken, call->elements * plan_dtype_bytes(call->dtype),
                  error);
}

/* The number of the box in which a rank puts what is for the one behind, or for the one before. */
static gsize box_of(uint32_t rank, bool for_behind, bool swaps) {
    return (gsize)rank * BOXES + (for_behind ? 2 : 0) + swaps;
}

/* Waits until all that was put into the box has been taken. */
static bool wait_until_taken(const Fork *fork, gsize box, GError **error) {
    Box *b = &fork->boxes[box];
    unsigned before = atomic_load(&b->filled) - 1; /* one at most is left to be taken */
    return wait_while(fork, &b->taken, before, error);
}

static bool put(const Fork *fork, gsize box, gconstpointer from, gsize n, GError **error) {
    if (!wait_until_taken(fork, box, error)) {
        return false;
    }
    memcpy(fork->box_blocks + box * BLOCK, from, n);
    atomic_fetch_add(&fork->boxes[box].filled, 1);
    return true;
}

static bool take(const Fork *fork, gsize box, gpointer to, gsize n, GError **error) {
    Box *b = &fork->boxes[box];
    if (!wait_while(fork, &b->filled, atomic_load(&b->taken), error)) {
        return false;
    }
    memcpy(to, fork->box_blocks + box * BLOCK, n);
    atomic_fetch_add(&b->taken, 1);
    return true;
}

/* In an exchange each rank puts a block and then takes one, so neither waits for the other in
 * vain. */
static bool talk(gpointer self, const ExecTalk *talk, GError **error) {
    const Fork *fork = self;
    const Group *group = &fork->groups[PLAN_AXIS_PIPELINE];
    gsize out = box_of(fork->rank, talk->behind, talk->swaps);
    gsize in = box_of(group->members[talk->peer], !talk->behind, talk->swaps);
    gsize bytes = talk->elements * plan_dtype_bytes(talk->dtype);
    for (gsize at = 0, n; at < bytes; at += n) {
        n = MIN(bytes - at, BLOCK);
        if ((talk->given && !put(fork, out, (const char *)talk->given + at, n, error)) ||
            (talk->taken && !take(fork, in, (char *)talk->taken + at, n, error))) {
            return false;
        }
    }
    return !talk->given || wait_until_taken(fork, out, error);
}

static bool share(gpointer self, gpointer bytes, gsize n, GError **error) {
    return spread(self, PLAN_AXIS_NONE, 0, bytes, n, error);
}

static bool mean(gpointer self, double *values, unsigned n, GError **error) {
    const Fork *fork = self;
    g_assert(n * sizeof *values <= BLOCK);
    memcpy(block_of(fork, PLAN_AXIS_NONE, fork->rank), values, n * sizeof *values);
    if (!barrier(self, error)) {
        return false;
    }
    for (unsigned i = 0; i < n; i++) {
        values[i] = 0;
        for (uint32_t rank = 0; rank < fork->world; rank++) {
            values[i] += ((double *)(gpointer)block_of(fork, PLAN_AXIS_NONE, rank))[i];
        }
        values[i] /= fork->world;
    }
    return barrier(self, error);
}

/* The text is spread to all ranks, and only rank 0 keeps it. */
static bool collect(gpointer self, uint32_t from, const char *text, char **ret_text,
                    GError **error) {
    Fork *fork = self;
    uint64_t length = strlen(text);
    if (!spread(fork, PLAN_AXIS_NONE, from, &length, sizeof length, error)) {
        return false;
    }
    g_autofree char *copy = g_malloc0(length + 1);
    if (from == fork->rank) {
        memcpy(copy, text, length);
    }
    if (!spread(fork, PLAN_AXIS_NONE, from, copy, length, error)) {
        return false;
    }
    *ret_text = fork->rank ? NULL : g_steal_pointer(&copy);
    return true;
}

/* ---- groups --------------------------------------------------------------------------------- */

static void group_clear(Group *group) {
    g_clear_pointer(&group->members, g_free);
    g_clear_pointer(&group->sum, g_free);
    g_clear_pointer(&group->wide, g_free);
}

static void group_init(Fork *fork, PlanAxis axis, const Plan *plan) {
    Group *group = &fork->groups[axis];
    uint32_t color = plan ? exec_comm_color(plan, axis, fork->rank) : 0;
    group_clear(group);
    *group = (Group){.gate = &fork->gates[axis * fork->world + color],
                     .members = g_new(uint32_t, fork->world)};
    for (uint32_t rank = 0; rank < fork->world; rank++) {
        if (!plan || exec_comm_color(plan, axis, rank) == color) {
            group->mine = rank == fork->rank ? group->n_members : group->mine;
            group->members[group->n_members++] = rank;
        }
    }
}

static bool join(gpointer self, const Plan *plan, GError **error) {
    for (unsigned axis = PLAN_AXIS_NONE + 1; axis < PLAN_N_AXES; axis++) {
        group_init(self, (PlanAxis)axis, plan);
    }
    return barrier(self, error);
}

static void close_fork(gpointer self) {
    Fork *fork = self;
    for (unsigned axis = 0; axis < PLAN_N_AXES; axis++) {
        group_clear(&fork->groups[axis]);
    }
    g_free(fork);
}

static void give_up(gpointer self) {
    Fork *fork = self;
    atomic_store(&fork->given_up, true);
}

static void abort_fork(gpointer self, int status) {
    fflush(NULL);
    _exit(status);
}

/* ---- the start ------------------------------------------------------------------------------ */

static Fork *fork_new(unsigned n, GError **error) {
    gsize shared = sizeof(Shared) + sizeof(ExecDoing) * n;
    gsize gates = sizeof(Gate) * PLAN_N_AXES * n, boxes = sizeof(Box) * BOXES * n;
    gsize begin = (shared + gates + boxes + BLOCK - 1) / BLOCK * BLOCK;
    gsize blocks = (gsize)PLAN_N_AXES * n * BLOCK, box_blocks = (gsize)BOXES * n * BLOCK;
    char *memory = mmap(NULL, begin + blocks + box_blocks, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED, "no shared memory for %u ranks: %s", n,
                    g_strerror(errno));
        return NULL;
    }
    Fork *made = g_new0(Fork, 1);
    made->world = n;
    made->shared = (Shared *)(gpointer)memory;
    made->gates = (Gate *)(gpointer)(memory + shared);
    made->boxes = (Box *)(gpointer)(memory + shared + gates);
    made->blocks = memory + begin;
    made->box_blocks = made->blocks + blocks;
    atomic_store(&made->shared->gone, -1);
    return made;
}

bool exec_fork(unsigned n, const char *plan_path, ExecComm *ret_comm, GError **error) {
    Fork *mine = fork_new(n, error);
    if (!mine) {
        return false;
    }
    g_autofree pid_t *pids = g_new0(pid_t, n);
    pid_t watcher = getpid();
    for (unsigned rank = 0; rank < n; rank++) {
        pids[rank] = fork();
        if (pids[rank] == 0) {
            exec_warden_stay_with(watcher);
            mine->rank = rank;
            group_init(mine, PLAN_AXIS_NONE, NULL);
            *ret_comm = (ExecComm){.name = "shared memory",
                                   .rank = rank,
                                   .world = n,
                                   .local_rank = rank,
                                   .local_world = n,
                                   .doing = &mine->shared->doing[rank],
                                   .self = mine,
                                   .join = join,
                                   .all_gather = all_gather,
                                   .reduce_scatter = reduce_scatter,
                                   .all_reduce = all_reduce,
                                   .broadcast = broadcast,
                                   .meet = meet,
                                   .talk = talk,
                                   .barrier = barrier,
                                   .mean = mean,
                                   .share = share,
                                   .collect = collect,
                                   .give_up = give_up,
                                   .abort = abort_fork,
                                   .close = close_fork};
            return true;
        }
        if (pids[rank] < 0) {
            g_set_error(error, EXEC_ERROR, EXEC_ERROR_FAILED, "fork failed: %s", g_strerror(errno));
            exec_children_end(pids, rank, SIGKILL);
            return false;
        }
    }
    exit(exec_children_watch(pids, n, mine->shared->doing, plan_path, &mine->shared->gone));
}
