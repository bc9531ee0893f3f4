# plots/scripts/sweep-text.gp - step time and peak memory over one knob, for a terminal: a letter a series.
#
# Reads what plots/scripts/sweep.gp reads.

load scripts."/points-text.gp"
set xlabel x_name
set title sprintf("step (%s)", time_unit)
set yrange [0:most_step_ns / ns_per_unit * 1.12]
plot for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 using 1:(fine ? column(3) / ns_per_unit : NaN) \
         with lines lt 1 notitle, \
     for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 using 1:(column(3) / ns_per_unit):(letter(k)) \
         with labels notitle, \
     for [k = 1:n_series] sprintf("marks-%d.tsv", k) skip 1 using 1:(column(3) / ns_per_unit):("*") \
         with labels notitle, \
     for [k = 1:n_series] keyentry with points pt letter(k) title name(k), \
     keyentry with points pt (n_marks > 0 ? "*" : " ") title (n_marks > 0 ? marks_name : "")
set title sprintf("peak reserved (%s)", size_unit)
set yrange [0:most_bytes / bytes_per_unit * 1.12]
plot for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 using 1:(fine ? column(7) / bytes_per_unit : NaN) \
         with lines lt 1 notitle, \
     for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 using 1:(column(7) / bytes_per_unit):(letter(k)) \
         with labels notitle, \
     for [k = 1:n_series] sprintf("marks-%d.tsv", k) skip 1 using 1:(column(7) / bytes_per_unit):("*") \
         with labels notitle, \
     for [k = 1:n_series] keyentry with points pt letter(k) title name(k), \
     keyentry with points pt (n_marks > 0 ? "*" : " ") title (n_marks > 0 ? marks_name : "")
