# plots/scripts/validation-text.gp - predicted against measured of published runs, for a terminal: step time, and below it the
# peak of memory where peaks were published.
#
# Reads what plots/scripts/validation.gp reads; "." is where both are equal.

load scripts."/points-text.gp"
has_times = most_x > 0
text_columns = columns
text_rows = has_times && published_known ? 32 : 40
load scripts."/text.gp"
set samples 60
if (has_times) {
    low = (least_x < least_step_ns ? least_x : least_step_ns) / ns_per_unit / 1.5
    high = (most_x > most_step_ns ? most_x : most_step_ns) / ns_per_unit * 1.5
    load scripts."/both-log.gp"
    set xrange [low:high]
    set yrange [low:high]
    set xlabel sprintf("measured (%s)", time_unit)
    set title sprintf("predicted (%s)", time_unit)
    plot fine ? NaN : x with points pt "." notitle, fine ? x : NaN with lines lt 1 notitle, \
         for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 \
             using (column(1) / ns_per_unit):(column(3) / ns_per_unit) with points pt letter(k) notitle, \
         for [k = 1:n_series] keyentry with points pt letter(k) title name(k)
}
if (published_known) {
    low = least_peak / bytes_per_unit / 1.5
    high = most_peak / bytes_per_unit * 1.5
    load scripts."/both-log.gp"
    set xrange [low:high]
    set yrange [low:high]
    set xlabel sprintf("measured (%s)", size_unit)
    set title sprintf("predicted peak of memory (%s)", size_unit)
    plot fine ? NaN : x with points pt "." notitle, fine ? x : NaN with lines lt 1 notitle, \
         for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 \
             using (column(11) / bytes_per_unit):(column(7) / bytes_per_unit) with points pt letter(k) notitle, \
         for [k = 1:n_series] keyentry with points pt letter(k) title name(k)
}
