# plots/scripts/sweep.gp - step time and peak memory over one knob; a line a series, measured points as marks.
#
# Reads settings.gp's variables and, for series k, line-k.tsv and marks-k.tsv, written by
# plots/points.c: x, label, step, least and most step (ns), allocated, reserved (bytes), FLOP/s,
# whether it fits.

set datafile separator "\t"
set datafile missing "?"
load scripts."/colours.gp"
load scripts."/points.gp"

# Between words there is nothing to join: a single series of them stands on the axis.
joined = x_is_number || n_series > 1
joined_by = joined ? "lines" : "impulses"

left = 0.075
right = right_of_plot
array top[2] = [0.868, 0.430]
height = 0.33
set lmargin at screen left
set rmargin at screen right
set multiplot
set label 1001 sprintf("Step time and peak memory over %s: %s", x_name, plan_title) at screen left, screen title_y font title_font noenhanced
set label 1003 lesson at screen left, screen lesson_y font lesson_font noenhanced
key_x = right + 0.02
key_top = top[1]
uses_limit = 1
load scripts."/points-key.gp"

do for [panel = 1:2] {
    set tmargin at screen top[panel]
    set bmargin at screen top[panel] - height
    if (panel == 1) {
        set label 1002 "step time, median of the steady steps; bars: their range" \
            at graph 0, graph 1.05 font ",13"
        set ylabel sprintf("step (%s)", time_unit)
        set yrange [0:most_step_ns / ns_per_unit * 1.12]
        unset xlabel
        plot for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 using 1:(column(3) / ns_per_unit) \
                 with @joined_by lc rgb dark(k) lw 2 dt dash(k), \
             for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 \
                 using 1:(column(3) / ns_per_unit):(column(4) / ns_per_unit):(column(5) / ns_per_unit) \
                 with yerrorbars pt 0 lc rgb dark(k), \
             for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 \
                 using 1:(column(9) == 1 ? column(3) / ns_per_unit : 1 / 0) \
                 with points pt filled(k) ps 1.5 * dot lc rgb dark(k), \
             for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 \
                 using 1:(column(9) == 0 ? column(3) / ns_per_unit : 1 / 0) \
                 with points pt hollow(k) ps 1.5 * dot lc rgb dark(k), \
             for [k = 1:n_series] sprintf("marks-%d.tsv", k) skip 1 \
                 using 1:(column(3) / ns_per_unit):(column(4) / ns_per_unit):(column(5) / ns_per_unit) \
                 with yerrorbars pt MEASURED ps 2 * dot lw 2 lc rgb "black"
    } else {
        set label 1002 sprintf("peak memory: reserved (%s), allocated (dots)", joined ? "line" : "squares") at graph 0, graph 1.05 font ",13"
        set ylabel sprintf("peak (%s)", size_unit)
        set yrange [0:(limit_shown && limit_bytes > most_bytes ? limit_bytes : most_bytes) / bytes_per_unit * 1.12]
        set xlabel x_name noenhanced
        plot for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 \
                 using 1:(column(7) / bytes_per_unit) with @joined_by lc rgb dark(k) lw 2 dt dash(k), \
             for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 \
                 using 1:(column(9) == 1 ? column(7) / bytes_per_unit : 1 / 0) \
                 with points pt filled(k) ps 1.5 * dot lc rgb dark(k), \
             for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 \
                 using 1:(column(9) == 0 ? column(7) / bytes_per_unit : 1 / 0) \
                 with points pt hollow(k) ps 1.5 * dot lc rgb dark(k), \
             for [k = 1:n_series] sprintf("line-%d.tsv", k) skip 1 \
                 using 1:(column(6) / bytes_per_unit) with points pt 7 ps 0.8 * dot lc rgb dark(k), \
             for [k = 1:n_series] sprintf("marks-%d.tsv", k) skip 1 \
                 using 1:(column(7) / bytes_per_unit) with points pt MEASURED ps 2 * dot lw 2 lc rgb "black", \
             limit_shown ? limit_bytes / bytes_per_unit : 1 / 0 with lines lc rgb "black" lw 1.2 dt (2, 3)
    }
    unset object
    unset label
    unset arrow
}
unset multiplot
