#include "sim/settings.h"

#include <string.h>

#include "plan/files/ini.h"
#include "sim/costs/nccl.h"

static const char *const trouble_names[] = {
    [SIM_TROUBLE_SLOW] = "slow", [SIM_TROUBLE_NVLINK] = "nvlink", [SIM_TROUBLE_NIC] = "nic"};

const char *const sim_jitter_keys[SIM_N_JITTERS] = {
    [SIM_JITTER_KERNEL] = "jitter_percent",
    [SIM_JITTER_GPU] = "spread_percent",
    [SIM_JITTER_HOST] = "host_jitter_percent",
    [SIM_JITTER_LINK] = "link_jitter_percent",
};

SimJitter sim_jitter_of(const ModelCluster *cluster) {
    return (SimJitter){.shares = {
                           [SIM_JITTER_KERNEL] = cluster->jitter_kernel_percent / 100,
                           [SIM_JITTER_GPU] = cluster->jitter_gpu_percent / 100,
                           [SIM_JITTER_HOST] = cluster->jitter_host_percent / 100,
                           [SIM_JITTER_LINK] = cluster->jitter_link_percent / 100,
                       }};
}

/* ---- writing -------------------------------------------------------------------------------- */

/* 15 digits: read back, a share is the same number. */
static void append_number(GString *text, double number) {
    char digits[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append(text, g_ascii_formatd(digits, sizeof digits, "%.15g", number));
}

static void set_percent(Trace *trace, const char *key, double share) {
    g_autoptr(GString) text = g_string_new(NULL);
    append_number(text, 100 * share);
    trace_set(trace, key, text->str);
}

static void set_troubles(Trace *trace, const SimOptions *options) {
    g_autoptr(GString) text = g_string_new(NULL);
    for (uint32_t i = 0; i < options->n_troubles; i++) {
        const SimTrouble *trouble = &options->troubles[i];
        g_string_append_printf(text, "%s%s:%u-%u:", i ? " " : "", trouble_names[trouble->kind],
                               trouble->first_rank, trouble->last_rank);
        append_number(text, trouble->factor);
    }
    if (text->len) {
        trace_set(trace, "troubles", text->str);
    }
}

void sim_settings_write(Trace *trace, const ModelCluster *cluster, const SimOptions *options) {
    trace_set_uint(trace, "steps", options->steps);
    if (options->no_sharing) {
        trace_set(trace, "sharing", "no");
    }
    if (cluster->nccl_algo) {
        trace_set(trace, "nccl_algo", cluster->nccl_algo);
    }
    if (cluster->nccl_proto) {
        trace_set(trace, "nccl_proto", cluster->nccl_proto);
    }
    if (options->every_rank) {
        trace_set(trace, "every_rank", "yes");
        trace_set_uint(trace, "seed", options->jitter.seed);
        for (unsigned kind = 0; kind < SIM_N_JITTERS; kind++) {
            set_percent(trace, sim_jitter_keys[kind], options->jitter.shares[kind]);
        }
        set_troubles(trace, options);
    }
}

/* ---- reading -------------------------------------------------------------------------------- */

static bool refuse(const char *key, const char *value, GError **error) {
    g_set_error(error, TRACE_ERROR, TRACE_ERROR_VALUE,
                "the trace's header has '%s' for %s, which this version does not know; predict it "
                "anew",
                value, key);
    return false;
}

static bool read_flag(const Trace *trace, const char *key, const char *when, bool *ret_flag,
                      GError **error) {
    const char *value = trace_get(trace, key);
    if (value && !g_str_equal(value, "yes") && !g_str_equal(value, "no")) {
        return refuse(key, value, error);
    }
    *ret_flag = value && g_str_equal(value, when);
    return true;
}

static bool read_share(const Trace *trace, const char *key, double *ret_share, GError **error) {
    const char *value = trace_get(trace, key);
    double percent = 0;
    if (value &&
        !(plan_parse_double(value, &percent) && percent >= 0 && percent <= SIM_MOST_PERCENT)) {
        return refuse(key, value, error);
    }
    *ret_share = percent / 100;
    return true;
}

static bool read_trouble(const char *text, SimTrouble *ret_trouble) {
    g_auto(GStrv) parts = g_strsplit(text, ":", 3);
    g_auto(GStrv) ends = NULL;
    uint64_t first, last;
    if (g_strv_length(parts) != 3 || !(ends = g_strsplit(parts[1], "-", 2))[0] || !ends[1] ||
        !plan_parse_u64(ends[0], &first) || !plan_parse_u64(ends[1], &last) || first > last ||
        last > UINT32_MAX || !plan_parse_double(parts[2], &ret_trouble->factor)) {
        return false;
    }
    ret_trouble->first_rank = (uint32_t)first;
    ret_trouble->last_rank = (uint32_t)last;
    for (unsigned kind = 0; kind < G_N_ELEMENTS(trouble_names); kind++) {
        if (g_str_equal(parts[0], trouble_names[kind])) {
            double least = kind == SIM_TROUBLE_SLOW ? SIM_LEAST_SLOWDOWN : SIM_LEAST_SHARE;
            ret_trouble->kind = (SimTroubleKind)kind;
            return ret_trouble->factor >= least && ret_trouble->factor <= SIM_MOST_FACTOR;
        }
    }
    return false;
}

static bool read_troubles(const Trace *trace, SimSettings *settings, GError **error) {
    const char *value = trace_get(trace, "troubles");
    g_auto(GStrv) words = g_strsplit(value ? value : "", " ", -1);
    for (char **word = words; *word; word++) {
        SimTrouble trouble;
        if (!read_trouble(*word, &trouble)) {
            return refuse("troubles", *word, error);
        }
        g_array_append_val(settings->troubles, trouble);
    }
    settings->options.troubles = (const SimTrouble *)(gconstpointer)settings->troubles->data;
    settings->options.n_troubles = settings->troubles->len;
    return true;
}

static bool read_number(const Trace *trace, const char *key, uint64_t *number, GError **error) {
    const char *value = trace_get(trace, key);
    return !value || plan_parse_u64(value, number) || refuse(key, value, error);
}

static bool read_steps(const Trace *trace, uint32_t *ret_steps, GError **error) {
    uint64_t steps = SIM_DEFAULT_STEPS;
    if (!read_number(trace, "steps", &steps, error)) {
        return false;
    }
    if (steps < 1 || steps > SIM_MOST_STEPS) {
        return refuse("steps", trace_get(trace, "steps"), error);
    }
    *ret_steps = (uint32_t)steps;
    return true;
}

static bool read_nccl(const Trace *trace, SimSettings *settings, GError **error) {
    const char *algo = trace_get(trace, "nccl_algo"), *proto = trace_get(trace, "nccl_proto");
    SimNcclAlgo algo_number;
    SimNcclProto proto_number;
    if (algo && !sim_nccl_algo_parse(algo, &algo_number)) {
        return refuse("nccl_algo", algo, error);
    }
    if (proto && !sim_nccl_proto_parse(proto, &proto_number)) {
        return refuse("nccl_proto", proto, error);
    }
    settings->nccl_algo = g_strdup(algo);
    settings->nccl_proto = g_strdup(proto);
    return true;
}

SimSettings *sim_settings_read(const Trace *trace, GError **error) {
    g_autoptr(SimSettings) settings = g_new0(SimSettings, 1);
    settings->troubles = g_array_new(FALSE, FALSE, sizeof(SimTrouble));
    SimOptions *options = &settings->options;
    if (!read_flag(trace, "sharing", "no", &options->no_sharing, error) ||
        !read_nccl(trace, settings, error) ||
        !read_flag(trace, "every_rank", "yes", &options->every_rank, error)) {
        return NULL;
    }
    options->steps = SIM_DEFAULT_STEPS;
    if (!options->every_rank) { /* steps are alike, and as many as are needed do */
        return g_steal_pointer(&settings);
    }
    if (!read_steps(trace, &options->steps, error) ||
        !read_number(trace, "seed", &options->jitter.seed, error) ||
        !read_troubles(trace, settings, error)) {
        return NULL;
    }
    for (unsigned kind = 0; kind < SIM_N_JITTERS; kind++) {
        if (!read_share(trace, sim_jitter_keys[kind], &options->jitter.shares[kind], error)) {
            return NULL;
        }
    }
    return g_steal_pointer(&settings);
}

void sim_settings_free(SimSettings *settings) {
    if (settings) {
        g_free(settings->nccl_algo);
        g_free(settings->nccl_proto);
        g_array_unref(settings->troubles);
        g_free(settings);
    }
}
