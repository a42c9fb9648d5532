#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Open MPI over UCX on the adapters of an emulated fat tree, one for each rank:
# an all-to-all with every byte compared, by RC and by UD.
# tests/programs/ib_mpi.sh [--full]
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
tests_begin "$0" "$@"

# Half of a leaf's ports lead down: 8 leaves of 16 ports have 64 adapters.
ranks=8 tree=fat-tree:2:4x4
[ "$quick" = yes ] || ranks=16 tree=fat-tree:2:4x8
[ "${1:-}" != --full ] || ranks=64 tree=fat-tree:2:8x16
fabric_begin opensm mpirun.openmpi mpicc.openmpi
name=ibmpi$$
layer=ib_mpi
ib_begin

mpicc.openmpi -O2 -o "$work/test" "$here/mpi_test.c" >"$work/out" 2>&1 || {
	not_ok "ib_mpi: mpi_test is compiled" "$work/out"
	summary
	exit
}
# Each rank takes the place of the adapter that has its number.
cat >"$work/place" <<END
#!/bin/sh
exec "$verbena" run --device "ib:$name/Hca\$((OMPI_COMM_WORLD_RANK + 1))" -- "\$@"
END
chmod 755 "$work/place"

fabric_up --sm --make "$tree" || {
	not_ok "ib_mpi: the fabric starts" "$work/fabric"
	summary
	exit
}
active() { [ "$(r "Hca$1" cat /sys/class/infiniband/ib0/ports/1/state)" = "4: ACTIVE" ]; }
check "the subnet manager has made the ports active" within 60 active "$ranks"

# mpi TRANSPORT: all ranks, with two processors for all of them.
mpi() {
	local rc=0

	timeout -k 5 600 mpirun.openmpi --allow-run-as-root --oversubscribe \
		--host "localhost:$ranks" -np "$ranks" --mca pml ucx \
		--mca osc ucx --mca btl ^openib,uct \
		--mca mpi_yield_when_idle 1 -x UCX_TLS="$1,self" \
		-x UCX_NET_DEVICES=ib0:1 "$work/place" "$work/test" 4096 sums \
		>"$work/out" 2>&1 </dev/null || rc=$?
	if [ $rc -eq 0 ] &&
		grep -q ' words compared, 0 wrong$' "$work/out"; then
		ok "ib_mpi: $ranks ranks, $1: $(grep compared "$work/out")"
	else
		echo "(status $rc)" >>"$work/out"
		not_ok "ib_mpi: $ranks ranks, $1" "$work/out"
	fi
}
export TMPDIR=$work
mpi rc
mpi ud
fabric_down
summary
