#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Eight ranks of Open MPI on the processors that there are: collectives over UCX
# on the adapter, against Open MPI's own transports, TCP between two hosts and
# shared memory on one. On one host UCX may use the adapter only.
# shellcheck source=bench/lib.sh
. "$(dirname "$(readlink -f "$0")")/lib.sh"
bench_begin mpi "$0" "$@"
[ "$hosts" = yes ] || bench_cannot "no network namespaces here"
command -v mpicc.openmpi >/dev/null && command -v mpirun.openmpi >/dev/null ||
	bench_cannot "Open MPI is not installed"
hosts_up 9000 || bench_cannot "network namespaces cannot be made"
mpicc.openmpi -O2 -o "$work/collectives" \
	"$(dirname "$(readlink -f "$0")")/collectives.c" >"$work/why" 2>&1 ||
	bench_cannot "Open MPI compiles nothing: $(tail -n 1 "$work/why")"
# shellcheck source=tests/programs/mpi_lib.sh
. "$(dirname "$(readlink -f "$0")")/../tests/programs/mpi_lib.sh"

# us a round: mpi OPTION... -- COMMAND...
mpi() {
	run_mpi mpirun.openmpi --mca plm_rsh_agent "$work/rsh" --host "$places" \
		--oversubscribe -np 8 "$@" && cat "$work/out" >"$work/client" &&
		awk '$2 == "us" && NF == 2 { print $1 }' "$work/out"
}
adapter() {
	mpi --mca pml ucx --mca osc ucx -x UCX_TLS=rc,ud,self \
		"$verbena" run -- "$work/collectives" "$@"
}
others() {
	mpi --mca pml ob1 --mca btl "$btl" "$work/collectives" "$@"
}

for where in veth "one host"; do
	if [ "$where" = veth ]; then
		places=$HOST_A:4,$HOST_B:4 btl=self,tcp than=TCP
	else
		places=$HOST_A:8 btl=self,vader than="shared memory"
	fi
	for what in "allreduce 8" "allreduce 65536" "alltoall 8" "alltoall 4096"; do
		rounds=$((span > 0 ? 2000 : 20))
		[[ $what != *[0-9][0-9][0-9]* ]] || rounds=$((rounds / 10))
		# shellcheck disable=SC2086 # words
		row "Open MPI, 8 ranks, $what bytes, $where" us "Open MPI, $than" \
			"<= 1.5x" "<= 1.0x" adapter $what $rounds -- \
			others $what $rounds
	done
done
bench_end
