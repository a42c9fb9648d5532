# SPDX-License-Identifier: BSD-2-Clause
# Memory windows of both types, the owner on either side; sourced by matrix.sh.
# shellcheck shell=bash disable=SC2154 # set there

# rxe (6.1) compares with the bounds of the region, and not with the window's;
# and it does not tell programs which key a message invalidated.
windows_pair() {
	local at=$1 options=("${@:2}")

	[ "$at" = host ] || options+=(-l)
	lab_pair "$at" "$programs/windows_test" -d "$(device_at "$at")" \
		"${options[@]}" -- \
		"$programs/windows_test" -d "$(device_at "$(other "$at")")" \
		"${options[@]}" "$(address_of "$at")"
}

windows_matrix() {
	local at family

	for at in host guest; do
		for family in 4 6; do
			lab_case "lab windows [owner $at: -$family]" \
				windows_pair $at -$family
		done
	done
}
