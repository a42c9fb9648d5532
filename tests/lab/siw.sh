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

# siw_pair SERVER_SIDE SERVER... -- CLIENT...
siw_pair() {
	local port

	port=$(port_of "$2")
	again_if_noisy lab_pair "$@"
}

# siw_both SERVER_SIDE NAME PROGRAM...: the client's address behind.
siw_both() {
	local at=$1 name=$2

	shift 2
	lab_case "lab siw $name [server $at]" siw_pair "$at" "$@" -- "$@" \
		"$(address_of "$at")"
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
	lab_case "lab siw rstream [server $at]" siw_pair "$at" \
		rstream -S 65536 -C 20 -I 5 -T s -- \
		rstream -S 65536 -C 20 -I 5 -T s -s "$ip"
}

# Not by default in full: a connection of perftest's costs the guest a second.
siw_perftest() {
	local at=$1 what size

	for what in send write read; do
		siw_both "$at" "ib_${what}_lat -R" "ib_${what}_lat" -R -F -n 50
		siw_both "$at" "ib_${what}_bw -R -a" \
			"ib_${what}_bw" -R -F -a -n 5
		[ $full = yes ] || continue
		for size in 1 4097 65536 1048576; do
			siw_both "$at" "ib_${what}_bw -R -s $size" \
				"ib_${what}_bw" -R -F -s $size -n 20
		done
	done
}

# siw_data SERVER_SIDE NAME OPTIONS...: by the way that VERBENA_IWARP and siw's
# parameters say.
siw_data() {
	local at=$1 name=$2

	shift 2
	lab_case "lab siw data$name [server $at]" siw_data_pair "$at" "$@"
}
siw_data_pair() {
	local at=$1 address=$HOST_GUEST

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
		VERBENA_IWARP=no-crc siw_data $at ", no CRC" -n 20
		siw_parameter mpa_crc_required 1
		VERBENA_IWARP=no-crc siw_data $at ", siw asks for the CRC" -n 20
		siw_parameter mpa_crc_required 0
	done
	VERBENA_IWARP=no-rtr siw_data guest ", not peer-to-peer" -n 20
	VERBENA_IWARP=revision-1 siw_data guest ", revision 1" -n 20
	for kind in write read; do
		VERBENA_IWARP=rtr-$kind siw_data guest ", RTR: $kind" -n 20
	done
	# What it is asked to begin with: 64 READ, 128 WRITE, in its byte order.
	siw_parameter peer_to_peer 1
	for kind in 64 128 192; do
		siw_parameter rtr_type $kind
		siw_data host ", siw peer-to-peer ($kind)" -n 20
	done
	siw_parameter peer_to_peer 0
	siw_parameter mpa_version 1
	siw_data host ", siw in revision 1" -n 20
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
# (siw_proc_terminate): its READ is flushed.
siw_terminate_asks=${terminate_asks/REM_ACCESS_ERR/WR_FLUSH_ERR}

# The Terminates themselves (RFC 5040 s4.8, RFC 5041 s7): layer, type, code,
# as tshark reads ours: DDP, tagged: invalid STag; RDMAP, remote protection:
# invalid STag; DDP, untagged: no buffer.
terminates_expected="1 1 0
0 1 0
1 2 2"

terminate_pair() {
	local at=$1 asks=$terminate_asks

	[ "$at" = guest ] || asks=$siw_terminate_asks
	siw_pair "$at" "$programs/terminate_test" -s "$(address_of "$at")" -- \
		"$programs/terminate_test" "$(address_of "$at")" || return
	diff <(grep . <<<"$asks") "$work/client" >"$work/differs" &&
		diff <(grep . <<<"$terminate_refuses") \
			<(grep -v @ "$work/server") >>"$work/differs" &&
		return
	cat "$work/differs" >>"$work/client"
	return 1
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
		siw_perftest $at
		lab_case "lab siw Terminates [the $at refuses]" \
			terminate_pair $at
	done
	siw_ways
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
