# plots/scripts/pareto-text.gp - peak memory against step time, for a terminal: "#" on the front, "o" beaten.
#
# Reads what plots/scripts/pareto.gp reads.

load scripts."/points-text.gp"
unset logscale
set xtics autofreq
set xrange [0:most_cost_ns / cost_per_unit * 1.12]
set yrange [0:most_bytes / bytes_per_unit * 1.12]
set xlabel sprintf("%s (%s)", cost_name, cost_unit)
set title sprintf("peak reserved (%s)", size_unit)
plot "front.tsv" skip 1 using (column(10) / cost_per_unit):(fine ? column(7) / bytes_per_unit : NaN) \
         with steps lt 1 notitle, \
     "line-1.tsv" skip 1 using (column(10) / cost_per_unit):(column(7) / bytes_per_unit):("o") \
         with labels notitle, \
     "marks-1.tsv" skip 1 using (column(10) / cost_per_unit):(column(7) / bytes_per_unit):("*") \
         with labels notitle, \
     "front.tsv" skip 1 using (column(10) / cost_per_unit):(column(7) / bytes_per_unit):("#") \
         with labels notitle, \
     keyentry with points pt "o" title "a setting", keyentry with points pt "#" title "on the front", \
     keyentry with points pt (n_marks > 0 ? "*" : " ") title (n_marks > 0 ? marks_name : "")
