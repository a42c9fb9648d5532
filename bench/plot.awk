# SPDX-License-Identifier: BSD-2-Clause
# Curves (bench/lib.sh) -> SVG: for each place a panel of bandwidth and one of
# latency against the size of messages, all axes logarithmic.
BEGIN {
	FS = "\t"
	W = 300; H = 230; LEFT = 62; TOP = 46; GAPX = 40; GAPY = 96
	split("#b3202c #2060a8 #2a8040 #a06a00 #703090", color, " ")
	unit["bandwidth"] = "GB/s"
	unit["latency"] = "microseconds"
}

$5 !~ /^[0-9.e+-]+$/ || $5 + 0 <= 0 { next }
{
	if (!($1 in column)) { column[$1] = places++; place[places] = $1 }
	panel = $1 FS $2
	if (!(panel FS $3 in series)) {
		series[panel FS $3] = ++count[panel]
		name[panel, count[panel]] = $3
	}
	s = series[panel FS $3]
	points[panel, s] = points[panel, s] " " $4 ":" $5
	v = lg($5)
	if (!($2 in low) || v < low[$2]) low[$2] = v
	if (!($2 in high) || v > high[$2]) high[$2] = v
	x = lg($4)
	if (minx == "" || x < minx) minx = x
	if (x > maxx) maxx = x
}

function lg(v) { return log(v) / log(10) }
function floor(v) { return v >= 0 || v == int(v) ? int(v) : int(v) - 1 }
function ceil(v) { return -floor(-v) }
function px(bytes) { return x0 + (lg(bytes) - minx) / (maxx - minx) * W }
function py(v) { return y0 + H - (v - bottom) / (top - bottom) * H }
function text(x, y, anchor, size, s) {
	printf "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" " \
		"font-size=\"%d\">%s</text>\n", x, y, anchor, size, s
}
function line(x1, y1, x2, y2) {
	printf "<path class=\"g\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n",
		x1, y1, x2, y2
}
function bytes(n) {
	return n >= 1048576 ? n / 1048576 " MiB" : \
		n >= 1024 ? n / 1024 " KiB" : n " B"
}

function grid(metric,	e, n) {
	for (e = bottom; e <= top; e++) {
		line(x0, py(e), x0 + W, py(e))
		text(x0 - 6, py(e) + 4, "end", 11, \
			e < 0 ? sprintf("%.*f", -e, 10 ^ e) : 10 ^ e)
	}
	for (n = 8; n <= 1048576; n *= 8) {
		if (lg(n) < minx - 0.01 || lg(n) > maxx + 0.01)
			continue
		line(px(n), y0, px(n), y0 + H)
		text(px(n), y0 + H + 15, "middle", 10, bytes(n))
	}
}

function draw(panel, s,	all, i, at, n, d, dots) {
	n = split(points[panel, s], all, " ")
	for (i = 1; i <= n; i++) {
		split(all[i], at, ":")
		d = d sprintf("%s%.1f %.1f", i == 1 ? "M" : "L", px(at[1]), \
			py(lg(at[2])))
		dots = dots sprintf("<circle cx=\"%.1f\" cy=\"%.1f\" " \
			"r=\"2.6\"/>", px(at[1]), py(lg(at[2])))
	}
	printf "<g fill=\"%s\" stroke=\"%s\"><path fill=\"none\" " \
		"stroke-width=\"1.8\" d=\"%s\"/>%s</g>\n", color[s], color[s],
		d, dots
	printf "<path stroke=\"%s\" stroke-width=\"3\" d=\"M%.1f %.1fh18\"/>\n",
		color[s], x0 + (s - 1) * W / 2, y0 + H + 34
	text(x0 + (s - 1) * W / 2 + 24, y0 + H + 38, "start", 12, \
		name[panel, s])
}

function panel_at(where, metric, row,	panel, s) {
	panel = where FS metric
	x0 = LEFT + column[where] * (W + LEFT + GAPX)
	y0 = TOP + row * (H + GAPY)
	bottom = floor(low[metric])
	top = ceil(high[metric])
	if (top == bottom)
		top++
	text(x0, y0 - 10, "start", 14, where ": " metric ", " unit[metric])
	grid(metric)
	for (s = 1; s <= count[panel]; s++)
		draw(panel, s)
}

END {
	if (!places || maxx == minx)
		exit
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" " \
		"viewBox=\"0 0 %d %d\" font-family=\"sans-serif\">\n",
		places * (W + LEFT + GAPX), TOP + 2 * (H + GAPY)
	print "<style>.g{stroke:#ddd;fill:none}</style>"
	print "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>"
	for (p = 1; p <= places; p++) {
		panel_at(place[p], "bandwidth", 0)
		panel_at(place[p], "latency", 1)
	}
	print "</svg>"
}
