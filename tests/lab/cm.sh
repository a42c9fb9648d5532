# SPDX-License-Identifier: BSD-2-Clause
# The connection manager against the kernel's rdma_cm; sourced by matrix.sh.
# shellcheck shell=bash disable=SC2154 # set there

# In the guest it takes an interpreted processor to start a program; its kernel
# tells who listens. Nothing tells it of ours, nor of a group's members.
cm_ready() {
	# shellcheck disable=SC2154 # at, server: of cm_pair
	if [ "$at" = host ] || [ "${server[0]}" = mckey ]; then
		sleep 1.5 # its peer takes longer to begin
	else
		for _ in {1..8}; do
			run_at guest rdma resource show cm_id 2>/dev/null |
				grep -q LISTEN && break
			sleep 0.3
		done
	fi
	kill -0 "$1" 2>/dev/null
}
cm_serve() {
	run_at "$at" "${server[@]}"
}

# cm_pair SERVER_SIDE SERVER... -- CLIENT...
cm_pair() {
	# shellcheck disable=SC2034 # for lab_call
	local at=$1 server client

	shift
	ends "$@"
	play cm_serve cm_ready lab_call
}

cm_matrix() {
	local at ip what

	for at in guest host; do
		ip=$(address_of $at)
		lab_case "lab rping [server $at]" cm_pair $at \
			rping -s -a "$ip" -C 5 -- rping -c -a "$ip" -C 5 -V
		lab_case "lab ucmatose [server $at]" cm_pair $at \
			ucmatose -c 5 -- ucmatose -s "$ip" -c 5
		lab_case "lab rdma_client [server $at]" cm_pair $at \
			rdma_server -- rdma_client -s "$ip"
		lab_case "lab udaddy [server $at]" cm_pair $at \
			udaddy -c 2 -- udaddy -s "$ip" -c 2
		lab_case "lab rstream [server $at]" cm_pair $at \
			rstream -S 4096 -C 50 -- \
			rstream -s "$ip" -S 4096 -C 50
		for what in ib_send_bw ib_write_bw ib_read_lat; do
			lab_case "lab $what -R [server $at]" cm_pair $at \
				$what -R -F -n 20 -- $what -R -F -n 20 "$ip"
		done
	done
	for at in guest host; do
		lab_case "lab mckey [member $at]" cm_mckey $at
	done
}

# cm_mckey SIDE: that one receives what the other sends to a group.
cm_mckey() {
	local at=$1

	cm_pair "$at" mckey -m 239.1.1.7 -b "$(address_of "$at")" -C 5 -- \
		mckey -m 239.1.1.7 -s -b "$(address_of "$(other "$at")")" -C 5
}
