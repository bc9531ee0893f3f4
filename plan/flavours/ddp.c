/* plan/flavours/ddp.c - DistributedDataParallel: whole parameters, gradients averaged in buckets.
 *
 * Facts (torch/csrc/distributed/c10d/reducer.cpp, PyTorch 2.13, and recordings of it): the first
 * backward uses one bucket for everything; before the second forward the buckets are made anew in
 * the order in which gradients became ready, with a first limit of 1 MiB and then the cap of 25 MiB
 * (a cap that the user gives is the only limit); a bucket is full when, after adding a tensor, its
 * size has reached the limit. A ready gradient is copied into its bucket scaled by 1/ranks; full
 * buckets are reduced in order; at the end of backward each is waited for and copied back. With
 * bucket_view gradients become views of their buckets instead, which saves a copy of them. A pass
 * that does not reduce leaves gradients alone. Of a pipeline stage the last microbatch's backward
 * reduces, and buckets are made anew before the second step.
 *
 * With find_unused buckets are those of parameters in the order of registration, the last one
 * first, and stay. A list of what was used, 4 bytes a parameter, is all-reduced behind the last
 * bucket. With static_graph the first pass reduces that list and its one bucket when backward has
 * ended, and buckets are made anew before the third pass; with one pass a step before the second,
 * because the third step would else be another than those behind it.
 */
#include "plan/flavours/ddp.h"
#include "plan/flavours/whole.h"
#include "plan/optimizer/clip.h"

typedef struct {
    GArray *parameters; /* uint32_t */
    uint32_t buffer;
    PlanTensor tensor; /* all of it */
    uint64_t elements;
    uint32_t n_ready;
    uint32_t reduced; /* event of its all-reduce; PLAN_NONE: there has been none */
} Bucket;

typedef struct {
    PlanWhole whole;
    GArray *buckets; /* Bucket */
    uint32_t *bucket_of;
    uint64_t *offset_of; /* elements into its bucket */
    GArray *ready_order; /* uint32_t: parameters as their gradients came in the first backward */
    uint32_t next;       /* bucket to be reduced next */
    unsigned passes;
    uint32_t used, used_reduced; /* the list, PLAN_NONE: there is none, and its reduction's event */
    bool synced;                 /* the pass before reduced, or there was none */
} Ddp;

static PlanTensor place_of(const PlanRun *run, const Ddp *ddp, uint32_t parameter) {
    PlanTensor place = g_array_index(ddp->buckets, Bucket, ddp->bucket_of[parameter]).tensor;
    place.offset = ddp->offset_of[parameter];
    place.elements = plan_run_parameter(run, parameter)->elements;
    return place;
}

static void become_view(PlanRun *run, uint32_t parameter, PlanTensor place) {
    PlanTensor gradient = run->gradients[parameter];
    run->gradients[parameter] = plan_run_ref(run, place);
    plan_run_unref(run, gradient);
}

/* Gradients that earlier passes left. */
static void move_in(PlanRun *run, const Ddp *ddp, const GArray *parameters) {
    for (uint32_t i = 0; i < parameters->len; i++) {
        uint32_t p = g_array_index(parameters, uint32_t, i);
        PlanTensor place = place_of(run, ddp, p);
        if (run->gradients[p].storage != PLAN_NONE) {
            LAUNCH_ON(run, PLAN_DDP_LANE_COMPUTE, PLAN_OP_COPY, PLAN_AXIS_NONE,
                      DIMS((int64_t)place.elements), NULL,
                      plan_run_operand_of(run, run->gradients[p]), plan_run_operand_of(run, place));
            become_view(run, p, place);
        }
    }
}

/* What is trained is of one dtype: the network's, or that of adapters. */
static PlanDtype dtype_of(const PlanRun *run) {
    return run->graph->trained.lora_wide ? PLAN_FP32 : plan_strategy_model_dtype(run->strategy);
}

static void add_bucket(PlanRun *run, Ddp *ddp, GArray *parameters) {
    Bucket bucket = {.parameters = parameters, .reduced = PLAN_NONE};
    for (uint32_t i = 0; i < parameters->len; i++) {
        uint32_t p = g_array_index(parameters, uint32_t, i);
        ddp->bucket_of[p] = ddp->buckets->len;
        ddp->offset_of[p] = bucket.elements;
        bucket.elements += plan_run_parameter(run, p)->elements;
    }
    bucket.buffer =
        plan_builder_buffer(&run->builder, bucket.elements, dtype_of(run),
                            PLAN_COMMUNICATION_REPLICATE, PLAN_DDP_LANE_COMPUTE, "bucket");
    bucket.tensor = plan_run_new_in(run, bucket.buffer);
    LAUNCH_OPERANDS(run, PLAN_OP_FILL, DIMS((int64_t)bucket.elements), &(double){0},
                    all_of(run, bucket.buffer));
    g_array_append_val(ddp->buckets, bucket);
    if (run->strategy->bucket_view == PLAN_YES) {
        move_in(run, ddp, parameters);
    }
}

static GPtrArray *new_lists(void) {
    return g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
}

static GPtrArray *in_one_bucket(GArray *parameters) {
    GPtrArray *buckets = new_lists();
    g_ptr_array_add(buckets, g_array_ref(parameters));
    return buckets;
}

/* In that order: a bucket is full when it has reached its limit. */
static GPtrArray *in_buckets(const PlanRun *run, const GArray *parameters) {
    double cap_mib = run->strategy->bucket_mb;
    uint64_t cap = (uint64_t)((cap_mib > 0 ? cap_mib : 25) * 1048576);
    /* 2.0 and before began with 1 MiB whatever the cap. */
    uint64_t limit =
        cap_mib > 0 && plan_strategy_is_after(run->strategy, PLAN_PYTORCH_2_0) ? cap : 1048576;
    GPtrArray *buckets = new_lists();
    uint64_t bytes = limit;
    for (guint i = 0; i < parameters->len; i++) {
        uint32_t p = g_array_index(parameters, uint32_t, i);
        if (bytes >= limit) {
            limit = buckets->len > 0 ? cap : limit;
            g_ptr_array_add(buckets, plan_ddp_new_list());
            bytes = 0;
        }
        g_array_append_val((GArray *)buckets->pdata[buckets->len - 1], p);
        bytes += plan_run_parameter(run, p)->elements * plan_dtype_bytes(dtype_of(run));
    }
    return buckets;
}

/* Returns the event behind it. */
static uint32_t all_reduce(PlanRun *run, uint32_t buffer) {
    plan_builder_wait_lane(&run->builder, PLAN_DDP_LANE_REDUCE, PLAN_DDP_LANE_COMPUTE);
    plan_builder_collective(&run->builder, PLAN_OP_ALL_REDUCE, PLAN_AXIS_REPLICATE,
                            plan_ddp_ranks(run), PLAN_REDUCTION_SUM, NOTHING, all_of(run, buffer));
    plan_builder_launch(&run->builder, PLAN_DDP_LANE_REDUCE);
    return plan_builder_record(&run->builder, PLAN_DDP_LANE_REDUCE);
}

/* PyTorch's are integers, of as many bytes. */
static void make_list_of_used(PlanRun *run, Ddp *ddp, uint64_t n_trained) {
    ddp->used = plan_builder_new(&run->builder, n_trained, PLAN_FP32, PLAN_COMMUNICATION_REPLICATE,
                                 PLAN_DDP_LANE_COMPUTE, "used");
}

static void reduce_list_of_used(PlanRun *run, Ddp *ddp) {
    launch_in_place(run, PLAN_DDP_LANE_COMPUTE, PLAN_OP_FILL, 1, all_of(run, ddp->used));
    ddp->used_reduced = all_reduce(run, ddp->used);
}

static GArray *trained(const PlanRun *run) {
    GArray *all = plan_ddp_new_list();
    for (uint32_t i = 0; i < run->graph->parameters.len; i++) {
        if (!plan_run_is_frozen(run, i) && !plan_run_is_ignored(run, i)) {
            g_array_append_val(all, i);
        }
    }
    return all;
}

static void construct(PlanRun *run) {
    Ddp *ddp = run->state = g_new0(Ddp, 1);
    uint32_t n = run->graph->parameters.len;
    ddp->bucket_of = g_new0(uint32_t, n);
    ddp->offset_of = g_new0(uint64_t, n);
    ddp->buckets = g_array_new(FALSE, FALSE, sizeof(Bucket));
    ddp->ready_order = plan_ddp_new_list();
    ddp->synced = true;
    plan_whole_construct(run, &ddp->whole);
    plan_run_at(run, PLAN_PHASE_SETUP, 0);
    g_autoptr(GArray) all = trained(run);
    g_autoptr(GPtrArray) buckets =
        run->strategy->find_unused == PLAN_YES ? in_buckets(run, all) : in_one_bucket(all);
    for (guint i = buckets->len; i-- > 0;) {
        add_bucket(run, ddp, g_array_ref(buckets->pdata[i]));
    }
    ddp->used = PLAN_NONE;
    if (plan_strategy_copies_results(run->strategy)) {
        make_list_of_used(run, ddp, all->len);
    }
}

static void drop_buckets(PlanRun *run, Ddp *ddp, bool free_buffers) {
    for (uint32_t i = 0; i < ddp->buckets->len; i++) {
        Bucket *bucket = &g_array_index(ddp->buckets, Bucket, i);
        if (free_buffers) {
            if (bucket->reduced == PLAN_NONE) { /* of a first pass without communication */
                plan_builder_at(&run->builder, bucket->buffer)->sub = PLAN_TEMPORARY_OP;
            }
            plan_run_unref(run, bucket->tensor);
        }
        g_array_unref(bucket->parameters);
    }
    g_array_set_size(ddp->buckets, 0);
}

static void rebuild_buckets(PlanRun *run, Ddp *ddp) {
    drop_buckets(run, ddp, true);
    g_autoptr(GPtrArray) buckets = in_buckets(run, ddp->ready_order);
    for (guint i = 0; i < buckets->len; i++) {
        add_bucket(run, ddp, g_array_ref(buckets->pdata[i]));
    }
}

/* A step's microbatches forward before the last one's backward, which reduces. */
static unsigned passes_before_rebuilding(const PlanRun *run) {
    const PlanStrategy *s = run->strategy;
    return run->owner.stages                                  ? (unsigned)s->accumulate
           : s->static_graph == PLAN_YES && s->accumulate > 1 ? 2
                                                              : 1;
}

static bool gives_order(const PlanRun *run, const Ddp *ddp) {
    return run->owner.stages ? run->pass.reduces && ddp->passes == run->strategy->accumulate
                             : ddp->passes == 1;
}

static void begin_pass(PlanRun *run) {
    Ddp *ddp = run->state;
    bool is_static = run->strategy->static_graph == PLAN_YES;
    if (ddp->passes++ == passes_before_rebuilding(run) && run->strategy->find_unused == PLAN_NO) {
        rebuild_buckets(run, ddp);
    }
    run->pass.copies_results =
        is_static ? ddp->passes == 1 : plan_strategy_copies_results(run->strategy);
    if (ddp->synced) {
        plan_ddp_broadcast_buffers(run);
    }
    ddp->synced = run->pass.reduces;
    ddp->next = 0;
    for (uint32_t i = 0; i < ddp->buckets->len; i++) {
        g_array_index(ddp->buckets, Bucket, i).n_ready = 0;
    }
}

static void begin_evaluation(PlanRun *run) {
    Ddp *ddp = run->state;
    if (ddp->synced) {
        plan_ddp_broadcast_buffers(run);
    }
    ddp->synced = false;
    run->pass.copies_results = run->strategy->find_unused == PLAN_YES;
}

static void divide(PlanRun *run, PlanTensor place) {
    launch_in_place(run, PLAN_DDP_LANE_COMPUTE, PLAN_OP_SCALE, 1.0 / (double)plan_ddp_ranks(run),
                    plan_run_operand_of(run, place));
}

static void copy_in(PlanRun *run, PlanTensor gradient, PlanTensor place) {
    LAUNCH_ON(run, PLAN_DDP_LANE_COMPUTE, PLAN_OP_BUCKET_COPY_IN, PLAN_AXIS_NONE,
              DIMS((int64_t)place.elements), &(double){1.0 / (double)plan_ddp_ranks(run)},
              plan_run_operand_of(run, gradient), plan_run_operand_of(run, place));
}

/* Its gradient is in its bucket. */
static void put_in_bucket(PlanRun *run, Ddp *ddp, uint32_t parameter) {
    PlanTensor gradient = run->gradients[parameter], place = place_of(run, ddp, parameter);
    bool is_view = gradient.storage == place.storage;
    if (is_view) {
        divide(run, place);
    } else {
        copy_in(run, gradient, place);
    }
    if (run->strategy->bucket_view == PLAN_YES && !is_view) {
        become_view(run, parameter, place);
    }
    g_array_index(ddp->buckets, Bucket, ddp->bucket_of[parameter]).n_ready++;
}

static void reduce_full_buckets(PlanRun *run, Ddp *ddp) {
    while (ddp->next < ddp->buckets->len) {
        Bucket *next = &g_array_index(ddp->buckets, Bucket, ddp->next);
        if (next->n_ready < next->parameters->len) {
            return;
        }
        next->reduced = all_reduce(run, next->buffer);
        ddp->next++;
    }
    if (run->strategy->find_unused == PLAN_YES) {
        reduce_list_of_used(run, ddp);
    }
}

static bool is_delayed(const PlanRun *run, const Ddp *ddp) {
    return run->strategy->static_graph == PLAN_YES && ddp->passes == 1;
}

static void gradient_ready(PlanRun *run, uint32_t parameter) {
    Ddp *ddp = run->state;
    if (plan_run_is_ignored(run, parameter)) {
        return;
    }
    if (gives_order(run, ddp)) {
        g_array_append_val(ddp->ready_order, parameter);
    }
    if (run->pass.reduces && !is_delayed(run, ddp)) {
        put_in_bucket(run, ddp, parameter);
        reduce_full_buckets(run, ddp);
    }
}

/* In the first pass of a static graph all is reduced at the end, in the order of registration. */
static void reduce_at_last(PlanRun *run, Ddp *ddp) {
    reduce_list_of_used(run, ddp);
    g_autoptr(GArray) all = trained(run);
    for (guint i = 0; i < all->len; i++) {
        put_in_bucket(run, ddp, g_array_index(all, uint32_t, i));
    }
    reduce_full_buckets(run, ddp);
}

static void copy_out(PlanRun *run, const Bucket *bucket) {
    plan_builder_begin_op(&run->builder, PLAN_OP_BUCKET_COPY_OUT, PLAN_AXIS_NONE,
                          (int64_t[]){(int64_t)bucket->elements}, NULL);
    plan_builder_whole(&run->builder, bucket->buffer);
    for (uint32_t j = 0; j < bucket->parameters->len; j++) {
        plan_run_operand(run, run->gradients[g_array_index(bucket->parameters, uint32_t, j)]);
    }
    plan_builder_launch(&run->builder, PLAN_DDP_LANE_COMPUTE);
}

static void end_backward(PlanRun *run) {
    Ddp *ddp = run->state;
    if (!run->pass.reduces) {
        return;
    }
    if (is_delayed(run, ddp)) {
        reduce_at_last(run, ddp);
    }
    for (uint32_t i = 0; i < ddp->buckets->len; i++) {
        Bucket *bucket = &g_array_index(ddp->buckets, Bucket, i);
        plan_builder_wait(&run->builder, PLAN_DDP_LANE_COMPUTE, bucket->reduced);
        if (run->strategy->bucket_view == PLAN_NO) {
            copy_out(run, bucket);
        }
    }
    if (run->pass.copies_results) { /* it was reduced */
        plan_builder_wait(&run->builder, PLAN_DDP_LANE_COMPUTE, ddp->used_reduced);
    }
}

static PlanOperand parameter(PlanRun *run, uint32_t which) {
    return plan_whole_operand(run, &((Ddp *)run->state)->whole, which);
}

/* The second step drops the first's bucket. */
static bool is_steady(const PlanRun *run) {
    return false;
}

static void clear(PlanRun *run) {
    Ddp *ddp = run->state;
    if (ddp) {
        drop_buckets(run, ddp, false);
        g_array_unref(ddp->buckets);
        g_array_unref(ddp->ready_order);
        g_free(ddp->bucket_of);
        g_free(ddp->offset_of);
        g_free(ddp->whole.buffers);
        g_free(ddp);
    }
}

static const char *const lanes[] = {"compute", "reduce", NULL};

const PlanFlavour plan_flavour_ddp = {
    .name = "ddp",
    .lanes = lanes,
    .growth = PLAN_GROWTH_OF_WHOLE,
    .construct = construct,
    .begin_pass = begin_pass,
    .begin_evaluation = begin_evaluation,
    .gradient_ready = gradient_ready,
    .end_backward = end_backward,
    .parameter = parameter,
    .owned = parameter,
    .gradient = plan_whole_gradient,
    .clip = plan_clip_whole,
    .drop_gradients = plan_whole_drop_gradients,
    .is_steady = is_steady,
    .clear = clear,
};
