# plots/memory-text.gp - memory over time, for a terminal: a letter a category, "=" reserved.
#
# Reads settings.gp's variables and, for panel p and series k, cells-p-k.tsv, written by
# trace/plot-memory.c: what stands in each cell of the picture. All panels share both axes.

set datafile separator "\t"
x(t) = t / ns_per_unit
y(b) = b / bytes_per_unit
letter(k) = category[k][1:1]

# A character a cell, once the axes have a column and a row of their own.
LEFT = 10
RIGHT = 4
TOP = 2
BOTTOM = 5
set terminal dumb columns + LEFT + RIGHT + 1, rows + TOP + BOTTOM + 1 noenhanced
set lmargin LEFT
set rmargin RIGHT
set tmargin TOP
set bmargin BOTTOM
slice = (last_ns - first_ns) / columns
cell = most_bytes / rows
set xrange [x(first_ns - slice / 2):x(last_ns - slice / 2)]
set yrange [y(-cell / 2):y(most_bytes - 0.49 * cell)] # a little above the middle of the topmost cell
set tics out nomirror
set border 3
unset key
set print "-"
print "Memory over time: ".plan_title
key = "= reserved"
do for [k = 1:n_categories] {
    key = key.sprintf("  %s %s", letter(k), category[k])
}
set xlabel sprintf("host time since the start of step %d (%s)\n%s", first_step, time_unit, key)
do for [p = 1:n_panels] {
    set title sprintf("memory (%s), %s", size_unit, panel[p])
    plot for [k = 1:n_categories] sprintf("cells-%d-%d.tsv", p, k) skip 1 \
             using (x($1)):(y($2)):(letter(k)) with labels, \
         sprintf("cells-%d-%d.tsv", p, n_categories + 1) skip 1 \
             using (x($1)):(y($2)):("=") with labels
}
