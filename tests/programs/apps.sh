#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Applications as Debian packages them, unmodified, between two hosts and on
# one: what they say of the data themselves is believed, and elsewhere the
# bytes are compared. Options that look odd are a program's own need, and the
# remark beside them says which.
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
need_hosts 9000

# have PROGRAM CASE: or the case is skipped.
have() {
	command -v "$1" >/dev/null && return
	skip "$2" "not installed"
	return 1
}

# under HOST TIME PROGRAM...: becomes the program, under Verbena. Some ignore
# SIGTERM while they wait for an event.
under() {
	local host=$1 time=$2

	shift 2
	become "$host" timeout -k 1 "$time" "$verbena" run -- "$@"
}

# says FILE REGEX PID: as soon as it is there; false: never.
says() {
	local tries=0

	until grep -qsE "$2" "$1"; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] && kill -0 "$3" 2>/dev/null || return 1
		sleep 0.05
	done
}

# serve PROGRAM...: on host a, in the background; its pid is $server_pid.
serve() {
	under a "${TIME:-25}" "$@" </dev/null >"$work/server" 2>&1 &
	server_pid=$!
}
stop() {
	kill "$1" 2>/dev/null
	wait "$1" 2>/dev/null
}

# ready is "says REGEX" or "listens PORT", of the server, or "after SECONDS"
# where neither can be seen.
ready() {
	case $ready in
	says*) says "$work/server" "${ready#says }" "$server_pid" ;;
	after*) sleep "${ready#after }" ;;
	listens*) listening a "${ready#listens }" 10 "$server_pid" ;;
	esac
}

# run NAME FROM SERVER... -- CLIENT...: true for both, and what $expect says is
# in the client's output. A server with $stays is stopped.
run() {
	local name=$1 from=$2 server client status=0

	shift 2
	ends "$@"
	serve "${server[@]}"
	ready || echo "(it was never ready)" >>"$work/server"
	(under "$from" "${TIME:-25}" "${client[@]}") </dev/null \
		>"$work/client" 2>&1 || status=$?
	if [ -n "${stays:-}" ] || [ $status -ne 0 ]; then
		stop $server_pid
	else
		wait $server_pid || status=$?
	fi
	if [ $status -eq 0 ] && grep -qE "$expect" "$work/client"; then
		ok "$name"
	else
		echo "(status $status)" >>"$work/client"
		not_ok "$name" "$work/server" "$work/client"
	fi
}

# The server reads and the client writes, whatever the verb. Where fio sends,
# it asks for no repeats when there is no receive (its rdma_conn_param has an
# rnr_retry_count of 0, engines/rdma.c), so the server has as many receives as
# there are messages.
fio_runs() {
	local from=$1 where=$2 verb verify
	local job=(fio --name=t --ioengine=rdma --port=4444 --bs=64k --size=4m)
	local ready="says Starting" expect="WRITE: bw="

	for verb in write read send; do
		verify=()
		[ $verb != send ] || verify=(--verify=crc32c --verify_state_save=0)
		run "fio, $verb, $where" "$from" \
			"${job[@]}" --rw=read --iodepth=64 "${verify[@]}" -- \
			bash -c 'sleep 1 && exec "$@"' - "${job[@]}" \
			--rw=write --hostname="$HOST_A" --iodepth=16 \
			--verb=$verb "${verify[@]}" --do_verify=0
	done
}

qperf_runs() {
	local from=$1 where=$2 stays=yes ready="listens 19765"
	local expect="ver_rc_fetch_add:"

	run "qperf -cm 1, eight tests in turn, $where" "$from" qperf -- \
		qperf -t 1 "$HOST_A" -cm 1 rc_bw rc_lat rc_bi_bw \
		rc_rdma_write_bw rc_rdma_read_lat rc_compare_swap_mr \
		ver_rc_compare_swap ver_rc_fetch_add
}

# A user names the interface in a file of his own.
dapl_runs() {
	local from=$1 where=$2 provider ready="listens 15828" expect
	local DAT_OVERRIDE=$work/dat.conf opts

	export DAT_OVERRIDE
	cat >"$DAT_OVERRIDE" <<-END
		cma u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "veth0 0" ""
		scm u2.0 nonthreadsafe default libdaploscm.so.2 dapl.2.0 "roce_veth0 1" ""
	END
	for provider in "${@:3}"; do
		opts=(-P "$provider" -b 65536 -B 10)
		expect="Test Complete. PASSED"
		run "dtest, $provider, $where" "$from" dtest "${opts[@]}" -- \
			dtest "${opts[@]}" -h "$HOST_A"
		opts=(-P "$provider" -W -D -b 65536 -B 10)
		run "dtest, data compared, $provider, $where" "$from" \
			dtest "${opts[@]}" -- dtest "${opts[@]}" -h "$HOST_A"
		# Its server says where it is before it listens there; scm then
		# connects again, and says two bytes more than its peer reads.
		expect="immed/atomic test PASSED"
		[ "$provider" = scm ] ||
			run "dtestx, $provider, $where" "$from" \
				dtestx -P "$provider" -- \
				dtestx -P "$provider" -h "$HOST_A"
		expect="SRQ Test Complete"
		ready="after 1.5" run "dtestsrq, $provider, $where" "$from" \
			dtestsrq -P "$provider" -- \
			dtestsrq -P "$provider" -h "$HOST_A"
		expect="Num=20"
		run "dtestcm, $provider, $where" "$from" \
			dtestcm -P "$provider" -c 20 -- \
			dtestcm -P "$provider" -c 20 -h "$HOST_A"
		expect="End of Work -- Client Exiting"
		ready="says Service.Point.Ready" stays=yes \
			run "dapltest, $provider, $where" "$from" \
			dapltest -T S -D "$provider" -- dapltest -T T \
			-D "$provider" -s "$HOST_A" -i 50 -t 2 -w 2 \
			client SR 4096 2 server SR 4096 2 \
			client RW 65536 server RR 8192
	done
	export -n DAT_OVERRIDE
}

rpma_runs() {
	local ready="says listening" expect="^ok closed"

	run "librpma, write, flush, read, $2" "$1" \
		"$programs/rpma_test" "$HOST_A" 7204 -- \
		"$programs/rpma_test" "$HOST_A" 7204 client
}

# gloo RANKS OTHER [dies]: ranks by turns on host a and the other one.
gloo() {
	local ranks=$1 hosts=(a "$2") pids=() rank

	mkdir "$work/meeting"
	for ((rank = 0; rank < ranks; rank++)); do
		under "${hosts[rank % 2]}" 40 "$programs/gloo_test" roce_veth0 \
			$rank "$ranks" "$work/meeting" ${3:+"$3"} \
			</dev/null >"$work/rank$rank" 2>&1 &
		pids+=($!)
	done
	statuses=()
	for rank in "${!pids[@]}"; do
		wait "${pids[rank]}" 2>/dev/null
		statuses+=($?)
	done
	rm -rf "$work/meeting"
}
gloo_runs() {
	local name="gloo, $2 ranks, $3"

	gloo "$2" "$1"
	if [[ "${statuses[*]}" =~ ^[0\ ]+$ ]] &&
		[ "$(grep -l "^ok broadcast, 1048576" "$work"/rank? |
			wc -l)" -eq "$2" ]; then
		ok "$name"
	else
		echo "(statuses ${statuses[*]})" >>"$work/rank0"
		not_ok "$name" "$work"/rank?
	fi
	rm -f "$work"/rank?
}
gloo_dies() {
	local name="gloo, the end of a peer is told, $2" told

	gloo 3 "$1" dies
	told=$(grep -lE "retry counter exceeded|imeout" "$work"/rank[01] |
		wc -l)
	if [ "$told" -eq 2 ] && [[ " ${statuses[*]} " != *" 124 "* ]] &&
		[[ " ${statuses[*]} " != *" 137 "* ]]; then
		ok "$name"
	else
		echo "(statuses ${statuses[*]})" >>"$work/rank0"
		not_ok "$name" "$work"/rank?
	fi
	rm -f "$work"/rank?
}

# iSER. tgt lets nobody in who is not bound by address and by name, while
# with TCP either will do (usr/iscsi/iser_text.c).
initiator=iqn.2008-11.org.linux-kvm
target_up() {
	local tries=0 TGT_IPC_SOCKET=$work/tgt

	export TGT_IPC_SOCKET
	truncate -s 16M "$work/disk"
	TIME=60 serve tgtd -f
	until on a tgtadm --lld iser --op show --mode sys >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || return 1
		sleep 0.1
	done
	target --mode target --op new \
		--targetname iqn.2026-01.test:t &&
		target --mode logicalunit --op new --lun 1 \
			--backing-store "$work/disk" &&
		target --mode target --op bind --initiator-address ALL &&
		target --mode target --op bind --initiator-name $initiator
}
target() {
	on a tgtadm --lld iser --tid 1 "$@"
}

# with NAME FROM REGEX PROGRAM...: it says so, if that is not empty, and ends
# well.
with() {
	local name=$1 from=$2 expect=$3 refused

	shift 3
	for _ in 1 2 3; do
		refused=$(refusals)
		if (under "$from" 20 "$@") </dev/null >"$work/client" 2>&1 &&
			{ [ -z "$expect" ] || grep -qE "$expect" "$work/client"; }; then
			ok "$name"
			return
		fi
		[ "$(refusals)" -gt "$refused" ] || break
	done
	not_ok "$name" "$work/server" "$work/client"
}
# tgtd takes the login late if it comes before the connection is established,
# and then refuses a request that has come meanwhile.
refusals() { grep -c 'non-login pdu during login phase' "$work/server"; }

# libiscsi's buffers have 256 KiB (DATA_BUFFER_SIZE in its iser-private.h): it
# refuses longer requests, as iscsi-perf -b 1024 makes them and qemu-img
# convert, and then frees one twice.
iser_runs() {
	local from=$1 where=$2 size
	local url=iser://$HOST_A/iqn.2026-01.test:t/1

	with "iscsi-inq, $where" "$from" DIRECT_ACCESS \
		iscsi-inq -i $initiator "$url"
	for size in 8 512; do
		with "iscsi-perf, $size blocks, $where" "$from" finished \
			iscsi-perf -i $initiator -t 1 -b $size "$url"
	done
	if ! command -v qemu-img >/dev/null ||
		! ls /usr/lib/*/qemu/block-iscsi.so >/dev/null 2>&1; then
		skip "qemu-img, iSER, $where" "not installed"
		return
	fi
	head -c 16M /dev/urandom >"$work/image"
	with "qemu-img writes, iSER, $where" "$from" '' \
		qemu-img dd -f raw -O raw bs=256k if="$work/image" of="$url"
	with "qemu-img reads, iSER, $where" "$from" '' \
		qemu-img dd -f raw -O raw bs=256k if="$url" of="$work/back"
	if cmp "$work/image" "$work/back" >"$work/cmp" 2>&1 &&
		cmp "$work/image" "$work/disk" >>"$work/cmp" 2>&1; then
		ok "what went by iSER is equal, $where"
	else
		not_ok "what went by iSER is equal, $where" "$work/cmp"
	fi
}

# A program that ends early must not end this script, which writes to it.
trap '' PIPE

# A guest that changes its memory all the time goes to another process; the
# memory of both is compared before it goes on.
guest_made() {
	command as --32 -o "$work/guest.o" "$here/guest.S" &&
		ld -m elf_i386 --oformat binary -Ttext 0x7c00 -e _start \
			-o "$work/guest" "$work/guest.o"
}
migrate() {
	local name=$1 at=$2 address=$3 pids=() tries=0 away=$work/away
	local in=$work/in
	local qemu=(qemu-system-x86_64 -accel tcg -m 64 -display none
		-nodefaults -monitor stdio
		-drive "file=$work/guest,format=raw,if=floppy,readonly=on")

	shift 3
	rm -f "$work"/memory? "$work/serial" "$away".* "$in".*
	mkfifo "$away.fifo" "$in.fifo"
	under a 110 "${qemu[@]}" -serial "file:$work/serial" <"$away.fifo" \
		>"$away.out" 2>&1 &
	pids+=($!)
	exec {away_fd}>"$away.fifo"
	under "$at" 110 "${qemu[@]}" -serial null -S \
		-incoming "rdma:$address:4711" \
		<"$in.fifo" >"$in.out" 2>&1 {away_fd}>&- &
	pids+=($!)
	exec {in_fd}>"$in.fifo"
	says "$work/serial" R "${pids[0]}"
	printf '%s\n' "$@" >&"$in_fd"
	printf '%s\n' "$@" "migrate_set_parameter max-bandwidth 10G" \
		"migrate_set_parameter downtime-limit 2000" \
		"migrate -d rdma:$address:4711" >&"$away_fd"
	until grep -qE "Migration status: (completed|failed)" "$away.out"; do
		tries=$((tries + 1))
		[ $tries -lt 200 ] && kill -0 "${pids[@]}" 2>/dev/null || break
		sleep 0.4
		echo "info migrate" >&"$away_fd"
	done
	# quit, so that what was to be written is.
	printf '%s\n' "pmemsave 0 0x4000000 \"$work/memory1\"" quit >&"$away_fd"
	printf '%s\n' "pmemsave 0 0x4000000 \"$work/memory2\"" cont >&"$in_fd"
	sleep 1
	printf '%s\n' stop "pmemsave 0 0x4000000 \"$work/memory3\"" quit >&"$in_fd"
	exec {away_fd}>&- {in_fd}>&-
	wait "${pids[@]}"
	if grep -q "Migration status: completed" "$away.out" &&
		[ "$(wc -c <"$work/memory1")" -eq $((0x4000000)) ] &&
		cmp "$work/memory1" "$work/memory2" >"$work/cmp" 2>&1 &&
		! cmp -s "$work/memory2" "$work/memory3"; then
		ok "$name"
	else
		not_ok "$name" "$work/cmp" "$away.out" "$in.out"
	fi
}

# everything FROM WHERE DAPL_PROVIDER...
everything() {
	! have fio "fio, $2" || fio_runs "$@"
	! have qperf "qperf, $2" || qperf_runs "$@"
	! have dtest "dapl, $2" || dapl_runs "$@"
	! have "$programs/rpma_test" "librpma, $2" || rpma_runs "$@"
	! have "$programs/gloo_test" "gloo, $2" || {
		gloo_runs "$1" 2 "$2"
		gloo_runs "$1" 4 "$2"
		gloo_dies "$1" "$2"
	}
}
everything b "two hosts" cma scm
[ "$quick" = yes ] || everything a "one host" cma
if have tgtd "tgt, iSER" && have iscsi-inq "libiscsi"; then
	if target_up; then
		iser_runs b "two hosts"
		[ "$quick" = yes ] || iser_runs a "one host"
	else
		not_ok "tgtd, a target over iSER" "$work/server"
	fi
	stop "$server_pid"
fi
if have qemu-system-x86_64 "qemu, migration"; then
	if guest_made; then
		migrate "qemu, migration, two hosts" b "$HOST_B"
		migrate "qemu, migration, rdma-pin-all, one host" a "$HOST_A" \
			"migrate_set_capability rdma-pin-all on"
	else
		not_ok "qemu: a guest"
	fi
fi
summary
