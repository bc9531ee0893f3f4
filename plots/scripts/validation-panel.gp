# plots/scripts/validation-panel.gp - one panel of validation.gp: predicted against measured, bands of error around equality.
#
# Reads panel_title, panel_low and panel_high (of both axes), per_unit and unit, measured and predicted (columns).
# Many points are small.

low = panel_low / per_unit / 1.5
high = panel_high / per_unit * 1.5
load scripts."/both-log.gp"
set xrange [low:high]
set yrange [low:high]
set title panel_title font ",13"
set xlabel sprintf("measured (%s)", unit)
set ylabel sprintf("predicted (%s)", unit)
plot '+' using 1:($1 * 0.9):($1 * 1.1) with filledcurves fc rgb "#dddddd" fs solid noborder, \
     x with lines lc rgb "black" lw 1.2, \
     x * 1.25 with lines lc rgb "#777777" lw 1 dt (2, 3), x / 1.25 with lines lc rgb "#777777" lw 1 dt (2, 3), \
     for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 \
         using (column(measured) / per_unit):(column(predicted) / per_unit) \
         with points pt filled(k) ps (n_lines > 300 ? 0.9 : 1.2) * dot lc rgb dark(k)
