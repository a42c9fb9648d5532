#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The commands of docs/INFINIBAND.md, typed as its reader would, and what they
# print: tests/programs/infiniband_doc.sh [--show]
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/programs/fabric_lib.sh
. "$here/fabric_lib.sh"
# shellcheck source=tests/programs/doc_lib.sh
. "$here/doc_lib.sh"
tests_begin "$0" "$@"

fabric_begin opensm ibstat saquery ib_write_bw iperf3 ping ip apt-get
if [ "$hosts" = no ] || [ ! -c /dev/net/tun ]; then
	skip infiniband_doc "no network namespaces here, or no /dev/net/tun"
	summary
	exit
fi

play_document docs/INFINIBAND.md "$@"
