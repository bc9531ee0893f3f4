# plots/scripts/points.gp - what the pictures of points share: marks, dashes, the x axis.

# Each series has a dash and a mark of its own beside its colour: filled where the plan fits, hollow
# where it does not.
array marks[6] = [5, 7, 9, 13, 11, 15]
array dashes[4] = [1, 2, 4, 5]
filled(k) = marks[(k - 1) % 6 + 1]
hollow(k) = marks[(k - 1) % 6 + 1] - 1
dash(k) = dashes[(k - 1) % 4 + 1]
MEASURED = 2
joined = 1 # a series is a line

# The key at the right takes what the longest name needs: a letter is some 0.0058 of the width.
longest = 24
do for [k = 1:n_series] {
    longest = strlen(series[k]) > longest ? strlen(series[k]) : longest
}
right_of_plot = 0.80 - 0.0058 * (longest - 24)
right_of_plot = right_of_plot > 0.5 ? right_of_plot : 0.5

# A long lesson is set smaller, so that it ends before the picture does.
lesson_y = 0.93
lesson_font = strlen(lesson) > 130 ? ",11" : ",14"
if (strlen(lesson) > 175 && exists("title_y")) { # and a very long one in two lines, on a picture
    lesson_half = strlen(lesson) / 2 - 20
    lesson_more = strstrt(lesson[lesson_half:*], "; ")
    lesson_cut = strstrt(lesson, "; least memory")
    lesson_cut = lesson_cut ? lesson_cut : lesson_more ? lesson_half + lesson_more - 1 : strlen(lesson)
    lesson_font = lesson_cut > 190 || strlen(lesson) - lesson_cut > 190 ? ",8" : ",10"
    lesson = lesson[1:lesson_cut]."\n".lesson[lesson_cut + 2:*]
    lesson_y = 0.942
    title_y = title_y + 0.008
}

# The allocator's limit is drawn when it is not far above what is needed.
limit_shown = limit_known && limit_bytes < 2.5 * most_bytes

set tics out nomirror
set border 3
set grid back lt 1 lc rgb "#dddddd" lw 0.5
unset key
is_wide = x_is_number && least_x > 0 && most_x / least_x >= 8
if (is_wide) {
    set logscale x 2
    set xrange [least_x / 1.2:most_x * 1.2]
} else {
    set xrange [least_x - 0.08 * (most_x - least_x + 1):most_x + 0.08 * (most_x - least_x + 1)]
}
if (!x_is_number || n_tics <= 12) { # a tic a value, where there is place for them
    eval "set xtics (".tics.") noenhanced"
}
