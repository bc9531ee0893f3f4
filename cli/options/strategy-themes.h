/* cli/options/strategy-themes.h - the keys of a strategy by what they are about, as --help-strategy
 * and the manual show them.
 *
 * A strategy has some seventy keys, in the order in which a plan's text has them; whoever looks for
 * one knows what it should be about. What is asked for most stands first. Every key is of one
 * theme: tests/cli/test-help.py.
 */
#pragma once

typedef struct {
    const char *title; /* behind "Strategy options, " */
    const char *keys;  /* of plan/strategy/keys.def, a blank between two */
} CliStrategyTheme;

/* Of the first theme, which begins the group. */
#define CLI_STRATEGY_HEADING                                                                       \
    "Strategy options, GPUs and sharding (with a NETWORK; each is also a key of an ini file):"

extern const CliStrategyTheme cli_strategy_themes[];
extern const unsigned cli_n_strategy_themes;
