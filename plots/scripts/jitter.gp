# plots/scripts/jitter.gp - the time of each step, predicted and measured, and the spread of the steady ones.
#
# Reads settings.gp's variables and, for panel p, jitter-p.tsv (step, ns, whether it is steady), written
# by plots/jitter.c.

set datafile separator "\t"
load scripts."/colours.gp"

y(t) = t / ns_per_unit
array mark[2] = [5, 7]
array hollow[2] = [4, 6]
array dash[2] = [1, 2]

set lmargin at screen 0.075
set rmargin at screen 0.98
set tmargin at screen 0.80
set bmargin at screen 0.1
set xrange [first_step - 0.5:last_step + 0.5]
set yrange [0:y(last_ns) * 1.1]
set tics out nomirror
if (last_step - first_step < 12) { set xtics 1 } # else there would be half steps
set border 3
set grid ytics back lt 1 lc rgb "#dddddd" lw 0.5
set xlabel "step"
set ylabel sprintf("step time (%s)", time_unit)
unset key
set label sprintf("Step-time jitter: %s", plan_title) at screen 0.075, screen title_y font title_font noenhanced
do for [p = 1:n_panels] {
    set label "" at screen 0.082, screen 0.925 - 0.045 * (p - 1) point pt mark[p] ps 1.4 * dot lc rgb dark(p)
    set label sprintf("%s: median %.3f %s, 95 %% within %.3f %s, range %.3f to %.3f %s (%d steady steps, filled)", \
                      panel[p], y(median[p]), time_unit, y(p95[p]), time_unit, y(least[p]), y(most[p]), time_unit, n_steady[p]) \
        at screen 0.097, screen 0.925 - 0.045 * (p - 1) font ",13" noenhanced
}
plot for [p = 1:n_panels] sprintf("jitter-%d.tsv", p) skip 1 using 1:(y($2)) \
         with lines lc rgb dark(p) lw 1 dt dash[p], \
     for [p = 1:n_panels] sprintf("jitter-%d.tsv", p) skip 1 using 1:($3 == 1 ? y($2) : 1 / 0) \
         with points pt mark[p] ps 1.3 * dot lc rgb dark(p), \
     for [p = 1:n_panels] sprintf("jitter-%d.tsv", p) skip 1 using 1:($3 == 0 ? y($2) : 1 / 0) \
         with points pt hollow[p] ps 1.3 * dot lc rgb dark(p), \
     for [p = 1:n_panels] y(median[p]) with lines lc rgb dark(p) lw 0.8 dt (2, 4)
