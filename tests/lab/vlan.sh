# SPDX-License-Identifier: BSD-2-Clause
# RoCEv1 on a VLAN's interface: in the guest, whose kernel has VLANs, while that
# of the machine may have none; sourced by matrix.sh.
# shellcheck shell=bash disable=SC2154 # set there

vlan_runs() {
	guest timeout -k 5 240 "$top/tests/lab/vlan_guest.sh" "$verbena" \
		"$top/tests/programs/roce1_check.py" >"$work/client" 2>&1 || return
	REPLY=$(tail -n 1 "$work/client")
}

vlan_matrix() {
	lab_patience=250 lab_each=1 lab_case \
		"lab, RoCEv1 on a VLAN, with priorities" vlan_runs
}
