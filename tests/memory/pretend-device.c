#include "tests/memory/pretend-device.h"

#define N_STREAMS 64

typedef enum {
    PLAIN,
    PAGES, /* joined with a neighbour's line */
    RECORD,
    WAIT,
    DONE,
} LineKind;

typedef struct {
    LineKind kind;
    uint64_t first,
        second;  /* what lines of a kind are sorted by; of pages, where they begin and end */
    guint order; /* among equals */
    char *text;  /* of PAGES: the first two words */
} Line;

struct _PretendDevice {
    uint64_t total_bytes, budget_bytes, used_bytes;
    bool free_synchronizes;
    guint n_segments;
    struct {
        uint64_t recorded, completed;
    } streams[N_STREAMS];
    GArray *report;
};

static void clear_line(gpointer line) {
    g_free(((Line *)line)->text);
}

PretendDevice *pretend_device_new(uint64_t total_bytes, uint64_t budget_bytes) {
    PretendDevice *device = g_new0(PretendDevice, 1);
    device->total_bytes = total_bytes;
    device->budget_bytes = budget_bytes;
    device->report = g_array_new(FALSE, FALSE, sizeof(Line));
    g_array_set_clear_func(device->report, clear_line);
    return device;
}

void pretend_device_free(PretendDevice *device) {
    g_array_unref(device->report);
    g_free(device);
}

void pretend_device_set_free_synchronizes(PretendDevice *device) {
    device->free_synchronizes = true;
}

static void note(PretendDevice *device, LineKind kind, uint64_t first, uint64_t second,
                 char *text) {
    Line line = {kind, first, second, device->report->len, text};
    g_array_append_val(device->report, line);
}

static void note_pages(PretendDevice *device, const char *word, guint segment, uint64_t offset,
                       uint64_t bytes) {
    char *text = g_strdup_printf("%s %u", word, segment);
    if (device->report->len > 0) {
        Line *last = &g_array_index(device->report, Line, device->report->len - 1);
        if (last->kind == PAGES && g_str_equal(last->text, text) && last->second == offset) {
            last->second += bytes;
            g_free(text);
            return;
        }
    }
    note(device, PAGES, offset, offset + bytes, text);
}

void pretend_device_note_done(PretendDevice *device, uint64_t id) {
    note(device, DONE, id, 0, g_strdup_printf("done %" G_GUINT64_FORMAT, id));
}

static gint compare_lines(gconstpointer a, gconstpointer b) {
    const Line *x = a, *y = b;
    if (x->kind != y->kind) {
        return x->kind < y->kind ? -1 : 1;
    }
    if (x->first != y->first) {
        return x->first < y->first ? -1 : 1;
    }
    if (x->second != y->second) {
        return x->second < y->second ? -1 : 1;
    }
    return x->order < y->order ? -1 : x->order > y->order;
}

/* 0 for lines whose order means something. */
static int sort_group(const Line *line) {
    return line->kind == RECORD ? 1 : line->kind == WAIT || line->kind == DONE ? 2 : 0;
}

void pretend_device_take_report(PretendDevice *device, GString *text) {
    Line *lines = (Line *)(void *)device->report->data;
    for (guint from = 0, to; from < device->report->len; from = to) {
        int group = sort_group(&lines[from]);
        for (to = from + 1; to < device->report->len && sort_group(&lines[to]) == group; to++) {
        }
        if (group != 0) {
            g_qsort_with_data(&lines[from], (gint)(to - from), sizeof(Line),
                              (GCompareDataFunc)(void (*)(void))compare_lines, NULL);
        }
    }
    for (guint i = 0; i < device->report->len; i++) {
        g_string_append_printf(text, "  %s", lines[i].text);
        if (lines[i].kind == PAGES) {
            g_string_append_printf(text, " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT,
                                   lines[i].first, lines[i].second - lines[i].first);
        }
        g_string_append_c(text, '\n');
    }
    g_array_set_size(device->report, 0);
}

/* ---- time ---- */

uint64_t pretend_device_complete(PretendDevice *device, uint32_t stream, uint64_t oldest) {
    uint64_t pending = device->streams[stream].recorded - device->streams[stream].completed;
    pending = MIN(pending, oldest);
    device->streams[stream].completed += pending;
    return pending;
}

static bool complete_all(PretendDevice *device) {
    bool waited = false;
    for (uint32_t stream = 0; stream < N_STREAMS; stream++) {
        waited |= pretend_device_complete(device, stream, UINT64_MAX) > 0;
    }
    return waited;
}

static const char *word_for(bool waited) {
    return waited ? "waited" : "idle";
}

void pretend_device_sync(PretendDevice *device) {
    note(device, PLAIN, 0, 0,
         g_strdup_printf("deviceSynchronize %s", word_for(complete_all(device))));
}

static void complete_as_freed(PretendDevice *device) {
    if (device->free_synchronizes && complete_all(device)) {
        note(device, PLAIN, 0, 0, g_strdup("wait device"));
    }
}

/* ---- MemorySource ---- */

static uint64_t total_bytes(gpointer self) {
    const PretendDevice *device = self;
    return device->total_bytes;
}

static guint number_of(gpointer handle) {
    return GPOINTER_TO_UINT(handle) - 1;
}

static bool fits(const PretendDevice *device, uint64_t bytes) {
    return bytes <= device->budget_bytes - device->used_bytes;
}

static bool segment_new(gpointer self, uint64_t bytes, gpointer *ret_handle) {
    PretendDevice *device = self;
    if (!fits(device, bytes)) {
        note(device, PLAIN, 0, 0,
             g_strdup_printf("cudaMalloc %" G_GUINT64_FORMAT " failed", bytes));
        return false;
    }
    device->used_bytes += bytes;
    note(device, PLAIN, 0, 0,
         g_strdup_printf("cudaMalloc %" G_GUINT64_FORMAT " = %u", bytes, device->n_segments));
    *ret_handle = GUINT_TO_POINTER(++device->n_segments);
    return true;
}

static void segment_free(gpointer self, gpointer handle, uint64_t bytes) {
    PretendDevice *device = self;
    note(device, PLAIN, 0, 0, g_strdup_printf("cudaFree %u", number_of(handle)));
    complete_as_freed(device);
    device->used_bytes -= bytes;
}

static bool address_new(gpointer self, uint64_t bytes, gpointer *ret_handle) {
    PretendDevice *device = self;
    note(device, PLAIN, 0, 0,
         g_strdup_printf("cuMemAddressReserve %" G_GUINT64_FORMAT " = %u", bytes,
                         device->n_segments));
    *ret_handle = GUINT_TO_POINTER(++device->n_segments);
    return true;
}

static void address_free(gpointer self, gpointer handle, uint64_t bytes) {
    note(self, PLAIN, 0, 0, g_strdup_printf("cuMemAddressFree %u", number_of(handle)));
}

static bool map(gpointer self, gpointer handle, uint64_t offset, uint64_t page_bytes,
                uint64_t n_pages) {
    PretendDevice *device = self;
    if (!fits(device, page_bytes * n_pages)) {
        note(device, PLAIN, 0, 0,
             g_strdup_printf("cuMemCreate %" G_GUINT64_FORMAT " failed", page_bytes));
        return false;
    }
    device->used_bytes += page_bytes * n_pages;
    note_pages(device, "cuMemMap", number_of(handle), offset, page_bytes * n_pages);
    return true;
}

static void unmap(gpointer self, gpointer handle, uint64_t offset, uint64_t page_bytes,
                  uint64_t n_pages) {
    PretendDevice *device = self;
    for (uint64_t page = 0; page < n_pages; page++) {
        note_pages(device, "cuMemUnmap", number_of(handle), offset + page * page_bytes, page_bytes);
        complete_as_freed(device);
    }
    device->used_bytes -= page_bytes * n_pages;
}

/* An event is its stream and its number among that stream's, from 1. */
static MemoryEvent event_record(gpointer self, uint32_t stream) {
    PretendDevice *device = self;
    uint64_t number = ++device->streams[stream].recorded;
    note(device, RECORD, stream, number,
         g_strdup_printf("eventRecord %u %" G_GUINT64_FORMAT, stream, number));
    return number * N_STREAMS + stream;
}

static bool event_query(gpointer self, MemoryEvent event) {
    const PretendDevice *device = self;
    return event / N_STREAMS <= device->streams[event % N_STREAMS].completed;
}

static void event_sync(gpointer self, MemoryEvent event) {
    PretendDevice *device = self;
    uint64_t number = event / N_STREAMS, stream = event % N_STREAMS;
    bool waited = number > device->streams[stream].completed;
    if (waited) {
        device->streams[stream].completed = number;
    }
    note(device, WAIT, stream, number,
         g_strdup_printf("eventSynchronize %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %s", stream,
                         number, word_for(waited)));
}

static void stream_sync(gpointer self, uint32_t stream) {
    PretendDevice *device = self;
    bool waited = pretend_device_complete(device, stream, UINT64_MAX) > 0;
    note(device, PLAIN, 0, 0, g_strdup_printf("streamSynchronize %u %s", stream, word_for(waited)));
}

const MemorySource pretend_device_source = {
    .total_bytes = total_bytes,
    .segment_new = segment_new,
    .segment_free = segment_free,
    .address_new = address_new,
    .address_free = address_free,
    .map = map,
    .unmap = unmap,
    .event_record = event_record,
    .event_query = event_query,
    .event_sync = event_sync,
    .stream_sync = stream_sync,
};
