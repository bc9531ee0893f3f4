# plots/scripts/validation-text.gp - predicted against measured step time of published runs, for a terminal.
#
# Reads what plots/scripts/validation.gp reads; "." is where both are equal.

load scripts."/points-text.gp"
low = least_x / ns_per_unit / 1.5
high = most_x / ns_per_unit * 1.5
text_columns = columns
text_rows = 40
load scripts."/text.gp"
load scripts."/both-log.gp"
set xrange [low:high]
set yrange [low:high]
set xlabel sprintf("measured (%s)", time_unit)
set title sprintf("predicted (%s)", time_unit)
set samples 60
plot fine ? NaN : x with points pt "." notitle, fine ? x : NaN with lines lt 1 notitle, \
     for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 \
         using (column(1) / ns_per_unit):(column(3) / ns_per_unit) with points pt letter(k) notitle, \
     for [k = 1:n_series] keyentry with points pt letter(k) title name(k)
