# SPDX-License-Identifier: BSD-2-Clause
# The commands of a document, typed as its reader would; sourced after lib.sh.
# shellcheck shell=bash
# shellcheck disable=SC2154 # work, build and here are lib.sh's or the test's

# play_document FILE [--show]: the cases, then the end of the test. The reader
# is in the tree, which has the build in it. A directory of programs' own hides
# fabrics that run on this machine for other reasons.
play_document() {
	local document=$1 status

	shift
	mkdir "$work/tree"
	ln -s "$build" "$work/tree/build"
	ln -s "$top/scripts" "$work/tree/scripts"
	cd "$work/tree" || exit
	export VERBENA_TOP=$top
	# shellcheck disable=SC2016 # for the shell that is started
	unshare -m sh -c '
		[ ! -d /run/verbena ] || mount -t tmpfs -o mode=711 tmpfs /run/verbena
		exec "$@"' sh python3 "$here/doc_commands.py" \
		"$top/$document" "$@" >"$work/test" 2>&1
	status=$?
	cat "$work/test"
	case "$*" in *--show*) exit ;; esac
	passed=$(grep -c '^ok ' "$work/test")
	failed=$(grep -c '^not ok ' "$work/test")
	[ $status -le 1 ] && [ $((passed + failed)) -gt 0 ] ||
		not_ok "$document is read (status $status)" "$work/test"
	summary
	exit
}
