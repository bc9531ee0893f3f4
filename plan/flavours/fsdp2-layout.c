/* plan/flavours/fsdp2-layout.c - which rows of which parameter a rank of FSDP2 holds.
 *
 * Each parameter is dealt out by its first dimension in chunks of ceil(rows / ranks) rows over the
 * shard axis, experts that ranks share over those that have the same ones; every rank's shard has
 * the size of the first chunk (trailing ranks hold padding).
 */
#include "plan/autograd/init.h"
#include "plan/autograd/unit.h"
#include "plan/flavours/fsdp2.h"

#include "plan/autograd/offload.h"
#include "plan/autograd/shared/ring.h"
#include "plan/flavours/construct.h"

uint32_t *plan_fsdp2_trained(const PlanRun *run, uint32_t unit, uint32_t *ret_n) {
    const GArray *all = run->units[unit].parameters;
    uint32_t *trained = g_new(uint32_t, all->len + 1), n = 0;
    for (uint32_t i = 0; i < all->len; i++) {
        uint32_t p = g_array_index(all, uint32_t, i);
        if (!plan_run_is_frozen(run, p)) {
            trained[n++] = p;
        }
    }
    *ret_n = n;
    return trained;
}

typedef struct {
    PlanAxis axis;
    uint64_t ranks, stride; /* every stride-th rank is of one group */
    bool cuts_rows;         /* of each expert, as many as ranks */
} Group;

static Group group_of(const PlanRun *run, uint32_t unit) {
    const PlanStrategy *s = run->strategy;
    return run->units[unit].of_experts
               ? (Group){PLAN_AXIS_ALIKE, plan_strategy_alike_ranks(s), s->expert,
                         run->graph->shared.cuts_experts}
               : (Group){PLAN_AXIS_SHARD, plan_strategy_shard_ranks(s), s->tensor, false};
}

/* What a parameter is dealt out in. */
static uint64_t rows_in_all(const Group *group, const PlanGraphParameter *parameter) {
    return group->cuts_rows ? group->ranks : (uint64_t)parameter->dims[0];
}

static void deal_out(PlanRun *run, const Group *group, PlanFsdp2Unit *unit, uint32_t p) {
    PlanFsdp2 *f = run->state;
    const PlanGraphParameter *parameter = plan_run_parameter(run, p);
    uint64_t rows = rows_in_all(group, parameter), row = parameter->elements / rows;
    uint64_t chunk_rows = (rows + group->ranks - 1) / group->ranks;
    uint64_t before = MIN(rows, chunk_rows * (run->owner.rank / group->stride % group->ranks));
    f->parameters[p] = (PlanFsdp2Parameter){.chunk_rows = chunk_rows,
                                            .row = row,
                                            .local = MIN(chunk_rows, rows - before) * row,
                                            .trained_start = unit->trained,
                                            .staged = PLAN_NONE,
                                            .offload_event = PLAN_NONE,
                                            .whole = PLAN_NONE,
                                            .part = PLAN_NONE,
                                            .left_part = PLAN_NONE,
                                            .accumulated = PLAN_NO_TENSOR,
                                            .in_float8 = f->parameters[p].in_float8,
                                            .scales = {PLAN_NONE, PLAN_NONE},
                                            .named = PLAN_FSDP2_NOT_NAMED};
    uint64_t chunk = plan_fsdp2_chunk(f, p);
    unit->slice += chunk;
    unit->plain += f->parameters[p].in_float8 ? 0 : chunk;
    unit->trained += plan_run_is_frozen(run, p) ? 0 : chunk;
}

/* Gradients of experts are of all ranks' tokens, whichever ranks add them up. */
static void lay_out(PlanRun *run, PlanFsdp2 *f) {
    double ranks = (double)(f->ranks * f->replicas);
    for (uint32_t u = 0; u < run->n_units; u++) {
        PlanFsdp2Unit *unit = &f->units[u];
        Group group = group_of(run, u);
        *unit = (PlanFsdp2Unit){.axis = group.axis,
                                .ranks = group.ranks,
                                .communicates = group.ranks > 1 || f->is_of_2_4,
                                .cuts_rows = group.cuts_rows,
                                .divisor = run->units[u].of_experts ? ranks : 0,
                                .gathered = PLAN_NONE,
                                .gradients = PLAN_NONE,
                                .partial = PLAN_NONE,
                                .all_reduced = PLAN_NONE,
                                .ready_event = PLAN_NONE};
        for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
            uint32_t p = plan_run_parameter_of(run, u, i);
            deal_out(run, &group, unit, p);
        }
        unit->gathers = f->param;
        if (unit->plain < unit->slice) {
            unit->gathers = PLAN_UINT8;
            unit->slice += unit->plain * (plan_dtype_bytes(f->param) - 1);
        }
    }
}

static void zero(PlanRun *run, uint32_t buffer) {
    launch_in_place(run, PLAN_FSDP2_COMPUTE, PLAN_OP_FILL, 0, all_of(run, buffer));
}

void plan_fsdp2_shards_of_units(const PlanRun *run, uint64_t *ret_elements) {
    for (uint32_t u = 0; u < run->n_units; u++) {
        Group group = group_of(run, u);
        for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
            const PlanGraphParameter *p = plan_run_parameter(run, plan_run_parameter_of(run, u, i));
            uint64_t rows = rows_in_all(&group, p);
            ret_elements[u] += (rows + group.ranks - 1) / group.ranks * (p->elements / rows);
        }
    }
}

/* How many of `rows` rows a rank gets: each as many, but for the last ones. */
static int64_t rows_of(int64_t rows, int64_t ranks, int64_t rank) {
    int64_t each = (rows + ranks - 1) / ranks;
    return MIN(each, rows - MIN(rows, each * rank));
}

static char *text_of(const int64_t *numbers, guint n) {
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < n; i++) {
        g_string_append_printf(text, "%" G_GINT64_FORMAT " ", numbers[i]);
    }
    return g_string_free(text, FALSE);
}

/* A size of first dimension, and who shards it. */
typedef struct {
    int64_t rows;
    Group group;
} Dealt;

static GArray *different_rows(const PlanRun *run) {
    g_autoptr(GHashTable) dense = g_hash_table_new(g_int64_hash, g_int64_equal);
    g_autoptr(GHashTable) of_experts = g_hash_table_new(g_int64_hash, g_int64_equal);
    GArray *different = g_array_new(FALSE, FALSE, sizeof(Dealt));
    for (uint32_t p = 0; p < run->graph->parameters.len; p++) {
        uint32_t u = run->unit_of_parameter[p];
        const PlanGraphParameter *parameter = plan_run_parameter(run, p);
        GHashTable *seen = run->units[u].of_experts ? of_experts : dense;
        if (!parameter->ignored && g_hash_table_add(seen, (gpointer)parameter->dims)) {
            Group group = group_of(run, u);
            Dealt dealt = {(int64_t)rows_in_all(&group, parameter), group};
            g_array_append_val(different, dealt);
        }
    }
    return different;
}

/* How many rows of each size of first dimension a rank has. */
void plan_fsdp2_shapes_of_ranks(const PlanRun *run, char **ret_shapes) {
    g_autoptr(GArray) different = different_rows(run);
    g_autofree int64_t *had = g_new(int64_t, different->len); /* by the rank before */
    for (uint64_t r = 0; r < run->strategy->ranks; r++) {
        bool like_before = r > 0 && run->strategy->context == 1;
        for (guint i = 0; i < different->len; i++) {
            const Dealt *dealt = &g_array_index(different, Dealt, i);
            int64_t ranks = (int64_t)dealt->group.ranks;
            int64_t place = (int64_t)(r / dealt->group.stride) % ranks;
            int64_t has = rows_of(dealt->rows, ranks, place);
            like_before &= has == had[i];
            had[i] = has;
        }
        g_autofree char *rows =
            like_before ? g_strdup(ret_shapes[r - 1]) : text_of(had, different->len);
        uint64_t at = plan_ring_place_of(run, r);
        ret_shapes[r] = run->strategy->context == 1
                            ? g_steal_pointer(&rows)
                            : g_strdup_printf("%s at %" G_GUINT64_FORMAT, rows, at);
    }
}

static void make_shard_on_host(PlanRun *run, PlanFsdp2 *f, uint32_t p) {
    uint64_t chunk = plan_fsdp2_chunk(f, p);
    plan_offload_init_parameter(run, p, plan_fsdp2_unit_of(run, p)->axis, chunk, 0, chunk);
    plan_offload_end_init(run, p, chunk);
    f->parameters[p].shard = PLAN_NONE;
}

static void make_shard(PlanRun *run, PlanFsdp2 *f, uint32_t p) {
    PlanFsdp2Parameter *mine = &f->parameters[p];
    mine->shard =
        plan_builder_new(&run->builder, plan_fsdp2_chunk(f, p), f->master, PLAN_PARAMETERS_SHARDED,
                         PLAN_FSDP2_COMPUTE, run->owner.parameters[p].name);
    if (mine->local < plan_fsdp2_chunk(f, p)) {
        zero(run, mine->shard);
    }
    plan_init_parameter(run, p, mine->shard, plan_fsdp2_unit_of(run, p)->axis,
                        plan_fsdp2_chunk(f, p), 0);
    if (plan_offload_has_params(run)) {
        plan_offload_put_shard(run, p, mine->shard, PLAN_FSDP2_COMPUTE);
        plan_builder_free(&run->builder, mine->shard);
    }
}

static void make_shards(PlanRun *run, PlanFsdp2 *f, PlanConstruct *construct, uint32_t u) {
    plan_construct_begin_unit(construct, run, u);
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        uint32_t p = plan_run_parameter_of(run, u, i);
        plan_run_at(run, PLAN_PHASE_SETUP, plan_run_parameter(run, p)->module);
        if (plan_offload_constructs(run)) {
            make_shard_on_host(run, f, p);
        } else {
            make_shard(run, f, p);
        }
    }
    plan_construct_end_unit(construct, run, u);
}

/* Whether accelerate, which wraps blocks before all else, wraps it behind them. */
static bool is_behind_blocks(const PlanRun *run, uint32_t unit) {
    uint32_t m = run->units[unit].module;
    return run->strategy->wrap_ends == PLAN_ENDS_TAIL && !run->units[unit].of_experts &&
           !plan_graph_module_at(run->graph, m)->is_block;
}

/* Units are sharded in the order in which fully_shard is called. */
void plan_fsdp2_construct(PlanRun *run) {
    PlanFsdp2 *f = run->state = g_new0(PlanFsdp2, 1);
    const PlanStrategy *strategy = run->strategy;
    uint32_t n = run->graph->parameters.len;
    f->is_of_2_4 = strategy->pytorch == PLAN_PYTORCH_2_4;
    f->is_of_2_15 = strategy->pytorch == PLAN_PYTORCH_2_15;
    f->ranks = plan_strategy_shard_ranks(strategy);
    f->tensor = strategy->tensor;
    f->copies_in = strategy->pipeline_stages > 1 ? PLAN_FSDP2_COMPUTE : PLAN_FSDP2_COPY_IN;
    f->replicas = strategy->ranks / strategy->pipeline / f->tensor / f->ranks;
    f->reduces_replicas = f->replicas > 1 || plan_strategy_is_hybrid(strategy);
    f->part_ranks = plan_strategy_part_ranks(strategy);
    f->master = plan_strategy_model_dtype(strategy);
    f->param = plan_strategy_param_dtype(strategy);
    f->reduce = plan_strategy_reduce_dtype(strategy);
    f->units = g_new0(PlanFsdp2Unit, run->n_units);
    f->parameters = g_new0(PlanFsdp2Parameter, n);
    f->post_forward_order = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    f->held = f->again = f->reducing = f->post_reduce_event = PLAN_NONE;
    plan_fsdp2_find_float8(run);
    lay_out(run, f);
    PlanConstruct construct;
    plan_construct_init(&construct, run);
    g_autofree uint32_t *order = plan_units_inner_first(run);
    for (unsigned behind = 0; behind < 2; behind++) {
        for (uint32_t i = 0; i < run->n_units; i++) {
            if (is_behind_blocks(run, order[i]) == behind) {
                make_shards(run, f, &construct, order[i]);
            }
        }
    }
    plan_construct_clear(&construct);
    for (uint32_t p = 0; p < n; p++) {
        f->parameters[p].first_shard = f->parameters[p].shard;
    }
}

/* The first forward pads the shards anew where this rank has fewer rows than the first
 * (reset_sharded_param, called by lazy initialization). */
static void pad_again(PlanRun *run, PlanFsdp2 *f, uint32_t p) {
    PlanFsdp2Parameter *mine = &f->parameters[p];
    uint32_t old = mine->shard;
    plan_run_at_unit(run, run->unit_of_parameter[p]);
    mine->shard = plan_builder_new_empty(&run->builder, plan_fsdp2_chunk(f, p), f->master,
                                         PLAN_PARAMETERS_SHARDED, PLAN_FSDP2_COMPUTE,
                                         run->owner.parameters[p].name);
    zero(run, mine->shard);
    if (mine->local) {
        plan_run_into(run, PLAN_OP_COPY, PLAN_FSDP2_COMPUTE, old, mine->shard, mine->local);
    }
    plan_builder_free(&run->builder, old);
}

void plan_fsdp2_pad_unit_again(PlanRun *run, uint32_t u) {
    PlanFsdp2 *f = run->state;
    for (uint32_t i = 0; i < run->units[u].parameters->len; i++) {
        uint32_t p = plan_run_parameter_of(run, u, i);
        if (f->parameters[p].local < plan_fsdp2_chunk(f, p)) {
            pad_again(run, f, p);
        }
    }
}

void plan_fsdp2_pad_again(PlanRun *run) {
    for (uint32_t u = 0; u < run->n_units; u++) {
        plan_fsdp2_pad_unit_again(run, u);
    }
}

void plan_fsdp2_clear(PlanRun *run) {
    PlanFsdp2 *f = run->state;
    if (f) {
        g_free(f->units);
        g_free(f->parameters);
        g_array_unref(f->post_forward_order);
        g_free(f);
    }
}
