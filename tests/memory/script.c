#include "tests/memory/script.h"

#include "memory/snapshot.h"
#include "tests/memory/pretend-device.h"

#define U64 "%" G_GUINT64_FORMAT

typedef struct {
    PretendDevice *device;
    MemoryCaching *caching;
    GHashTable *held;    /* id -> block, NULL for no bytes */
    GHashTable *waiting; /* block -> id */
    GString *output;
} Play;

/* What is wrong with a line, and what it says; of that no more than fits a line of its own. */
static bool complain(GError **error, guint line, const char *what, const char *text) {
    g_autofree char *start = g_strndup(text, 60), *shown = g_strescape(start, "\"");
    g_set_error(error, MEMORY_ERROR, MEMORY_ERROR_OPTION, "line %u: %s, not \"%s\"", line, what,
                shown);
    return false;
}

/* ---- settings ---- */

typedef struct {
    uint64_t total_bytes, budget_bytes;
    bool budget_said, fraction_said, free_synchronizes;
    double fraction;
    MemoryOptions options;
} Settings;

static bool read_whole(const char *text, uint64_t *ret_number, guint line, GError **error) {
    return g_ascii_string_to_unsigned(text, 10, 0, UINT64_MAX, ret_number, NULL) ||
           complain(error, line, "a number is whole and from 0 to 2^64 - 1", text);
}

static bool read_fraction(const char *text, Settings *settings, guint line, GError **error) {
    char *end = NULL;
    settings->fraction_said = true;
    settings->fraction = g_ascii_strtod(text, &end);
    return (end != text && *end == '\0' && settings->fraction >= 0 && settings->fraction <= 1) ||
           complain(error, line, "a fraction is a number from 0 to 1", text);
}

static bool read_conf(const char *text, Settings *settings, guint line, GError **error) {
    if (!memory_options_parse(text, &settings->options, error)) {
        g_prefix_error(error, "line %u: ", line);
        return false;
    }
    return true;
}

static bool read_setting(Settings *settings, char **words, guint line, GError **error) {
    const char *name = words[1], *value = name ? words[2] : NULL;
    uint64_t number = 0;
    if (!value || words[3]) {
        g_autofree char *text = g_strjoinv(" ", words);
        return complain(error, line, "a setting is \"set NAME VALUE\", each one word", text);
    }
    if (g_str_equal(name, "conf")) {
        return read_conf(value, settings, line, error);
    }
    if (g_str_equal(name, "fraction")) {
        return read_fraction(value, settings, line, error);
    }
    if (g_str_equal(name, "memory")) {
        return read_whole(value, &settings->total_bytes, line, error);
    }
    if (g_str_equal(name, "budget")) {
        settings->budget_said = true;
        return read_whole(value, &settings->budget_bytes, line, error);
    }
    if (g_str_equal(name, "free_synchronizes")) {
        bool is_read = read_whole(value, &number, line, error);
        settings->free_synchronizes = number != 0;
        return is_read;
    }
    return complain(error, line, "a setting is memory, budget, conf, fraction or free_synchronizes",
                    name);
}

/* ---- commands ---- */

static const MemoryStats *stats_of(const Play *play) {
    return memory_caching_stats(play->caching);
}

/* What happened, and what came of it. */
static void conclude(Play *play, const char *outcome) {
    pretend_device_take_report(play->device, play->output);
    g_string_append_printf(play->output, "= %s | " U64 " " U64 " " U64 "\n", outcome,
                           memory_caching_allocated(play->caching),
                           memory_caching_active(play->caching),
                           memory_caching_reserved(play->caching));
}

static void block_done(gpointer self, MemoryBlock *block) {
    Play *play = self;
    gpointer id = NULL;
    g_assert(g_hash_table_steal_extended(play->waiting, block, NULL, &id));
    pretend_device_note_done(play->device, GPOINTER_TO_SIZE(id));
}

static void play_malloc(Play *play, uint64_t id, uint64_t bytes, uint64_t stream) {
    MemoryBlock *block = NULL;
    if (!memory_caching_alloc(play->caching, (uint32_t)stream, bytes, &block)) {
        conclude(play, "OOM");
        return;
    }
    g_hash_table_insert(play->held, GSIZE_TO_POINTER(id), block);
    if (!block) {
        conclude(play, "null");
        return;
    }
    g_autofree char *place = g_strdup_printf("%u " U64 " " U64, memory_block_segment(block),
                                             memory_block_offset(block), memory_block_bytes(block));
    conclude(play, place);
}

static void play_free(Play *play, uint64_t id) {
    gpointer block = NULL;
    if (!g_hash_table_steal_extended(play->held, GSIZE_TO_POINTER(id), NULL, &block)) {
        conclude(play, "nothing");
        return;
    }
    if (memory_caching_drop(play->caching, block)) {
        conclude(play, "freed");
        return;
    }
    g_hash_table_insert(play->waiting, block, GSIZE_TO_POINTER(id));
    conclude(play, "waiting");
}

static void play_record(Play *play, uint64_t id, uint64_t stream) {
    gpointer block = NULL;
    if (!g_hash_table_lookup_extended(play->held, GSIZE_TO_POINTER(id), NULL, &block)) {
        conclude(play, "nothing");
        return;
    }
    memory_caching_mark(play->caching, block, (uint32_t)stream);
    conclude(play, "recorded");
}

static void play_complete(Play *play, uint64_t stream, uint64_t oldest) {
    uint64_t n = pretend_device_complete(play->device, (uint32_t)stream, oldest);
    g_autofree char *outcome = g_strdup_printf("completed " U64, n);
    conclude(play, outcome);
}

static void play_stats(Play *play) {
    const MemoryPoolStats *all = &stats_of(play)->pools[MEMORY_POOL_ALL];
    const struct {
        const char *name;
        const MemoryStat *stat;
    } pairs[] = {
        {"allocated", &all->allocated_bytes},
        {"active", &all->active_bytes},
        {"reserved", &all->reserved_bytes},
        {"requested", &all->requested_bytes},
    };
    pretend_device_take_report(play->device, play->output);
    g_string_append_printf(play->output, "  inactive_split_peak " U64 "\n= stats",
                           all->inactive_split_bytes.peak);
    for (guint i = 0; i < G_N_ELEMENTS(pairs); i++) {
        g_string_append_printf(play->output, " %s " U64 " " U64, pairs[i].name,
                               pairs[i].stat->current, pairs[i].stat->peak);
    }
    const MemoryStats *stats = stats_of(play);
    g_string_append_printf(
        play->output,
        " inactive_split " U64 " segments " U64 " " U64 " retries " U64 " ooms " U64
        " device_alloc " U64 " device_free " U64 " sync_all " U64 "\n",
        all->inactive_split_bytes.current, all->segments.current, all->segments.peak,
        stats->n_alloc_retries, stats->n_ooms, stats->n_device_allocs, stats->n_device_frees,
        stats->n_sync_all_streams);
}

static const char *state_name(MemoryBlockState state) {
    switch (state) {
    case MEMORY_BLOCK_USED:
        return "used";
    case MEMORY_BLOCK_WAITING:
        return "waiting";
    case MEMORY_BLOCK_FREE:
        return "free";
    case MEMORY_BLOCK_UNMAPPED:
        break;
    }
    g_assert_not_reached();
}

static void play_blocks(Play *play) {
    g_autoptr(GArray) ranges = memory_caching_ranges(play->caching);
    for (guint i = 0; i < ranges->len; i++) {
        const MemoryRange *range = &g_array_index(ranges, MemoryRange, i);
        g_string_append_printf(play->output,
                               "  segment %u " U64 " " U64 " %s stream %u :", range->segment,
                               range->offset, range->bytes,
                               range->pool == MEMORY_POOL_SMALL ? "small" : "large", range->stream);
        for (const MemoryBlock *block = range->first; block; block = memory_block_next(block)) {
            g_string_append_printf(play->output, " %s " U64, state_name(memory_block_state(block)),
                                   memory_block_bytes(block));
        }
        g_string_append_c(play->output, '\n');
    }
    g_string_append_printf(play->output, "= %u\n", ranges->len);
}

static void play_sync(Play *play) {
    pretend_device_sync(play->device);
    conclude(play, "synchronized");
}

static void play_empty_cache(Play *play) {
    memory_caching_empty(play->caching);
    conclude(play, "emptied");
}

static void play_reset_peak(Play *play) {
    memory_caching_reset_peaks(play->caching);
    conclude(play, "reset");
}

/* Commands, with how many numbers stand behind each, at least and at most. */
typedef enum {
    COMMAND_MALLOC,
    COMMAND_FREE,
    COMMAND_RECORD,
    COMMAND_COMPLETE,
    COMMAND_SYNC,
    COMMAND_EMPTY_CACHE,
    COMMAND_RESET_PEAK,
    COMMAND_STATS,
    COMMAND_BLOCKS,
    N_COMMANDS
} CommandKind;

#define NO_STREAM UINT_MAX

static const struct {
    const char *name, *form;
    guint least, most;
    guint stream; /* which number is one */
} commands[N_COMMANDS] = {
    [COMMAND_MALLOC] = {"malloc", "it is \"malloc ID BYTES STREAM\"", 3, 3, 2},
    [COMMAND_FREE] = {"free", "it is \"free ID\"", 1, 1, NO_STREAM},
    [COMMAND_RECORD] = {"record", "it is \"record ID STREAM\"", 2, 2, 1},
    [COMMAND_COMPLETE] = {"complete", "it is \"complete STREAM\" or \"complete STREAM K\"", 1, 2,
                          0},
    [COMMAND_SYNC] = {"sync", "sync stands alone", 0, 0, NO_STREAM},
    [COMMAND_EMPTY_CACHE] = {"empty_cache", "empty_cache stands alone", 0, 0, NO_STREAM},
    [COMMAND_RESET_PEAK] = {"reset_peak", "reset_peak stands alone", 0, 0, NO_STREAM},
    [COMMAND_STATS] = {"stats", "stats stands alone", 0, 0, NO_STREAM},
    [COMMAND_BLOCKS] = {"blocks", "blocks stands alone", 0, 0, NO_STREAM},
};

static CommandKind command_of(const char *word) {
    guint kind = 0;
    while (kind < N_COMMANDS && !g_str_equal(word, commands[kind].name)) {
        kind++;
    }
    return (CommandKind)kind;
}

static bool read_numbers(char **words, CommandKind kind, uint64_t *ret_numbers, guint line,
                         GError **error) {
    guint n = g_strv_length(words) - 1;
    if (n < commands[kind].least || n > commands[kind].most) {
        g_autofree char *text = g_strjoinv(" ", words);
        return complain(error, line, commands[kind].form, text);
    }
    for (guint i = 0; i < n; i++) {
        if (!read_whole(words[i + 1], &ret_numbers[i], line, error)) {
            return false;
        }
    }
    guint at = commands[kind].stream;
    return at == NO_STREAM || ret_numbers[at] < MEMORY_N_STREAMS ||
           complain(error, line, "streams are 0 to 63", words[at + 1]);
}

static void play_command(Play *play, CommandKind kind, const uint64_t *n) {
    switch (kind) {
    case COMMAND_MALLOC:
        play_malloc(play, n[0], n[1], n[2]);
        return;
    case COMMAND_FREE:
        play_free(play, n[0]);
        return;
    case COMMAND_RECORD:
        play_record(play, n[0], n[1]);
        return;
    case COMMAND_COMPLETE:
        play_complete(play, n[0], n[1]);
        return;
    case COMMAND_SYNC:
        play_sync(play);
        return;
    case COMMAND_EMPTY_CACHE:
        play_empty_cache(play);
        return;
    case COMMAND_RESET_PEAK:
        play_reset_peak(play);
        return;
    case COMMAND_STATS:
        play_stats(play);
        return;
    case COMMAND_BLOCKS:
        play_blocks(play);
        return;
    case N_COMMANDS:
        break;
    }
    g_assert_not_reached();
}

static bool play_line(Play *play, char **words, guint line, GError **error) {
    CommandKind kind = command_of(words[0]);
    if (kind == N_COMMANDS) {
        return complain(error, line,
                        "a line begins with set, malloc, free, record, complete, sync, "
                        "empty_cache, reset_peak, stats, blocks or #",
                        words[0]);
    }
    uint64_t n[3] = {0, UINT64_MAX, 0};
    if (!read_numbers(words, kind, n, line, error)) {
        return false;
    }
    if (kind == COMMAND_MALLOC && g_hash_table_contains(play->held, GSIZE_TO_POINTER(n[0]))) {
        return complain(error, line, "malloc wants an id that holds nothing", words[1]);
    }
    play_command(play, kind, n);
    return true;
}

/* ---- a whole script ---- */

/* Up to a remark. */
static GStrv words_of(const char *line) {
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    g_auto(GStrv) parts = g_strsplit_set(line, " \t\r", -1);
    for (guint i = 0; parts[i] && *parts[i] != '#'; i++) {
        if (*parts[i]) {
            g_strv_builder_add(builder, parts[i]);
        }
    }
    return g_strv_builder_end(builder);
}

static bool is_empty(char **words) {
    return !words[0];
}

static bool play_lines(Play *play, char **lines, GError **error) {
    for (guint i = 0; lines[i]; i++) {
        g_auto(GStrv) words = words_of(lines[i]);
        if (is_empty(words) || g_str_equal(words[0], "set")) {
            continue;
        }
        g_string_append_printf(play->output, "> %s\n", lines[i]);
        if (!play_line(play, words, i + 1, error)) {
            return false;
        }
    }
    return true;
}

static bool read_settings(char **lines, Settings *settings, GError **error) {
    for (guint i = 0; lines[i]; i++) {
        g_auto(GStrv) words = words_of(lines[i]);
        if (!is_empty(words) && g_str_equal(words[0], "set") &&
            !read_setting(settings, words, i + 1, error)) {
            return false;
        }
    }
    if (settings->fraction_said) {
        settings->options.memory_fraction = settings->fraction;
    }
    if (!settings->budget_said) {
        settings->budget_bytes = settings->total_bytes;
    }
    return true;
}

char *script_play(const char *text, GError **error) {
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    Settings settings = {.total_bytes = UINT64_C(80) << 30};
    memory_options_init(&settings.options);
    if (!read_settings(lines, &settings, error)) {
        return NULL;
    }
    g_autoptr(PretendDevice) device =
        pretend_device_new(settings.total_bytes, settings.budget_bytes);
    if (settings.free_synchronizes) {
        pretend_device_set_free_synchronizes(device);
    }
    g_autoptr(MemoryCaching) caching =
        memory_caching_new(&settings.options, &pretend_device_source, device, error);
    if (!caching) {
        return NULL;
    }
    g_autoptr(GHashTable) held = g_hash_table_new(NULL, NULL);
    g_autoptr(GHashTable) waiting = g_hash_table_new(NULL, NULL);
    Play play = {device, caching, held, waiting, g_string_new(NULL)};
    memory_caching_watch(caching, block_done, &play);
    bool good = play_lines(&play, lines, error);
    return g_string_free(play.output, !good);
}
