# plots/points-text.gp - what the pictures of points share on a terminal.

set datafile separator "\t"
set datafile missing "?"
load scripts."/points.gp"
set terminal dumb columns, 20 noenhanced
set key below left Left reverse
set print "-"
print plan_title # by itself: gnuplot drops a title that is wider than the picture
unset grid
letter(k) = ("abcdefghijklmnopqrstuvwxyz")[(k - 1) % 26 + 1:(k - 1) % 26 + 1]
name(k) = strlen(series[k]) > 0 ? series[k] : "predicted"
