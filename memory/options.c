/* The text of options is taken apart in two steps, as PyTorch takes it: first into words and the
 * signs , : [ ], then key by key. Keys may come in any order, so values are held against each
 * other only at the end. Numbers must be whole words here: PyTorch reads "64abc" as 64. */
#include "memory/options.h"

#include <math.h>
#include <string.h>

#include "memory/rounding.h"

#define MIB (UINT64_C(1) << 20)

G_DEFINE_QUARK(foreshard_memory_error, memory_error)

/* Named keys of roundup_power2_divisions are sizes in MiB up to this one: 2^15. */
#define LAST_ROUNDUP (MEMORY_N_ROUNDUPS - 1)

void memory_options_init(MemoryOptions *options) {
    *options = (MemoryOptions){
        .max_split_bytes = UINT64_MAX,
        .max_non_split_rounding_bytes = 20 * MIB,
        .large_segment_bytes = 20 * MIB,
        .memory_fraction = 1.0,
        .throw_fraction = 1.0,
    };
}

typedef struct {
    GPtrArray *words;
    guint at;           /* the word to read next */
    const char *key;    /* whose value is being read */
    MemoryOptions said; /* what the text has said up to here */
    bool
        rounding_said; /* max_non_split_rounding_mb occurs; else it follows large_segment_size_mb */
} Parser;

static bool is_sign(char c) {
    return c == ',' || c == ':' || c == '[' || c == ']';
}

static GPtrArray *words_of(const char *text) {
    GPtrArray *words = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GString) word = g_string_new(NULL);
    for (const char *c = text;; c++) {
        if ((*c == '\0' || is_sign(*c)) && word->len > 0) {
            g_ptr_array_add(words, g_strdup(word->str));
            g_string_truncate(word, 0);
        }
        if (*c == '\0') {
            return words;
        }
        if (is_sign(*c)) {
            g_ptr_array_add(words, g_strndup(c, 1));
        } else if (!g_ascii_isspace(*c)) {
            g_string_append_c(word, *c);
        }
    }
}

static const char *peek(const Parser *parser) {
    return parser->at < parser->words->len ? g_ptr_array_index(parser->words, parser->at) : "";
}

static bool complain(const Parser *parser, GError **error, const char *wanted) {
    const char *found = *peek(parser) ? peek(parser) : "the end";
    g_set_error(error, MEMORY_ERROR, MEMORY_ERROR_OPTION,
                "allocator option %s: found \"%s\" where %s should stand", parser->key, found,
                wanted);
    return false;
}

static bool take_sign(Parser *parser, const char *sign, GError **error) {
    if (!g_str_equal(peek(parser), sign)) {
        g_autofree char *wanted = g_strdup_printf("\"%s\"", sign);
        return complain(parser, error, wanted);
    }
    parser->at++;
    return true;
}

static bool take_number(Parser *parser, uint64_t *ret_number, GError **error) {
    if (!g_ascii_string_to_unsigned(peek(parser), 10, 0, UINT64_MAX, ret_number, NULL)) {
        return complain(parser, error, "a whole number");
    }
    parser->at++;
    return true;
}

/* More than the address space has is as good as all of it. */
static bool take_mib(Parser *parser, uint64_t *ret_bytes, GError **error) {
    uint64_t number = 0;
    if (!take_number(parser, &number, error)) {
        return false;
    }
    *ret_bytes = MIN(number, UINT64_MAX / MIB) * MIB;
    return true;
}

static bool take_real(Parser *parser, double *ret_number, GError **error) {
    const char *word = peek(parser);
    char *end = NULL;
    double number = g_ascii_strtod(word, &end);
    if (*word == '\0' || *end != '\0' || !isfinite(number)) {
        return complain(parser, error, "a number");
    }
    parser->at++;
    *ret_number = number;
    return true;
}

static bool take_truth(Parser *parser, bool *ret_truth, GError **error) {
    bool truth = g_str_equal(peek(parser), "True");
    if (!truth && !g_str_equal(peek(parser), "False")) {
        return complain(parser, error, "True or False");
    }
    parser->at++;
    *ret_truth = truth;
    return true;
}

static bool is_power_of_2(uint64_t number) {
    return number != 0 && (number & (number - 1)) == 0;
}

static bool take_divisions(Parser *parser, bool zero_is_fine, uint32_t *ret_divisions,
                           GError **error) {
    uint64_t divisions = 0;
    if (!take_number(parser, &divisions, error)) {
        return false;
    }
    if (!(is_power_of_2(divisions) || (zero_is_fine && divisions == 0)) || divisions > UINT32_MAX) {
        g_set_error(error, MEMORY_ERROR, MEMORY_ERROR_OPTION,
                    "allocator option %s: %" G_GUINT64_FORMAT
                    " divisions; they are a power of two%s",
                    parser->key, divisions, zero_is_fine ? ", or 0 for none" : "");
        return false;
    }
    *ret_divisions = (uint32_t)divisions;
    return true;
}

static void fill(Parser *parser, uint32_t from, uint32_t to, uint32_t divisions) {
    for (uint32_t i = from; i < to; i++) {
        parser->said.roundup_divisions[i] = divisions;
    }
}

/* One "SIZE:DIVISIONS" or ">:DIVISIONS". The first named size also stands for all smaller ones; ">"
 * for all above the last named one. Sizes between two named ones keep what they had. */
static bool take_interval(Parser *parser, bool *first, uint32_t *last, GError **error) {
    bool rest = g_str_equal(peek(parser), ">");
    uint64_t size = 0;
    if (rest) {
        parser->at++;
    } else if (!take_number(parser, &size, error)) {
        return false;
    }
    if (!rest && !is_power_of_2(size)) {
        g_set_error(error, MEMORY_ERROR, MEMORY_ERROR_OPTION,
                    "allocator option %s: interval %" G_GUINT64_FORMAT
                    "; it is a power of two, in MiB, or \">\"",
                    parser->key, size);
        return false;
    }
    uint32_t divisions = 0;
    if (!take_sign(parser, ":", error) || !take_divisions(parser, true, &divisions, error)) {
        return false;
    }
    if (rest) {
        fill(parser, *last + 1, MEMORY_N_ROUNDUPS, divisions);
        return true;
    }
    uint32_t interval = MIN((uint32_t)g_bit_storage(size) - 1, LAST_ROUNDUP);
    fill(parser, *first ? 0 : interval, interval + 1, divisions);
    *first = false;
    *last = interval;
    return true;
}

static bool take_roundup(Parser *parser, GError **error) {
    if (!g_str_equal(peek(parser), "[")) {
        uint32_t divisions = 0;
        if (!take_divisions(parser, false, &divisions, error)) {
            return false;
        }
        fill(parser, 0, MEMORY_N_ROUNDUPS, divisions);
        return true;
    }
    parser->at++;
    bool first = true;
    uint32_t last = 0;
    while (!g_str_equal(peek(parser), "]")) {
        if (!take_interval(parser, &first, &last, error)) {
            return false;
        }
        if (g_str_equal(peek(parser), ",")) {
            parser->at++;
        } else if (!g_str_equal(peek(parser), "]")) {
            return complain(parser, error, "\",\" or \"]\"");
        }
    }
    parser->at++;
    return true;
}

static bool take_backend(Parser *parser, GError **error) {
    if (g_str_equal(peek(parser), "cudaMallocAsync")) {
        g_set_error(
            error, MEMORY_ERROR, MEMORY_ERROR_UNSUPPORTED,
            "allocator option backend:cudaMallocAsync: the driver's own pool is not modelled; "
            "leave it out or say backend:native");
        return false;
    }
    if (!g_str_equal(peek(parser), "native")) {
        return complain(parser, error, "native");
    }
    parser->at++;
    return true;
}

/* Whether the key changes nothing of what is allocated where on the device. */
static bool is_elsewhere(const char *key) {
    static const char *const keys[] = {
        "pinned_use_cuda_host_register",
        "pinned_use_background_threads",
        "pinned_num_register_threads",
        "pinned_reserve_segment_size_mb",
        "pinned_max_round_threshold_mb",
        "pinned_max_cached_size_mb",
        "pinned_free_catch_all",
        "release_lock_on_cudamalloc",
        "graph_capture_record_stream_reuse",
        NULL,
    };
    return g_strv_contains(keys, key);
}

/* A share of memory: above 0 and below 1, or, with_ends, from 0 to 1. */
static bool take_share(Parser *parser, bool with_ends, double *ret_share, GError **error) {
    if (!take_real(parser, ret_share, error)) {
        return false;
    }
    double share = *ret_share;
    if (with_ends ? share >= 0 && share <= 1 : share > 0 && share < 1) {
        return true;
    }
    g_set_error(error, MEMORY_ERROR, MEMORY_ERROR_OPTION, "allocator option %s: %g; it lies %s",
                parser->key, share, with_ends ? "from 0 to 1" : "above 0 and below 1");
    return false;
}

static bool take_value(Parser *parser, GError **error) {
    MemoryOptions *said = &parser->said;
    const char *key = parser->key;
    if (g_str_equal(key, "max_split_size_mb")) {
        return take_mib(parser, &said->max_split_bytes, error);
    }
    if (g_str_equal(key, "max_non_split_rounding_mb")) {
        parser->rounding_said = true;
        return take_mib(parser, &said->max_non_split_rounding_bytes, error);
    }
    if (g_str_equal(key, "large_segment_size_mb")) {
        return take_mib(parser, &said->large_segment_bytes, error);
    }
    if (g_str_equal(key, "roundup_power2_divisions")) {
        return take_roundup(parser, error);
    }
    if (g_str_equal(key, "garbage_collection_threshold")) {
        return take_share(parser, false, &said->garbage_collection_threshold, error);
    }
    if (g_str_equal(key, "per_process_memory_fraction")) {
        bool taken = take_share(parser, true, &said->memory_fraction, error);
        said->throw_fraction = said->memory_fraction;
        return taken;
    }
    if (g_str_equal(key, "expandable_segments")) {
        return take_truth(parser, &said->expandable_segments, error);
    }
    if (g_str_equal(key, "throw_on_cudamalloc_oom")) {
        return take_truth(parser, &said->throw_on_cudamalloc_oom, error);
    }
    if (g_str_equal(key, "backend")) {
        return take_backend(parser, error);
    }
    if (is_elsewhere(key)) {
        if (*peek(parser) == '\0' || is_sign(*peek(parser))) {
            return complain(parser, error, "a value");
        }
        parser->at++;
        return true;
    }
    g_set_error(
        error, MEMORY_ERROR, MEMORY_ERROR_OPTION,
        "allocator option \"%s\" does not exist; the text is that of PYTORCH_ALLOC_CONF, as in "
        "max_split_size_mb:128,expandable_segments:True",
        key);
    return false;
}

static bool at_least(const char *key, uint64_t bytes, uint64_t least, GError **error) {
    if (bytes < least) {
        g_set_error(error, MEMORY_ERROR, MEMORY_ERROR_OPTION,
                    "allocator option %s: %" G_GUINT64_FORMAT "; it is at least %" G_GUINT64_FORMAT
                    ", the large segments' size",
                    key, bytes / MIB, least / MIB);
        return false;
    }
    return true;
}

static bool check_together(Parser *parser, GError **error) {
    MemoryOptions *said = &parser->said;
    uint64_t large = said->large_segment_bytes;
    if (large <= 10 * MIB) {
        g_set_error(error, MEMORY_ERROR, MEMORY_ERROR_OPTION,
                    "allocator option large_segment_size_mb: %" G_GUINT64_FORMAT
                    "; it is more than 10, since requests up to 10 MiB share such segments",
                    large / MIB);
        return false;
    }
    if (large >= MEMORY_REQUEST_BEYOND) {
        g_set_error(error, MEMORY_ERROR, MEMORY_ERROR_OPTION,
                    "allocator option large_segment_size_mb: %" G_GUINT64_FORMAT
                    "; no memory holds a segment of that size",
                    large / MIB);
        return false;
    }
    if (!parser->rounding_said) {
        said->max_non_split_rounding_bytes = large;
    }
    return at_least("max_split_size_mb", said->max_split_bytes, large, error) &&
           at_least("max_non_split_rounding_mb", said->max_non_split_rounding_bytes, large, error);
}

bool memory_options_parse(const char *text, MemoryOptions *ret_options, GError **error) {
    g_autoptr(GPtrArray) words = words_of(text ? text : "");
    Parser parser = {.words = words, .key = "list"};
    memory_options_init(&parser.said);
    while (*peek(&parser) != '\0') {
        if (is_sign(*peek(&parser))) {
            return complain(&parser, error, "an option's name");
        }
        parser.key = peek(&parser);
        parser.at++;
        if (!take_sign(&parser, ":", error) || !take_value(&parser, error)) {
            return false;
        }
        if (*peek(&parser) != '\0' && !take_sign(&parser, ",", error)) {
            return false;
        }
    }
    if (!check_together(&parser, error)) {
        return false;
    }
    *ret_options = parser.said;
    return true;
}
