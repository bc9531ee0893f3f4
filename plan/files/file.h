/* plan/files/file.h - whole files, read and written.
 *
 * A regular file is written aside (PATH.tmp- and six letters that no other has) and renamed. So one
 * that was there stays whole until the new one is, and of two that write at once one stays whole.
 * The new one has the permissions of the one it replaces. Through a symbolic link it is written
 * beside what that leads to. What lies aside goes if a signal ends the program (leftovers.h). A
 * device, a pipe and what else lies in /dev (standard output, say) is written where it is: renaming
 * would take its place.
 *
 * Owns: nothing. Threads: any.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/* All that the file, pipe or standard input ("-", stream.h) holds. PLAN_ERROR_FILE names it when it
 * cannot be read. Transfer full. */
char *plan_file_text(const char *path, gsize *ret_length, GError **error);
/* Its first bytes, and how many: fewer than room where there are fewer; 0 where it cannot be read.
 * It can be read all the same then. */
gsize plan_file_start(const char *path, char *ret_start, gsize room);
/* Whether text that is shown holds what a terminal would obey; a tab is no such thing. */
bool plan_has_control(const char *text);
/* Whether it can be read and begins with the word. */
bool plan_file_begins(const char *path, const char *word);
/* Removes what writers of it left aside that were killed. */
void plan_file_clear(const char *path);
/* 0, or the errno with which writing it would fail, as things stand; writes nothing. */
int plan_file_may_write(const char *path);
/* A new file beside it, open for writing (ret_fd), noted as a leftover: to be renamed or removed,
 * then over. NULL: none could be made, as errno says. Transfer full. */
char *plan_file_aside(const char *path, int *ret_fd);
/* 0, or the errno of what failed. */
int plan_file_write(const char *path, const char *bytes, gsize length);
