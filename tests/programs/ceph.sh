#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A Ceph cluster whose messages go by RDMA (ms_type = async+rdma), unmodified:
# a monitor and two OSDs on one host, the clients on the other. rados bench
# compares each object it reads; objects of sizes at the edges of Ceph's
# buffers come back as they went. Twice: connected over TCP, and by librdmacm.
#
#	tests/programs/ceph.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"

fsid=0d5e3f3e-6b3c-4a4f-9d27-6a0f1a0d9b15
buffer=65536
tests_begin "$0" "$@"
for program in ceph-mon ceph-osd ceph rados monmaptool; do
	command -v $program >/dev/null && continue
	skip ceph "no $program here"
	summary
	exit
done
need_hosts 9000

# configure LINE...: an empty cluster in $dir.
configure() {
	dir=$(mktemp -d "$work/XXXXXX")
	mkdir "$dir/mon" "$dir/osd0" "$dir/osd1"
	cat >"$dir/conf" <<-END
		[global]
		fsid = $fsid
		mon initial members = m
		mon host = $HOST_A:6789
		public network = $HOST_A/24
		auth cluster required = none
		auth service required = none
		auth client required = none
		ms type = async+rdma
		ms cluster type = async+rdma
		ms public type = async+rdma
		ms async op threads = 2
		ms async rdma device name = roce_veth0
		ms async rdma gid idx = 1
		ms async rdma receive buffers = 8192
		ms async rdma receive queue len = 1024
		ms async rdma buffer size = $buffer
		$(printf '%s\n' "$@")
		osd pool default size = 2
		osd pool default min size = 1
		osd crush chooseleaf type = 0
		osd objectstore = memstore
		mon data = $dir/mon
		mon data avail crit = 1
		mon data avail warn = 1
		run dir = $dir
		admin socket = $dir/\$name.asok
		log file = $dir/\$name.log
		crash dir = $dir
		keyring = $dir/keyring
		[osd.0]
		osd data = $dir/osd0
		[osd.1]
		osd data = $dir/osd1
	END
	monmaptool --create --add m "$HOST_A:6789" --fsid $fsid \
		"$dir/monmap" >/dev/null
}

# Both are given to "become" or "on" behind a host.
daemon() {
	become a timeout -k 5 120 "$verbena" run -- "$@" -c "$dir/conf" -f \
		</dev/null >>"$dir/$1.out" 2>&1 &
	daemons+=($!)
}
client() {
	on b timeout -k 5 60 "$verbena" run -- "$@" -c "$dir/conf" \
		</dev/null 2>>"$dir/client.err"
}

osd_up() {
	local id=$1 uuid

	uuid=$(cat /proc/sys/kernel/random/uuid)
	monitor_does osd new "$uuid" "$id" &&
		on a ceph-osd -c "$dir/conf" -i "$id" --mkfs --no-mon-config \
			--osd-uuid "$uuid" 2>>"$dir/ceph-osd.out" &&
		daemon ceph-osd -i "$id" --osd-crush-initial-weight 1
}

# monitor_does COMMAND...: a program that asks before it knows the cluster's
# name is refused (EPERM), so it asks again.
monitor_does() {
	local tries

	for tries in 1 2 3 4 5; do
		client timeout 20 ceph "$@" >/dev/null && return
		sleep "0.$tries"
	done
	return 1
}

cluster_up() {
	local tries=0

	daemons=()
	on a ceph-mon -c "$dir/conf" --mkfs -i m --monmap "$dir/monmap" \
		--keyring /dev/null 2>>"$dir/ceph-mon.out" || return
	daemon ceph-mon -i m
	monitor_does mon stat || return
	osd_up 0 && osd_up 1 || return
	until client ceph osd stat | grep -q '2 osds: 2 up'; do
		tries=$((tries + 1))
		[ $tries -lt 20 ] || return
		# One that asked before it knew the cluster's name has ended.
		[ $tries -ne 8 ] || again_osds
		sleep 0.5
	done
	monitor_does osd pool create p 8 8
}

again_osds() {
	local id

	for id in 0 1; do
		kill -0 "${daemons[$((id + 1))]}" 2>/dev/null ||
			daemon ceph-osd -i $id --osd-crush-initial-weight 1
	done
}

cluster_down() {
	kill "${daemons[@]}" 2>/dev/null
	wait "${daemons[@]}" 2>/dev/null
}

# Every object that was written is read and compared by rados itself.
bench_compares() {
	local wrote read

	client rados -p p bench 1 write -b "$1" -t 8 --no-cleanup \
		>"$dir/write" && client rados -p p bench 20 seq -t 8 \
		>"$dir/seq" || return
	wrote=$(awk '/^Total writes made/ { print $NF }' "$dir/write")
	read=$(awk '/^Total reads made/ { print $NF }' "$dir/seq")
	[ "${wrote:-0}" -gt 0 ] && [ "$wrote" = "$read" ] &&
		! grep -qi 'not correct' "$dir/client.err"
}

comes_back() {
	head -c "$1" /dev/urandom >"$dir/object"
	client rados -p p put "size$1" "$dir/object" &&
		client rados -p p get "size$1" "$dir/back" &&
		cmp -s "$dir/object" "$dir/back"
}

sizes_come_back() {
	local size

	for size in $((buffer + 1)) 16777216; do
		comes_back $size || return
	done
}

# cluster NAME LINE...: with these lines in its configuration.
cluster() {
	local name=$1

	shift
	configure "$@"
	if cluster_up; then
		ok "$name: a monitor and two OSDs are up"
		check "$name: rados bench, every object compared" \
			bench_compares $buffer
		check "$name: objects come back as they went" sizes_come_back
	else
		not_ok "$name: a monitor and two OSDs are up" "$dir"/*.out \
			"$dir/client.err"
	fi
	cluster_down
}

check() {
	local name=$1

	shift
	if "$@"; then
		ok "$name"
	else
		not_ok "$name" "$dir/client.err" "$dir"/*.out
	fi
}

cluster "connected over TCP"
cluster "connected by librdmacm" "ms async rdma cm = true" \
	"ms async rdma type = iwarp"
summary
