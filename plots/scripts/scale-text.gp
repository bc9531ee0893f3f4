# plots/scripts/scale-text.gp - FLOP/s of a GPU over the number of GPUs, for a terminal: a letter a series.
#
# Reads what plots/scripts/sweep.gp reads.

load scripts."/points-text.gp"
set xlabel x_name
set title "TFLOP/s per GPU"
set yrange [0:most_flops / 1e12 * 1.12]
plot for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 using 1:(fine ? column(8) / 1e12 : NaN) \
         with lines lt 1 notitle, \
     for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 using 1:(column(8) / 1e12):(letter(k)) \
         with labels notitle, \
     for [k = 1:n_series] sprintf("marks-%d.tsv", k) skip 1 using 1:(column(8) / 1e12):("*") \
         with labels notitle, \
     for [k = 1:n_series] keyentry with points pt letter(k) title name(k), \
     keyentry with points pt (n_marks > 0 ? "*" : " ") title (n_marks > 0 ? marks_name : "")
