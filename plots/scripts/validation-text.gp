# plots/scripts/validation-text.gp - predicted against measured of published runs, for a terminal: step time, and below it the
# peak of memory where peaks were published.
#
# Reads what plots/scripts/validation.gp reads; "." is where both are equal.

load scripts."/points-text.gp"
has_times = most_x > 0
text_columns = columns
text_rows = has_times && published_known ? 32 : 40
load scripts."/text.gp"
set samples 60
if (has_times) {
    panel_title = "predicted"
    panel_low = least_x < least_step_ns ? least_x : least_step_ns
    panel_high = most_x > most_step_ns ? most_x : most_step_ns
    per_unit = ns_per_unit
    unit = time_unit
    measured = 1
    predicted = 3
    load scripts."/validation-panel-text.gp"
}
if (published_known) {
    panel_title = "predicted peak of memory"
    panel_low = least_peak
    panel_high = most_peak
    per_unit = bytes_per_unit
    unit = size_unit
    measured = 11
    predicted = 7
    load scripts."/validation-panel-text.gp"
}
