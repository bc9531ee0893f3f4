/* plan/files/leftovers.h - what lies on the disk only while work goes on.
 *
 * It is removed if a signal ends the program meanwhile (Ctrl-C, a closed terminal or pipe, a polite
 * kill). From the first leftover on SIGINT, SIGTERM, SIGHUP and SIGPIPE are caught, but for those
 * that the program was told to ignore: what is noted is removed, and then the signal ends the
 * program as it would have.
 *
 * A child that was forked leaves alone what its parent noted.
 *
 * Owns: a table for the program, of LEFTOVERS_MOST names at most; what is beyond stays behind.
 * Threads: any.
 */
#pragma once

#include <glib.h>

/* A file, or a folder that holds no folders, is to go. */
void plan_leftover(const char *path);
/* It is gone, or is none any more. */
void plan_leftover_over(const char *path);
/* A new folder among the temporary ones, noted; NAME ends in XXXXXX. PLAN_ERROR_FILE says where one
 * cannot be made, and what to do. Transfer full. */
char *plan_leftover_folder(const char *name, GError **error);
/* Its files, then itself, and it is over. It holds no folders. */
void plan_leftover_remove_folder(const char *folder);
