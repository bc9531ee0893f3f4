# plots/scripts/both-log.gp - both axes logarithmic from low to high, with tics at 1, 2 and 5 times powers of ten
# where decades alone are too few.

set logscale xy 10
set xtics autofreq
set ytics autofreq
if (high / low < 200) {
    set xtics ("" low)
    set ytics ("" low)
    do for [e = floor(log10(low)):ceil(log10(high))] {
        do for [m in "1 2 5"] {
            v = m * 10.**e
            if (v >= low && v <= high) {
                set xtics add (sprintf("%g", v) v)
                set ytics add (sprintf("%g", v) v)
            }
        }
    }
}
