# plots/scripts/scale.gp - FLOP/s of a GPU over the number of GPUs; a line a series, published points as marks.
#
# Reads settings.gp's variables and, for series k, line-k.tsv and marks-k.tsv, written by
# plots/points.c (their columns: plots/scripts/sweep.gp).

set datafile separator "\t"
set datafile missing "?"
load scripts."/colours.gp"
load scripts."/points.gp"

left = 0.075
right = right_of_plot
set lmargin at screen left
set rmargin at screen right
set tmargin at screen 0.885
set bmargin at screen 0.1
set label 1001 sprintf("TFLOP/s per GPU: %s", plan_title) at screen left, screen title_y font title_font noenhanced
set label 1002 "of matrix products and attention, recomputation not counted" \
    . (n_marks > 0 ? "; ".marks_name." runs likewise" : "") \
    at graph 0, graph 1.02 font ",13"
set label 1003 lesson at screen left, screen lesson_y font lesson_font noenhanced
key_x = right + 0.02
key_top = 0.885
uses_limit = 0
load scripts."/points-key.gp"
set ylabel "TFLOP/s per GPU"
set yrange [0:most_flops / 1e12 * 1.12]
set xlabel x_name noenhanced
plot for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 using 1:(column(8) / 1e12) \
         with lines lc rgb dark(k) lw 2 dt dash(k), \
     for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 \
         using 1:(column(9) == 1 ? column(8) / 1e12 : 1 / 0) with points pt filled(k) ps 1.5 * dot lc rgb dark(k), \
     for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 \
         using 1:(column(9) == 0 ? column(8) / 1e12 : 1 / 0) with points pt hollow(k) ps 1.5 * dot lc rgb dark(k), \
     for [k = 1:n_series] sprintf("marks-%d.tsv", k) skip 1 using 1:(column(8) / 1e12) \
         with points pt MEASURED ps 2 * dot lw 2.5 lc rgb dark(k)
