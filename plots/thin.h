/* plots/thin.h - fewer moments than were recorded, with nothing lost that a picture can show.
 *
 * Both go by slices of time, of equal length between the first and the last moment.
 */
#pragma once

#include "trace/moments.h"

/* In each slice the first and the last moment and those where any series is least and greatest; all
 * where n_slices is 0. A new array of TraceMoment. */
GArray *plot_thin(const TraceMoments *moments, guint n_slices);

/* Moments where they can be told apart; where more than four fall into one slice, the most of it
 * (the categories when it holds the most, and each statistic's most), and behind it what stays,
 * unless the next slice goes on so. A new array of TraceMoment. */
GArray *plot_crests(const TraceMoments *moments, guint n_slices);

/* Moments as a table: time (ns), allocated bytes of each category (its part before "/", in the
 * order of the trace's table), allocated, active and reserved; a row a moment. Columns are
 * separated by tabs, and the first line names them. */
GString *plot_moments_table(const GArray *moments, const GPtrArray *categories);
