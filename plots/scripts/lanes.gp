# plots/scripts/lanes.gp - what each lane does over time, and which communication is exposed.
#
# Reads settings.gp's variables and, for panel p and colour k, boxes-p-k.tsv, exposed-p.tsv and
# host-p.tsv, all written by plots/lanes.c; a lane that does nothing has no row. All panels share
# both axes. At the top stand the moments at which the host issues ops, then the lanes, and at the
# bottom "exposed": a collective runs and the compute lane computes nothing.

set datafile separator "\t"
load scripts."/colours.gp"

x(t) = t / ns_per_unit
row_y(r) = n_lanes - r
lane_y(l) = row_y(row[int(l) + 1])

left = 0.11
right = 0.835
top = 0.885
bottom = 0.1
gap = 0.11
height = (top - bottom - gap * (n_panels - 1)) / n_panels

set xrange [x(first_ns):x(last_ns)]
set yrange [-0.5:n_lanes + 1.5]
set tics out nomirror
set border 3
set grid xtics back lt 1 lc rgb "#dddddd" lw 0.5
set ytics ("exposed" 0, "host issues" n_lanes + 1) noenhanced
do for [l = 1:n_lanes] {
    set ytics add (lane[l] row_y(l - 1))
}
unset key
set multiplot
set lmargin at screen left
set rmargin at screen right
set label 1001 sprintf("Lanes over %s: %s", shown_steps, plan_title) at screen left, screen title_y \
    font title_font noenhanced

key_x = right + 0.018
key_y(row) = top - 0.022 - 0.042 * row
do for [k = 1:n_classes] {
    do for [pass = 0:1] {
        set object rect from screen key_x, screen key_y(k - 1) - 0.014 \
            to screen key_x + 0.028, screen key_y(k - 1) + 0.014 \
            fc rgb (pass == 0 ? colour(k) : dark(k)) \
            fs transparent pattern (pass == 0 ? SOLID : pattern(k)) noborder
    }
    set label class[k] at screen key_x + 0.036, screen key_y(k - 1) noenhanced
}
set object rect from screen key_x, screen key_y(n_classes + 0.5) - 0.014 \
    to screen key_x + 0.028, screen key_y(n_classes + 0.5) + 0.014 fc rgb "black" fs solid noborder
set label "exposed" at screen key_x + 0.036, screen key_y(n_classes + 0.5)

do for [p = 1:n_panels] {
    set tmargin at screen top - (p - 1) * (height + gap)
    set bmargin at screen top - (p - 1) * (height + gap) - height
    set label 1002 panel[p].": ".lesson[p] at graph 0, graph 1.05 \
        font panel_font(panel[p].lesson[p]) noenhanced
    if (p == n_panels) {
        set xlabel sprintf("time since the start of %s (%s)", first_name, time_unit)
    } else {
        unset xlabel
    }
    plot for [k = 1:n_classes] for [pass = 0:1] sprintf("boxes-%d-%d.tsv", p, k) skip 1 \
             using (x($1)):(lane_y($3)):(x($1)):(x($2)):(lane_y($3) - 0.36):(lane_y($3) + 0.36) \
             with boxxyerror fc rgb (pass == 0 ? colour(k) : dark(k)) \
             fs transparent pattern (pass == 0 ? SOLID : pattern(k)) noborder, \
         sprintf("exposed-%d.tsv", p) skip 1 using (x($1)):(0):(x($1)):(x($2)):(-0.2):(0.2) \
             with boxxyerror fc rgb "black" fs solid noborder, \
         sprintf("host-%d.tsv", p) skip 1 using (x($1)):(n_lanes + 1 - 0.25):(0):(0.5) \
             with vectors nohead lc rgb "#444444" lw 0.5
    unset object
    unset label
}
unset multiplot
