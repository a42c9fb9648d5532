# SPDX-License-Identifier: BSD-2-Clause
# iWARP against Linux's Soft-iWARP (siw); sourced by matrix.sh.
# shellcheck shell=bash disable=SC2034,SC2154 # set there, used there

# port_of PROGRAM: where its server listens.
port_of() {
	case ${1##*/} in
	rping) echo 7174 ;;
	terminate_test) echo 7481 ;;
	ib_* | data_test) echo 18515 ;;
	*) echo 7471 ;;
	esac
}

# siw_pair SERVER_SIDE SERVER... -- CLIENT... perftest's server listens no more
# when it has had its first connection, until it listens for its second: a
# client that asks too early is refused, as by TCP it must be.
siw_pair() {
	local port tries

	port=$(port_of "$2")
	for tries in 1 2 3 4 5; do
		lab_pair "$@" && return
		grep -qs "CM_EVENT_REJECTED; error: -111" "$work/client" ||
			return
	done
	return 1
}

# siw_both SERVER_SIDE NAME PROGRAM...: the client's address behind.
siw_both() {
	local at=$1 name=$2

	shift 2
	lab_case "lab siw $name [server $at]" siw_to_the_end "$at" "$@" -- \
		"$@" "$(address_of "$at")"
}

# A SEND that siw (6.1) is sending when its connection ends, it takes for a
# fault of its own, LOC_QP_OP_ERR (siw_sq_flush): perftest's last word, to one
# that has heard it and left.
siw_to_the_end() {
	local ours=server theirs=client

	siw_pair "$@" && return
	[ "$1" = host ] || { ours=client && theirs=server; }
	grep -q "Bad wc status 2" "$work/$theirs" &&
		grep -q "Failed to close connection" "$work/$theirs" &&
		! grep -q "($ours: exit" "$work/$ours"
}

siw_programs() {
	local at=$1 ip

	for ip in "$(address_of "$at")" "$(address6_of "$at")"; do
		lab_case "lab siw rping [server $ip]" siw_pair "$at" \
			rping -s -a "$ip" -C 5 -V -- rping -c -a "$ip" -C 5 -V
	done
	ip=$(address_of "$at")
	lab_case "lab siw ucmatose [server $at]" siw_pair "$at" \
		ucmatose -c 5 -- ucmatose -s "$ip" -c 5
	lab_case "lab siw rdma_client [server $at]" siw_pair "$at" \
		rdma_server -- rdma_client -s "$ip"
}

# rsockets say by SEND what they say by WRITE with immediate elsewhere, which
# siw has not: front/rsockets/stream.h. -T v compares every byte.
siw_sockets() {
	local at=$1 size

	for size in 1 65536 1000000; do
		[ "$full" = yes ] || [ $size != 65536 ] || continue
		lab_case "lab siw rstream -S $size [server $at]" \
			siw_pair "$at" rstream -S $size -I 10 -C 4 -T v -- \
			rstream -S $size -I 10 -C 4 -T v \
			-s "$(address_of "$at")"
	done
}

# All sizes are what takes long: perftest measures the clock of an interpreted
# processor half a second for each.
siw_perftest() {
	local at=$1 what size

	for what in send write read; do
		siw_both "$at" "ib_${what}_bw -R -a" \
			"ib_${what}_bw" -R -F -a -n 5
		siw_both "$at" "ib_${what}_lat -R" "ib_${what}_lat" -R -F -n 50
		[ "$full" = yes ] || continue
		for size in 1 4097 65536 1048576; do
			siw_both "$at" "ib_${what}_bw -R -s $size" \
				"ib_${what}_bw" -R -F -s $size -n 20
		done
	done
}

# siw_killed SERVER_SIDE VICTIM MOMENT: that end kills itself, the other ends
# by itself, having heard. A client whose server is to die does not end the
# connection: siw's word that it is closed may overtake the one that it is
# established, which its kernel takes for impossible (iwcm.c,
# cm_disconnect_handler: BUG). For the same reason a client that is to die once
# it is established, or when it ends the connection, waits a second before it
# does.
siw_killed() {
	local at=$1 port=7471 pid called=0 served=0 other
	local server client

	server=("$programs/cm_many" -s "$(address_of "$at")" -n 1)
	client=("$programs/cm_many" -c "$(address_of "$at")" -n 1)
	case $2 in
	server)
		server+=(-k "$3")
		client+=(-p)
		;;
	client)
		client+=(-k "$3")
		client+=(-z 1)
		;;
	esac
	(lab_serve) </dev/null >"$work/server" 2>&1 &
	pid=$!
	lab_ready $pid || return
	(lab_call) </dev/null >"$work/client" 2>&1 || called=$?
	wait $pid || served=$?
	other=$called
	[ "$2" = server ] || other=$served
	echo "(server: $served, client: $called)" >>"$work/client"
	grep -qh '^dies' "$work/server" "$work/client" && [ "$other" -le 1 ]
}

# One in the guest that dies before it is established meets a BUG of the
# guest's kernel (iwcm.c, iw_destroy_cm_id): there only what is safe.
siw_kills() {
	local moment

	for moment in request accept established; do
		lab_case "lab siw kill -9 of the server on the host, at: $moment" \
			siw_killed host server $moment
	done
	for moment in established disconnect; do
		lab_case "lab siw kill -9 of the client on the host, at: $moment" \
			siw_killed guest client $moment
		lab_case "lab siw kill -9 of the client in the guest, at: $moment" \
			siw_killed host client $moment
	done
	lab_case "lab siw kill -9 of the server in the guest, at: established" \
		siw_killed guest server established
}

# siw_data SERVER_SIDE NAME OPTIONS...: by the way that VERBENA_IWARP and siw's
# parameters say.
siw_data() {
	local at=$1 name=$2

	shift 2
	lab_case "lab siw data$name [server $at]" siw_data_pair "$at" "$@"
}
# What siw (6.1) sends of 28 bytes or less goes along in the header, and when it
# crosses a page siw splits it at the wrong place (siw_try_1seg): what it SENDs,
# WRITEs or gives us to READ is wrong on the wire already. Other operations then.
siw_split_a_page() {
	local ours=client small='([0-9]|1[0-9]|2[0-8]) bytes'

	[ "$1" = guest ] || ours=server
	grep -qE -e "(SEND|WRITE)[^ ]* of $small .* by the other side" \
		-e "READ of $small .* by the this side" "$work/$ours"
}

siw_data_pair() {
	local tries

	for tries in 1 2 3 4 5; do
		siw_data_once "$@" && return
		siw_split_a_page "$1" || return
	done
	return 1
}
# data_test listens on all addresses, by an IPv6 socket. An IPv4 caller is one
# of a mapped address there, with which the kernel's rdma_cm can do nothing: it
# rejects.
siw_data_once() {
	local at=$1 address=$HOST_GUEST6

	shift
	[ "$at" = guest ] || address=$HOST_A
	siw_pair "$at" "$programs/data_test" -R -k -d "$(device_at "$at")" -- \
		"$programs/data_test" -R -k -d "$(device_at "$(other "$at")")" \
		-t $((limit / 3)) -x 1048576 "$@" "$address" &&
		REPLY=$(tail -n 1 "$work/client") &&
		[[ $REPLY =~ " WRITE "[1-9].*" SEND "[1-9].*" READ "[1-9] ]]
}

# siw_parameter NAME VALUE: what siw asks of its peers (lab/siw.sh).
siw_parameter() {
	guest bash -c "echo $2 >/sys/module/siw/parameters/$1"
}

# With a CRC because we ask for it, is siw's usual; without, because neither
# does; because siw alone does; and each way in which siw may begin. It knows
# no markers, and refuses who asks for them.
siw_ways() {
	local at kind

	for at in guest host; do
		siw_data $at ""
		VERBENA_IWARP=no-crc siw_data $at ", no CRC" -n 12
	done
	siw_parameter mpa_crc_required 1
	VERBENA_IWARP=no-crc siw_data guest ", siw asks for the CRC" -n 12
	VERBENA_IWARP=no-crc siw_data host ", siw asks for the CRC" -n 12
	siw_parameter mpa_crc_required 0
	for kind in read no-rtr revision-1; do
		VERBENA_IWARP=${kind/read/rtr-read} siw_data guest ", $kind" \
			-n 12
	done
	# What it is asked to begin with: 64 READ, 128 WRITE, in its byte order.
	siw_parameter peer_to_peer 1
	for kind in 64 128; do
		siw_parameter rtr_type $kind
		siw_data host ", siw peer-to-peer ($kind)" -n 12
	done
	siw_parameter peer_to_peer 0
	siw_parameter mpa_version 1
	siw_data host ", siw in revision 1" -n 12
	siw_parameter mpa_version 2
}

# terminate_test's lines. A WRITE and a SEND are complete when they have left.
terminate_asks="
write_key SUCCESS WR_FLUSH_ERR DISCONNECTED
read_key REM_ACCESS_ERR WR_FLUSH_ERR DISCONNECTED
send_unawaited SUCCESS WR_FLUSH_ERR DISCONNECTED
"
terminate_refuses="
write_key WR_FLUSH_ERR intact DISCONNECTED
read_key WR_FLUSH_ERR intact DISCONNECTED
send_unawaited none intact DISCONNECTED
"
# siw (6.1) looks at no Terminate but to drop the connection
# (siw_proc_terminate): its READ is flushed, and a SEND that it was sending
# then is taken for a fault of its own (siw_sq_flush). Where it has refused a
# READ, its receives are not flushed.
siw_terminate_asks=${terminate_asks/REM_ACCESS_ERR/WR_FLUSH_ERR}
siw_terminate_refuses=${terminate_refuses/read_key WR_FLUSH_ERR/read_key none}

# The Terminates themselves (RFC 5040 s4.8, RFC 5041 s7): layer, type, code,
# as tshark reads ours: DDP, tagged: invalid STag; RDMAP, remote protection:
# invalid STag; DDP, untagged: no buffer. siw's are not to be read: their
# fields are in the wrong places.
terminates_expected="0x01 0x01 0x00
0x00 0x01 0x00
0x01 0x02 0x02"

terminate_pair() {
	local at=$1 asks=$terminate_asks refuses=$siw_terminate_refuses

	[ "$at" = guest ] || {
		asks=$siw_terminate_asks
		refuses=$terminate_refuses
	}
	siw_pair "$at" "$programs/terminate_test" -s "$(address_of "$at")" -- \
		"$programs/terminate_test" "$(address_of "$at")" || return
	[ "$at" = guest ] || sed -i 's/LOC_QP_OP_ERR/SUCCESS/' "$work/client"
	# Not the sentences on standard error.
	diff <(grep . <<<"$asks") <(grep -v '^verbena: ' "$work/client") \
		>"$work/differs" &&
		diff <(grep . <<<"$refuses") \
			<(grep -vE '@|^verbena: ' "$work/server") \
			>>"$work/differs" &&
		terminates_seen "$at" && return
	cat "$work/differs" >>"$work/client"
	return 1
}

terminates_seen() {
	[ "$1" = host ] && [ -n "${record_pid:-}" ] || return 0
	sleep 0.5
	tshark -r "$work"/pcap_* -Y 'iwarp_rdma.opcode == 7' -T fields \
		-E separator=' ' -e iwarp_rdma.term_layer \
		-e iwarp_rdma.term_etype_rdma -e iwarp_rdma.term_etype_ddp \
		-e iwarp_rdma.term_errcode_rdma \
		-e iwarp_rdma.term_errcode_ddp_tagged \
		-e iwarp_rdma.term_errcode_ddp_untagged 2>/dev/null |
		tr -s ' ' | sed 's/ $//' |
		diff <(echo "$terminates_expected") - >>"$work/differs"
}

siw_matrix() {
	local at

	[ -z "${lab_no_siw:-}" ] || {
		skip "lab siw" "$lab_no_siw"
		return
	}
	siw_begin || {
		not_ok "lab siw: the device" "$work/server"
		return
	}
	for at in guest host; do
		siw_programs $at
		siw_sockets $at
		siw_perftest $at
		lab_case "lab siw Terminates [the $at refuses]" \
			terminate_pair $at
	done
	siw_ways
	siw_kills
	lab_case "lab siw rping after them" siw_pair guest \
		rping -s -a "$HOST_GUEST" -C 5 -V -- \
		rping -c -a "$HOST_GUEST" -C 5 -V
	siw_end
}

# In place of rxe: with both on one address, rdma_cm takes the first.
siw_begin() {
	host_device=iw_tap0
	guest_device=siw0
	capture_filter="tcp and not port $lab_port"
	export VERBENA_DEVICES=$host_device
	guest rdma link delete rxe0 >"$work/server" 2>&1 &&
		guest rdma link add siw0 type siw netdev eth0 >>"$work/server" \
			2>&1
}
siw_end() {
	guest rdma link delete siw0 && guest rdma link add rxe0 type rxe \
		netdev eth0 || not_ok "lab siw: rxe again"
	unset VERBENA_DEVICES
	host_device=roce_tap0
	guest_device=rxe0
	capture_filter='udp port 4791'
}
