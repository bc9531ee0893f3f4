#include "exec/watch/black-box.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "plan/mesh.h"
#include "trace/from-plan.h"

/* ---- what a word says ----------------------------------------------------------------------- */

typedef struct {
    bool ended;
    int32_t step;
    PlanSection section;
    uint32_t index;
    const PlanInstr *instr; /* NULL: the plan has no such instruction */
} Place;

static Place place_of(const PlanRole *role, uint64_t word) {
    Place place = {.ended = word >> 63,
                   .step = (int32_t)(word >> 40 & 0x7fffff) - 2,
                   .section = (PlanSection)(word >> 36 & 0xf),
                   .index = (uint32_t)word};
    if (place.section < PLAN_N_SECTIONS && place.index < role->n_instrs[place.section]) {
        place.instr = &role->sections[place.section][place.index];
    }
    return place;
}

static void tell_instruction(const Plan *plan, const PlanRole *role, const Place *place,
                             GString *text) {
    const PlanInstr *instr = place->instr;
    g_autofree char *step = trace_step_name(place->step);
    g_string_append_printf(text, " %s, instruction %u", step,
                           trace_instruction_number(role, place->section, place->index));
    if (!instr) {
        return;
    }
    if (instr->kind == PLAN_LAUNCH || instr->kind == PLAN_HOST_OP) {
        const PlanOp *op = &role->ops[instr->arg];
        g_string_append_printf(text, ", op %s", plan_op_info((PlanOpKind)op->kind)->name);
    } else {
        g_string_append_printf(text, ", %s", plan_instr_name((PlanInstrKind)instr->kind));
    }
    if (instr->unit != PLAN_NONE) {
        g_string_append_printf(text, " of unit %s", plan->units[instr->unit].name);
    }
    if (instr->kind == PLAN_LAUNCH) {
        g_string_append_printf(text, " (lane %s)", plan->lanes[instr->lane]);
    }
}

static uint64_t word_of(const ExecDoing *doing, unsigned place) {
    return atomic_load(&doing->words[place]);
}

/* The op that has ended last, by the order of the plan; the lanes may be a little out of step. */
static uint64_t last_ended(const ExecDoing *doing) {
    uint64_t last = 0;
    for (unsigned lane = 0; lane < PLAN_MAX_LANES; lane++) {
        last = MAX(last, word_of(doing, lane));
    }
    return last;
}

/* A host's word is of ops and of all else; only its own ops take time. */
static bool is_running(const Place *place, unsigned where) {
    return !place->ended &&
           (where != EXEC_DOING_HOST || (place->instr && place->instr->kind == PLAN_HOST_OP));
}

/* What runs on the lanes; between two ops, the last one; on a device whose lanes are its own
 * business, where the host is. */
static void tell_where(const ExecDoing *doing, const Plan *plan, const PlanRole *role,
                       GString *text) {
    unsigned running = 0;
    for (unsigned where = 0; where <= EXEC_DOING_HOST; where++) {
        uint64_t word = word_of(doing, where);
        Place place = place_of(role, word);
        if (word && is_running(&place, where)) {
            g_string_append(text, running++ ? " and" : " at");
            tell_instruction(plan, role, &place, text);
        }
    }
    uint64_t last = last_ended(doing), host = word_of(doing, EXEC_DOING_HOST);
    if (!running && (last || host)) {
        Place place = place_of(role, last ? last : host);
        g_string_append(text, last ? " after" : " with its host at");
        tell_instruction(plan, role, &place, text);
    } else if (!running) {
        g_string_append(text, " before its first instruction");
    }
}

void exec_doing_tell_place(const Plan *plan, uint32_t rank, uint64_t word, GString *text) {
    const PlanRole *role = &plan->roles[plan_role_of_rank(plan, rank)];
    Place place = place_of(role, word);
    tell_instruction(plan, role, &place, text);
}

void exec_doing_tell(const ExecDoing *doing, const Plan *plan, uint32_t rank, int signal,
                     GString *text) {
    bool is_known = plan && rank < plan->world;
    g_autofree char *name =
        is_known ? plan_rank_text(plan, rank) : g_strdup_printf("rank %u", rank);
    g_string_append_printf(text, "%s was killed by signal %d (%s%s)", name, signal,
                           g_strsignal(signal),
                           signal == SIGKILL ? ", as by a system without free memory" : "");
    if (is_known) {
        tell_where(doing, plan, &plan->roles[plan_role_of_rank(plan, rank)], text);
    }
}

/* ---- the file ------------------------------------------------------------------------------- */

struct _ExecBlackBox {
    uint32_t world;
    ExecDoing *doings; /* mapped */
};

/* errno says why it failed. Room is taken now: a full disk would end the process at a store. */
static ExecDoing *map_file(int fd, gsize bytes) {
    int failed = posix_fallocate(fd, 0, (off_t)bytes);
    if (failed) {
        errno = failed;
        return MAP_FAILED;
    }
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

ExecBlackBox *exec_black_box_open(const char *path, uint32_t world, GError **error) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ExecDoing *doings = fd < 0 ? MAP_FAILED : map_file(fd, world * sizeof(ExecDoing));
    int why = errno;
    if (fd >= 0) {
        close(fd);
    }
    if (doings == MAP_FAILED) {
        g_set_error(error, G_FILE_ERROR, g_file_error_from_errno(why), "cannot make %s: %s", path,
                    g_strerror(why));
        return NULL;
    }
    ExecBlackBox *box = g_new0(ExecBlackBox, 1);
    *box = (ExecBlackBox){.world = world, .doings = doings};
    return box;
}

void exec_black_box_free(ExecBlackBox *box) {
    if (box) {
        munmap(box->doings, box->world * sizeof(ExecDoing));
        g_free(box);
    }
}

ExecDoing *exec_black_box_doing(ExecBlackBox *box, uint32_t rank) {
    g_assert(rank < box->world);
    return &box->doings[rank];
}
