# plots/scripts/validation.gp - predicted against measured step time of published runs, and bands of error.
#
# Reads settings.gp's variables and, for series k, line-k.tsv, written by plots/points.c: x is the
# measured time (ns), the third column the predicted one.

set datafile separator "\t"
set datafile missing "?"
load scripts."/colours.gp"
load scripts."/points.gp"

left = 0.08
right = 0.70
set lmargin at screen left
set rmargin at screen right
set tmargin at screen 0.885
set bmargin at screen 0.1
set label 1001 sprintf("Predicted against measured: %s", plan_title) \
    at screen left, screen title_y font title_font noenhanced
set label 1003 lesson at screen left, screen lesson_y font lesson_font noenhanced
key_x = 0.56
key_top = 0.885
uses_limit = 0
joined = 0
load scripts."/points-key.gp"
set label "band: 10 %, dotted: 25 % off" at screen key_x, screen key_y(row + 0.5) font ",12"
low = least_x / ns_per_unit / 1.5
high = most_x / ns_per_unit * 1.5
load scripts."/both-log.gp"
set xrange [low:high]
set yrange [low:high]
set size square
set xlabel sprintf("measured (%s)", time_unit)
set ylabel sprintf("predicted (%s)", time_unit)
set samples 200
plot '+' using 1:($1 * 0.9):($1 * 1.1) with filledcurves fc rgb "#dddddd" fs solid noborder, \
     x with lines lc rgb "black" lw 1.2, \
     x * 1.25 with lines lc rgb "#777777" lw 1 dt (2, 3), x / 1.25 with lines lc rgb "#777777" lw 1 dt (2, 3), \
     for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 \
         using (column(1) / ns_per_unit):(column(3) / ns_per_unit) \
         with points pt filled(k) ps 1.2 lc rgb dark(k)
