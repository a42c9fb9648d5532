#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Verbena and Linux's Soft-RoCE (rxe), and its Soft-iWARP (siw), speak to each
# other, each once as client and once as server: unmodified programs, every byte compared, packets lost,
# errors, and at last the guest is gone. One boot serves all.
#
#	tests/lab/matrix.sh [--full] [--only REGEX]
#
# --full runs each program in all places: families, path MTUs, events and
# polling; without it each row in turn runs in one of the eight.
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/lab/lab.sh
. "$here/lab.sh" || exit

only=.
full=no
arguments=("$@")
while [ $# -gt 0 ]; do
	case $1 in
	--full) full=yes ;;
	--only)
		only=$2
		shift
		;;
	esac
	shift
done

# shellcheck source=tests/lab/programs.sh
. "$here/programs.sh" || exit
# shellcheck source=tests/lab/data.sh
. "$here/data.sh" || exit
# shellcheck source=tests/lab/windows.sh
. "$here/windows.sh" || exit
# shellcheck source=tests/lab/errors.sh
. "$here/errors.sh" || exit
# shellcheck source=tests/lab/cm.sh
. "$here/cm.sh" || exit
# shellcheck source=tests/lab/siw.sh
. "$here/siw.sh" || exit
# shellcheck source=tests/lab/yama.sh
. "$here/yama.sh" || exit
# shellcheck source=tests/lab/vlan.sh
. "$here/vlan.sh" || exit

[ $full = yes ] || hurry_perftest
lab_begin "$0" "${arguments[@]}"
programs_matrix
data_matrix
loss_matrix
windows_matrix
cm_matrix
siw_matrix
yama_matrix
vlan_matrix
errors_matrix
summary
