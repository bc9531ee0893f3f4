# plots/scripts/memory.gp - memory over time: categories stacked, the allocator's figures as lines.
#
# Reads settings.gp's variables and, for panel p, outline-p-k.tsv, crest-p-k.tsv, crests-p.tsv,
# steps-p.tsv and peak-p.tsv, all written by plots/memory.c. All panels share both axes.
#
# What is gathered and dropped within a few pixels stands pale behind what stays, up to its crest; the
# lines run along the crests.

set datafile separator "\t"
set datafile missing NaN # such a point is left out, and the line goes on
load scripts."/colours.gp"

x(t) = t / ns_per_unit
y(b) = b / bytes_per_unit
# A step's name, unless the one before it is still being written there: a name takes 1/16 of the width.
step_name(t, name) = t - named_ns < (last_ns - first_ns) / 16. ? "" : (named_ns = t, name)
# A dotted line through many points looks torn: it gets those where it turns, and the last.
turn(row, b) = b == held && row + 1 < n_rows ? NaN : (held = b, y(b))
is_early(t) = t < (first_ns + last_ns) / 2
ALLOCATED = n_categories + 2
ACTIVE = n_categories + 3
RESERVED = n_categories + 4

# Room for the title above, the time axis below and the key at the right.
left = 0.065
right = 0.835
top = 0.885
bottom = 0.1
gap = 0.11
height = (top - bottom - gap * (n_panels - 1)) / n_panels

set xrange [x(first_ns):x(last_ns)]
set yrange [0:y(most_bytes) * 1.17]
set tics out nomirror
set border 3
set grid ytics back lt 1 lc rgb "#dddddd" lw 0.5
set ylabel sprintf("memory (%s)", size_unit)
unset key
set style textbox opaque noborder fillcolor rgb "#ffffff" margins 0.5, 0.2
set multiplot
set lmargin at screen left
set rmargin at screen right

set label 1001 "Memory over time: ".plan_title at screen left, screen title_y font title_font noenhanced

# The key, in the order of the stack.
key_x = right + 0.018
key_y(row) = top - 0.022 - 0.042 * row
row = 0
do for [k = n_categories:1:-1] {
    do for [pass = 0:1] {
        set object rect from screen key_x, screen key_y(row) - 0.014 \
            to screen key_x + 0.028, screen key_y(row) + 0.014 \
            fc rgb (pass == 0 ? colour(k) : dark(k)) \
            fs transparent pattern (pass == 0 ? SOLID : pattern(k)) noborder
    }
    set label category[k] at screen key_x + 0.036, screen key_y(row) noenhanced
    row = row + 1
}
row = row + 0.5
set style arrow 1 nohead lc rgb "black" lw 1.3 dt 1
set style arrow 2 nohead lc rgb "#D55E00" lw 1.3 dt (6, 3)
set style arrow 3 nohead lc rgb "black" lw 1.6 dt (1.5, 2.5)
array line_name[3] = ["reserved", "active", "allocated"]
array line_style[3] = [3, 2, 1]
do for [i = 1:3] {
    set arrow from screen key_x, screen key_y(row) to screen key_x + 0.028, screen key_y(row) \
        arrowstyle line_style[i]
    set label line_name[i] at screen key_x + 0.036, screen key_y(row)
    row = row + 1
}
set label "peak allocated" at screen key_x + 0.036, screen key_y(row)
set label "" at screen key_x + 0.014, screen key_y(row) point pt 7 ps 1.3 * dot lc rgb "black"
if (limit_shown) {
    row = row + 1
    set style arrow 4 nohead lc rgb "black" lw 2.5 dt 1
    set arrow from screen key_x, screen key_y(row) to screen key_x + 0.028, screen key_y(row) \
        arrowstyle 4
    set label sprintf("limit, %.2f %s", y(limit_bytes), size_unit) \
        at screen key_x + 0.036, screen key_y(row)
}
set label "pale: lasts less than 4 pixels" at screen key_x, screen key_y(row + 1.3) font ",11" tc rgb "#555555"
set label sprintf("1 %s is 2^{%.0f} bytes", size_unit, log10(bytes_per_unit) / log10(2)) \
    at screen key_x, screen key_y(row + 2.1) font ",11" tc rgb "#555555"

do for [p = 1:n_panels] {
    rows = sprintf("crests-%d.tsv", p)
    steps = sprintf("steps-%d.tsv", p)
    named_ns = first_ns - (last_ns - first_ns)
    peak = sprintf("peak-%d.tsv", p)
    held = -1
    stats rows skip 1 using (0) nooutput # counts them, wherever they lie
    n_rows = STATS_records
    set tmargin at screen top - (p - 1) * (height + gap)
    set bmargin at screen top - (p - 1) * (height + gap) - height
    set label 1002 panel[p].": ".lesson[p] at graph 0, graph 1.05 \
        font panel_font(panel[p].lesson[p]) noenhanced
    if (p == n_panels) {
        set xlabel sprintf("host time since the start of %s (%s)", first_name, time_unit)
    } else {
        unset xlabel
    }
    # The crests, pale. Then, from the top of the stack down, each layer painted over those below: colour, then pattern.
    # The peak's label stands on the side of it that has room.
    plot for [k = n_categories:1:-1] sprintf("crest-%d-%d.tsv", p, k) skip 1 using (x($1)):(y($2)) \
             with filledcurves y1=0 fc rgb pale(k) fs solid noborder, \
         for [k = n_categories:1:-1] for [pass = 0:1] \
             sprintf("outline-%d-%d.tsv", p, k) skip 1 using (x($1)):(y($2)) with filledcurves y1=0 \
             fc rgb (pass == 0 ? colour(k) : dark(k)) \
             fs transparent pattern (pass == 0 ? SOLID : pattern(k)) noborder, \
         limit_shown ? y(limit_bytes) : 1 / 0 with lines lc rgb "black" lw 2.5 dt 1, \
         steps skip 1 using (x($1)):(0):(0):(y(most_bytes) * 1.17) with vectors nohead \
             lc rgb "#777777" lw 0.8 dt (2, 4), \
         steps skip 1 using (x($1)):(y(most_bytes) * 1.125):(step_name($1, strcol(2))) \
             with labels left \
             offset 0.4, 0 font ",11" tc rgb "#555555" noenhanced, \
         rows skip 1 using (x($1)):(turn($0, column(RESERVED))) with steps lc rgb "black" lw 1.6 \
             dt (1.5, 2.5), \
         rows skip 1 using (x($1)):(y(column(ACTIVE))) with steps lc rgb "#D55E00" lw 1 \
             dt (6, 3), \
         rows skip 1 using (x($1)):(y(column(ALLOCATED))) with steps lc rgb "black" lw 0.9 dt 1, \
         peak skip 1 using (x($1)):(y($2)) with points pt 7 ps 1.3 * dot lc rgb "black", \
         peak skip 1 using (x($1)):(y($2)):(is_early($1) ? strcol(3) : "") \
             with labels boxed left offset 1, 0.9 font ",12" noenhanced, \
         peak skip 1 using (x($1)):(y($2)):(is_early($1) ? "" : strcol(3)) \
             with labels boxed right offset -1, 0.9 font ",12" noenhanced
    # The key stands once.
    unset object
    unset arrow
    unset label
}
unset multiplot
