/* plan/refuse.h - a check that ends with its complaint.
 *
 * Owns: nothing. Threads: any number.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* As g_set_error(); false, so that a check can return it. */
bool plan_refuse(GError **error, GQuark domain, int code, const char *format, ...)
    G_GNUC_PRINTF(4, 5);
