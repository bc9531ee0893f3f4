# plots/scripts/points-key.gp - the key of a picture of points, from key_x and key_top downwards. Many series
# stand closer, so that what is said below them is in the picture too.

key_rows = n_series + 4
key_step = 0.042 * key_rows > key_top - 0.04 ? (key_top - 0.04) / key_rows : 0.042
key_y(row) = key_top - 0.022 - key_step * row
row = 0
do for [k = 1:n_series] {
    if (n_lines > 0) {
        if (joined) {
            set arrow from screen key_x, screen key_y(row) to screen key_x + 0.03, screen key_y(row) \
                nohead lc rgb dark(k) lw 2 dt dash(k)
        }
        set label "" at screen key_x + 0.015, screen key_y(row) point pt filled(k) ps 1.4 * dot lc rgb dark(k)
        set label (strlen(series[k]) > 0 ? series[k] : "predicted") at screen key_x + 0.038, \
            screen key_y(row) noenhanced font ",12"
        row = row + 1
    }
}
row = row + 0.4
if (n_marks > 0) {
    set label "" at screen key_x + 0.015, screen key_y(row) point pt MEASURED ps 1.8 * dot lw 2 lc rgb "black"
    set label marks_name at screen key_x + 0.038, screen key_y(row) font ",12"
    row = row + 1
}
if (n_unfit > 0) {
    set label "" at screen key_x + 0.015, screen key_y(row) point pt hollow(1) ps 1.4 * dot lc rgb "black"
    set label "does not fit" at screen key_x + 0.038, screen key_y(row) font ",12"
    row = row + 1
}
if (limit_shown && uses_limit) {
    set arrow from screen key_x, screen key_y(row) to screen key_x + 0.03, screen key_y(row) \
        nohead lc rgb "black" lw 1.2 dt (2, 3)
    set label sprintf("limit, %.1f %s", limit_bytes / bytes_per_unit, size_unit) \
        at screen key_x + 0.038, screen key_y(row) font ",12"
    row = row + 1
}
if (uses_limit) {
    set label sprintf("1 %s is 2^{%.0f} bytes", size_unit, log10(bytes_per_unit) / log10(2)) \
        at screen key_x, screen key_y(row + 0.7) font ",11" tc rgb "#555555"
}
