/* plan/flavours/ddp.c - DistributedDataParallel: whole parameters, gradients averaged in buckets.
 *
 * Facts (torch/csrc/distributed/c10d/reducer.cpp, PyTorch 2.13, and recordings of it): the first
 * backward uses one bucket for everything; before the second forward the buckets are made anew in
 * the order in which gradients became ready, with a first limit of 1 MiB and then the cap of 25 MiB
 * (a cap that the user gives is the only limit); a bucket is full when, after adding a tensor, its
 * size has reached the limit. A ready gradient is copied into its bucket scaled by 1/ranks; full
 * buckets are reduced in order; at the end of backward each is waited for and copied back. With
 * bucket_view gradients become views of their buckets instead, which saves a copy of them. A pass
 * that does not reduce leaves gradients alone.
 */
#include "plan/flavours/whole.h"
#include "plan/optimizer/optimizer.h"

enum {
    LANE_COMPUTE,
    LANE_REDUCE
};

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
    bool synced; /* the pass before reduced, or there was none */
} Ddp;

static const PlanGraphParameter *parameter_at(const PlanRun *run, uint32_t i) {
    return plan_graph_parameter_at(run->graph, i);
}

static PlanTensor place_of(const PlanRun *run, const Ddp *ddp, uint32_t parameter) {
    PlanTensor place = g_array_index(ddp->buckets, Bucket, ddp->bucket_of[parameter]).tensor;
    place.offset = ddp->offset_of[parameter];
    place.elements = parameter_at(run, parameter)->elements;
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
            plan_builder_begin_op(&run->builder, PLAN_OP_COPY, PLAN_AXIS_NONE,
                                  (int64_t[]){(int64_t)place.elements}, NULL);
            plan_run_operand(run, run->gradients[p]);
            plan_run_operand(run, place);
            plan_builder_launch(&run->builder, LANE_COMPUTE);
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
        bucket.elements += parameter_at(run, p)->elements;
    }
    bucket.buffer = plan_builder_buffer(&run->builder, bucket.elements, dtype_of(run),
                                        PLAN_COMMUNICATION_REPLICATE, LANE_COMPUTE, "bucket");
    bucket.tensor = plan_run_new_in(run, bucket.buffer);
    plan_builder_begin_op(&run->builder, PLAN_OP_FILL, PLAN_AXIS_NONE,
                          (int64_t[]){(int64_t)bucket.elements}, (double[]){0});
    plan_builder_whole(&run->builder, bucket.buffer);
    plan_run_launch(run);
    g_array_append_val(ddp->buckets, bucket);
    if (run->strategy->bucket_view == PLAN_YES) {
        move_in(run, ddp, parameters);
    }
}

static GArray *new_list(void) {
    return g_array_new(FALSE, FALSE, sizeof(uint32_t));
}

static void construct(PlanRun *run) {
    Ddp *ddp = run->state = g_new0(Ddp, 1);
    uint32_t n = run->graph->parameters->len;
    ddp->bucket_of = g_new0(uint32_t, n);
    ddp->offset_of = g_new0(uint64_t, n);
    ddp->buckets = g_array_new(FALSE, FALSE, sizeof(Bucket));
    ddp->ready_order = new_list();
    ddp->synced = true;
    plan_whole_construct(run, &ddp->whole);
    plan_run_at(run, PLAN_PHASE_SETUP, 0);
    GArray *all = new_list();
    for (uint32_t i = 0; i < n; i++) {
        if (!plan_run_is_frozen(run, i)) {
            g_array_append_val(all, i);
        }
    }
    add_bucket(run, ddp, all);
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
    double cap_mib = run->strategy->bucket_mb;
    uint64_t cap = (uint64_t)((cap_mib > 0 ? cap_mib : 25) * 1048576);
    /* 2.0 and before began with 1 MiB whatever the cap. */
    uint64_t limit =
        cap_mib > 0 && plan_strategy_is_after(run->strategy, PLAN_PYTORCH_2_0) ? cap : 1048576;
    drop_buckets(run, ddp, true);
    GArray *open = new_list();
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < ddp->ready_order->len; i++) {
        uint32_t p = g_array_index(ddp->ready_order, uint32_t, i);
        g_array_append_val(open, p);
        bytes += parameter_at(run, p)->elements * plan_dtype_bytes(dtype_of(run));
        if (bytes >= limit) {
            add_bucket(run, ddp, open);
            open = new_list();
            bytes = 0;
            limit = cap;
        }
    }
    if (open->len) {
        add_bucket(run, ddp, open);
    } else {
        g_array_unref(open);
    }
}

/* Returns where the next one begins. */
static uint64_t copy_back(PlanRun *run, PlanTensor flat, uint64_t offset, uint32_t buffer) {
    PlanTensor to = plan_run_value(run, buffer);
    flat.offset += offset;
    flat.elements = to.elements;
    plan_builder_begin_op(&run->builder, PLAN_OP_COPY, PLAN_AXIS_NONE,
                          (int64_t[]){(int64_t)to.elements}, NULL);
    plan_run_operand(run, flat);
    plan_run_operand(run, to);
    plan_builder_launch(&run->builder, LANE_COMPUTE);
    return offset + to.elements;
}

/* Of a network with rotary embedding: its tables, then what blocks count in and tables are made
 * of. Of a traced one: those that are registered. */
static GArray *buffers_of(const PlanGraph *graph) {
    GArray *buffers = new_list();
    for (unsigned i = 0; i < graph->n_ropes; i++) {
        g_array_append_val(buffers, graph->ropes[i].cosines);
        if (graph->ropes[i].sines != graph->ropes[i].cosines) {
            g_array_append_val(buffers, graph->ropes[i].sines);
        }
    }
    for (uint32_t i = 0; i < graph->buffers->len; i++) {
        uint32_t buffer = g_array_index(graph->buffers, uint32_t, i);
        if (!plan_graph_value_at(graph, buffer)->is_kept) {
            g_array_append_val(buffers, buffer);
        }
    }
    return buffers;
}

static bool is_broadcast(const PlanGraph *graph) {
    return graph->traced || graph->n_ropes || graph->rope_frequencies != PLAN_NONE;
}

static PlanDtype dtype_of_buffer(const PlanRun *run, uint32_t buffer) {
    return (PlanDtype)plan_graph_value_at(run->graph, buffer)->dtype;
}

/* One by itself is flat as it is. */
static PlanTensor flattened(PlanRun *run, const GArray *buffers) {
    int64_t n = 0;
    uint32_t first = g_array_index(buffers, uint32_t, 0);
    if (buffers->len == 1) {
        return plan_run_ref(run, plan_run_value(run, first));
    }
    for (uint32_t i = 0; i < buffers->len; i++) {
        n += (int64_t)plan_run_value(run, g_array_index(buffers, uint32_t, i)).elements;
    }
    PlanTensor flat = plan_run_new_tensor(run, (uint64_t)n, dtype_of_buffer(run, first), "buffers");
    plan_builder_begin_op(&run->builder, PLAN_OP_FLATTEN, PLAN_AXIS_NONE, &n, NULL);
    for (uint32_t i = 0; i < buffers->len; i++) {
        plan_run_operand(run, plan_run_value(run, g_array_index(buffers, uint32_t, i)));
    }
    plan_run_operand(run, flat);
    plan_builder_launch(&run->builder, LANE_COMPUTE);
    return flat;
}

static PlanTensor begin_broadcast(PlanRun *run, const GArray *buffers) {
    PlanTensor flat = flattened(run, buffers);
    int64_t n = (int64_t)flat.elements;
    plan_builder_wait_lane(&run->builder, LANE_REDUCE, LANE_COMPUTE);
    plan_builder_begin_op(
        &run->builder, PLAN_OP_BROADCAST, PLAN_AXIS_REPLICATE,
        (int64_t[]){[BROADCAST_ELEMENTS] = n, [BROADCAST_RANKS] = (int64_t)run->strategy->ranks},
        (double[]){0});
    plan_run_operand(run, flat);
    plan_builder_launch(&run->builder, LANE_REDUCE);
    return flat;
}

static void end_broadcast(PlanRun *run, const GArray *buffers, PlanTensor flat) {
    uint64_t offset = 0;
    plan_builder_wait_lane(&run->builder, LANE_COMPUTE, LANE_REDUCE);
    for (uint32_t i = 0; i < buffers->len && buffers->len > 1; i++) {
        offset = copy_back(run, flat, offset, g_array_index(buffers, uint32_t, i));
    }
    plan_run_unref(run, flat);
}

static bool is_complex(const PlanRun *run, uint32_t buffer) {
    const PlanGraphRope *rope = &run->graph->ropes[0];
    return run->graph->n_ropes && rope->cosines == rope->sines && rope->cosines == buffer;
}

/* A family's are in fp32, but for a table of complex numbers. */
static bool are_alike(const PlanRun *run, uint32_t a, uint32_t b) {
    return run->graph->traced ? dtype_of_buffer(run, a) == dtype_of_buffer(run, b)
                              : is_complex(run, a) == is_complex(run, b);
}

/* Those of one dtype go together. */
static GPtrArray *grouped(const PlanRun *run, const GArray *buffers) {
    GPtrArray *groups = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    for (uint32_t i = 0; i < buffers->len; i++) {
        uint32_t buffer = g_array_index(buffers, uint32_t, i);
        uint32_t g = 0;
        while (g < groups->len &&
               !are_alike(run, g_array_index((GArray *)groups->pdata[g], uint32_t, 0), buffer)) {
            g++;
        }
        if (g == groups->len) {
            g_ptr_array_add(groups, new_list());
        }
        g_array_append_val((GArray *)groups->pdata[g], buffer);
    }
    return groups;
}

/* The first rank's buffers are everybody's, before every pass that follows a synchronized one. Two
 * groups are under way at most (broadcast_coalesced in c10d/comm.cpp). */
static void broadcast_buffers(PlanRun *run, const GArray *buffers) {
    enum {
        UNDER_WAY = 2
    };
    g_autoptr(GPtrArray) groups = grouped(run, buffers);
    g_autofree PlanTensor *flat = g_new(PlanTensor, groups->len);
    for (uint32_t g = 0; g < groups->len + UNDER_WAY; g++) {
        if (g >= UNDER_WAY) {
            end_broadcast(run, groups->pdata[g - UNDER_WAY], flat[g - UNDER_WAY]);
        }
        if (g < groups->len) {
            flat[g] = begin_broadcast(run, groups->pdata[g]);
        }
    }
}

static void begin_pass(PlanRun *run) {
    Ddp *ddp = run->state;
    if (ddp->passes++ == 1) {
        rebuild_buckets(run, ddp);
    }
    g_autoptr(GArray) buffers = buffers_of(run->graph);
    if (buffers->len && is_broadcast(run->graph) && ddp->synced) {
        broadcast_buffers(run, buffers);
    }
    ddp->synced = run->pass.reduces;
    ddp->next = 0;
    for (uint32_t i = 0; i < ddp->buckets->len; i++) {
        g_array_index(ddp->buckets, Bucket, i).n_ready = 0;
    }
}

static void reduce(PlanRun *run, Bucket *bucket) {
    plan_builder_wait_lane(&run->builder, LANE_REDUCE, LANE_COMPUTE);
    plan_builder_begin_op(&run->builder, PLAN_OP_ALL_REDUCE, PLAN_AXIS_REPLICATE,
                          (int64_t[]){[ALL_REDUCE_ELEMENTS] = (int64_t)bucket->elements,
                                      [ALL_REDUCE_RANKS] = (int64_t)run->strategy->ranks},
                          (double[]){0});
    plan_builder_whole(&run->builder, bucket->buffer);
    plan_builder_launch(&run->builder, LANE_REDUCE);
    bucket->reduced = plan_builder_record(&run->builder, LANE_REDUCE);
}

static void divide(PlanRun *run, PlanTensor place) {
    plan_builder_begin_op(&run->builder, PLAN_OP_SCALE, PLAN_AXIS_NONE,
                          (int64_t[]){(int64_t)place.elements},
                          (double[]){1.0 / (double)run->strategy->ranks});
    plan_run_operand(run, place);
    plan_builder_launch(&run->builder, LANE_COMPUTE);
}

static void copy_in(PlanRun *run, PlanTensor gradient, PlanTensor place) {
    plan_builder_begin_op(&run->builder, PLAN_OP_BUCKET_COPY_IN, PLAN_AXIS_NONE,
                          (int64_t[]){(int64_t)place.elements},
                          (double[]){1.0 / (double)run->strategy->ranks});
    plan_run_operand(run, gradient);
    plan_run_operand(run, place);
    plan_builder_launch(&run->builder, LANE_COMPUTE);
}

static void gradient_ready(PlanRun *run, uint32_t parameter) {
    Ddp *ddp = run->state;
    if (ddp->passes == 1) {
        g_array_append_val(ddp->ready_order, parameter);
    }
    if (!run->pass.reduces) {
        return;
    }
    Bucket *bucket = &g_array_index(ddp->buckets, Bucket, ddp->bucket_of[parameter]);
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
    bucket->n_ready++;
    while (ddp->next < ddp->buckets->len) {
        Bucket *next = &g_array_index(ddp->buckets, Bucket, ddp->next);
        if (next->n_ready < next->parameters->len) {
            break;
        }
        reduce(run, next);
        ddp->next++;
    }
}

static void end_backward(PlanRun *run) {
    Ddp *ddp = run->state;
    for (uint32_t i = 0; i < ddp->buckets->len && run->pass.reduces; i++) {
        Bucket *bucket = &g_array_index(ddp->buckets, Bucket, i);
        plan_builder_wait(&run->builder, LANE_COMPUTE, bucket->reduced);
        if (run->strategy->bucket_view == PLAN_YES) {
            continue;
        }
        plan_builder_begin_op(&run->builder, PLAN_OP_BUCKET_COPY_OUT, PLAN_AXIS_NONE,
                              (int64_t[]){(int64_t)bucket->elements}, NULL);
        plan_builder_whole(&run->builder, bucket->buffer);
        for (uint32_t j = 0; j < bucket->parameters->len; j++) {
            plan_run_operand(run, run->gradients[g_array_index(bucket->parameters, uint32_t, j)]);
        }
        plan_builder_launch(&run->builder, LANE_COMPUTE);
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
    .construct = construct,
    .begin_pass = begin_pass,
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
