/* replay SCRIPT: the script's output on standard output; see tests/memory/allocator/README.md. */
#include <stdio.h>

#include "tests/memory/script.h"

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: replay SCRIPT\n");
        return 2;
    }
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    if (!g_file_get_contents(argv[1], &text, NULL, &error)) {
        fprintf(stderr, "replay: %s\n", error->message);
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
