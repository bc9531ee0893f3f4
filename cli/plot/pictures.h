/* cli/plot/pictures.h - what the commands that draw share.
 */
#pragma once

#include "plots/plot.h"

/* How wide a picture of text may be. */
guint cli_terminal_columns(void);
/* A picture of text, and the sentences around it: those that are wider are broken
 * (cli/say/prose.h), rows of its table are not. NULL is nothing. */
void cli_print_picture(const char *text);
/* Blocks on a terminal that shows UTF-8; a pipe gets ASCII, the same everywhere. */
PlotCharacters cli_terminal_characters(void);

/* The memory picture shows all steps that every panel recorded, of more than ten the first four, or
 * the last four if memory ran out; the lanes the last of those. */
void cli_choose_steps(PlotPicture picture, const PlotPanel *panels, guint n_panels,
                      PlotOptions *plot);

/* The exit status of a picture that was not drawn. */
int cli_picture_status(const GError *error);

/* The folder that holds a script of plots/, and so all of them. */
char *cli_plots_folder(const char *script, GError **error);
