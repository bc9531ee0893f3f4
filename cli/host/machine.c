#include "cli/host/machine.h"

#include <string.h>

static char *line_of_file(const char *path, const char *key) {
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL)) {
        return NULL;
    }
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        if (g_str_has_prefix(*line, key)) {
            const char *value = strchr(*line, ':');
            return value ? g_strstrip(g_strdup(value + 1)) : NULL;
        }
    }
    return NULL;
}

char *cli_machine_processor(void) {
    char *name = line_of_file("/proc/cpuinfo", "model name");
    return name ? name : g_strdup("a processor without a name");
}

uint64_t cli_machine_free_bytes(void) {
    g_autofree char *kib = line_of_file("/proc/meminfo", "MemAvailable");
    return kib ? g_ascii_strtoull(kib, NULL, 10) * 1024 : 0;
}
