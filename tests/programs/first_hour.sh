#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The README's first screen in bare systems of Debian 12 and 13, its commands
# word for word, in order, in one shell: tests/programs/first_hour.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
# shellcheck source=tests/programs/roots.sh
. "$here/roots.sh"

# steps DIRECTORY: a file for each fenced block of the README.
steps() {
	mkdir "$1" && awk -v to="$1" '
		/^```sh$/ { inside = 1; file = sprintf("%s/%02d", to, ++n); next }
		/^```$/ { inside = 0 }
		inside { print >file }' "$top/README.md"
}

# Runs in the bare system. Each step is a case; what it printed is beside it.
cat >"$work/reader" <<-'END'
	cd /src || exit
	for step in /steps/[0-9][0-9]; do
		. "$step" >"$step.out" 2>&1 </dev/null
		echo "$? $step"
	done
END

# What the last step must have printed.
shows() {
	grep -Eq "$2" "$1" || {
		echo "(wanted: $2)" >>"$1"
		return 1
	}
}

first_hour() {
	local suite=$1 root=$work/$1 status step name

	if why=$(no_root "$suite"); then
		skip "first hour: $suite" "$why"
		return
	fi
	unpack_root "$suite" "$root"
	mkdir "$root/src"
	git -C "$top" ls-files -z | tar -C "$top" --null -T - -cf - |
		tar -C "$root/src" -xf -
	steps "$root/steps"
	cp "$work/reader" "$root/reader"
	at_root "$root" bash /reader >"$work/steps" 2>&1
	while read -r status step; do
		name="first hour: $suite: $(head -n 1 "$root$step")"
		if grep -qE 'Failed to fetch|Unable to fetch' "$root$step.out"; then
			skip "$name" "apt reaches no archive"
		elif [ "$status" = 0 ] && untold "$root$step.out" &&
			shows "$root$step.out" "$(wants "$step")"; then
			ok "$name"
		else
			not_ok "$name (status $status)" "$root$step.out"
		fi
	done <"$work/steps"
	[ "$(wc -l <"$work/steps")" -eq 2 ] ||
		not_ok "first hour: $suite: two blocks" "$work/steps"
	programs_there "$suite" "$root"
	rm -rf "$root"
}

# The programs that the README runs after the demo: the demo has installed them.
programs_there() {
	local suite=$1 root=$2 program name missing=

	name="first hour: $suite: the programs of the README's other commands"
	for program in $(sed -n 's/^    .*verbena run -- \([a-z0-9_]*\).*/\1/p' \
		"$top/README.md" | sort -u); do
		[ -x "$root/usr/bin/$program" ] || missing+=" $program"
	done
	if [ -z "$missing" ]; then
		ok "$name"
	else
		not_ok "$name: no$missing"
	fi
}
wants() {
	case $1 in
	*/01) echo '^one host +ib_write_lat .* us$' ;;
	*) echo 'one_host_requests +[1-9]' ;;
	esac
}
first_hour bookworm
first_hour trixie
summary
