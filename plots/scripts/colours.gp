# plots/scripts/colours.gp - colours, patterns and the size of titles, which all pictures share.
#
# The colours of Okabe and Ito, which stay apart for colour-blind readers
# (https://jfly.uni-koeln.de/color/), ordered so that neighbours differ in lightness too; the
# patterns, drawn over them in a darker shade, tell them apart in black and white. The ninth entry
# begins again, with other patterns.

array okabe[8] = [0x0072B2, 0xE69F00, 0x009E73, 0x56B4E9, 0xF0E442, 0xCC79A7, \
                  0xD55E00, 0x999999]
array darker[8] = [0x004E7A, 0x8A5F00, 0x005C43, 0x1F6E9C, 0x968D00, 0x84385F, \
                   0x8A3D00, 0x5C5C5C]
array paler[8] = [0xB3D4E8, 0xFAE2B3, 0xB3E2D5, 0xCCE8F8, 0xFBF7C6, 0xF0D7E4, 0xF3CDB3, 0xE0E0E0]
array hatch[8] = [0, 4, 1, 5, 2, 6, 4, 1]
colour(k) = okabe[(k - 1) % 8 + 1]
pale(k) = paler[(k - 1) % 8 + 1]
dark(k) = darker[(k - 1) % 8 + 1]
pattern(k) = hatch[(k - 1 + 3 * ((k - 1) / 8)) % 8 + 1]
SOLID = 3

# A long title is set smaller, so that it ends before the picture does.
title_y = 0.965
title_font = strlen(plan_title) > 115 ? ",12" : strlen(plan_title) > 95 ? ",14" : ",17"
panel_font(text) = strlen(text) > 150 ? ",11" : strlen(text) > 125 ? ",12" : ",14"
if (strlen(plan_title) > 140) { # and a very long one in two lines
    title_y = 0.985
    title_comma = strstrt(plan_title[110:*], ", ") # 0: there is none, and a word is cut
    title_cut = title_comma ? 109 + title_comma : 110
    plan_title = plan_title[1:title_cut]."\n".plan_title[title_cut + (title_comma ? 2 : 1):*]
}
