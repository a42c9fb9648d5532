#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Where the time goes on the hot paths, as perf samples both programs: what
# remains to be made faster.
# shellcheck source=bench/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
bench_begin profile "$0" "$@"
runs=1
command -v perf >/dev/null || bench_cannot "no perf"
[ "$hosts" = yes ] || bench_cannot "no network namespaces here"
hosts_up 9000 || bench_cannot "network namespaces cannot be made"
most=8
[ $span -eq 0 ] || span=4

# record FILE PROGRAM...: under perf, by the clock, since a virtual machine may
# count no cycles.
record() {
	local file=$1

	shift
	set -- perf record -q -e cpu-clock -F 1999 -o "$file" -- \
		"$verbena" run -- "$@"
	timeout -k 5 60 "$@" </dev/null
}

# pair_recorded FROM PROGRAM OPTIONS...
pair_recorded() {
	local from=$1 pid status=0

	shift
	set -- "$@" -F -d "$device" -x "$gid"
	(record_at a "$work/server.perf" "$@") \
		>"$work/server" 2>&1 &
	pid=$!
	listening a "$port" 20 $pid &&
		record_at "$from" "$work/client.perf" "$@" "$address" \
			>"$work/client" 2>&1 || status=1
	wait $pid || status=1
	return $status
}

record_at() {
	local host=$1

	shift
	export -f record
	export verbena
	on "$host" bash -c 'record "$@"' record "$@"
}

# From when to when the client's work was done: perftest begins by filling
# buffers and finding out what its clock is, and ends so, for seconds, and takes
# no time of ours meanwhile.
find_window() {
	window=$(perf script -i "$work/client.perf" -F comm,time,ip,sym,dso \
		2>/dev/null |
		awk '/libibverbs/ && $1 != "verbena" { sub(":", "", $2); print $2 }' |
		sort -n | awk '{ at[NR] = $1 }
		END { if (NR >= 20) print at[int(NR / 10)] "," at[int(NR * .9)] }')
	[ -n "$window" ] || [ "$effort" = smoke ] # then all of it
}

# top_of SIDE: what took most, and then the sums by where it is; share, symbol,
# place.
top_of() {
	perf report -i "$work/$1.perf" ${window:+--time "$window"} --stdio \
		-F overhead,dso,symbol -t '	' \
		2>/dev/null | grep -E '^ *[0-9.]+%' | sort -rn |
		awk -F '\t' -v most="$most" '{
			gsub(/[ %]/, "", $1)
			gsub(/^ +| +$/, "", $2)
			sub(/^ *\[[.k]\] */, "", $3)
			gsub(/ +$/, "", $3)
			sub(/^\[kernel.*/, "kernel", $2)
			sub(/\.so.*/, "", $2)
			sum[$2] += $1
			if (NR <= most)
				printf "%.1f %%\t`%s`\t%s\n", $1, $3, $2
		}
		END {
			split("kernel libibverbs libdeflate", places, " ")
			for (i = 1; i <= 3; i++)
				printf "%.1f %%\tall of it\t%s\n",
					sum[places[i]], places[i]
		}'
}

# path "WHAT" FROM PROGRAM OPTIONS...: a table of both sides.
path() {
	local what=$1

	shift
	printf '  %s\n' "$what"
	if ! again_if_noisy pair_recorded "$@" || ! find_window || ! top_of client >"$work/client.top" ||
		! top_of server >"$work/server.top" ||
		[ ! -s "$work/client.top" ]; then
		echo "    failed"
		tail -qn 6 "$work/server" "$work/client" | sed 's/^/    | /'
		return
	fi
	{
		echo "**$what**"
		echo
		paste "$work/client.top" "$work/server.top" | awk -F '\t' '
			BEGIN {
				print "| client | in | | server | in | |"
				print "|---|---|--:|---|---|--:|"
			}
			{ printf "| %s | %s | %s | %s | %s | %s |\n",
				$2, $3, $1, $5, $6, $4 }'
		echo
	} >>"$out/profile.text"
}

bandwidth_span
# shellcheck disable=SC2206 # words
span_words=($REPLY)
device=roce_veth0
address=$HOST_A
gid=$(gid_index a $device "::ffff:$HOST_A")
path "The wire, \`ib_send_bw -s 64\`" b \
	ib_send_bw -s 64 "${span_words[@]}"
path "The wire, \`ib_write_bw -s 1048576\`" b \
	ib_write_bw -s 1048576 "${span_words[@]}"
path "One host, \`ib_send_lat -s 8\`" a ib_send_lat -s 8 "${span_words[@]}"
path "One host, \`ib_write_bw -s 8\`" a ib_write_bw -s 8 "${span_words[@]}"
path "One host, \`ib_write_bw -s 1048576\`" a \
	ib_write_bw -s 1048576 "${span_words[@]}"
[ -s "$out/profile.text" ] && bench_end
