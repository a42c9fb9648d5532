# SPDX-License-Identifier: BSD-2-Clause
# How Open MPI and MPICH start ranks on the hosts of a test; sourced behind
# tests/programs/lib.sh, when the hosts are up.
# shellcheck shell=bash disable=SC2154 # set there

# What mpirun starts a program on another host by, instead of ssh: HOST
# COMMAND..., joined by blanks as ssh does. Two hosts have two names.
cat >"$work/rsh" <<END
#!/usr/bin/env bash
host=\$1
shift
while [[ \$host == -* ]]; do host=\$1; shift; done
case \$host in
$HOST_A) pid=$HOSTS_PID_a ;;
$HOST_B) pid=$HOSTS_PID_b ;;
esac
exec nsenter -t \$pid -n unshare -u sh -c "hostname host\${host##*.}; \$*"
END
chmod 755 "$work/rsh"

# Each program that is started has the environment of an ordinary user's shell,
# a directory of its own for short-lived files, and a bound on its time.
run_mpi() {
	on a unshare -u sh -c "hostname host${HOST_A##*.}
		exec \"\$@\"" mpi env TMPDIR="$work" OMPI_ALLOW_RUN_AS_ROOT=1 \
		OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
		timeout -k 5 "${VERBENA_TIMEOUT:-120}" "$@" \
		>"$work/out" 2>&1 </dev/null
}
