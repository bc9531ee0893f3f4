# plots/scripts/points-text.gp - what the pictures of points share on a terminal.

set datafile separator "\t"
set datafile missing "?"
load scripts."/points.gp"
text_columns = columns
text_rows = 20
load scripts."/text.gp"
set key below left Left reverse
set print "-"
print plan_title # by itself: gnuplot drops a title that is wider than the picture
print "  ".lesson
unset grid
letter(k) = ("abcdefghijklmnopqrstuvwxyz")[(k - 1) % 26 + 1:(k - 1) % 26 + 1]
name(k) = strlen(series[k]) > 0 ? series[k] : "predicted"
