/* cli/host/cores.h - on how many cores plans are predicted at a time. */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* As many as were asked for; 0: all that this process may use, 16 at most, each of which holds a
 * plan and its play, some 100 MB. Those of stages, of many microbatches, take up to some GB: then
 * at most 4, and no more than the machine has 4 GiB for. */
guint cli_cores(guint asked, bool has_stages);
