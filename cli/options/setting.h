/* cli/options/setting.h - "key=value": a setting of a strategy or, as "network.KEY=VALUE", of a
 * network.
 *
 * Several stand in one text, a blank between two: a trace's header has a strategy so, a remedy what
 * it changes.
 */
#pragma once

#include <glib.h>

/* "KEY" of "network.KEY", also of "network.KEY=VALUE"; NULL: it is a strategy's. */
const char *cli_setting_of_network(const char *key);

/* {"wrap", "block", "ranks", "8", NULL} of "wrap=block ranks=8", two at a time; words that are no
 * setting are left out. NULL is none. Transfer full. */
char **cli_settings_split(const char *settings);
/* Of a key among such; NULL: it is not there. */
const char *cli_settings_value(char **pairs, const char *key);

/* "--wrap block -n 8 --network-key loss=kernel". Transfer full. */
char *cli_settings_as_options(const char *settings);
