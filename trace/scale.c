#include "trace/scale.h"

TraceScale trace_scale_time(double largest_ns) {
    if (largest_ns >= 10e9) {
        return (TraceScale){"s", 1e9};
    }
    return largest_ns >= 1e6 ? (TraceScale){"ms", 1e6} : (TraceScale){"us", 1e3};
}

TraceScale trace_scale_bytes(double largest_bytes) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    unsigned unit = 0;
    double per_unit = 1024;
    while (largest_bytes >= 1024 * per_unit && unit + 1 < G_N_ELEMENTS(units)) {
        per_unit *= 1024;
        unit++;
    }
    return (TraceScale){units[unit], per_unit};
}

char *trace_bytes_text(double bytes) {
    if (bytes < 1024) {
        return g_strdup_printf("%.0f B", bytes);
    }
    TraceScale scale = trace_scale_bytes(bytes);
    return g_strdup_printf("%.2f %s", bytes / scale.per_unit, scale.unit);
}

char *trace_retries_text(guint64 n, guint steps) {
    return g_strdup_printf("%" G_GUINT64_FORMAT " allocation retr%s in %u step%s", n,
                           n == 1 ? "y" : "ies", steps, steps == 1 ? "" : "s");
}
