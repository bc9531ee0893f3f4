/* tests/models/clusters.h - the source tree's cluster files, for tests of reading them. */
#pragma once

#include <glib.h>

/* First thing in main. */
void clusters_init(int *argc, char ***argv);

const char *clusters_folder(void); /* models/clusters */

/* A file's text, with what others say that it is like. Transfer full. */
char *clusters_text(const char *name);
