/* plan/text/text.h - the text form of a plan: written, digested, read back.
 *
 * One canonical text per plan: what is written, read and written again is the same bytes. The text
 * of network and strategy stands in it too, for tools that vary a knob, but outside the digest.
 */
#pragma once

#include "plan/plan.h"

/* The whole file. */
GString *plan_text(const Plan *plan);
/* The part that the digest covers: mesh, roles, buffers and instructions. */
void plan_text_append_program(const Plan *plan, GString *text);
/* One instruction as it stands in the file, without the newline. */
void plan_text_append_instr(const Plan *plan, const PlanRole *role, const PlanInstr *instr,
                            GString *text);

/* Written aside and renamed. */
bool plan_write_file(const Plan *plan, const char *path, GError **error);

/* file_name stands in messages: "FILE:LINE: what is wrong; what to do". The plan has passed
 * plan_check(). */
Plan *plan_read(const char *text, gsize length, const char *file_name, GError **error);
Plan *plan_read_file(const char *path, GError **error);
/* Whether a file can be read and its first line says that it is a plan, of whatever version. */
bool plan_is_file(const char *path);
