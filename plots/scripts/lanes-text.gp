# plots/scripts/lanes-text.gp - what each lane does over time, for a terminal: a letter a phase or collective.
#
# Reads settings.gp's variables and, for panel p and class k, cells-p-k.tsv and host-p.tsv, written by
# plots/lanes.c: what a lane does most in each slice of time; class n_classes + 1 is exposed
# communication, "!". All panels share both axes.

set datafile separator "\t"
x(t) = t / ns_per_unit

# A character a cell, once the axes have a column and a row of their own.
LEFT = 16
RIGHT = 4
TOP = 2
BOTTOM = 4
text_columns = columns + LEFT + RIGHT + 1
text_rows = n_lanes + TOP + BOTTOM + 3
load scripts."/text.gp"
set lmargin LEFT
set rmargin RIGHT
set tmargin TOP
set bmargin BOTTOM
slice = (last_ns - first_ns) / columns
set xrange [x(first_ns - slice / 2):x(last_ns - slice / 2)]
set yrange [-1:n_lanes + 1]
set tics out nomirror
set border 3
unset key
set print "-"
print "Lanes over time: ".plan_title
set ytics ("exposed" 0, "host issues" n_lanes + 1) scale 0
do for [l = 1:n_lanes] {
    set ytics add (lane[l] n_lanes - l + 1)
}
text_key = "! exposed"
do for [k = 1:n_classes] {
    text_key = with_entry(text_key, letter[k], class[k])
}
set xlabel sprintf("time since the start of %s (%s)", first_name, time_unit)
do for [p = 1:n_panels] {
    print ""
    print panel[p].":"
    print "  ".lesson[p]
    print "  ".text_key
    plot for [k = 1:n_classes + 1] sprintf("cells-%d-%d.tsv", p, k) skip 1 \
             using (x($1)):(n_lanes - row[int($2) + 1]):(letter[k]) with labels, \
         sprintf("host-%d.tsv", p) skip 1 using (x($1)):(n_lanes + 1):("|") with labels
}
