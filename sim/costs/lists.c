#include "sim/costs/lists.h"

#include <math.h>

#include "plan/op/op.h"
#include "sim/costs/traffic.h"

enum {
    CHUNK = 65536, /* elements of a block */
    THREADS = 512, /* of a block */
    TURN = 2048,   /* elements that a block reads, works out and writes before the next */
    MOST_LISTS = 5,
};

/* Most tensors in a kernel of 320 blocks, by number of lists; scaled in proportion for larger
 * kernels. */
enum {
    BLOCKS = 320
};
static const unsigned tensors_of[MOST_LISTS] = {110, 64, 48, 36, 30};

static const bool is_over_lists[PLAN_N_OP_KINDS] = {
#define OP(...)
#define LIST_OP(ID, ...) [PLAN_OP_##ID] = true,
#include "plan/op/ops.def"
};

static bool is_adam_fused(PlanOpKind kind) {
    return kind == PLAN_OP_ADAM_FUSED || kind == PLAN_OP_ADAM_FUSED_SCALED;
}

/* Fused Adam needs 58 to 64 registers a thread (pytorch pull requests 117872 and 123566), so that
 * two of its blocks find room on a multiprocessor; of others as many as there may be threads (CUDA
 * C programming guide, technical specifications by compute capability). */
static unsigned blocks_at_once(const ModelCluster *cluster, PlanOpKind kind) {
    unsigned capability = (unsigned)cluster->device_compute_capability;
    bool has_fewer = capability == 86 || capability == 89 || capability >= 120;
    unsigned threads = capability == 75 ? 1024 : has_fewer ? 1536 : 2048;
    return (unsigned)cluster->device_sms * (is_adam_fused(kind) ? 2 : threads / THREADS);
}

/* Norms and counts of steps have one element each, and no chunks. */
static unsigned lists_of(PlanOpKind kind) {
    bool has_numbers = kind == PLAN_OP_NORMS || is_adam_fused(kind);
    return plan_op_info(kind)->n_lists - (has_numbers ? 1 : 0);
}

/* Norms of chunks are put in what was set to zero before, and added up behind. */
static unsigned kernels_beside(PlanOpKind kind) {
    return kind == PLAN_OP_NORMS ? 2 : 0;
}

/* A list of one tensor is a loop's, whose kernels are ordinary ones. */
static bool is_cut(const ModelCluster *cluster, const PlanOp *op) {
    PlanOpKind kind = (PlanOpKind)op->kind;
    return is_over_lists[kind] && cluster->device_kind == MODEL_DEVICE_GPU &&
           cluster->device_list_blocks > 0 && cluster->kernel_gb_per_s[kind] == 0 &&
           (is_adam_fused(kind) || plan_op_list_length(plan_op_info(kind), op->n_operands) > 1);
}

typedef struct {
    const ModelCluster *cluster;
    uint64_t most_blocks, most_tensors; /* of a kernel */
    uint64_t most_at_once;              /* 0: all of them */
    double element_bytes;
    uint64_t blocks, tensors; /* of this kernel so far */
    uint64_t at_once;         /* blocks that run beside each other next */
    double elements, longest; /* of those blocks: of all together, of the longest */
    unsigned kernels;
    double ns;
} Cut;

static void run_blocks(Cut *cut) {
    double moves_ns = sim_traffic_ns(cut->cluster, cut->elements * cut->element_bytes);
    cut->ns += fmax(moves_ns, ceil(cut->longest / TURN) * cut->cluster->device_list_turn_us * 1e3);
    cut->at_once = 0;
    cut->elements = cut->longest = 0;
}

static void end_kernel(Cut *cut) {
    if (cut->at_once > 0) {
        run_blocks(cut);
    }
    cut->kernels++;
    cut->blocks = cut->tensors = 0;
}

/* Adds n blocks of `elements` elements of the current tensor; more: further blocks of it follow. */
static void add_blocks(Cut *cut, uint64_t n, double elements, bool more) {
    while (n > 0) {
        uint64_t take = MIN(n, cut->most_blocks - cut->blocks);
        take = cut->most_at_once > 0 ? MIN(take, cut->most_at_once - cut->at_once) : take;
        n -= take;
        cut->blocks += take;
        cut->at_once += take;
        cut->elements += (double)take * elements;
        cut->longest = fmax(cut->longest, elements);
        if (cut->at_once == cut->most_at_once) {
            run_blocks(cut);
        }
        if (cut->blocks == cut->most_blocks) {
            end_kernel(cut);
            cut->tensors = n > 0 || more ? 1 : 0;
        }
    }
}

static void add_tensor(Cut *cut, uint64_t elements) {
    if (elements == 0) {
        return;
    }
    uint64_t rest = elements % CHUNK;
    cut->tensors++;
    add_blocks(cut, elements / CHUNK, CHUNK, rest > 0);
    add_blocks(cut, rest > 0, (double)rest, false);
    if (cut->tensors == cut->most_tensors) {
        end_kernel(cut);
    }
}

/* Operand number of the first list's first tensor: one for each slot before it. */
static unsigned first_of_list(const PlanOpInfo *info) {
    unsigned slot = 0;
    while (!(info->slots[slot].flags & PLAN_SLOT_LIST)) {
        slot++;
    }
    return slot;
}

static Cut cut_lists(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op,
                     double bytes) {
    PlanOpKind kind = (PlanOpKind)op->kind;
    const PlanOpInfo *info = plan_op_info(kind);
    unsigned first = first_of_list(info), n = plan_op_list_length(info, op->n_operands);
    double elements = 0;
    for (unsigned i = first; i < first + n; i++) {
        elements += (double)plan_op_operand(role, op, i).elements;
    }
    uint64_t most_blocks = cluster->device_list_blocks;
    Cut cut = {.cluster = cluster,
               .most_blocks = most_blocks,
               .most_tensors = MAX(1, tensors_of[lists_of(kind) - 1] * most_blocks / BLOCKS),
               .most_at_once = blocks_at_once(cluster, kind),
               .element_bytes = elements > 0 ? bytes / elements : 0};
    for (unsigned i = first; i < first + n; i++) {
        add_tensor(&cut, plan_op_operand(role, op, i).elements);
    }
    if (cut.blocks > 0) {
        end_kernel(&cut);
    }
    cut.kernels += kernels_beside(kind);
    return cut;
}

SimListCost sim_list_cost(const ModelCluster *cluster, const PlanRole *role, const PlanOp *op,
                          double bytes) {
    if (!is_cut(cluster, op)) {
        return (SimListCost){0};
    }
    Cut cut = cut_lists(cluster, role, op, bytes);
    double gaps = cut.kernels > 0 ? cut.kernels - 1 : 0;
    return (SimListCost){
        .kernels = cut.kernels,
        .ns = cut.ns + cut.kernels * cluster->device_start_us * 1e3 +
              gaps * cluster->device_launch_overhead_ns,
    };
}
