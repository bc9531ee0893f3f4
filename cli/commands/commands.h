/* cli/commands/commands.h - the sub-commands: argv[0] is the command's name.
 *
 * Each returns the exit status: 0, 1 for a failure at run time, 2 for bad input.
 */
#pragma once

int cmd_plan(int argc, char **argv);
int cmd_units(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_predict(int argc, char **argv);
int cmd_choose(int argc, char **argv);
int cmd_collectives(int argc, char **argv);
int cmd_validate(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_rehearse(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_calibrate(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_plot(int argc, char **argv);
int cmd_diagnose(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_export(int argc, char **argv);
