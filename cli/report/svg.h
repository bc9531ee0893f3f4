/* cli/report/svg.h - a drawing of gnuplot's as a part of a page.
 */
#pragma once

#include <glib.h>

/* Without XML's declaration; what it names by id is named after the prefix, for ids of a page are
 * unique; its title is the caption's, for those who hear the page. */
char *cli_svg_inline(const char *svg, const char *prefix, const char *title);
