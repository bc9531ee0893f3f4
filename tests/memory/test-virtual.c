/* memory/virtual, and the allocator's laws over a source that fails whenever it likes. */
#include "memory/virtual.h"

#include "memory/snapshot.h"

#define MIB (UINT64_C(1) << 20)

/* ---- the source alone ---- */

static void count_act(gpointer self, MemoryVirtualAct act, uint64_t bytes) {
    uint64_t *sums = self;
    sums[act] += bytes;
}

static void test_capacity(void) {
    uint64_t sums[MEMORY_VIRTUAL_UNMAP + 1] = {0};
    MemoryVirtualHooks hooks = {.acts = count_act};
    g_autoptr(MemoryVirtual) memory = memory_virtual_new(100, 60, &hooks, sums);
    const MemorySource *source = &memory_virtual_source;
    gpointer first = NULL, second = NULL, third = NULL;
    g_assert_cmpuint(source->total_bytes(memory), ==, 100);
    g_assert_true(source->segment_new(memory, 40, &first));
    g_assert_false(source->segment_new(memory, 21, &second));
    g_assert_null(second);
    g_assert_true(source->segment_new(memory, 20, &second));
    g_assert_cmpuint(memory_virtual_held(memory), ==, 60);
    source->segment_free(memory, first, 40);
    g_assert_true(source->segment_new(memory, 40, &third));
    /* Rising, and never one twice. */
    g_assert_true(first && (uintptr_t)first < (uintptr_t)second);
    g_assert_true((uintptr_t)second < (uintptr_t)third);
    g_assert_cmpuint(sums[MEMORY_VIRTUAL_SEGMENT_NEW], ==, 100);
    g_assert_cmpuint(sums[MEMORY_VIRTUAL_SEGMENT_FAILED], ==, 21);
    g_assert_cmpuint(sums[MEMORY_VIRTUAL_SEGMENT_FREE], ==, 40);
    memory_virtual_end(memory);
    source->segment_free(memory, second, 20);
    g_assert_cmpuint(sums[MEMORY_VIRTUAL_SEGMENT_FREE], ==, 40);
    g_assert_cmpuint(memory_virtual_held(memory), ==, 40);
}

static MemoryCaching *expandable_in(MemoryVirtual *memory) {
    MemoryOptions options;
    memory_options_init(&options);
    options.expandable_segments = true;
    return memory_caching_new(&options, &memory_virtual_source, memory, NULL);
}

static void test_no_limit(void) {
    g_autoptr(MemoryVirtual) memory = memory_virtual_new(UINT64_MAX, UINT64_MAX, NULL, NULL);
    g_autoptr(MemoryCaching) caching = expandable_in(memory);
    MemoryBlock *block = NULL;
    g_assert_true(memory_caching_alloc(caching, 63, UINT64_C(1) << 40, &block));
    g_assert_cmpuint(memory_virtual_held(memory), >=, UINT64_C(1) << 40);
    memory_caching_drop(caching, block);
}

/* Where pages never run out, addresses do. */
static void test_no_limit_but_addresses(void) {
    g_autoptr(MemoryVirtual) memory = memory_virtual_new(UINT64_MAX, UINT64_MAX, NULL, NULL);
    g_autoptr(MemoryCaching) caching = expandable_in(memory);
    MemoryBlock *block = NULL;
    g_assert_false(memory_caching_alloc(caching, 0, UINT64_C(1) << 60, &block));
    g_assert_null(block);
    g_assert_true(memory_caching_alloc(caching, 0, UINT64_C(1) << 40, &block));
    memory_caching_drop(caching, block);
}

static void test_not_expandable(void) {
    MemorySource source = memory_virtual_source;
    source.map = NULL;
    MemoryOptions options;
    memory_options_init(&options);
    options.expandable_segments = true;
    g_autoptr(MemoryVirtual) memory = memory_virtual_new(UINT64_MAX, UINT64_MAX, NULL, NULL);
    g_autoptr(GError) error = NULL;
    g_assert_null(memory_caching_new(&options, &source, memory, &error));
    g_assert_error(error, MEMORY_ERROR, MEMORY_ERROR_UNSUPPORTED);
}

/* ---- the allocator over a flaky source ---- */

typedef struct {
    MemoryVirtual *memory;
    GRand *random;
    guint n_failures;
    uint64_t n_recorded, n_passed;
} Flaky;

static bool gives_in(Flaky *flaky) {
    bool fails = g_rand_int_range(flaky->random, 0, 4) == 0;
    flaky->n_failures += fails;
    return !fails;
}

static uint64_t flaky_total(gpointer self) {
    return UINT64_C(4096) * MIB;
}

static bool flaky_segment_new(gpointer self, uint64_t bytes, gpointer *ret_handle) {
    Flaky *flaky = self;
    return gives_in(flaky) && memory_virtual_source.segment_new(flaky->memory, bytes, ret_handle);
}

static void flaky_segment_free(gpointer self, gpointer handle, uint64_t bytes) {
    memory_virtual_source.segment_free(((Flaky *)self)->memory, handle, bytes);
}

static bool flaky_address_new(gpointer self, uint64_t bytes, gpointer *ret_handle) {
    Flaky *flaky = self;
    return gives_in(flaky) && memory_virtual_source.address_new(flaky->memory, bytes, ret_handle);
}

static void flaky_address_free(gpointer self, gpointer handle, uint64_t bytes) {
}

static bool flaky_map(gpointer self, gpointer handle, uint64_t offset, uint64_t page_bytes,
                      uint64_t n_pages) {
    Flaky *flaky = self;
    return gives_in(flaky) &&
           memory_virtual_source.map(flaky->memory, handle, offset, page_bytes, n_pages);
}

static void flaky_unmap(gpointer self, gpointer handle, uint64_t offset, uint64_t page_bytes,
                        uint64_t n_pages) {
    memory_virtual_source.unmap(((Flaky *)self)->memory, handle, offset, page_bytes, n_pages);
}

static MemoryEvent flaky_record(gpointer self, uint32_t stream) {
    return ++((Flaky *)self)->n_recorded;
}

static bool flaky_query(gpointer self, MemoryEvent event) {
    return event <= ((Flaky *)self)->n_passed;
}

static void flaky_sync(gpointer self, MemoryEvent event) {
    Flaky *flaky = self;
    flaky->n_passed = MAX(flaky->n_passed, event);
}

static void flaky_stream_sync(gpointer self, uint32_t stream) {
}

static const MemorySource flaky_source = {
    .total_bytes = flaky_total,
    .segment_new = flaky_segment_new,
    .segment_free = flaky_segment_free,
    .address_new = flaky_address_new,
    .address_free = flaky_address_free,
    .map = flaky_map,
    .unmap = flaky_unmap,
    .event_record = flaky_record,
    .event_query = flaky_query,
    .event_sync = flaky_sync,
    .stream_sync = flaky_stream_sync,
};

/* Ranges hold all that is reserved, their blocks the rest; free neighbours do not exist. */
static void check_laws(const MemoryCaching *caching, const Flaky *flaky) {
    uint64_t sums[MEMORY_BLOCK_UNMAPPED + 1] = {0}, reserved = 0;
    g_autoptr(GArray) ranges = memory_caching_ranges(caching);
    for (guint i = 0; i < ranges->len; i++) {
        const MemoryRange *range = &g_array_index(ranges, MemoryRange, i);
        uint64_t offset = range->offset;
        bool after_free = false;
        for (const MemoryBlock *block = range->first; block; block = memory_block_next(block)) {
            bool is_free = memory_block_state(block) == MEMORY_BLOCK_FREE;
            g_assert_cmpuint(memory_block_offset(block), ==, offset);
            g_assert_cmpuint(memory_block_bytes(block), >, 0);
            g_assert_false(is_free && after_free);
            after_free = is_free;
            offset += memory_block_bytes(block);
            sums[memory_block_state(block)] += memory_block_bytes(block);
        }
        g_assert_cmpuint(offset, ==, range->offset + range->bytes);
        reserved += range->bytes;
    }
    g_assert_cmpuint(reserved, ==, memory_caching_reserved(caching));
    g_assert_cmpuint(reserved, ==, memory_virtual_held(flaky->memory));
    g_assert_cmpuint(sums[MEMORY_BLOCK_USED], ==, memory_caching_allocated(caching));
    g_assert_cmpuint(sums[MEMORY_BLOCK_USED] + sums[MEMORY_BLOCK_WAITING], ==,
                     memory_caching_active(caching));
    const MemoryStats *stats = memory_caching_stats(caching);
    const MemoryPoolStats *all = &stats->pools[MEMORY_POOL_ALL];
    g_assert_cmpuint(all->allocated_bytes.current, ==,
                     stats->pools[MEMORY_POOL_SMALL].allocated_bytes.current +
                         stats->pools[MEMORY_POOL_LARGE].allocated_bytes.current);
    g_assert_cmpuint(all->reserved_bytes.current, <=, all->reserved_bytes.allocated);
    g_assert_cmpuint(all->reserved_bytes.peak, >=, all->reserved_bytes.current);
}

#define N_LIVE 60

static void drop_one(MemoryCaching *caching, GRand *random, MemoryBlock **block) {
    for (gint n = g_rand_int_range(random, 0, 3); n > 0; n--) {
        memory_caching_mark(caching, *block, (uint32_t)g_rand_int_range(random, 0, 3));
    }
    memory_caching_drop(caching, *block);
    *block = NULL;
}

static void test_flaky(gconstpointer text) {
    g_autoptr(GRand) random = g_rand_new_with_seed(11);
    g_autoptr(MemoryVirtual) memory =
        memory_virtual_new(UINT64_MAX, UINT64_C(1200) * MIB, NULL, NULL);
    Flaky flaky = {.memory = memory, .random = random};
    g_autoptr(GError) error = NULL;
    MemoryOptions options;
    memory_options_parse(text, &options, &error);
    g_assert_no_error(error);
    MemoryCaching *caching = memory_caching_new(&options, &flaky_source, &flaky, &error);
    g_assert_no_error(error);
    MemoryBlock *live[N_LIVE] = {NULL};
    guint n_ooms = 0;
    for (guint i = 0; i < 6000; i++) {
        guint at = (guint)g_rand_int_range(random, 0, N_LIVE);
        if (live[at]) {
            drop_one(caching, random, &live[at]);
        } else {
            uint64_t bytes = (g_rand_int(random) % (60 * MIB)) >> g_rand_int_range(random, 0, 16);
            uint32_t stream = (uint32_t)g_rand_int_range(random, 0, 3);
            n_ooms += !memory_caching_alloc(caching, stream, bytes, &live[at]);
        }
        flaky.n_passed = MIN(flaky.n_passed + i % 2, flaky.n_recorded);
        if (i % 500 == 250) {
            memory_caching_empty(caching);
        }
        if (i % 10 == 0) {
            check_laws(caching, &flaky);
        }
    }
    g_assert_cmpuint(flaky.n_failures, >, 50);
    g_assert_cmpuint(n_ooms, >, 5);
    g_assert_cmpuint(memory_caching_reserved(caching), >, 0);
    /* What is still held goes back with the allocator. */
    memory_caching_free(caching);
    g_assert_cmpuint(memory_virtual_held(memory), ==, 0);
}

static void test_floor(void) {
    g_autoptr(GRand) random = g_rand_new_with_seed(2);
    g_autoptr(MemoryVirtual) memory = memory_virtual_new(UINT64_MAX, UINT64_MAX, NULL, NULL);
    g_autoptr(MemoryCaching) caching =
        memory_caching_new(NULL, &memory_virtual_source, memory, NULL);
    MemoryBlock *live[N_LIVE] = {NULL};
    for (guint i = 0; i < N_LIVE; i++) {
        g_assert_true(memory_caching_alloc(caching, i % 5, g_rand_int(random) >> 6, &live[i]));
    }
    for (guint i = 0; i < N_LIVE; i++) {
        drop_one(caching, random, &live[(i * 7) % N_LIVE]);
    }
    memory_caching_empty(caching);
    g_assert_cmpuint(memory_caching_allocated(caching), ==, 0);
    g_assert_cmpuint(memory_caching_active(caching), ==, 0);
    g_assert_cmpuint(memory_caching_reserved(caching), ==, 0);
    g_assert_cmpuint(memory_virtual_held(memory), ==, 0);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/memory/virtual/capacity", test_capacity);
    g_test_add_func("/memory/virtual/no-limit", test_no_limit);
    g_test_add_func("/memory/virtual/no-limit, but addresses", test_no_limit_but_addresses);
    g_test_add_func("/memory/virtual/without-pages-no-expandable", test_not_expandable);
    g_test_add_data_func("/memory/laws/flaky", "", test_flaky);
    g_test_add_data_func("/memory/laws/flaky-max-split", "max_split_size_mb:32", test_flaky);
    g_test_add_data_func("/memory/laws/flaky-expandable", "expandable_segments:True", test_flaky);
    g_test_add_data_func("/memory/laws/flaky-garbage",
                         "per_process_memory_fraction:0.2,garbage_collection_threshold:0.4",
                         test_flaky);
    g_test_add_func("/memory/laws/floor", test_floor);
    return g_test_run();
}
