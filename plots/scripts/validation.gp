# plots/scripts/validation.gp - predicted against measured of published runs: step time, and beside it the peak of memory
# where peaks were published; bands of error.
#
# Reads settings.gp's variables and, for series k, line-k.tsv, written by plots/points.c: x is the measured time (ns), the
# third column the predicted one; the seventh the predicted peak (bytes), the eleventh the measured one.

set datafile separator "\t"
set datafile missing "?"
load scripts."/colours.gp"
load scripts."/points.gp"

# Names of tables begin alike (train_): what they share is left out.
shared = n_series > 1 ? strstrt(series[1], "_") : 0
do for [k = 1:n_series] {
    shared = strlen(series[k]) > shared && series[k][1:shared] eq series[1][1:shared] ? shared : 0
}
do for [k = 1:n_series] { series[k] = series[k][shared + 1:*] }

left = 0.055
set label 1001 sprintf("Predicted against measured: %s", plan_title) \
    at screen left, screen title_y font title_font noenhanced
set label 1003 lesson at screen left, screen lesson_y font lesson_font noenhanced
key_x = published_known ? 0.80 : 0.60
key_top = 0.85
uses_limit = 0
joined = 0
load scripts."/points-key.gp"
set label "grey: 10 % off, dotted: 25 %" at screen key_x, screen key_y(row + 0.5) font ",12"
set size square
set samples 200
set tmargin at screen 0.85
set bmargin at screen 0.115

set multiplot
has_times = most_x > 0
if (has_times) {
    set lmargin at screen left
    set rmargin at screen (published_known ? left + 0.335 : left + 0.5)
    panel_title = "step time"
    panel_low = least_x < least_step_ns ? least_x : least_step_ns
    panel_high = most_x > most_step_ns ? most_x : most_step_ns
    per_unit = ns_per_unit
    unit = time_unit
    measured = 1
    predicted = 3
    load scripts."/validation-panel.gp"
    do for [n = 1:1100] { unset label n }
}
if (published_known) {
    set lmargin at screen (has_times ? 0.455 : left)
    set rmargin at screen (has_times ? 0.79 : left + 0.5)
    panel_title = "peak of memory"
    panel_low = least_peak
    panel_high = most_peak
    per_unit = bytes_per_unit
    unit = size_unit
    measured = 11
    predicted = 7
    load scripts."/validation-panel.gp"
}
unset multiplot
