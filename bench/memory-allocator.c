/* What one call of the allocator costs: nanoseconds per malloc or free, over virtual segments.
 *
 * Streams of calls, made beforehand so that only the allocator is timed:
 *   GPT-175B, T5-11B   construction and steps of their plans on 512 GPUs
 *   training    steps of a sharded network: units gathered on one stream and used on another,
 *               activations kept to the backward pass, short-lived temporaries between them; blocks
 *               of several streams are marked, and their events pass a few calls later
 *   fragmented  sizes and lifetimes at random, so that thousands of free blocks of all sizes lie
 *               about
 *   expandable  the training steps with expandable segments
 * The least of several rounds is printed, since other programs can only add. */
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "bench/plans.h"
#include "memory/snapshot.h"
#include "memory/virtual.h"

#define ROUNDS 7
#define MIB    (UINT64_C(1) << 20)

enum {
    COMPUTE,
    GATHER,
    REDUCE
};

typedef struct {
    enum {
        ALLOC,
        MARK,
        DROP
    } kind;
    uint32_t id, stream;
    uint64_t bytes;
} Call;

typedef struct {
    GArray *calls;
    uint32_t n_ids;
    uint64_t seed;
} Script;

/* ---- scripts ---- */

/* splitmix64: the same numbers everywhere. */
static uint64_t next_random(Script *script) {
    uint64_t z = script->seed += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static uint64_t random_below(Script *script, uint64_t limit) {
    return next_random(script) % limit;
}

static uint32_t add_alloc(Script *script, uint32_t stream, uint64_t bytes) {
    Call call = {ALLOC, script->n_ids++, stream, bytes};
    g_array_append_val(script->calls, call);
    return call.id;
}

static void add_mark(Script *script, uint32_t id, uint32_t stream) {
    Call call = {MARK, id, stream, 0};
    g_array_append_val(script->calls, call);
}

static void add_drop(Script *script, uint32_t id) {
    Call call = {DROP, id, 0, 0};
    g_array_append_val(script->calls, call);
}

#define LAYERS           96
#define KEPT_PER_LAYER   24
#define BRIEF_PER_LAYER  12
#define TENSORS_PER_UNIT 12
#define TRAINING_STEPS   12

static uint64_t activation_bytes(uint32_t kind) {
    static const uint64_t sizes[] = {24 * MIB, 72 * MIB, 96 * MIB, 3 * MIB, 64 << 10, 24 * MIB};
    return sizes[kind % G_N_ELEMENTS(sizes)] + 512 * (kind / G_N_ELEMENTS(sizes));
}

static uint32_t gather(Script *script) {
    uint32_t unit = add_alloc(script, GATHER, 340 * MIB);
    add_mark(script, unit, COMPUTE);
    return unit;
}

static void add_brief(Script *script) {
    for (uint32_t i = 0; i < BRIEF_PER_LAYER; i++) {
        uint32_t one = add_alloc(script, COMPUTE, activation_bytes(i));
        uint32_t other = add_alloc(script, COMPUTE, 512 + random_below(script, 4) * 4096);
        add_drop(script, one);
        add_drop(script, other);
    }
}

static void add_training_step(Script *script) {
    static uint32_t kept[LAYERS][KEPT_PER_LAYER];
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        uint32_t unit = gather(script);
        for (uint32_t i = 0; i < KEPT_PER_LAYER; i++) {
            kept[layer][i] = add_alloc(script, COMPUTE, activation_bytes(i));
        }
        add_brief(script);
        add_drop(script, unit);
    }
    for (uint32_t layer = LAYERS; layer-- > 0;) {
        uint32_t unit = gather(script);
        uint32_t gradients[TENSORS_PER_UNIT];
        for (uint32_t i = 0; i < TENSORS_PER_UNIT; i++) {
            gradients[i] = add_alloc(script, COMPUTE, activation_bytes(i + 1));
        }
        add_brief(script);
        for (uint32_t i = KEPT_PER_LAYER; i-- > 0;) {
            add_drop(script, kept[layer][i]);
        }
        uint32_t flat = add_alloc(script, COMPUTE, 340 * MIB);
        for (uint32_t i = 0; i < TENSORS_PER_UNIT; i++) {
            add_drop(script, gradients[i]);
        }
        uint32_t shard = add_alloc(script, REDUCE, 43 * MIB);
        add_mark(script, flat, REDUCE);
        add_drop(script, flat);
        add_drop(script, unit);
        add_drop(script, shard);
    }
}

static Script *training_script(void) {
    Script *script = g_new0(Script, 1);
    script->calls = g_array_new(FALSE, FALSE, sizeof(Call));
    for (uint32_t step = 0; step < TRAINING_STEPS; step++) {
        add_training_step(script);
    }
    return script;
}

#define FRAGMENTED_LIVE  8000
#define FRAGMENTED_CALLS 100000

static Script *fragmented_script(void) {
    Script *script = g_new0(Script, 1);
    script->calls = g_array_new(FALSE, FALSE, sizeof(Call));
    g_autofree uint32_t *live = g_new(uint32_t, FRAGMENTED_LIVE);
    for (uint32_t i = 0; i < FRAGMENTED_LIVE; i++) {
        live[i] = add_alloc(script, COMPUTE, 1 + random_below(script, 40 * MIB));
    }
    while (script->calls->len < FRAGMENTED_CALLS) {
        uint64_t at = random_below(script, FRAGMENTED_LIVE);
        add_drop(script, live[at]);
        live[at] = add_alloc(script, COMPUTE, 1 + random_below(script, 40 * MIB));
    }
    for (uint32_t i = 0; i < FRAGMENTED_LIVE; i++) {
        add_drop(script, live[i]);
    }
    return script;
}

static void add_section(Script *script, const PlanRole *role, PlanSection section) {
    for (uint32_t i = 0; i < role->n_instrs[section]; i++) {
        const PlanInstr *instr = &role->sections[section][i];
        Call call = {ALLOC, instr->arg, instr->lane, 0};
        if (instr->kind == PLAN_ALLOC) {
            call.bytes = role->buffers[instr->arg].bytes;
        } else if (instr->kind == PLAN_MARK) {
            call.kind = MARK;
        } else if (instr->kind == PLAN_FREE) {
            call.kind = DROP;
        } else {
            continue;
        }
        g_array_append_val(script->calls, call);
    }
}

/* Ids are the plan's buffers. */
static Script *plan_script(const char *network, const char *strategy) {
    enum {
        STEADY_STEPS = 4
    };
    Script *script = g_new0(Script, 1);
    g_autoptr(Plan) plan = bench_plan(network, strategy);
    const PlanRole *role = &plan->roles[0];
    script->calls = g_array_new(FALSE, FALSE, sizeof(Call));
    script->n_ids = role->n_buffers;
    for (PlanSection section = 0; section < PLAN_SECTION_STEADY; section++) {
        add_section(script, role, section);
    }
    for (unsigned step = 0; step < STEADY_STEPS; step++) {
        add_section(script, role, PLAN_SECTION_STEADY);
    }
    return script;
}

static void script_free(Script *script) {
    g_array_unref(script->calls);
    g_free(script);
}

/* ---- playing ---- */

/* An event passes once so many others have been recorded after it. */
#define EVENT_LAG 3

static MemoryEvent event_record(gpointer self, uint32_t stream) {
    return ++*(uint64_t *)self;
}

static bool event_query(gpointer self, MemoryEvent event) {
    return event + EVENT_LAG <= *(uint64_t *)self;
}

static void event_sync(gpointer self, MemoryEvent event) {
}

static void stream_sync(gpointer self, uint32_t stream) {
}

static const MemoryVirtualHooks hooks = {event_record, event_query, event_sync, stream_sync, NULL};

static guint count_free(const MemoryCaching *caching) {
    guint n = 0;
    g_autoptr(GArray) ranges = memory_caching_ranges(caching);
    for (guint i = 0; i < ranges->len; i++) {
        const MemoryBlock *block = g_array_index(ranges, MemoryRange, i).first;
        for (; block; block = memory_block_next(block)) {
            n += memory_block_state(block) == MEMORY_BLOCK_FREE;
        }
    }
    return n;
}

/* Nanoseconds for all of the calls. */
static double play(const Script *script, const char *options_text, guint *ret_n_free,
                   uint64_t *ret_n_segments) {
    MemoryOptions options;
    uint64_t clock = 0;
    if (!memory_options_parse(options_text, &options, NULL)) {
        g_error("bad options: %s", options_text);
    }
    g_autoptr(MemoryVirtual) memory = memory_virtual_new(UINT64_MAX, UINT64_MAX, &hooks, &clock);
    g_autoptr(MemoryCaching) caching =
        memory_caching_new(&options, &memory_virtual_source, memory, NULL);
    g_autofree MemoryBlock **blocks = g_new0(MemoryBlock *, script->n_ids);
    const Call *calls = (const Call *)(const void *)script->calls->data;
    double spent = 0;
    /* Half-way the free blocks are counted, outside of what is timed. */
    for (guint from = 0, half = script->calls->len / 2; from < script->calls->len;) {
        guint to = from < half ? half : script->calls->len;
        double before = bench_cpu_ns();
        for (guint i = from; i < to; i++) {
            const Call *call = &calls[i];
            switch (call->kind) {
            case ALLOC:
                if (!memory_caching_alloc(caching, call->stream, call->bytes, &blocks[call->id])) {
                    g_error("out of memory");
                }
                break;
            case MARK:
                memory_caching_mark(caching, blocks[call->id], call->stream);
                break;
            case DROP:
                memory_caching_drop(caching, blocks[call->id]);
                break;
            }
        }
        spent += bench_cpu_ns() - before;
        if (to == half) {
            *ret_n_free = count_free(caching);
        }
        from = to;
    }
    *ret_n_segments = memory_caching_stats(caching)->n_device_allocs;
    return spent;
}

static void measure(const char *name, const Script *script, const char *options_text) {
    guint n_calls = 0, n_free = 0;
    uint64_t n_segments = 0;
    double least = 0;
    for (guint i = 0; i < script->calls->len; i++) {
        n_calls += g_array_index(script->calls, Call, i).kind != MARK;
    }
    for (int round = 0; round < ROUNDS; round++) {
        double spent = play(script, options_text, &n_free, &n_segments);
        least = round == 0 || spent < least ? spent : least;
    }
    printf("%-16s %6.1f ns a call   %7u calls  %6" G_GUINT64_FORMAT
           " segments or mappings  %5u blocks free half-way\n",
           name, least / n_calls, n_calls, n_segments, n_free);
}

static const struct {
    const char *name, *network, *strategy;
} plans[] = {
    {"GPT-175B, FSDP1", "gpt-175b", "ranks=512 flavour=fsdp1 param_dtype=bf16 checkpointing=full"},
    {"GPT-175B, FSDP2", "gpt-175b",
     "ranks=512 param_dtype=bf16 reduce_dtype=fp32 checkpointing=full"},
    {"T5-11B, FSDP1", "t5-11b",
     "ranks=512 flavour=fsdp1 micro_batch=8 param_dtype=bf16 checkpointing=full"},
    {"T5-11B, FSDP2", "t5-11b", "ranks=512 micro_batch=8 param_dtype=bf16 checkpointing=full"},
};

int main(void) {
    for (unsigned i = 0; i < G_N_ELEMENTS(plans); i++) {
        Script *script = plan_script(plans[i].network, plans[i].strategy);
        measure(plans[i].name, script, "");
        script_free(script);
    }
    Script *training = training_script(), *fragmented = fragmented_script();
    measure("training", training, "");
    measure("fragmented", fragmented, "");
    measure("expandable", training, "expandable_segments:True");
    script_free(training);
    script_free(fragmented);
    return 0;
}
