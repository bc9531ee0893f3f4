#include "trace/scale.h"

TraceScale trace_scale_time(double largest_ns) {
    if (largest_ns >= 10e9) {
        return (TraceScale){"s", 1e9};
    }
    return largest_ns >= 1e6 ? (TraceScale){"ms", 1e6} : (TraceScale){"us", 1e3};
}

TraceScale trace_scale_bytes(double largest_bytes) {
    if (largest_bytes >= 1e9) {
        return (TraceScale){"GB", 1e9};
    }
    return largest_bytes >= 1e6 ? (TraceScale){"MB", 1e6} : (TraceScale){"kB", 1e3};
}
