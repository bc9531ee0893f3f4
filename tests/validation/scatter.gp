# Predicted against measured step times, as text: gnuplot scatter.gp; points come on standard input, from
#   foreshard validate TABLES | awk '{for (i = 3; i <= NF; i++) if ($i == "ms") print $(i - 2) / 1000, $(i - 1) / 1000}'
set terminal dumb 92 32
set logscale xy
set xrange [0.4:160]
set yrange [0.4:160]
set xlabel "measured, seconds a step"
set ylabel "predicted"
unset key
plot x with dots, '/dev/stdin' using 1:2 with points pt 15
