#include "trace/import/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace/import/slices.h"
#include "trace/trace.h"

/* No profile is longer, and no event, so that sums of hundreds of thousands never overflow. */
#define MOST_US    1e12
#define LONGEST_US 1e10

enum {
    CUDA = 1 /* "Device Type"; c10/core/DeviceType.h */
};

typedef struct {
    ProfileKernel kernel;
    int64_t device;
} Found;

typedef struct {
    Profile *profile;
    const char *file_name, *text;
    GHashTable *names; /* its index + 1 */
    GArray *found;     /* Found */
    double origin_us;  /* of the first event; times count from it */
    bool begun;
} Reader;

/* ---- one event ------------------------------------------------------------------------------- */

typedef struct {
    const char *text;
    gsize length;
} Slice;

/* What counts of an event, of its arguments too. Numbers that are not there are NAN. */
typedef struct {
    Slice ph, cat, name;
    double ts, dur, pid;
    double correlation, device;                          /* of "args" */
    double total_allocated, total_reserved, device_type; /* of "args" of [memory] */
} Event;

/* A whole number or one with a fraction; what is in quotes, or is none, is NAN. */
static double number_of(const char *text, gsize length) {
    char digits[40];
    char *end;
    if (length == 0 || length >= sizeof digits) {
        return NAN;
    }
    memcpy(digits, text, length);
    digits[length] = '\0';
    double value = g_ascii_strtod(digits, &end);
    return *end == '\0' && isfinite(value) ? value : NAN;
}

/* Between its quotes; with the escapes that it has. */
static Slice text_of(const char *text, gsize length) {
    bool quoted = length >= 2 && text[0] == '"';
    return quoted ? (Slice){text + 1, length - 2} : (Slice){"", 0};
}

static bool slice_is(Slice slice, const char *text) {
    return json_slice_is(slice.text, slice.length, text);
}

static bool read_argument(const char *name, gsize name_length, const char *text, gsize length,
                          gpointer data, GError **error) {
    Event *event = data;
    const struct {
        const char *name;
        double *value;
    } numbers[] = {{"correlation", &event->correlation},
                   {"device", &event->device},
                   {"Total Allocated", &event->total_allocated},
                   {"Total Reserved", &event->total_reserved},
                   {"Device Type", &event->device_type}};
    for (guint i = 0; i < G_N_ELEMENTS(numbers); i++) {
        if (json_slice_is(name, name_length, numbers[i].name)) {
            *numbers[i].value = number_of(text, length);
        }
    }
    return true;
}

static bool read_member(const char *name, gsize name_length, const char *text, gsize length,
                        gpointer data, GError **error) {
    Event *event = data;
    const struct {
        const char *name;
        Slice *text;
        double *value;
    } members[] = {{"ph", &event->ph, NULL},     {"cat", &event->cat, NULL},
                   {"name", &event->name, NULL}, {"ts", NULL, &event->ts},
                   {"dur", NULL, &event->dur},   {"pid", NULL, &event->pid}};
    if (json_slice_is(name, name_length, "args") && length > 0 && *text == '{') {
        return json_slices(text, length, "args", read_argument, event, error);
    }
    for (guint i = 0; i < G_N_ELEMENTS(members); i++) {
        if (!json_slice_is(name, name_length, members[i].name)) {
            continue;
        }
        if (members[i].text) {
            *members[i].text = text_of(text, length);
        } else {
            *members[i].value = number_of(text, length);
        }
    }
    return true;
}

static int64_t whole_of(double value, int64_t otherwise) {
    return isfinite(value) && fabs(value) < 0x1p53 ? (int64_t)value : otherwise;
}

static uint32_t name_index(Reader *reader, Slice name) {
    g_autofree char *text = g_strndup(name.text, name.length);
    guint found = GPOINTER_TO_UINT(g_hash_table_lookup(reader->names, text));
    if (found == 0) {
        char *kept = g_steal_pointer(&text);
        g_ptr_array_add(reader->profile->names, kept);
        found = reader->profile->names->len;
        g_hash_table_insert(reader->names, kept, GUINT_TO_POINTER(found));
    }
    return found - 1;
}

static bool contains_any(const char *text, const char *const *words) {
    bool contains = false;
    for (guint i = 0; words[i] && !contains; i++) {
        contains = strstr(text, words[i]) != NULL;
    }
    return contains;
}

/* Kernels are told apart by words in their names: NCCL's, flash and memory-efficient attention and
 * cuDNN's; products of cuBLAS, CUTLASS and cuBLASLt (nvjet). All others count as one class. */
static ProfileClass class_of(const char *name) {
    static const char *const attention[] = {"flash", "fmha", "attention", "sdpa", "mha_", NULL};
    static const char *const products[] = {"gemm", "cutlass", "nvjet",  "xmma",
                                           "gemv", "splitk",  "cublas", NULL};
    g_autofree char *lower = g_ascii_strdown(name, -1);
    return g_str_has_prefix(lower, "nccl")  ? PROFILE_NCCL
           : contains_any(lower, attention) ? PROFILE_ATTENTION
           : contains_any(lower, products)  ? PROFILE_MATMUL
                                            : PROFILE_OTHER;
}

typedef enum {
    CATEGORY_KERNEL,
    CATEGORY_COPY,
    CATEGORY_CALL,
    CATEGORY_MARK,
    CATEGORY_INSTANT,
    CATEGORY_PASSED_OVER
} Category;

/* As Kineto has written them since PyTorch 1.8; newer ones in small letters. */
static Category category_of(const char *name, gsize length) {
    static const struct {
        const char *name;
        Category category;
    } categories[] = {{"kernel", CATEGORY_KERNEL},        {"gpu_memcpy", CATEGORY_COPY},
                      {"memcpy", CATEGORY_COPY},          {"gpu_memset", CATEGORY_COPY},
                      {"memset", CATEGORY_COPY},          {"cuda_runtime", CATEGORY_CALL},
                      {"runtime", CATEGORY_CALL},         {"cuda_driver", CATEGORY_CALL},
                      {"user_annotation", CATEGORY_MARK}, {"cpu_instant_event", CATEGORY_INSTANT}};
    for (guint i = 0; i < G_N_ELEMENTS(categories); i++) {
        if (length == strlen(categories[i].name) &&
            g_ascii_strncasecmp(name, categories[i].name, length) == 0) {
            return categories[i].category;
        }
    }
    return CATEGORY_PASSED_OVER;
}

/* Most events are operators: they are known by their text, and need not be read. */
static Category category_of_text(const char *text, gsize length) {
    const char *key = g_strstr_len(text, (gssize)length, "\"cat\"");
    const char *end = text + length;
    if (!key) {
        return CATEGORY_PASSED_OVER;
    }
    const char *at = key + strlen("\"cat\"");
    while (at < end && (g_ascii_isspace(*at) || *at == ':')) {
        at++;
    }
    const char *quote = at < end && *at == '"' ? memchr(at + 1, '"', (gsize)(end - at - 1)) : NULL;
    return quote ? category_of(at + 1, (gsize)(quote - at - 1)) : CATEGORY_PASSED_OVER;
}

static void add_memory(Profile *profile, const Event *event) {
    int64_t allocated = whole_of(event->total_allocated, -1);
    int64_t reserved = whole_of(event->total_reserved, -1);
    if (whole_of(event->device_type, 0) == CUDA && allocated >= 0 && reserved >= 0) {
        profile->has_memory = true;
        profile->allocated = MAX(profile->allocated, (uint64_t)allocated);
        profile->reserved = MAX(profile->reserved, (uint64_t)reserved);
    }
}

static void add_kernel(Reader *reader, Category category, const Event *event, int64_t start_ns,
                       int64_t end_ns) {
    uint32_t name = name_index(reader, event->name);
    Found found = {.kernel = {.name = name,
                              .what = category == CATEGORY_COPY
                                          ? PROFILE_COPY
                                          : class_of(reader->profile->names->pdata[name]),
                              .correlation = whole_of(event->correlation, -1),
                              .launched_ns = start_ns,
                              .start_ns = start_ns,
                              .end_ns = end_ns},
                   .device = whole_of(event->device, whole_of(event->pid, 0))};
    g_array_append_val(reader->found, found);
}

static bool add_event(Reader *reader, Category category, const Event *event, GError **error) {
    if (category == CATEGORY_INSTANT) {
        if (slice_is(event->name, "[memory]")) {
            add_memory(reader->profile, event);
        }
        return true;
    }
    if (!slice_is(event->ph, "X")) {
        return true;
    }
    double since_us = reader->begun ? event->ts - reader->origin_us : 0;
    bool possible = isfinite(event->ts) && fabs(since_us) < MOST_US && event->dur >= 0 &&
                    event->dur < LONGEST_US;
    if (!possible) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "%s: an event \"%.*s\" without a possible time (ts, dur)", reader->file_name,
                    (int)MIN(event->name.length, 80), event->name.text);
        return false;
    }
    if (!reader->begun) {
        reader->begun = true;
        reader->origin_us = event->ts;
    }
    int64_t start_ns = (int64_t)llround(since_us * 1000);
    int64_t end_ns = start_ns + (int64_t)llround(event->dur * 1000);
    if (category == CATEGORY_CALL) {
        bool waits = g_strstr_len(event->name.text, (gssize)event->name.length, "Synchronize");
        ProfileCall call = {whole_of(event->correlation, -1), start_ns, end_ns, waits};
        g_array_append_val(reader->profile->calls, call);
    } else if (category == CATEGORY_MARK) {
        ProfileAnnotation annotation = {name_index(reader, event->name), start_ns, end_ns};
        g_array_append_val(reader->profile->annotations, annotation);
    } else {
        add_kernel(reader, category, event, start_ns, end_ns);
    }
    return true;
}

static bool read_event(Reader *reader, const char *text, gsize length, GError **error) {
    Event event = {.ph = {"", 0},
                   .cat = {"", 0},
                   .name = {"", 0},
                   .ts = NAN,
                   .dur = 0,
                   .pid = NAN,
                   .correlation = NAN,
                   .device = NAN,
                   .total_allocated = NAN,
                   .total_reserved = NAN,
                   .device_type = NAN};
    g_autoptr(GError) cause = NULL;
    reader->profile->n_events++;
    if (category_of_text(text, length) == CATEGORY_PASSED_OVER) {
        return true;
    }
    if (!json_slices(text, length, "event", read_member, &event, &cause)) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_SYNTAX, "%s: byte %" G_GSIZE_FORMAT ": %s",
                    reader->file_name, (gsize)(text - reader->text), cause->message);
        return false;
    }
    return add_event(reader, category_of(event.cat.text, event.cat.length), &event, error);
}

typedef struct {
    double rank, world;
} Ranks;

static bool read_ranks(const char *name, gsize name_length, const char *text, gsize length,
                       gpointer data, GError **error) {
    Ranks *ranks = data;
    if (json_slice_is(name, name_length, "rank")) {
        ranks->rank = number_of(text, length);
    } else if (json_slice_is(name, name_length, "world_size")) {
        ranks->world = number_of(text, length);
    }
    return true;
}

static bool read_slice(const char *name, gsize name_length, const char *text, gsize length,
                       gpointer data, GError **error) {
    Reader *reader = data;
    if (json_slice_is(name, name_length, "traceEvents")) {
        return read_event(reader, text, length, error);
    }
    if (json_slice_is(name, name_length, "distributedInfo") && length > 0 && *text == '{') {
        Ranks ranks = {NAN, NAN};
        if (!json_slices(text, length, reader->file_name, read_ranks, &ranks, error)) {
            return false;
        }
        reader->profile->rank = whole_of(ranks.rank, -1);
        reader->profile->world = whole_of(ranks.world, -1);
    }
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int64_t busiest(const GArray *found) {
    g_autoptr(GHashTable) counts = g_hash_table_new(NULL, NULL);
    guint most = 0;
    int64_t device = 0;
    for (guint i = 0; i < found->len; i++) {
        int64_t own = g_array_index(found, Found, i).device;
        guint n = 1 + GPOINTER_TO_UINT(g_hash_table_lookup(counts, GSIZE_TO_POINTER(own)));
        g_hash_table_insert(counts, GSIZE_TO_POINTER(own), GUINT_TO_POINTER(n));
        if (n > most || (n == most && own < device)) {
            most = n;
            device = own;
        }
    }
    return device;
}

static int compare_calls(gconstpointer a, gconstpointer b) {
    const ProfileCall *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int compare_annotations(gconstpointer a, gconstpointer b) {
    const ProfileAnnotation *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int compare_kernels(gconstpointer a, gconstpointer b) {
    const ProfileKernel *x = a, *y = b;
    return x->launched_ns != y->launched_ns
               ? (x->launched_ns > y->launched_ns) - (x->launched_ns < y->launched_ns)
               : (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* Of one device, with the times of the calls that launched them. */
static void keep_kernels(Reader *reader, int64_t device) {
    Profile *profile = reader->profile;
    g_autoptr(GHashTable) calls = g_hash_table_new(NULL, NULL); /* correlation: call + 1 */
    for (guint i = 0; i < profile->calls->len; i++) {
        const ProfileCall *call = &g_array_index(profile->calls, ProfileCall, i);
        if (call->correlation > 0) {
            g_hash_table_insert(calls, GSIZE_TO_POINTER(call->correlation),
                                GUINT_TO_POINTER(i + 1));
        }
    }
    for (guint i = 0; i < reader->found->len; i++) {
        Found *found = &g_array_index(reader->found, Found, i);
        if (found->device != device) {
            continue;
        }
        guint call = GPOINTER_TO_UINT(
            g_hash_table_lookup(calls, GSIZE_TO_POINTER(found->kernel.correlation)));
        if (call > 0) {
            found->kernel.launched_ns =
                g_array_index(profile->calls, ProfileCall, call - 1).start_ns;
        }
        g_array_append_val(profile->kernels, found->kernel);
    }
    g_array_sort(profile->kernels, compare_kernels);
}

Profile *profile_read(const char *text, gsize length, int device, const char *file_name,
                      GError **error) {
    g_autoptr(Profile) profile = g_new0(Profile, 1);
    profile->names = g_ptr_array_new_with_free_func(g_free);
    profile->kernels = g_array_new(FALSE, FALSE, sizeof(ProfileKernel));
    profile->calls = g_array_new(FALSE, FALSE, sizeof(ProfileCall));
    profile->annotations = g_array_new(FALSE, FALSE, sizeof(ProfileAnnotation));
    profile->rank = profile->world = -1;
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(Found));
    Reader reader = {
        .profile = profile, .file_name = file_name, .text = text, .names = names, .found = found};
    if (!json_slices_of_events(text, length, file_name, read_slice, &reader, error)) {
        return NULL;
    }
    if (profile->n_events == 0) {
        g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                    "%s: JSON, but no profile: it lacks the list traceEvents, which a profiler's "
                    "export_chrome_trace() writes",
                    file_name);
        return NULL;
    }
    profile->device = device >= 0 ? device : busiest(found);
    g_array_sort(profile->calls, compare_calls);
    g_array_sort(profile->annotations, compare_annotations);
    keep_kernels(&reader, profile->device);
    return g_steal_pointer(&profile);
}

void profile_free(Profile *profile) {
    if (profile != NULL) {
        g_ptr_array_unref(profile->names);
        g_array_unref(profile->kernels);
        g_array_unref(profile->calls);
        g_array_unref(profile->annotations);
        g_free(profile);
    }
}
