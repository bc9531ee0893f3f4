/* cli/choose/choose.h - which settings, on how many GPUs of which machine: settings predicted, and
 * ranked.
 *
 * What is tried is the product of knobs; those that were not given are sharding, checkpointing and
 * micro_batch, and where no number of ranks was given either, ranks: one node, two, four and so on.
 * Experts of a network, as torchtitan has them, are gathered by each GPU or shared by eight.
 * A batch is doubled for as long as that gains 2 % tokens a second, unless its values were given;
 * of a global batch it begins with what makes 16 passes or fewer (16 a stage), and is halved until
 * it fits. Stages want a global batch. They are tried with shards of all ranks or in copies, and
 * reduce behind the last microbatch; other shardings are the same there, or unknown.
 * What was given as an option or in a strategy's file is as it was given in all of them.
 *
 * Skipped is any setting that needs at least as much memory as one that did not fit: a larger
 * batch, less sharding or less checkpointing, all else equal. Sharding that PyTorch has no mixed
 * precision for (none, and the optimizer alone) gets 16 bits by autocast where the others get them
 * by mixed precision. Weights in 4 bits lie as FSDP wants them (lora_base_storage=model), unless
 * that was given.
 *
 * Ranked are those that fit, the ones whose allocator gives memory back behind the others: by the
 * price of tokens, where every machine's is known; else by the tokens a second of a GPU. With a
 * deadline or a budget only those that are done by then and cost no more (limits.c).
 *
 * Beside them stands the simplest strategy that fits on the first one's GPUs, tuned in batch and
 * checkpointing: DDP, or where that does not fit FSDP2 with all defaults, and no layers, sequences
 * or stages shared unless neither fits without.
 *
 * Where nothing fits, or nothing without giving memory back, more is asked of what lacks least
 * (cli/what-if/ways-to-fit.h).
 *
 * Where ranks are not alike, each of them has to be played, which takes as many times as long as
 * there are ranks. All settings are then first predicted by one rank on each kind of node, and each
 * rank is played of those alone that may be shown (exact.c). What is shown is what predict says.
 *
 * All this is on several cores (ahead.h), and none of it tells on how many.
 *
 * Owns: what was chosen owns all of it. Cost: a prediction each, and on several cores some more
 * than are told of, for whether they were worth it was not known yet.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "cli/published/run-kind.h"
#include "cli/source/plan-source.h"
#include "models/cluster.h"
#include "trace/trace.h"

typedef struct {
    CliPlanSource *source; /* what is as it was given; is changed */
    const char *network;
    const GPtrArray *clusters; /* ModelCluster, with their prices */
    const GArray *knobs;       /* CliKnob */
    uint64_t global_batch;     /* sequences a step of all ranks, by accumulation; 0: any */
    double tokens, most_days;  /* of the whole training, and its deadline; 0: not asked */
    double most_price;         /* its budget; 0: not asked; else every machine has a price */
    guint top;                 /* as in CliChooseView */
    guint cores;               /* to predict on; 0: as cli/host/cores.h has it */
} CliChooseAsked;

/* A setting that was predicted. */
typedef struct {
    const ModelCluster *cluster;
    char *title; /* the plan's: network, strategy, ranks, batch */
    /* "sharding=full", of every knob, in their order; as options they make the plan with what was
     * given. */
    char **settings;
    char *strategy; /* as a file, what is as PyTorch has it left out */
    uint64_t ranks, micro_batch, accumulate;
    double tokens;         /* of all ranks, a step */
    double step_ns, flops; /* flops: of a rank, a step */
    double mfu, works;     /* works: the compute lane's working share */
    const char *bound_by;  /* the largest share of a step */
    const char *lost_to;   /* and of what is not work */
    CliRunKind kind;       /* of which published runs tell how sure it is */
    const char *unlike;    /* why its ranks are not alike, if one on each kind of node stood for
                            * them, so that this is an estimate; NULL: this is what predict says */
    bool fits, trains_well;
    uint64_t reserved_bytes, allocator_bytes, retries;
    unsigned n_steps;                          /* in which those are */
    double kwh_per_billion, price_per_billion; /* tokens; 0: unknown */
    /* Of what does not fit, or not without retries, to ask what else would (what-if/what-if.h);
     * else NULL. */
    Trace *header;
} CliChoice;

/* The least of what fits on a machine, and on how many GPUs; 0: no limit was asked for. */
typedef struct {
    double amount;
    uint64_t ranks;
} CliLeast;

/* What became of one of the machines that were asked about. */
typedef struct {
    const ModelCluster *cluster;
    guint n_fit;        /* settings; those that are late among them */
    const char *unlike; /* as of a choice, if some of its were estimates at first; else NULL */
    bool has_nearest;
    uint64_t nearest_bytes; /* reserved by what lacks least where nothing fits */
    uint64_t allocator_bytes;
    CliLeast days, price; /* the latter of what is done in time */
} CliMachine;

typedef struct {
    char **keys;         /* of the knobs, in their order */
    GArray *choices;     /* CliChoice that fit, in time and within the budget; the first the best */
    GArray *machines;    /* CliMachine, as the machines were given */
    CliChoice *baseline; /* NULL: none fits, or nothing does */
    CliChoice *nearest; /* where nothing fits: what lacks least; NULL: nothing could be predicted */
    /* CliWay: what makes that fit, or where the first choice gives memory back, what makes it do
     * without; NULL: there is no need. */
    GArray *ways;
    CliChoice *quickest; /* where what fits is never done in time; else NULL */
    CliChoice *cheapest; /* where what is done in time is never within the budget; else NULL */
    guint n_late;        /* fit, and are not done in time */
    guint n_dear;        /* fit in time, and cost more than the budget */
    guint n_predicted;   /* the baseline's among them */
    guint n_not_fitting, n_left_out, n_refused;
    char *refusal;     /* the first */
    char *another;     /* the first for another reason; NULL: there is none */
    guint n_exact;     /* of which every rank was played after an estimate */
    bool took_bf16;    /* no dtype was given */
    bool took_storage; /* nor was lora_base_storage, and model was taken */
    bool by_price;     /* ranked by price */
} CliChosen;

static inline const CliChoice *cli_choice_at(const CliChosen *chosen, guint i) {
    return &g_array_index(chosen->choices, CliChoice, i);
}

double cli_choice_tokens_per_s(const CliChoice *choice); /* of all ranks */
double cli_choice_tokens_per_s_per_gpu(const CliChoice *choice);
double cli_choice_days(const CliChoice *choice, double tokens);
double cli_choice_price(const CliChoice *choice, double tokens); /* 0: unknown */

/* Something fits, though perhaps not in time or within the budget. */
bool cli_chosen_has_fitting(const CliChosen *chosen);

/* A machine that none of the choices is on. */
bool cli_machine_is_empty(const CliChosen *chosen, const CliMachine *machine);

CliChosen *cli_choose(const CliChooseAsked *asked, GError **error);
void cli_chosen_free(CliChosen *chosen); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CliChosen, cli_chosen_free)

/* How choices are shown. */
typedef struct {
    guint top; /* rows of one machine and number of GPUs, at most; 0: one, or five of one */
    double tokens, most_days, most_price; /* as asked */
    double span_days;                     /* of which the tokens are asked; 0: not so */
    double spare_percent;                 /* of a GPU's memory, that was kept free */
    const char *network;
    const char *network_keys; /* " --network-key loss=chunked" of each that was given */
    char **called;            /* names of the machines, as they were given */
    const char *written;      /* the strategy file that was written; NULL: none */
    gsize columns;            /* of what the text is printed on (cli/say/prose.h) */
} CliChooseView;

/* Of the whole training: as many as were asked, or as the asked days make; 0: neither was asked. */
double cli_choice_tokens(const CliChoice *choice, const CliChooseView *view);

enum {
    CLI_ROWS_OF_ONE_PLACE = 5 /* where all are of one machine and number of GPUs */
};

/* How many rows of a machine and number of GPUs are shown, at most. */
guint cli_chosen_rows_a_place(const CliChosen *chosen, guint top);
/* The choices to show (indices, guint): the best of each machine and number of GPUs. */
GArray *cli_chosen_shown(const CliChosen *chosen, guint top);
char *cli_chosen_text(const CliChosen *chosen, const CliChooseView *view);
/* A complete object. Transfer full. */
JsonBuilder *cli_chosen_json(const CliChosen *chosen, const CliChooseView *view);
