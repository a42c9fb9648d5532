#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Two programs of one host, against UCX over shared memory and cross-memory
# attach, and against a pipe for whoever sleeps.
# shellcheck source=bench/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
bench_begin one_host "$0" "$@"
if [ "$hosts" = yes ]; then
	hosts_up 9000 || bench_cannot "a network namespace cannot be made"
else
	HOSTS_PID_a=here
	export HOSTS_PID_a
fi
from=a
# Beside an interface's it is there for who asks for it.
export VERBENA_DEVICES=lo
device=roce_lo
address=127.0.0.1
gid=$(gid_index a roce_lo ::ffff:127.0.0.1)

# ucx TEST SIZE ITERATIONS COLUMN [BY]: columns of its last line are the median
# time, the average, the overall average, MiB/s twice, messages/s twice. Words
# of TEST beyond the first are options.
ucx() {
	local iterations=$3

	[ "$effort" != smoke ] || iterations=1000
	# shellcheck disable=SC2086 # words
	beside 13337 env UCX_TLS=posix,cma ucx_perftest -p 13337 -- \
		env UCX_TLS=posix,cma ucx_perftest -p 13337 127.0.0.1 \
		-t $1 -s "$2" -n "$iterations" || return
	awk -v column="$4" -v by="${5:-1}" '$1 == "Final:" {
		printf "%.6g\n", $(column + 2) * by }' "$work/client"
}
ucx_iterations() {
	echo $(($1 < 4096 ? 2000000 : 4000000000 / ($1 + 16384)))
}
ucx_latency_at() {
	ucx tag_lat "$1" $(($1 < 100000 ? 100000 : 10000)) 1
}
# By the kernel, from one program's memory to the other's, as ours are.
ucx_cma_at() {
	ucx "put_bw -x cma -d memory -D zcopy" "$1" "$(ucx_iterations "$1")" \
		5 0.001048576
}
# Into memory that UCX has made for both: a memcpy.
ucx_put_at() {
	ucx ucp_put_bw "$1" "$(ucx_iterations "$1")" 5 0.001048576
}
ucx_put_rate() {
	ucx ucp_put_bw 8 2000000 7 0.000001
}

# What a process has used of a processor, in nanoseconds.
used() {
	cat /proc/"$1"/task/*/schedstat | awk '{ s += $1 } END {
		printf "%.0f\n", s }'
}

# The server's own processor time while a client writes to it, in percent.
passive_cost() {
	local pid client before after bw=(ib_write_bw -F -d "$device" -x "$gid"
		-s 1048576 -D 4)

	become a "$verbena" run -- "${bw[@]}" </dev/null >"$work/server" 2>&1 &
	pid=$!
	listening a "$port" 20 $pid || return
	become a "$verbena" run -- "${bw[@]}" $address </dev/null \
		>"$work/client" 2>&1 &
	client=$!
	# Both measure the processor's clock first, which is the server's own.
	sleep 1.6
	before=$(used $pid)
	sleep 2
	after=$(used $pid)
	wait $client && wait $pid || return
	awk -v ns=$((after - before)) 'BEGIN { printf "%.2f\n", ns / 2e7 }'
}

wakeup() {
	"$tools/wakeup" "$1" $((effort_is_smoke ? 500 : 50000))
}
effort_is_smoke=$([ "$effort" = smoke ] && echo 1 || echo 0)

row "ib_send_lat -s 8" us "UCX tag, shared memory" "<= 1.5x" "" \
	verbs_latency a ib_send_lat -s 8 -- ucx_latency_at 8
row "ib_write_lat -s 8" us "UCX tag, shared memory" "<= 1.5" "<= 0.5" \
	verbs_latency a ib_write_lat -s 8 -- ucx_latency_at 8
for program in ib_write_bw ib_read_bw ib_send_bw; do
	row "$program -s 1048576" GB/s "UCX put, CMA" ">= 0.95x" ">= 1.0x" \
		verbs_bandwidth a $program -s 1048576 -- ucx_cma_at 1048576
done
row "ib_write_bw -s 1048576 (a memcpy)" GB/s "UCX put, its own memory" ">= 0.95x" \
	">= 1.0x" verbs_bandwidth a ib_write_bw -s 1048576 -- ucx_put_at 1048576
row "ib_write_bw -s 8, messages" M/s "UCX put" ">= 5" ">= 10" \
	verbs_rate a ib_write_bw -s 8 -- ucx_put_rate
row "passive target's processor, 1 MiB WRITEs" % "" "< 2" "<= 0" \
	again_if_noisy passive_cost
row "ib_send_lat -e -s 8, both asleep" us "a pipe" "<= 1.3x" "" \
	verbs_latency a ib_send_lat -e -s 8 -- wakeup pipe
row "ib_send_lat -e -s 8, both asleep" us "an eventfd" "<= 1.3x" "" \
	verbs_latency a ib_send_lat -e -s 8 -- wakeup eventfd
curve "one host" bandwidth "Verbena, write=verbs_write_at" \
	"UCX, put=ucx_put_at"
curve "one host" latency "Verbena, send=verbs_send_at" \
	"UCX, tag=ucx_latency_at"
bench_end
