# plots/scripts/jitter-text.gp - the time of each step, for a terminal: "p" the first trace, "m" the second.
#
# Reads what plots/scripts/jitter.gp reads.

set datafile separator "\t"
y(t) = t / ns_per_unit
array letter[2] = ["p", "m"]
set print "-"
print plan_title
do for [p = 1:n_panels] {
    print sprintf("%s %s: median %.3f %s, 95 %% within %.3f %s, range %.3f to %.3f %s (%d steady steps)", \
                  letter[p], panel[p], y(median[p]), time_unit, y(p95[p]), time_unit, \
                  y(least[p]), y(most[p]), time_unit, n_steady[p])
}
text_columns = columns + 16
text_rows = 20
load scripts."/text.gp"
set xrange [first_step - 0.5:last_step + 0.5]
set yrange [0:y(last_ns) * 1.1]
set tics out nomirror
if (last_step - first_step < 12) { set xtics 1 } # else there would be half steps
set border 3
unset key
set xlabel "step"
set title sprintf("step time (%s)", time_unit)
plot for [p = 1:n_panels] sprintf("jitter-%d.tsv", p) skip 1 using 1:(fine ? y($2) : NaN) with lines lt 1, \
     for [p = 1:n_panels] sprintf("jitter-%d.tsv", p) skip 1 using 1:(y($2)):(letter[p]) with labels
