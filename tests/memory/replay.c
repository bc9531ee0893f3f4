/* replay SCRIPT: the script's output on standard output; see tests/memory/allocator/README.md. */
#include <stdio.h>
#include <string.h>

#include "tests/memory/script.h"

static unsigned line_of_end(const char *text) {
    unsigned line = 1;
    while ((text = strchr(text, '\n'))) {
        line++;
        text++;
    }
    return line;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: replay SCRIPT\n");
        return 2;
    }
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    gsize length = 0;
    if (!g_file_get_contents(argv[1], &text, &length, &error)) {
        fprintf(stderr, "replay: %s\n", error->message);
        return 2;
    }
    if (strlen(text) < length) {
        fprintf(stderr, "replay: %s: line %u: a byte of 0; a script is plain text\n", argv[1],
                line_of_end(text));
        return 2;
    }
    g_autofree char *output = script_play(text, &error);
    if (!output) {
        fprintf(stderr, "replay: %s: %s\n", argv[1], error->message);
        return 2;
    }
    fputs(output, stdout);
    return 0;
}
