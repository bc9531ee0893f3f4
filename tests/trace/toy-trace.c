#include "tests/trace/toy-trace.h"

enum {
    COMPUTE,
    GATHER,
    REDUCE
};
enum {
    FORWARD,
    BACKWARD,
    OPTIMIZER
};
enum {
    PARAMETERS,
    SAVED,
    GRADIENTS,
    GATHERED
};
enum {
    LINEAR,
    ADAM,
    ALL_GATHER,
    REDUCE_SCATTER
};

static void add_op(Trace *trace, uint8_t section, uint8_t lane, uint8_t phase, uint32_t unit,
                   uint32_t kind) {
    TraceInstruction instruction = {.what = TRACE_OP,
                                    .section = section,
                                    .lane = lane,
                                    .phase = phase,
                                    .kind = kind,
                                    .unit = unit,
                                    .module = unit,
                                    .category = TRACE_NONE,
                                    .buffer = TRACE_NONE,
                                    .bytes = kind == ALL_GATHER ? 1024 : 0};
    trace_add_instruction(trace, 0, &instruction);
}

static void add_memory(Trace *trace, uint8_t section, uint8_t what, uint8_t phase, uint32_t unit,
                       uint32_t category, uint64_t bytes) {
    TraceInstruction instruction = {.what = what,
                                    .section = section,
                                    .phase = phase,
                                    .kind = TRACE_NONE,
                                    .unit = unit,
                                    .module = TRACE_NONE,
                                    .category = category,
                                    .buffer = category, /* one of each is alive */
                                    .bytes = bytes};
    trace_add_instruction(trace, 0, &instruction);
}

static void fill_tables(Trace *trace) {
    trace_add_lane(trace, "compute");
    trace_add_lane(trace, "gather");
    trace_add_lane(trace, "reduce");
    trace_add_unit(trace, "embedding");
    trace_add_unit(trace, "blocks.0");
    trace_add_phase(trace, "forward");
    trace_add_phase(trace, "backward");
    trace_add_phase(trace, "optimizer");
    trace_add_category(trace, "parameters/sharded");
    trace_add_category(trace, "activations/saved");
    trace_add_category(trace, "gradients/unsharded");
    trace_add_category(trace, "communication/gather");
    trace_add_module(trace, "");
    trace_add_module(trace, "a \"quoted\\name\"");
    trace_add_kind(trace, "linear", TRACE_KIND_COMPUTE);
    trace_add_kind(trace, "adam", TRACE_KIND_COMPUTE);
    trace_add_kind(trace, "all_gather", TRACE_KIND_COLLECTIVE);
    trace_add_kind(trace, "reduce_scatter", TRACE_KIND_COLLECTIVE);
    trace_add_role(trace);
    add_memory(trace, TRACE_SECTION_CONSTRUCT, TRACE_ALLOC, FORWARD, 0, PARAMETERS, 4096);
    for (uint8_t section = TRACE_SECTION_FIRST; section < TRACE_N_SECTIONS; section++) {
        add_memory(trace, section, TRACE_ALLOC, FORWARD, 0, GATHERED, 1024);
        add_op(trace, section, GATHER, FORWARD, 0, ALL_GATHER);
        add_op(trace, section, COMPUTE, FORWARD, 0, LINEAR);
        add_op(trace, section, GATHER, FORWARD, 1, ALL_GATHER);
        add_memory(trace, section, TRACE_ALLOC, FORWARD, 1, SAVED, 2048);
        add_op(trace, section, COMPUTE, FORWARD, 1, LINEAR);
        add_memory(trace, section, TRACE_ALLOC, BACKWARD, 1, GRADIENTS, 512);
        add_op(trace, section, COMPUTE, BACKWARD, 1, LINEAR);
        add_memory(trace, section, TRACE_FREE, BACKWARD, 0, GATHERED, 1024);
        add_op(trace, section, REDUCE, BACKWARD, 1, REDUCE_SCATTER);
        add_memory(trace, section, TRACE_FREE, BACKWARD, 1, SAVED, 2048);
        add_op(trace, section, COMPUTE, OPTIMIZER, TRACE_NONE, ADAM);
        add_memory(trace, section, TRACE_FREE, OPTIMIZER, TRACE_NONE, GRADIENTS, 512);
    }
}

typedef struct {
    Trace *trace;
    const ToyOptions *options;
    uint32_t rank, instruction;
    int32_t step;
    uint64_t allocated, reserved;
    int64_t base_ns, n_rows, skew;
} Play;

static void op(Play *play, uint32_t lane, int64_t start_us, int64_t end_us) {
    TraceOpRow row = {.rank = play->rank,
                      .step = play->step,
                      .instruction = play->instruction++,
                      .lane = lane,
                      .host_issue_ns = play->base_ns + start_us * 1000 - 20000,
                      .start_ns = play->base_ns + start_us * 1000,
                      .end_ns = play->base_ns + end_us * 1000};
    trace_add_op(play->trace, &row);
}

static void memory(Play *play, uint32_t category, int64_t delta, int64_t at_us) {
    int64_t skew = play->options->wrong_from >= 0 && play->rank == 0 &&
                           play->n_rows >= play->options->wrong_from
                       ? 256
                       : 0;
    uint64_t active_extra = delta < 0 ? (uint64_t)-delta : 0;
    play->allocated = (uint64_t)((int64_t)play->allocated + delta + skew - play->skew);
    play->reserved = MAX(play->reserved, (play->allocated + 8191) / 8192 * 8192);
    TraceMemoryRow row = {.rank = play->rank,
                          .step = play->step,
                          .instruction = play->instruction++,
                          .category = category,
                          .host_ns = play->base_ns + at_us * 1000,
                          .delta = delta + skew - play->skew,
                          .allocated = play->allocated,
                          .active = play->allocated + active_extra,
                          .reserved = play->reserved};
    play->skew = skew;
    play->n_rows++;
    trace_add_memory(play->trace, &row);
}

Trace *toy_trace_rank(const ToyOptions *options, uint32_t rank) {
    Trace *trace = trace_new();
    fill_tables(trace);
    trace_set(trace, "a.free-fact", "line one\nline two");
    trace_set(trace, "digest", options->digest);
    trace_set(trace, "side", options->side);
    trace_set(trace, "title", "toy network, fsdp2 full, 2 ranks");
    trace_set(trace, "network", "toy");
    trace_set(trace, "strategy", "fsdp2 full");
    trace_set(trace, "device", "host");
    trace_set(trace, "paced", "no");
    trace_set_uint(trace, "world", options->n_ranks);
    trace_set_uint(trace, "steps", (uint64_t)options->steps);
    trace_add_rank(trace, rank, 0);

    Play play = {.trace = trace, .options = options, .rank = rank, .step = -1};
    memory(&play, PARAMETERS, 4096, -500);
    int64_t more = options->slower_us;
    for (play.step = 0; play.step < options->steps; play.step++) {
        play.instruction = 1 + 13 * (uint32_t)MIN(play.step, 2);
        play.base_ns = play.step * (1000 + more) * 1000;
        memory(&play, GATHERED, 1024, 10);
        op(&play, GATHER, 50, 150);
        op(&play, COMPUTE, 100, 300);
        op(&play, GATHER, 200, 400);
        memory(&play, SAVED, 2048, 320);
        op(&play, COMPUTE, 350, 600 + more);
        memory(&play, GRADIENTS, 512, 620 + more);
        op(&play, COMPUTE, 650 + more, 900 + more);
        if (options->leaks && play.step == options->steps - 1) {
            play.instruction++;
        } else {
            memory(&play, GATHERED, -1024, 660 + more);
        }
        op(&play, REDUCE, 850 + more, 980 + more);
        memory(&play, SAVED, -2048, 870 + more);
        op(&play, COMPUTE, 950 + more, 1000 + more);
        memory(&play, GRADIENTS, -512, 990 + more);
    }
    return trace;
}

Trace *toy_trace(const ToyOptions *options) {
    Trace *trace = toy_trace_rank(options, 0);
    for (uint32_t rank = 1; rank < options->n_ranks; rank++) {
        g_autoptr(Trace) part = toy_trace_rank(options, rank);
        g_assert_true(trace_merge(trace, part, NULL));
    }
    return trace;
}
