# plots/scripts/memory-text.gp - memory over time, for a terminal: a letter a category, "=" reserved.
#
# Reads settings.gp's variables and, for panel p and series k, cells-p-k.tsv, written by
# plots/memory.c: what stands in each cell of the picture; and crests-p.tsv for the fine line of
# reserved. All panels share both axes.

set datafile separator "\t"
x(t) = t / ns_per_unit
y(b) = b / bytes_per_unit
letter(k) = category[k][1:1]

# A character a cell, once the axes have a column and a row of their own.
LEFT = 10
RIGHT = 4
TOP = 2
BOTTOM = 4
text_columns = columns + LEFT + RIGHT + 1
text_rows = rows + TOP + BOTTOM + 2
load scripts."/text.gp"
set lmargin LEFT
set rmargin RIGHT
set tmargin TOP
set bmargin BOTTOM
slice = (last_ns - first_ns) / columns
cell = most_bytes / rows
set xrange [x(first_ns - slice / 2):x(last_ns - slice / 2)]
set yrange [y(-cell / 2):y(most_bytes + 0.51 * cell)] # the topmost cell, and a row for what lies on its upper edge
set tics out nomirror
set border 3
unset key
set print "-"
print "Memory over time: ".plan_title
text_key = fine ? "line reserved" : "= reserved"
do for [k = 1:n_categories] {
    text_key = with_entry(text_key, letter(k), category[k])
}
set xlabel sprintf("host time since the start of %s (%s)", first_name, time_unit)
do for [p = 1:n_panels] {
    print ""
    print panel[p].":"
    print "  ".lesson[p]
    print "  ".text_key
    set title sprintf("memory (%s)", size_unit)
    plot for [k = 1:n_categories] sprintf("cells-%d-%d.tsv", p, k) skip 1 \
             using (x($1)):(y($2)):(letter(k)) with labels, \
         sprintf("cells-%d-%d.tsv", p, n_categories + 1) skip 1 \
             using (x($1)):(y($2)):(fine ? "" : "=") with labels, \
         sprintf("crests-%d.tsv", p) skip 1 using (x($1)):(fine ? y(column(n_categories + 4)) : NaN) \
             with steps lt 1
}
