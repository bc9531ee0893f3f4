/* trace/export/memory-viz.c - a trace as a snapshot for PyTorch's memory page (export.h). */
#include "trace/by-rank.h"
#include "trace/export/arena.h"
#include "trace/export/export.h"
#include "trace/export/pickle.h"

/* Where the one segment of a device begins. Any address below 2^53, which the page's numbers hold,
 * serves; this one shows that it is made up. */
#define SEGMENT_ADDRESS (UINT64_C(1) << 40)

typedef struct {
    uint64_t offset, bytes;
    uint32_t instruction; /* that allocated it */
    int32_t step;
    bool freed; /* but still in use by a lane */
} Block;

/* What is carried from row to row of a rank. */
typedef struct {
    const Trace *trace;
    uint32_t role;
    Pickle *pickle;
    Arena arena;
    uint64_t segment_bytes;
    GHashTable *held; /* buffer: Block */
    GQueue *pending;  /* Block, freed and not completed, oldest first */
    uint64_t pending_bytes;
} Replay;

static void set_int(Pickle *pickle, const char *key, int64_t value) {
    pickle_text(pickle, key);
    pickle_int(pickle, value);
}

static void set_text(Pickle *pickle, const char *key, const char *value) {
    pickle_text(pickle, key);
    pickle_text(pickle, value);
}

/* ---- frames: where a Python stack would stand ---- */

static void add_frame(Pickle *pickle, const char *file, int64_t line, const char *name) {
    pickle_item(pickle);
    pickle_open_dict(pickle);
    set_text(pickle, "filename", file);
    set_int(pickle, "line", line);
    set_text(pickle, "name", name);
    pickle_close_dict(pickle);
}

/* Innermost first: which instruction asked for what, then in which step, phase, unit and module. */
static void set_frames(const Replay *replay, uint32_t number, int32_t step) {
    const Trace *trace = replay->trace;
    const TraceInstruction *instruction = trace_instruction(trace, replay->role, number);
    g_autofree char *owner = trace_place_name(trace, instruction->phase, instruction->unit);
    const char *module = trace_name(trace->modules, instruction->module, "(none)");
    g_autofree char *place =
        g_strdup_printf("%s, module %s, lane %s", owner, *module != '\0' ? module : "(root)",
                        (const char *)trace->lanes->pdata[instruction->lane]);
    pickle_text(replay->pickle, "frames");
    pickle_open_list(replay->pickle);
    add_frame(replay->pickle, "instruction", number,
              trace->categories->pdata[instruction->category]);
    add_frame(replay->pickle, "step", step, place);
    pickle_close_list(replay->pickle);
}

/* ---- events ---- */

/* Opens an event; the caller may add keys and closes the dict. */
static void open_event(Replay *replay, const char *action, uint64_t offset, uint64_t bytes,
                       int64_t host_ns) {
    Pickle *pickle = replay->pickle;
    pickle_item(pickle);
    pickle_open_dict(pickle);
    set_text(pickle, "action", action);
    set_int(pickle, "addr", (int64_t)(SEGMENT_ADDRESS + offset));
    set_int(pickle, "size", (int64_t)bytes);
    set_int(pickle, "stream", 0);
    set_int(pickle, "time_us", host_ns / 1000);
}

static void add_block_event(Replay *replay, const char *action, const Block *block,
                            int64_t host_ns) {
    const TraceInstruction *instruction =
        trace_instruction(replay->trace, replay->role, block->instruction);
    const char *category = replay->trace->categories->pdata[instruction->category];
    g_auto(GStrv) parts = g_strsplit(category, "/", 2);
    open_event(replay, action, block->offset, block->bytes, host_ns);
    set_text(replay->pickle, "category", parts[0]);
    set_frames(replay, block->instruction, block->step);
    pickle_close_dict(replay->pickle);
}

static void fit_segment(Replay *replay, uint64_t reserved, int64_t host_ns) {
    uint64_t needed = MAX(reserved, arena_end(&replay->arena)), has = replay->segment_bytes;
    if (needed == has) {
        return;
    }
    open_event(replay, needed > has ? "segment_map" : "segment_unmap", MIN(needed, has),
               needed > has ? needed - has : has - needed, host_ns);
    pickle_close_dict(replay->pickle);
    replay->segment_bytes = needed;
}

/* Completes the oldest frees, as long as what waits then is at least what the row says. */
static void complete(Replay *replay, uint64_t pending_bytes, int64_t host_ns) {
    Block *oldest;
    while ((oldest = g_queue_peek_head(replay->pending)) != NULL &&
           replay->pending_bytes - oldest->bytes >= pending_bytes) {
        add_block_event(replay, "free_completed", oldest, host_ns);
        arena_remove(&replay->arena, oldest->offset);
        replay->pending_bytes -= oldest->bytes;
        g_free(g_queue_pop_head(replay->pending));
    }
}

static void allocate(Replay *replay, const TraceMemoryRow *row, uint32_t buffer) {
    Block *block = g_new0(Block, 1);
    block->bytes = (uint64_t)row->delta;
    block->instruction = row->instruction;
    block->step = row->step;
    block->offset = arena_place(&replay->arena, block->bytes, block);
    g_hash_table_insert(replay->held, GUINT_TO_POINTER(buffer), block);
    fit_segment(replay, row->reserved, row->host_ns);
    add_block_event(replay, "alloc", block, row->host_ns);
}

/* Of a free, and of an allocation whose buffer is held already: a buffer has one block. */
static void drop(Replay *replay, const TraceMemoryRow *row, uint32_t buffer) {
    Block *block = g_hash_table_lookup(replay->held, GUINT_TO_POINTER(buffer));
    if (block == NULL) {
        return; /* not held, or allocated before the recording began */
    }
    g_hash_table_steal(replay->held, GUINT_TO_POINTER(buffer));
    block->freed = true;
    add_block_event(replay, "free_requested", block, row->host_ns);
    g_queue_push_tail(replay->pending, block);
    replay->pending_bytes += block->bytes;
}

static void play_row(Replay *replay, const TraceMemoryRow *row) {
    const TraceInstruction *instruction =
        trace_instruction(replay->trace, replay->role, row->instruction);
    if (instruction->what == TRACE_FREE || row->delta > 0) {
        drop(replay, row, instruction->buffer);
    }
    complete(replay, row->active - row->allocated, row->host_ns);
    if (instruction->what == TRACE_ALLOC && row->delta > 0) {
        allocate(replay, row, instruction->buffer);
    }
    fit_segment(replay, row->reserved, row->host_ns);
}

static void add_trace_of_rank(Replay *replay, const Trace *alone) {
    Pickle *pickle = replay->pickle;
    int64_t last_ns = 0;
    pickle_item(pickle);
    pickle_open_list(pickle);
    for (guint i = 0; i < alone->memory->len; i++) {
        const TraceMemoryRow *row = trace_memory(alone, i);
        play_row(replay, row);
        last_ns = row->host_ns;
    }
    /* The page wants a category "unknown" as soon as there is any. */
    open_event(replay, "snapshot", 0, 0, last_ns);
    set_text(pickle, "category", "unknown");
    pickle_close_dict(pickle);
    pickle_close_list(pickle);
}

/* ---- what is held at the end ---- */

static void add_range(Replay *replay, uint64_t offset, uint64_t bytes, const Block *block) {
    Pickle *pickle = replay->pickle;
    if (bytes == 0) {
        return;
    }
    pickle_item(pickle);
    pickle_open_dict(pickle);
    set_int(pickle, "address", (int64_t)(SEGMENT_ADDRESS + offset));
    set_int(pickle, "size", (int64_t)bytes);
    set_int(pickle, "requested_size", (int64_t)(block != NULL ? block->bytes : 0));
    set_text(pickle, "state",
             block == NULL  ? "inactive"
             : block->freed ? "active_pending_free"
                            : "active_allocated");
    if (block != NULL) {
        set_frames(replay, block->instruction, block->step);
    }
    pickle_close_dict(pickle);
}

static void add_segment(Replay *replay, uint32_t device) {
    Pickle *pickle = replay->pickle;
    uint64_t at = 0, active = 0;
    for (guint i = 0; i < replay->arena.blocks->len; i++) {
        active += g_array_index(replay->arena.blocks, ArenaBlock, i).bytes;
    }
    pickle_item(pickle);
    pickle_open_dict(pickle);
    set_int(pickle, "device", device);
    set_int(pickle, "address", (int64_t)SEGMENT_ADDRESS);
    set_int(pickle, "stream", 0);
    set_text(pickle, "segment_type", "large");
    set_int(pickle, "total_size", (int64_t)replay->segment_bytes);
    set_int(pickle, "allocated_size", (int64_t)(active - replay->pending_bytes));
    set_int(pickle, "active_size", (int64_t)active);
    set_int(pickle, "requested_size", (int64_t)active);
    pickle_text(pickle, "is_expandable");
    pickle_bool(pickle, true);
    pickle_text(pickle, "blocks");
    pickle_open_list(pickle);
    for (guint i = 0; i < replay->arena.blocks->len; i++) {
        const ArenaBlock *placed = &g_array_index(replay->arena.blocks, ArenaBlock, i);
        add_range(replay, at, placed->offset - at, NULL);
        add_range(replay, placed->offset, placed->bytes, placed->owner);
        at = placed->offset + placed->bytes;
    }
    add_range(replay, at, replay->segment_bytes - at, NULL);
    pickle_close_list(pickle);
    pickle_close_dict(pickle);
}

/* ---- the whole ---- */

static void begin_rank(Replay *replay, const Trace *trace, uint32_t role, Pickle *pickle) {
    *replay = (Replay){.trace = trace, .role = role, .pickle = pickle};
    arena_begin(&replay->arena);
    replay->held = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    replay->pending = g_queue_new();
}

static void end_rank(Replay *replay) {
    arena_clear(&replay->arena);
    g_hash_table_unref(replay->held);
    g_queue_free_full(replay->pending, g_free);
}

GString *trace_export_memory_viz(const Trace *trace) {
    Pickle pickle;
    guint n = trace->ranks->len;
    g_autofree Replay *replays = g_new0(Replay, MAX(1, n));
    g_autoptr(TraceByRank) by_rank = trace_by_rank_new(trace);
    pickle_begin(&pickle);
    pickle_open_dict(&pickle);
    pickle_text(&pickle, "device_traces");
    pickle_open_list(&pickle);
    for (guint i = 0; i < n; i++) {
        const TraceRank *rank = &g_array_index(trace->ranks, TraceRank, i);
        begin_rank(&replays[i], trace, rank->role, &pickle);
        add_trace_of_rank(&replays[i], trace_by_rank_alone(by_rank, i));
    }
    pickle_close_list(&pickle);
    pickle_text(&pickle, "segments");
    pickle_open_list(&pickle);
    for (guint i = 0; i < n; i++) {
        if (replays[i].segment_bytes > 0) {
            add_segment(&replays[i], i);
        }
        end_rank(&replays[i]);
    }
    pickle_close_list(&pickle);
    pickle_close_dict(&pickle);
    return pickle_end(&pickle);
}
