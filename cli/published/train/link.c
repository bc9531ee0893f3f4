#include "cli/published/train/link.h"

#include <glib.h>

#include "cli/published/train/words.h"

typedef struct {
    double gigabits;    /* a second; 0: the words give no rate */
    bool is_of_port;    /* by the name of InfiniBand's generation */
    bool is_of_several; /* "4 x", "x 8" */
} Rate;

/* Group `group` of a match as a number; or `otherwise` where that is empty. */
static double matched(const GMatchInfo *match, int group, double otherwise) {
    g_autofree char *digits = g_match_info_fetch(match, group);
    return digits && *digits ? g_ascii_strtod(digits, NULL) : otherwise;
}

/* Of a port of four lanes, in Gb/s (InfiniBand Trade Association, roadmap). */
static double of_generation(const char *name) {
    static const struct {
        const char *name;
        double gigabits;
    } generations[] = {{"edr", 100}, {"hdr", 200}, {"ndr", 400}, {"xdr", 800}};
    for (unsigned i = 0; i < G_N_ELEMENTS(generations); i++) {
        if (!g_ascii_strcasecmp(generations[i].name, name)) {
            return generations[i].gigabits;
        }
    }
    return 0;
}

static bool matches(const char *pattern, GRegexCompileFlags flags, const char *clause,
                    GMatchInfo **ret_match) {
    g_autoptr(GRegex) regex = g_regex_new(pattern, flags, 0, NULL);
    return g_regex_match(regex, clause, 0, ret_match);
}

/* "4 x 100 Gb/s", "200Gb/s x 8", "3.2 Tbps", "400G"; bytes where the B is large. What is added in
 * brackets is no factor: "400 Gb/s (4 x 100)". */
static Rate in_digits(const char *clause) {
    g_autoptr(GMatchInfo) match = NULL, after = NULL;
    if (!matches("(?:([0-9]+) *x *)?([0-9]+(?:[.][0-9]+)?) *(?:([GT])(b|B)|(G)\\b)", 0, clause,
                 &match)) {
        return (Rate){0};
    }
    double times = matched(match, 1, 0);
    if (times == 0 && matches("[^0-9 ] *x *([0-9]+)\\b", 0, clause, &after)) {
        times = matched(after, 1, 0);
    }
    g_autofree char *large = g_match_info_fetch(match, 3);
    g_autofree char *unit = g_match_info_fetch(match, 4);
    double each =
        matched(match, 2, 0) * (large && *large == 'T' ? 1000 : 1) * (unit && *unit == 'B' ? 8 : 1);
    return (Rate){.gigabits = each * MAX(times, 1), .is_of_several = times > 0};
}

/* HPE's: Slingshot 11 has ports of 200 Gb/s, its first ("10") of 100; Intel's Omni-Path of 100. */
static Rate in_fabrics(const char *clause) {
    g_autoptr(GMatchInfo) match = NULL;
    if (!matches("(?:([0-9]+) *x *)?(?:(slingshot)[- ]*(10\\b)?|omni-?path)", G_REGEX_CASELESS,
                 clause, &match)) {
        return (Rate){0};
    }
    g_autofree char *slingshot = g_match_info_fetch(match, 2);
    bool is_new = slingshot && *slingshot && matched(match, 3, 0) == 0;
    double times = matched(match, 1, 0);
    return (Rate){.gigabits = (is_new ? 200 : 100) * MAX(times, 1),
                  .is_of_port = true,
                  .is_of_several = times > 0};
}

/* "4x HDR200", "InfiniBand NDR". */
static Rate in_generations(const char *clause) {
    g_autoptr(GMatchInfo) match = NULL;
    if (!matches("(?:([0-9]+) *x *|\\b)(EDR|HDR|NDR|XDR)-?([0-9]+)?\\b", G_REGEX_CASELESS, clause,
                 &match)) {
        return in_fabrics(clause);
    }
    g_autofree char *name = g_match_info_fetch(match, 2);
    double times = matched(match, 1, 0);
    return (Rate){.gigabits = matched(match, 3, of_generation(name)) * MAX(times, 1),
                  .is_of_port = true,
                  .is_of_several = times > 0};
}

double cli_train_link_gb_per_s(const char *interconnect, double gpus_per_node) {
    static const char *const inside[] = {"nvlink", "nvswitch", "intra", "pcie"};
    static const char *const of_gpu[] = {"per gpu", "a gpu", "/gpu", "each gpu", "per-gpu"};
    static const char *const of_node[] = {"node", "host", "server", "instance", "machine", "efa"};
    static const char *const ordinary[] = {"gbe", "ethernet", "tcp"};
    static const char *const direct[] = {"roce", "rdma", "spectrum"};
    g_auto(GStrv) clauses = g_strsplit_set(interconnect, ";,+", -1);
    for (char **clause = clauses; *clause; clause++) {
        if (cli_train_words_any(*clause, inside, G_N_ELEMENTS(inside))) {
            continue;
        }
        Rate rate = in_digits(*clause);
        rate = rate.gigabits > 0 ? rate : in_generations(*clause);
        bool is_large = rate.gigabits >= 800 && !rate.is_of_port;
        /* assumed: a machine has one port of plain Ethernet, one of anything faster for each GPU */
        bool is_plain = rate.gigabits <= 100 &&
                        cli_train_words_any(*clause, ordinary, G_N_ELEMENTS(ordinary)) &&
                        !cli_train_words_any(*clause, direct, G_N_ELEMENTS(direct));
        bool shared = !cli_train_words_any(*clause, of_gpu, G_N_ELEMENTS(of_gpu)) &&
                      (cli_train_words_any(*clause, of_node, G_N_ELEMENTS(of_node)) || is_large ||
                       is_plain || rate.is_of_several);
        if (rate.gigabits > 0) {
            return rate.gigabits / 8 / (shared ? gpus_per_node : 1);
        }
    }
    return 0;
}
