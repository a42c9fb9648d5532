#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Every operation on the wire: tshark decodes it all, and the ICRCs verify by
# code that is not the adapter's. tests/programs/capture.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"

# All that a reliable connection says; invalidation has a later issue.
operations="SEND_FIRST SEND_MIDDLE SEND_LAST SEND_LAST_IMM SEND_ONLY
	SEND_ONLY_IMM WRITE_FIRST WRITE_MIDDLE WRITE_LAST WRITE_LAST_IMM
	WRITE_ONLY WRITE_ONLY_IMM READ_REQUEST READ_RESPONSE_FIRST
	READ_RESPONSE_MIDDLE READ_RESPONSE_LAST READ_RESPONSE_ONLY ACKNOWLEDGE
	ATOMIC_ACKNOWLEDGE CMP_SWAP FETCH_ADD"

if ! command -v dumpcap >/dev/null || ! command -v tshark >/dev/null; then
	skip "capture" "no tshark"
	summary
	exit
fi
need_hosts 1500
hosts_unbatched

# record INTERFACE FILE PROGRAM...: what passes at a while the program runs.
record() {
	local status=0

	record_begin "$1" 'udp port 4791' "$2"
	shift 2
	"$@" || status=$?
	record_end yes
	return $status
}

# judge NAME FILE OPERATION...: right ICRCs, these operations, nothing that
# tshark stumbles over.
judge() {
	local name=$1 file=$2 operation odd

	shift 2
	if "$programs/icrc_check" "$file" >"$work/icrc"; then
		ok "capture: $name: ICRC: $(tail -n 1 "$work/icrc")"
	else
		not_ok "capture: $name: ICRC" "$work/icrc"
	fi
	for operation; do
		grep -q "^$operation " "$work/icrc" ||
			not_ok "capture: $name: no $operation was seen"
	done
	! grep -q ^OTHER "$work/icrc" ||
		not_ok "capture: $name: unknown operations" "$work/icrc"
	# What a SEND carries is random here, and tshark guesses at it: other
	# protocols after infiniband are such guesses.
	tshark -r "$file" -Y '(_ws.malformed or _ws.expert.severity >= "Error")
		and not frame.protocols matches "infiniband:"' \
		>"$work/odd" 2>"$work/tshark"
	odd=$(tshark -r "$file" -Y 'not infiniband' 2>/dev/null | wc -l)
	if [ ! -s "$work/odd" ] && [ "$odd" -eq 0 ]; then
		ok "capture: $name: tshark finds nothing malformed"
	else
		not_ok "capture: $name: tshark ($odd are not RoCE)" \
			"$work/odd" "$work/tshark"
	fi
}

for family in 4 6; do
	file=$work/ipv$family.pcap
	if record veth0 "$file" pair root a b \
		"$programs/data_test" -d roce_veth0 -$family -- \
		"$programs/data_test" -d roce_veth0 -$family -s 42 -n 400 \
		-x 20000 "$HOST_A"; then
		# shellcheck disable=SC2086 # a list of words
		judge "every operation, IPv$family" "$file" $operations
	else
		not_ok "capture: data_test, IPv$family" "$work/server" \
			"$work/client" "$work/dumpcap"
	fi
done

# Errors have their packets too: NAKs of each kind, RNR, retries. Between the
# queue pairs of one program they pass by loopback.
misuse() {
	VERBENA_NEAR=off a timeout 100 "$verbena" run --device lo -- \
		"$programs/bad_input_test" -d roce_lo -4 </dev/null >"$work/misuse" 2>&1
}
# Whether each case ends as it should is misuse.sh's to say.
record lo "$work/misuse.pcap" misuse || true
judge "errors" "$work/misuse.pcap" ACKNOWLEDGE
summary
