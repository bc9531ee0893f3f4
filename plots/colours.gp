# plots/colours.gp - colours and patterns that all pictures share.
#
# The colours of Okabe and Ito, which stay apart for colour-blind readers
# (https://jfly.uni-koeln.de/color/), ordered so that neighbours differ in lightness too; the
# patterns, drawn over them in a darker shade, tell them apart in black and white. A seventh and
# later entry begins again.

array okabe[6] = [0x0072B2, 0xE69F00, 0x009E73, 0x56B4E9, 0xF0E442, 0xCC79A7]
array darker[6] = [0x004E7A, 0x8A5F00, 0x005C43, 0x1F6E9C, 0x968D00, 0x84385F]
array hatch[6] = [0, 4, 1, 5, 2, 6]
colour(k) = okabe[(k - 1) % 6 + 1]
dark(k) = darker[(k - 1) % 6 + 1]
pattern(k) = hatch[(k - 1) % 6 + 1]
SOLID = 3
