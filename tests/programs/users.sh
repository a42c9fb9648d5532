#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs that are not what a preload and a library path suppose: they fork,
# become another user, close all descriptors, have no loader or another one, or
# make system calls themselves. Each works, or one sentence says why not:
# tests/programs/users.sh
# shellcheck disable=SC2016 # the inner shell expands
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
need_hosts 9000

chmod 711 "$work"
class=/sys/class/infiniband
nodes=/dev/infiniband
export class nodes

# says NAME PATTERN COMMAND...: it ends with 0, and its output has the pattern.
says() {
	local name=$1 pattern=$2 status=0

	shift 2
	on a timeout -k 5 30 "$@" >"$work/out" 2>&1 </dev/null || status=$?
	if [ $status -eq 0 ] && grep -q -- "$pattern" "$work/out"; then
		ok "users: $name"
	else
		echo "(exit status $status)" >>"$work/out"
		not_ok "users: $name" "$work/out"
	fi
}

# fails STATUS NAME PATTERN COMMAND...: with one line, and that status.
fails() {
	local want=$1 name=$2 pattern=$3 status=0

	shift 3
	on a timeout -k 5 30 "$@" >"$work/out" 2>&1 </dev/null || status=$?
	if [ $status -eq "$want" ] && grep -q -- "$pattern" "$work/out" &&
		[ "$(wc -l <"$work/out")" -eq 1 ]; then
		ok "users: $name"
	else
		echo "(exit status $status)" >>"$work/out"
		not_ok "users: $name" "$work/out"
	fi
}

#
# Programs that become another user, fork, chroot, or close what they have.
#

# changes MODE MODE: the server's and the client's, both on host a.
changes() {
	if pair root a a "$programs/users_test" -m "$1" -- \
		"$programs/users_test" -m "$2" "$HOST_A"; then
		ok "users: $1 and $2${3:-}"
	else
		not_ok "users: $1 and $2${3:-}" "$work/server" "$work/client"
	fi
}

changes none none
changes fork fork
says "children while threads are inside verbs" "^done$" "$verbena" run -- \
	"$programs/fork_test"
says "a child of one that replaced all descriptors" "^done$" "$verbena" run -- \
	"$programs/fork_test" replaced
says "a child has no socket of its parent's slot" "^done$" "$verbena" run -- \
	"$programs/fork_test" slot
if command -v valgrind >/dev/null; then
	says "a child, in valgrind" "^done$" "$verbena" run -- \
		valgrind -q "$programs/fork_test" inherited
else
	skip "users: a child, in valgrind" "no valgrind"
fi
changes close-first close-first
if [ -n "${VERBENA_USERNS:-}" ]; then
	skip "users: programs that become another user" "not root"
else
	changes chroot-opened none
	changes drop-first none
	changes none drop-opened
	changes drop-opened drop-opened
	changes drop-broker none
	changes none drop-broker
	changes drop-broker drop-opened
	# Once they can no longer reach each other's memory, they send packets.
	changes drop-connected none
	changes none drop-connected
	changes drop-connected drop-connected
	export VERBENA_DEVICES=iwarp:veth0
	changes drop-connected none " [iWARP]"
	unset VERBENA_DEVICES
	says "the tree, by a user that root became" "1: CA" "$verbena" run -- \
		setpriv --reuid=65534 --regid=65534 --clear-groups \
		cat $class/roce_veth0/node_type
fi

#
# Programs for which something is missing.
#

says "without /proc" "^hca_id:.*roce_veth0" unshare -m sh -c \
	'mount -t tmpfs none /proc && exec "$@"' sh "$verbena" run -- ibv_devinfo
# Another choice of devices, so that there is a tree to be written.
says "files may have no bytes" "^hca_id:.*roce_veth0" bash -c \
	'(ulimit -f 0; "$@") 2>&1 | cat; exit ${PIPESTATUS[0]}' bash \
	env VERBENA_LOG=debug "$verbena" run --device veth0 -- ibv_devinfo

#
# Files that cannot load our libraries.
#

compile() {
	"$@" -x c -o "$work/$name" - 2>"$work/errors" <<-'END'
		#include <dirent.h>
		#include <stdio.h>
		int main(void)
		{
			DIR *d = opendir("/sys/class/infiniband");
			struct dirent *e;
			int n = 0;

			while (d && (e = readdir(d)))
				n += e->d_name[0] != '.';
			printf("%d devices\n", n);
			return 0;
		}
	END
}

# file NAME SENTENCE COMPILER...: run plainly, and with --namespace.
file() {
	local name=$1 sentence=$2

	shift 2
	if ! compile "$@"; then
		skip "users: $name" "$1 does not make one"
		return
	fi
	says "$name: a sentence" "^verbena run: warning: .* $sentence" \
		"$verbena" run -- "$work/$name"
	[ -z "$no_namespace" ] ||
		says "$name, with --namespace" "^1 devices$" \
			"$verbena" run --namespace -- "$work/$name"
}

no_namespace=yes
file static "is statically linked" gcc -static
file static-pie "is statically linked" gcc -static-pie -fPIE
file musl "is linked for musl" musl-gcc
no_namespace=
file 32-bit "is not a 64-bit program" gcc -m32
says "a plain program: no sentence" "^none$" sh -c \
	'"$@" 2>&1 | tr "\n" " " | sed "s/ $//"' sh "$verbena" run -- echo none
if [ -x "$work/static" ]; then
	printf '#!%s\n' "$work/static" >"$work/script"
	chmod 755 "$work/script"
	says "a script's interpreter" "/static is statically linked" \
		"$verbena" run -- "$work/script"
	says "a static program: the remedy" \
		"link it dynamically .*verbena doctor -- .*/static" \
		"$verbena" run -- "$work/static"
	printf -v odd '%s/s\033]0;x\a' "$work"
	cp "$work/static" "$odd"
	says "no byte of a file's name commands the terminal" \
		'/s[?][]]0;x[?] is statically linked' "$verbena" run -- "$odd"
fi

# Sanitizers, which would be loaded first, and what a script starts.
sanitized() {
	local name="$1, $3"

	if ! "$1" -fsanitize="$2" -x c -o "$work/sanitized" - -libverbs \
		2>"$work/errors" <<-'END'
			#include <infiniband/verbs.h>
			#include <stdio.h>
			int main(void)
			{
				int n = 0;
				struct ibv_device **l = ibv_get_device_list(&n);
				struct ibv_context *c = ibv_open_device(l[0]);

				printf("%d devices, %s\n", n,
				       c ? "opened" : "none opened");
				if (c)
					ibv_close_device(c);
				ibv_free_device_list(l);
				return 0;
			}
		END
	then
		skip "users: $name" "$1 does not make one"
		return
	fi
	says "$name" "^1 devices, opened$" "$verbena" run -- "$work/sanitized"
	says "$name, in a script" "^1 devices, opened$" "$verbena" run -- \
		sh -c '"$@"; exit $?' sh "$work/sanitized"
}
sanitized gcc address AddressSanitizer
sanitized gcc thread ThreadSanitizer
sanitized clang address AddressSanitizer
sanitized clang thread ThreadSanitizer

# Files of hostile shape are exec()'s to refuse.
head -c 100 /bin/sh >"$work/short"
printf '#!%s\n' "$work/round" >"$work/round"
chmod 755 "$work/short" "$work/round"
fails 126 "a script that runs itself" "Too many levels" \
	"$verbena" run -- "$work/round"
on a "$verbena" run -- "$work/short" >"$work/out" 2>&1 </dev/null
if [ $? -lt 128 ] && ! grep -q warning "$work/out"; then
	ok "users: a file that is cut off"
else
	not_ok "users: a file that is cut off" "$work/out"
fi

if [ -n "${VERBENA_USERNS:-}" ]; then
	skip "users: set-user-ID" "not root"
else
	cp "$(command -v ibv_devices)" "$work/setuid"
	chown 65534 "$work/setuid"
	chmod 4755 "$work/setuid"
	on a "$verbena" run -- "$work/setuid" >"$work/out" 2>&1 </dev/null
	if grep -q "^verbena run: warning: .* is set-user-ID.*chmod ug-s" \
		"$work/out"; then
		ok "users: set-user-ID: a sentence"
	else
		not_ok "users: set-user-ID: a sentence" "$work/out"
	fi
	says "set-user-ID of the caller: none" roce_veth0 bash -c \
		'as user "$@" 2>&1' as "$verbena" run -- "$work/setuid"
fi

#
# --namespace.
#

says "--namespace: real names" "^1: CA$" "$verbena" run --namespace -- \
	env -u LD_PRELOAD cat $class/roce_veth0/node_type
says "--namespace: a device's place" \
	"^/sys/devices/virtual/verbena/roce_veth0/infiniband/roce_veth0$" "$verbena" \
	run --namespace -- env -u LD_PRELOAD realpath $class/roce_veth0
says "--namespace: nodes are character devices" "^crw-rw-rw-" "$verbena" \
	run --namespace -- env -u LD_PRELOAD sh -c \
	'ls -l $nodes/uverbs* && for node in $nodes/uverbs*; do
		echo >$node || exit
	done'
long=$(on a "$verbena" run -- printenv VERBENA_TREE)
long+=/sys/devices/virtual/verbena/roce_veth0/long
head -c 100000 /dev/zero >"$long"
says "--namespace: files of any length" "^100000$" "$verbena" run --namespace \
	-- env -u LD_PRELOAD sh -c 'wc -c <"$1"' sh "${long##*/tree}"
rm -f "$long"
# What stands in the directories that are covered: with and without.
others() {
	find /sys/class /sys/bus /sys/devices/virtual /dev -maxdepth 1 |
		grep -v 'infiniband\|verbena\|/\.host$' | sort
	cat /sys/class/net/lo/address
	echo >/dev/null
}
export -f others
on a "$verbena" run --namespace -- env -u LD_PRELOAD bash -c others \
	>"$work/now" 2>&1 </dev/null
on a bash -c others >"$work/before" 2>&1 </dev/null
diff "$work/before" "$work/now" >"$work/out"
if [ ! -s "$work/out" ] && [ "$(wc -l <"$work/now")" -gt 10 ] &&
	index=$(on a ip -o link show veth0 | cut -d: -f1) &&
	[ -n "$index" ] && [ ! -e "$nodes/uverbs$index" ]; then
	ok "users: --namespace: nothing else changes, nor anything outside"
else
	not_ok "users: --namespace: nothing else changes, nor anything outside" \
		"$work/out"
fi
says "--namespace: a terminal can be made" "^here" "$verbena" \
	run --namespace -- script -qec 'echo here' /dev/null
says "--namespace: the working directory" "^/sys/class infiniband$" sh -c \
	'cd /sys/class && exec "$@"' sh "$verbena" run --namespace -- \
	env -u LD_PRELOAD sh -c 'echo "$PWD" $(ls -d infiniband)'
open=$(on a "$verbena" run -- sh -c 'echo $(ls /proc/self/fd)' </dev/null 2>&1)
says "--namespace: no descriptor more" "^$open$" "$verbena" \
	run --namespace -- sh -c 'echo $(ls /proc/self/fd)'
says "--namespace: an ordinary user, who stays it" \
	"^$( [ -n "${VERBENA_USERNS:-}" ] && echo 0 || echo 65534) 0*$" bash -c \
	'as user "$@"' as "$verbena" run --namespace -- sh -c \
	'echo "$(id -u) $(sed -n "s/^CapEff:\t//p" /proc/self/status)"'
inside() {
	cat >"$work/inside" <<-END
		#!/bin/sh
		exec "$verbena" run --namespace -- "$programs/users_test"
	END
	chmod 755 "$work/inside"
}
if ! user_can_reach_build 2>/dev/null; then
	skip "users: across a user namespace" "users cannot reach the build"
elif inside && pair user a a "$work/inside" -- \
	"$programs/users_test" "$HOST_A"; then
	ok "users: across a user namespace"
else
	not_ok "users: across a user namespace" "$work/server" "$work/client"
fi
fails 125 "--namespace refused: a sentence" \
	"^verbena run: --namespace: unshare.*: Operation not permitted; run it" \
	"$programs/deny" "$verbena" run --namespace -- true
fails 125 "--namespace: no more of them" "max_mnt_namespaces" \
	unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_mnt_namespaces &&
		exec "$@"' sh "$verbena" run --namespace -- true

# Go makes system calls without the C library, but for what it links with it.
if ! command -v go >/dev/null; then
	skip "users: Go" "no go"
else
	cat >"$work/main.go" <<-'END'
		package main

		/*
		#cgo LDFLAGS: -libverbs
		#include <infiniband/verbs.h>
		static struct ibv_device *nth(struct ibv_device **l, int i)
		{
			return l[i];
		}
		*/
		import "C"
		import "fmt"
		import "os"

		func main() {
			var n C.int
			list := C.ibv_get_device_list(&n)
			opened := n > 0 && C.ibv_open_device(C.nth(list, 0)) != nil
			entries, _ := os.ReadDir("/sys/class/infiniband")
			fmt.Println(n, opened, len(entries))
		}
	END
	if (cd "$work" && env HOME="$work" GO111MODULE=off CGO_ENABLED=1 \
		GOCACHE="$work/cache" go build -o gocgo main.go) \
		>"$work/errors" 2>&1; then
		says "Go: verbs, and no files" "^2 true 0$" "$verbena" run -- \
			"$work/gocgo"
		says "Go, with --namespace" "^2 true 2$" "$verbena" \
			run --namespace -- "$work/gocgo"
	else
		not_ok "users: Go builds" "$work/errors"
	fi
fi
summary
