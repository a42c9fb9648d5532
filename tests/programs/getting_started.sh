#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The commands of docs/GETTING-STARTED.md, typed as its reader would, and what
# they print: tests/programs/getting_started.sh [--show]
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/doc_lib.sh
. "$here/doc_lib.sh"
tests_begin "$0" "$@"

if [ "$hosts" = no ]; then
	skip getting_started "no network namespaces here"
	summary
	exit
fi
for program in ibv_rc_pingpong rping ip apt-get; do
	command -v $program >/dev/null || {
		skip getting_started "$program is not installed"
		summary
		exit
	}
done

# The reader's machine: an Ethernet interface, whose cable leads to another one.
if [ -z "${VERBENA_READER:-}" ]; then
	need_hosts 1500
	a sh -c 'ip link set veth0 down && ip link set veth0 name eth0 &&
		ip address flush dev eth0 && ip address add 192.0.2.2/24 dev eth0 &&
		ip link set eth0 up' || not_ok "the reader's interface"
	# An address that is still tentative is none of a device's.
	for ((i = 0; i < 60; i++)); do
		a ip -6 address show dev eth0 tentative | grep -q . || break
		sleep 0.1
	done
	VERBENA_READER=yes on a "$0" "$@"
	exit
fi
play_document docs/GETTING-STARTED.md "$@"
