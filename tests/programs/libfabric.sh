#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# libfabric's verbs provider, Debian's: what fi_info lists, and fi_pingpong over
# each kind of endpoint, every byte compared, between two hosts and on one:
# tests/programs/libfabric.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
if ! command -v fi_pingpong >/dev/null; then
	skip "libfabric" "no fi_pingpong here"
	summary
	exit
fi
need_hosts 1500
port=47592 # fi_pingpong's, for its TCP connection
VERBENA_TIMEOUT=30

# domains PROVIDER TYPE: those that fi_info lists, each once, in its order.
domains() {
	a timeout -k 5 20 "$verbena" run -- fi_info -p "$1" -t "$2" \
		</dev/null 2>"$work/errors" |
		awk '$1 == "domain:" && !seen[$2]++ { print $2 }' | paste -sd ' '
}

# lists NAME PROVIDER TYPE DOMAIN...
lists() {
	local name="fi_info, $1" found

	found=$(domains "$2" "$3")
	shift 3
	if [ "$found" = "$*" ] && untold "$work/errors"; then
		ok "$name"
	else
		echo "'$found' instead of '$*'" >>"$work/errors"
		not_ok "$name" "$work/errors"
	fi
}

lists msg verbs FI_EP_MSG roce_veth0
lists dgram verbs FI_EP_DGRAM roce_veth0-dgram
lists rxd "verbs;ofi_rxd" FI_EP_RDM roce_veth0-dgram
VERBENA_DEVICES=iw_veth0 lists "msg, iWARP" verbs FI_EP_MSG iw_veth0
FI_VERBS_PREFER_XRC=1 FI_OFI_RXM_USE_SRX=1 \
	lists "rxm over XRC" "verbs;ofi_rxm" FI_EP_RDM roce_veth0-xrc \
	roce_veth0

who=root
# pingpong NAME FROM ADDRESS OPTION...
pingpong() {
	local name="fi_pingpong, $1" from=$2 address=$3

	shift 3
	sometimes "${of:-1}" || return 0
	if pair $who a "$from" fi_pingpong -c -I 5 "$@" -- \
		fi_pingpong -c -I 5 "$@" "$address" &&
		untold "$work/server" "$work/client"; then
		ok "$name"
	else
		not_ok "$name" "$work/server" "$work/client"
	fi
}

# endpoints NAME FROM ADDRESS OPTION...: of each kind.
endpoints() {
	local name=$1 from=$2 address=$3

	shift 3
	pingpong "msg, $name" "$from" "$address" -p verbs -e msg "$@"
	pingpong "dgram, $name" "$from" "$address" -p verbs -e dgram "$@"
	pingpong "rxm, $name" "$from" "$address" -p "verbs;ofi_rxm" -e rdm "$@"
	pingpong "rxd, $name" "$from" "$address" -p "verbs;ofi_rxd" -e rdm "$@"
}

user_can_reach_build 2>/dev/null && who=user
endpoints "two hosts" b "$HOST_A" -S all
# A short run plays each kind of endpoint in one of these two ways.
of=2
endpoints "two hosts, IPv6" b "$HOST_A6" -6
cases_met=1
endpoints "one host" a "$HOST_A"
of=1
pingpong "msg, one host, 127.0.0.1" a 127.0.0.1 -p verbs -e msg
pingpong "msg, one host, ::1" a ::1 -6 -p verbs -e msg
pingpong "rxm, one host, 127.0.0.1" a 127.0.0.1 -p "verbs;ofi_rxm" -e rdm
pingpong "msg, by its domain" b "$HOST_A" -p verbs -e msg -d roce_veth0
pingpong "rxd, by its domain" b "$HOST_A" -p "verbs;ofi_rxd" -e rdm \
	-d roce_veth0-dgram
mkdir -m 1777 "$work/shared"
FI_VERBS_PREFER_XRC=1 FI_OFI_RXM_USE_SRX=1 \
	FI_VERBS_XRCD_FILENAME=$work/shared/xrcd \
	pingpong "rxm over XRC" b "$HOST_A" -p "verbs;ofi_rxm" -e rdm \
	-d roce_veth0-xrc

# One device alone: the interface's, an RNIC, loopback. The last has no address
# for its default GID.
export VERBENA_DEVICES=roce_veth0
pingpong "msg, no loopback device" b "$HOST_A" -p verbs -e msg
VERBENA_DEVICES=iw_veth0
pingpong "msg, iWARP" b "$HOST_A" -p verbs -e msg -S all
pingpong "rxm, iWARP, IPv6" b "$HOST_A6" -6 -p "verbs;ofi_rxm" -e rdm
VERBENA_DEVICES=roce_lo FI_VERBS_GID_IDX=1
export FI_VERBS_GID_IDX
of=2
endpoints "loopback alone" a 127.0.0.1
summary
