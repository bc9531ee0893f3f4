#include "sim/device/account.h"

#include <string.h>

struct _SimAccount {
    uint32_t n_steps, n_lanes, compute_lane;
    SimStepBook *books; /* construction, then each step */
    SimTime cause_ns[SIM_N_CAUSES];
    SimStepBook
        *ended;       /* the book that has the times by cause as they stood when an op ended ... */
    uint64_t changed; /* ... and a bit for each cause whose time grew since */
    SimTime settled_ns;   /* times by cause are complete up to here */
    uint32_t n_computing; /* running ops of the compute lane, and products beside it */
    SimTime compute_since_ns, compute_busy_ns;
    SimTime booked_busy_ns;          /* of compute_busy_ns, by kernels that have ended */
    uint32_t n_running[PLAN_N_AXES]; /* collectives, by axis ... */
    uint64_t axes;                   /* ... and a bit for each that has one */
    uint32_t n_waiting;              /* collectives that wait for other ranks */
    uint32_t n_beside;               /* kernels of other lanes */
};

SimAccount *sim_account_new(uint32_t n_steps, uint32_t n_lanes, uint32_t compute_lane) {
    SimAccount *account = g_new0(SimAccount, 1);
    account->n_steps = n_steps;
    account->n_lanes = n_lanes;
    account->compute_lane = compute_lane;
    account->books = g_new0(SimStepBook, n_steps + 1);
    for (uint32_t i = 0; i <= n_steps; i++) {
        account->books[i].end_ns = SIM_NEVER;
        account->books[i].lane_busy_ns = g_new0(SimTime, n_lanes);
    }
    return account;
}

void sim_account_free(SimAccount *account) {
    if (account) {
        for (uint32_t i = 0; i <= account->n_steps; i++) {
            g_free(account->books[i].lane_busy_ns);
        }
        g_free(account->books);
        g_free(account);
    }
}

static SimStepBook *book_of(const SimAccount *account, int32_t step) {
    g_assert(step >= -1 && step < (int32_t)account->n_steps);
    return &account->books[step + 1];
}

static void run_on(SimAccount *account, unsigned axis) {
    account->n_running[axis]++;
    account->axes |= UINT64_C(1) << axis;
}

static void leave(SimAccount *account, unsigned axis) {
    if (--account->n_running[axis] == 0) {
        account->axes &= ~(UINT64_C(1) << axis);
    }
}

/* Why the compute lane is idle at this moment. */
static SimCause idle_cause(const SimAccount *account) {
    if (account->axes) {
        return (SimCause)(SIM_CAUSE_NETWORK + __builtin_ctzll(account->axes));
    }
    if (account->n_waiting) {
        return SIM_CAUSE_RANKS;
    }
    return account->n_beside ? SIM_CAUSE_BESIDE : SIM_CAUSE_HOST;
}

static void add_cause(SimAccount *account, SimCause cause, SimTime ns) {
    account->cause_ns[cause] += ns;
    account->changed |= UINT64_C(1) << cause;
}

/* Books idle time up to now. Busy time is booked when an op ends, as the op knows what bounds
 * it. */
static void settle(SimAccount *account, SimTime now) {
    if (!account->n_computing) {
        add_cause(account, idle_cause(account), now - account->settled_ns);
    }
    account->settled_ns = now;
}

static SimTime compute_busy(const SimAccount *account, SimTime now) {
    return account->compute_busy_ns + (account->n_computing ? now - account->compute_since_ns : 0);
}

/* Products that two lanes run by turns count as one stretch of work. */
static bool computes(const SimAccount *account, uint32_t lane, const SimAccountOp *op) {
    return lane == account->compute_lane || op->cost->flops_ns > 0;
}

SimTime sim_account_starts(SimAccount *account, uint32_t lane, const SimAccountOp *op, SimTime at) {
    settle(account, at);
    if (!op->cost && op->waits) {
        account->n_waiting++;
    } else if (!op->cost) {
        run_on(account, op->axis);
    } else if (computes(account, lane, op)) {
        account->compute_since_ns = account->n_computing++ ? account->compute_since_ns : at;
    } else {
        account->n_beside++;
    }
    return compute_busy(account, at);
}

void sim_account_meets(SimAccount *account, const SimAccountOp *op, SimTime at) {
    settle(account, at);
    account->n_waiting--;
    run_on(account, op->axis);
}

/* Books the busy time since the last kernel ended: what this kernel takes alone, and the rest as
 * slowed. Of two kernels beside each other the second gets what the first left. */
static void book_kernel(SimAccount *account, const SimAccountOp *op, SimTime end) {
    const SimComputeCost *cost = op->cost;
    SimCause bound = cost->flops_ns > cost->bytes_ns ? SIM_CAUSE_ARITHMETIC : SIM_CAUSE_MEMORY;
    if (--account->n_computing == 0) {
        account->compute_busy_ns += end - account->compute_since_ns;
    }
    SimTime worked = compute_busy(account, end) - account->booked_busy_ns;
    SimTime alone = MIN(op->alone_ns, worked);
    SimTime overhead = MIN(sim_time_from_ns(cost->overhead_ns), alone);
    add_cause(account, SIM_CAUSE_OVERHEAD, overhead);
    add_cause(account, bound, alone - overhead);
    add_cause(account, SIM_CAUSE_SLOWED, worked - alone);
    account->booked_busy_ns += worked;
}

static void book_collective(SimCollectiveSum *sum, const SimAccountOp *op, SimTime duration,
                            SimTime hidden) {
    sum->count++;
    sum->bytes += op->bytes;
    sum->total_ns += duration;
    sum->exposed_ns += duration - hidden;
}

/* Ops of one step mostly end one after the other, and each adds to few causes. */
static void end_step_at(SimStepBook *book, SimAccount *account, SimTime at) {
    G_STATIC_ASSERT(SIM_N_CAUSES < 64);
    uint64_t all = (UINT64_C(1) << SIM_N_CAUSES) - 1;
    book->end_ns = at;
    for (uint64_t left = book == account->ended ? account->changed : all; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        book->cause_ns[i] = account->cause_ns[i];
    }
    account->ended = book;
    account->changed = 0;
}

void sim_account_ends(SimAccount *account, uint32_t lane, const SimAccountOp *op, SimTime start,
                      SimTime end, SimTime compute_busy_at_start) {
    SimStepBook *book = book_of(account, op->step);
    settle(account, end);
    book->lane_busy_ns[lane] += end - start;
    if (!op->cost) {
        SimTime hidden = compute_busy(account, end) - compute_busy_at_start;
        leave(account, op->axis);
        book_collective(&book->collectives[op->kind], op, end - start, hidden);
        book->lost_ns += MIN(op->waited_ns, end - start - hidden);
    } else if (computes(account, lane, op)) {
        book_kernel(account, op, end);
    } else {
        account->n_beside--;
    }
    if (lane == account->compute_lane) {
        end_step_at(book, account, end);
    }
}

void sim_account_zero(SimAccount *account, SimTime at) {
    settle(account, at);
    end_step_at(book_of(account, -1), account, at);
}

static void copy_later(const SimStepBook *book, uint32_t n_lanes, SimTime later_ns,
                       const SimTime *more_ns, SimStepBook *ret) {
    SimTime *lane_busy_ns = ret->lane_busy_ns;
    *ret = *book;
    ret->lane_busy_ns = lane_busy_ns;
    for (uint32_t lane = 0; lane < n_lanes; lane++) {
        lane_busy_ns[lane] = book->lane_busy_ns[lane];
    }
    if (book->end_ns != SIM_NEVER) {
        ret->end_ns += later_ns;
    }
    for (unsigned i = 0; i < SIM_N_CAUSES; i++) {
        ret->cause_ns[i] += more_ns[i];
    }
}

static void add_collective(SimCollectiveSum *sum, const SimCollectiveSum *all,
                           const SimCollectiveSum *before, uint32_t times) {
    sum->count += (all->count - before->count) * times;
    sum->bytes += (all->bytes - before->bytes) * times; /* whole numbers: exact */
    sum->total_ns += (all->total_ns - before->total_ns) * times;
    sum->exposed_ns += (all->exposed_ns - before->exposed_ns) * times;
}

/* Adds `times` times what `all` has booked since the snapshot `before`. */
static void add_since(SimStepBook *book, const SimStepBook *all, const SimAccountSnapshot *before,
                      uint32_t times, uint32_t n_lanes) {
    for (unsigned kind = 0; kind < PLAN_N_OP_KINDS; kind++) {
        add_collective(&book->collectives[kind], &all->collectives[kind],
                       &before->collectives[kind], times);
    }
    book->lost_ns += (all->lost_ns - before->lost_ns) * times;
    for (uint32_t lane = 0; lane < n_lanes; lane++) {
        book->lane_busy_ns[lane] += (all->lane_busy_ns[lane] - before->lane_busy_ns[lane]) * times;
    }
}

void sim_account_repeat(SimAccount *account, int32_t step, const SimAccountSnapshot *before,
                        SimTime period_ns) {
    SimStepBook *book = book_of(account, step);
    const SimStepBook *all = book_of(account, step - 1);
    SimTime more_ns[SIM_N_CAUSES];
    add_since(book, all, before, 1, account->n_lanes);
    book->end_ns = all->end_ns == SIM_NEVER ? SIM_NEVER : all->end_ns + period_ns;
    for (unsigned i = 0; i < SIM_N_CAUSES; i++) {
        more_ns[i] = account->cause_ns[i] - before->cause_ns[i];
        book->cause_ns[i] = all->cause_ns[i] + more_ns[i];
    }
    account->ended = NULL;
    for (; step + 1 < (int32_t)account->n_steps; step++) {
        copy_later(book_of(account, step), account->n_lanes, period_ns, more_ns,
                   book_of(account, step + 1));
    }
}

void sim_account_snapshot(const SimAccount *account, int32_t step,
                          SimAccountSnapshot *ret_snapshot) {
    const SimStepBook *book = book_of(account, step);
    ret_snapshot->compute_busy_ns = account->compute_busy_ns;
    ret_snapshot->lost_ns = book->lost_ns;
    memcpy(ret_snapshot->cause_ns, account->cause_ns, sizeof ret_snapshot->cause_ns);
    memcpy(ret_snapshot->collectives, book->collectives, sizeof ret_snapshot->collectives);
    for (uint32_t lane = 0; lane < account->n_lanes; lane++) {
        ret_snapshot->lane_busy_ns[lane] = book->lane_busy_ns[lane];
    }
}

SimTime sim_account_compute_busy(const SimAccount *account) {
    return account->compute_busy_ns;
}

void sim_account_append_state(const SimAccount *account, SimTime now, MemoryWords *state) {
    memory_words_add(state, (uint64_t)(account->settled_ns - now));
    memory_words_add(state, (uint64_t)(account->n_computing ? account->compute_since_ns - now : 0));
    memory_words_add(state, (uint64_t)(compute_busy(account, now) - account->booked_busy_ns));
    memory_words_add(state, account->n_computing);
    memory_words_add(state, account->n_waiting);
    memory_words_add(state, account->n_beside);
    for (unsigned axis = 0; axis < PLAN_N_AXES; axis++) {
        memory_words_add(state, account->n_running[axis]);
    }
}

SimTime sim_account_again(SimAccount *account, int32_t step, const SimAccountSnapshot *since,
                          uint32_t times, SimTime later_ns) {
    SimStepBook *book = book_of(account, step);
    SimTime busier_ns = (account->compute_busy_ns - since->compute_busy_ns) * times;
    add_since(book, book, since, times, account->n_lanes);
    for (unsigned i = 0; i < SIM_N_CAUSES; i++) {
        account->cause_ns[i] += (account->cause_ns[i] - since->cause_ns[i]) * times;
    }
    account->ended = NULL;
    account->compute_busy_ns += busier_ns;
    account->booked_busy_ns += busier_ns;
    account->settled_ns += later_ns;
    account->compute_since_ns += later_ns;
    return busier_ns;
}

const SimStepBook *sim_account_step(const SimAccount *account, int32_t step) {
    return book_of(account, step);
}
