/* sim/prediction.h - the options of a prediction, and its result.
 *
 * Times are per step and means over the steady steps, unless said otherwise; "steady" are the steps
 * after the first two, or all of a play that has no more than two.
 *
 * Owns: the result's arrays; its strings are the plan's. Threads: one a play.
 */
#pragma once

#include "memory/answers.h"
#include "memory/options.h"
#include "models/cluster.h"
#include "plan/plan.h"
#include "sim/device/account.h"
#include "sim/error.h"
#include "sim/jitter.h"
#include "sim/time.h"

/* Something that some ranks have worse, or better, than their kind of node. */
typedef enum {
    SIM_TROUBLE_SLOW,   /* kernels take `factor` times as long */
    SIM_TROUBLE_NVLINK, /* the links within the node carry `factor` times as much */
    SIM_TROUBLE_NIC     /* the NIC does */
} SimTroubleKind;

typedef struct {
    SimTroubleKind kind;
    uint32_t first_rank, last_rank; /* both included */
    double factor;                  /* SIM_LEAST_SLOWDOWN or SIM_LEAST_SHARE to SIM_MOST_FACTOR */
} SimTrouble;

#define SIM_LEAST_SLOWDOWN 1e-3
#define SIM_LEAST_SHARE    1e-6 /* of what a link carries */
#define SIM_MOST_FACTOR    1e3
#define SIM_MOST_PERCENT   1000 /* of a jitter */

/* What a play is to tell. */
typedef enum {
    SIM_WANTED_ALL,
    SIM_WANTED_FIT, /* if it does not fit, it is not played again without a limit: the result then
                     * says only where it ran out of memory */
    SIM_WANTED_CALM /* likewise; a play in which the allocator retries counts as not fitting */
} SimWanted;

/* If several ranks are played, whose memory is shown: that of the fullest, or of a stage. */
typedef enum {
    SIM_MEMORY_OF_FULLEST,
    SIM_MEMORY_OF_FIRST,
    SIM_MEMORY_OF_LAST
} SimMemoryOf;

typedef struct {
    uint32_t steps;                 /* 1 to SIM_MOST_STEPS */
    bool no_sharing;                /* ops beside each other run as fast as alone */
    bool arena;                     /* a static layout instead of the caching allocator */
    const MemoryOptions *allocator; /* NULL: as the plan's strategy says */
    MemoryAnswers *answers; /* representative play: filled with what the allocator of the traced
                               play was told; NULL: not wanted */
    uint32_t rank;          /* in representative play, the rank that stands for all */
    SimWanted wanted;
    bool boundless; /* as if memory sufficed, whose rows then go to the trace */
    bool unplayed;  /* only check what is refused before a play begins, and play nothing: of the
                    * result's figures only flops are known */

    SimMemoryOf memory_of;
    bool one_of_each; /* where ranks are not alike, one on each kind of node is played, and stands
                       * for the others, as slow as the slowest of them: a close estimate */
    bool every_rank;  /* every rank is played; what follows is for that alone */
    SimJitter jitter; /* of one_of_each the share of GPUs, too */
    const SimTrouble *troubles;
    uint32_t n_troubles;
    const bool *traced; /* by rank, whether its rows go to the trace; NULL: those of all do */
    bool reversed;      /* for tests: the last of the ranks that can go on is played first, which
                         * must change nothing */
    void (*progress)(gpointer self,
                     double share); /* called with the share done; NULL: not wanted */
    gpointer progress_self;
} SimOptions;

#define SIM_DEFAULT_STEPS 4
#define SIM_STEPS_SETTLED 20 /* enough for an allocator that gives memory back in the first ones */
#define SIM_MOST_STEPS    10000
#define SIM_FEW_RANKS     64    /* a trace of more has one of them, unless others are asked for */
#define SIM_MOST_RANKS    32768 /* of every-rank play: 0.12 MB (gpt-toy) to 0.36 (GPT-175B) each */

/* A moment in a play, and the memory then. */
typedef struct {
    int32_t step; /* -1: construction */
    PlanSection section;
    uint32_t index; /* of the instruction within the section */
    PlanPhase phase;
    uint32_t unit;   /* PLAN_NONE when none */
    SimTime host_ns; /* since the first step began */
    uint64_t allocated_bytes, active_bytes, reserved_bytes;
} SimMoment;

typedef struct {
    SimMoment at;
    uint64_t by_sub[PLAN_N_SUBCATEGORIES]; /* rounded as the allocator rounds; sums to allocated */
    uint64_t *by_unit;                     /* n_units + 1; the last is what serves no unit */
} SimPeak;

typedef struct {
    uint32_t rank; /* whose allocation failed first in time; of several at once the lowest */
    SimMoment at;
    const char *buffer; /* whose allocation failed */
    uint64_t bytes;
    PlanSubcategory sub;
    uint64_t by_sub[PLAN_N_SUBCATEGORIES]; /* who held what */
} SimOom;

/* How a rank fared in every-rank play; times are means of a steady step. */
typedef struct {
    const char *node_kind; /* the cluster's */
    SimTime step_ns;       /* between its own ends of steps */
    SimTime compute_ns;    /* its compute lane works */
    SimTime works_ns;   /* the part of that in which it does so at full speed, had its GPU the pace
                            * of the slowest of its kind (SIM_JITTER_GPU) */
    SimTime exposed_ns; /* it has nothing to do while its collectives wait or run; */
    SimTime lost_ns;    /* the part of that in which they waited for a rank to come */
    SimTime waited_ns;  /* its collectives wait for a rank to come, exposed or hidden */
    SimTime held_ns;    /* where it came last: how long after the last but one it came */
    double n_last;      /* collectives to which it came last, a step */
    uint64_t peak_reserved_bytes, alloc_retries; /* the latter over the whole play */
} SimRankBook;

typedef struct {
    bool fits;
    SimOom oom; /* when it does not fit */
    /* Set when the device cannot compute in a dtype the plan uses: its name. No time is
     * predicted. */
    const char *unsupported_dtype;
    const char *unsupported_on; /* that device's model */

    /* Of the GPU of memory_rank, or of oom.rank when it does not fit: all its memory is what others
     * take outside the allocator and what is left for the allocator. */
    uint64_t memory_bytes, outside_allocator_bytes, allocator_bytes;
    uint64_t workspace_bytes; /* the part outside that PyTorch's products hold; it is in no peak */
    /* What memory_rank allocates at most, and the lines below; where it does not fit, as though
     * there were no limit. */
    SimPeak peak;
    uint64_t peak_active_bytes, peak_reserved_bytes;       /* each statistic's own maximum */
    uint64_t alloc_retries, segment_allocs, segment_frees; /* over the whole play */
    double retries_per_step; /* a step, in the mean of the later half of the steps */

    /* Of an evaluation between the first step and the second; all 0: there is none. */
    SimTime evaluation_ns;
    uint64_t evaluation_allocated_bytes; /* in it, at most */
    uint64_t evaluation_reserved_bytes;  /* behind it */

    uint32_t n_steps, n_steady;
    uint32_t n_played; /* steps that were played, the last perhaps in part; the rest repeat it */
    uint32_t n_passed_over; /* passes of those steps that were not played, as they repeat another */
    SimTime *step_ns;       /* each step's */
    SimTime median_step_ns, least_step_ns, most_step_ns; /* of the steady ones */
    SimTime compute_ns;                                  /* the compute lane's busy time */
    SimTime host_ns;                                     /* the host's busy time */
    SimTime host_blocked_ns;                             /* waiting for the device */
    SimTime *lane_busy_ns;                               /* n_lanes */
    SimTime cause_ns[SIM_N_CAUSES]; /* of the compute lane; they sum to the step */
    SimCollectiveSum collectives[PLAN_N_OP_KINDS];
    const char *bound_by; /* "host" if it is host-bound, else the cause that takes most of a step */
    const char *cause_names[SIM_N_CAUSES]; /* NULL: nothing can be there */
    double flops; /* a rank's in a step: matrix products and attention, without recomputation */
    double mfu;   /* time those would take at peak, over the median step */
    uint32_t n_lanes, n_units;

    SimRankBook *ranks; /* every-rank play: n_ranks */
    uint32_t n_ranks;   /* 0: one rank stood for all */
    uint32_t
        memory_rank; /* whose memory is shown: unless asked, the one with the smallest share left */
    uint32_t time_rank; /* whose times are shown */
} SimPrediction;

/* Bytes for the allocator: the cluster's, less the symmetric memory that ranks share. */
uint64_t sim_allocator_bytes(const Plan *plan, const ModelCluster *cluster);

/* Fills in the memory there is (memory_bytes and what follows): that of a node of this kind. */
void sim_prediction_set_memory(SimPrediction *prediction, const Plan *plan,
                               const ModelCluster *node);

/* An empty prediction of a play of `steps` steps. */
SimPrediction *sim_prediction_new(const Plan *plan, const ModelCluster *cluster, uint32_t steps);
void sim_prediction_free(SimPrediction *prediction); /* NULL is fine */
/* The summed time of all causes with this one's name (axes over the same links share a name): told
 * of the first such cause; 0 for the others, so that a table has one row of them. */
SimTime sim_prediction_cause_ns(const SimPrediction *prediction, unsigned cause);
/* The cause from number `from` on with the largest such sum; of equal ones the first. */
unsigned sim_prediction_largest_cause(const SimPrediction *prediction, unsigned from);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimPrediction, sim_prediction_free)
