# plots/scripts/pareto.gp - peak memory against step time, a point a plan, and the front that none beats in both.
#
# Reads settings.gp's variables and line-1.tsv, marks-1.tsv and front.tsv, written by
# plots/points.c (their columns: plots/scripts/sweep.gp; the label is the point's own).

set datafile separator "\t"
set datafile missing "?"
load scripts."/colours.gp"
load scripts."/points.gp"

unset logscale
set xtics autofreq
left = 0.075
right = 0.66
do for [i = 1:n_numbered] { # a letter of the key takes some 0.0049 of the width
    narrower = 0.66 - 0.0049 * (strlen(front[i]) - 58)
    right = narrower < right ? narrower : right
}
right = right > 0.4 ? right : 0.4
set lmargin at screen left
set rmargin at screen right
set tmargin at screen 0.885
set bmargin at screen 0.1
set label 1001 sprintf("Memory against %s: %s", cost_name, plan_title) \
    at screen left, screen title_y font title_font noenhanced
set label 1003 lesson at screen left, screen lesson_y font lesson_font noenhanced
key_x = right + 0.02
key_top = 0.885
uses_limit = 1
series[1] = "predicted"
joined = 0
load scripts."/points-key.gp"
row = row + 2
set arrow from screen key_x, screen key_y(row) to screen key_x + 0.03, screen key_y(row) \
    nohead lc rgb "#D55E00" lw 3
set label "front: none is better in both" at screen key_x + 0.038, screen key_y(row) font ",12"
do for [i = 1:n_numbered] {
    set label sprintf("%d  %s", i, front[i]) at screen key_x, screen key_y(row + 0.3 + 0.8 * i) \
        font ",10" noenhanced
}
if (n_front > n_numbered) {
    set label sprintf("and %d between them", n_front - n_numbered) \
        at screen key_x, screen key_y(row + 0.3 + 0.8 * (n_numbered + 1)) font ",10" tc rgb "#555555"
}
set xlabel sprintf("%s (%s)", cost_name, cost_unit)
set ylabel sprintf("peak reserved (%s)", size_unit)
set xrange [0:most_cost_ns / cost_per_unit * 1.08]
set yrange [0:(limit_shown && limit_bytes > most_bytes ? limit_bytes : most_bytes) / bytes_per_unit * 1.12]
cost(c) = column(c) / cost_per_unit
# The numbers stand left below their points, where the front lets no other point be.
plot "front.tsv" skip 1 using (cost(10)):(column(7) / bytes_per_unit) \
         with steps lc rgb "#D55E00" lw 3, \
     "line-1.tsv" skip 1 using (cost(10)):(column(9) == 1 ? column(7) / bytes_per_unit : 1 / 0) \
         with points pt filled(1) ps 1.5 * dot lc rgb dark(1), \
     "line-1.tsv" skip 1 using (cost(10)):(column(9) == 0 ? column(7) / bytes_per_unit : 1 / 0) \
         with points pt hollow(1) ps 1.5 * dot lc rgb dark(1), \
     "marks-1.tsv" skip 1 using (cost(10)):(column(7) / bytes_per_unit) \
         with points pt MEASURED ps 2 * dot lw 2 lc rgb "black", \
     "front.tsv" skip 1 using (cost(10)):(column(7) / bytes_per_unit):(number[int($0) + 1] ? sprintf("%d", number[int($0) + 1]) : "") \
         with labels right offset -0.9, -0.7 font ",12", \
     limit_shown ? limit_bytes / bytes_per_unit : 1 / 0 with lines lc rgb "black" lw 1.2 dt (2, 3)
