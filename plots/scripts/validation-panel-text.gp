# plots/scripts/validation-panel-text.gp - one panel of validation-text.gp; it reads what validation-panel.gp reads.

low = panel_low / per_unit / 1.5
high = panel_high / per_unit * 1.5
load scripts."/both-log.gp"
set xrange [low:high]
set yrange [low:high]
set xlabel sprintf("measured (%s)", unit)
set title sprintf("%s (%s)", panel_title, unit)
plot fine ? NaN : x with points pt "." notitle, fine ? x : NaN with lines lt 1 notitle, \
     for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 \
         using (column(measured) / per_unit):(column(predicted) / per_unit) with points pt letter(k) notitle, \
     for [k = 1:n_series] keyentry with points pt letter(k) title name(k)
