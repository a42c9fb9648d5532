# SPDX-License-Identifier: BSD-2-Clause
# Rows of figures (bench/lib.sh) -> a table that reads well as text and as
# Markdown.
BEGIN {
	FS = "\t"
	add("what", "Verbena", "against", "figure", "ratio", "reach", "then",
		"")
	add("-", "-", "-", "-", "-", "-", "-", "-")
}

function add(a, b, c, d, e, f, g, h) {
	cell[++n, 1] = a; cell[n, 2] = b; cell[n, 3] = c; cell[n, 4] = d
	cell[n, 5] = e; cell[n, 6] = f; cell[n, 7] = g; cell[n, 8] = h
	for (i = 1; i <= 8; i++)
		if (length(cell[n, i]) > width[i])
			width[i] = length(cell[n, i])
}

# Three figures are all that repeated runs agree on.
function figure(v, unit) {
	if (v == "-" || v == "failed")
		return v
	return sprintf(v >= 100 ? "%.0f" : v >= 10 ? "%.1f" : \
		v >= 1 ? "%.2f" : "%.3f", v) (unit == "" ? "" : " " unit)
}

# "<= 1.5x" is of the other figure, "<= 1.5" of ours.
function meets(goal, ours, theirs,	part, value) {
	split(goal, part, " ")
	value = part[2] ~ /x$/ ? (theirs > 0 ? ours / theirs : 0) : ours
	if (part[1] == "<=") return value <= part[2] + 0
	if (part[1] == "<") return value < part[2] + 0
	if (part[1] == ">") return value > part[2] + 0
	return value >= part[2] + 0
}

function judge(ours, theirs, reach, then) {
	if (ours == "failed" || theirs == "failed") return "failed"
	if (reach == "") return ""
	if (!meets(reach, ours, theirs)) return "not reached"
	if (then != "" && meets(then, ours, theirs)) return "reached, then too"
	return "reached"
}

{
	both = $2 + 0 > 0 && $5 + 0 > 0
	add($1, figure($2, $3), $4 == "" ? "-" : $4, figure($5, $3),
		both ? figure($2 / $5) "x" : "-", $6 == "" ? "-" : $6,
		$7 == "" ? "-" : $7, judge($2, $5, $6, $7))
}

END {
	for (r = 1; r <= n; r++) {
		line = "|"
		for (i = 1; i <= 8; i++) {
			text = cell[r, i]
			right = i == 2 || i == 4 || i == 5
			if (r == 2) {
				text = sprintf("%" width[i] + 2 "s", "")
				gsub(/ /, "-", text)
				if (right)
					sub(/-$/, ":", text)
				line = line text "|"
			} else {
				line = line sprintf(" %" (right ? "" : "-") \
					width[i] "s |", text)
			}
		}
		print line
	}
}
