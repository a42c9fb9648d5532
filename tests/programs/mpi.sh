#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# MPI programs on one host and on two, every byte compared: Open MPI and MPICH,
# over UCX and over libfabric. tests/programs/mpi.sh [--full]
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
need_hosts 9000

# --full: more ranks, and messages of up to 64 MiB.
largest=$((256 << 10))
[ "${1:-}" != --full ] || largest=$((64 << 20))

# shellcheck source=tests/programs/mpi_lib.sh
. "$here/mpi_lib.sh"

# How many packets host a's programs have sent through the adapter so far. On
# one host that is what UCX finds its peers by; the rest takes no packets.
used() {
	on a "$verbena" counters |
		awk '/sent_pkts/ { n += $2 } END { print n + 0 }'
}

# Open MPI's launcher warns when its child has begun before it.
launcher='plm:rsh: Warning: setpgid'
# proves NAME STATUS USED: the job has ended well, has compared everything, has
# said nothing of warnings and has used the adapter and not TCP.
proves() {
	local name=$1 status=$2 before=$3 after
	# The largest message of the ring crosses the cable once at least. UCX
	# sends up to half of it by a second lane over TCP, unless UCX_TLS says
	# that it must not.
	local least=$((largest / 4096 / 4))

	[[ $name != *one\ host* ]] || least=5
	after=$(used)
	if [ "$status" -eq 0 ] && [ "$after" -gt $((before + least)) ] &&
		grep -q ' words compared, 0 wrong$' "$work/out" &&
		untold "$work/out" && ! grep -v "$launcher" "$work/out" |
			grep -qiE 'warn|error'; then
		ok "$name"
	else
		echo "(status $status, used $((after - before)))" >>"$work/out"
		not_ok "$name" "$work/out"
	fi
}

# open_mpi NAME RANKS HOSTS OPTION...
open_mpi() {
	local name=$1 ranks=$2 hosts=$3 before

	before=$(used)
	shift 3
	run_mpi mpirun.openmpi --mca plm_rsh_agent "$work/rsh" \
		--host "$hosts" --oversubscribe -np "$ranks" "$@" \
		"$verbena" run -- "$work/openmpi" "$largest"
	proves "Open MPI, $name" $? "$before"
}

# mpich NAME RANKS HOSTS [NAME=VALUE...]
mpich() {
	local name=$1 ranks=$2 hosts=$3 before

	before=$(used)
	shift 3
	run_mpi env "$@" mpirun.mpich -launcher ssh -launcher-exec "$work/rsh" \
		-hosts "$hosts" -np "$ranks" \
		"$verbena" run -- "$work/mpich" "$largest"
	proves "MPICH, $name" $? "$before"
}

# compiled WHICH: the test program for that MPI.
compiled() {
	command -v "mpicc.$1" >/dev/null && command -v "mpirun.$1" >/dev/null ||
		return
	"mpicc.$1" -O2 -o "$work/$1" "$here/mpi_test.c" >"$work/out" 2>&1
}

# Debian's /etc/openmpi/openmpi-mca-params.conf switches these off, so
# a user has to ask for them. Without them Open MPI has no window between two hosts at
# all (MPI_ERR_WIN), whatever the network.
ucx=(--mca pml ucx --mca osc ucx)
ofi=(--mca pml cm --mca mtl ofi --mca osc pt2pt)
if compiled openmpi; then
	open_mpi "UCX, one host, 4 ranks" 4 "$HOST_A:4" "${ucx[@]}" \
		-x UCX_TLS=rc,self
	open_mpi "UCX, two hosts, 2 ranks" 2 "$HOST_A:1,$HOST_B:1" "${ucx[@]}"
	open_mpi "UCX, two hosts, 8 ranks" 8 "$HOST_A:4,$HOST_B:4" "${ucx[@]}"
	open_mpi "libfabric, two hosts, 2 ranks" 2 "$HOST_A:1,$HOST_B:1" \
		"${ofi[@]}"
	open_mpi "libfabric, two hosts, 4 ranks" 4 "$HOST_A:2,$HOST_B:2" \
		"${ofi[@]}"
else
	skip "Open MPI" "not installed"
fi
if compiled mpich; then
	mpich "UCX, one host, 4 ranks" 4 "$HOST_A" UCX_TLS=rc,self
	mpich "UCX, two hosts, 8 ranks" 8 "$HOST_A:4,$HOST_B:4"
else
	skip "MPICH" "not installed"
fi
summary
