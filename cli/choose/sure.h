/* cli/choose/sure.h - how far the rows of a table are to be believed. */
#pragma once

#include "cli/choose/choose.h"

/* What published runs of the kinds of the rows were off by; nothing where none is known. */
void cli_choose_append_sure(GString *text, const CliChosen *chosen, const CliChooseView *view);
