# plots/scripts/text.gp - a terminal of text, text_columns wide and text_rows high.
#
# text_terminal: "block" of gnuplot 6 draws lines with the dots of Braille signs, several in a cell;
# "dumb" has a letter a cell. Letters stand in cells in both.

fine = text_terminal eq "block"
if (fine) {
    set terminal block braille size text_columns, text_rows noenhanced
} else {
    set terminal dumb text_columns, text_rows noenhanced
}
set linetype 1 lc rgb "black"

# A key of several entries, in lines no wider than the terminal.
last_line(text) = strstrt(text, "\n") > 0 ? last_line(text[strstrt(text, "\n") + 1:]) : text
with_entry(key, sign, name) = key.(strlen(last_line(key)) + strlen(name) + 8 > text_columns ? "\n  " : "  ") \
    .sign." ".name
