#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Programs that are built with a sanitizer, or run by valgrind or gdb: no tool
# reports an error that there is not: tests/programs/tools.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
need_hosts 1500

# clean NAME PROGRAM...: it ends with 0 and says "done" and no other word.
clean() {
	local name=$1

	shift
	if a timeout 120 "$verbena" run -- "$@" >"$work/said" 2>&1 &&
		[ "$(cat "$work/said")" = "done" ]; then
		ok "tools: $name"
	else
		not_ok "tools: $name" "$work/said"
	fi
}

# build COMPILER OPTION...: tools_test as $work/program.
build() {
	"$@" -g -O1 "$here/tools_test.c" -o "$work/program" -libverbs \
		-pthread 2>"$work/errors"
}
sanitizer() { # COMPILER NAME OPTION...
	local compiler=$1 name=$2

	shift 2
	if build "$compiler" "$@"; then
		clean "$compiler, $name" "$work/program"
	else
		skip "tools: $compiler, $name" "$compiler does not make one"
	fi
}
for compiler in gcc clang; do
	sanitizer $compiler address -fsanitize=address
	sanitizer $compiler thread -fsanitize=thread
	sanitizer $compiler undefined -fsanitize=undefined \
		-fno-sanitize-recover=all
done

# Without Verbena's preload (front/files/sanitizer.c), MemorySanitizer reports a
# file name in a constructor of libnl-route, with any libibverbs.
sanitizer clang memory -fsanitize=memory

build gcc
if command -v valgrind >/dev/null; then
	clean "valgrind" valgrind -q --error-exitcode=9 "$work/program"
	clean "valgrind, leaks" valgrind -q --error-exitcode=9 \
		--leak-check=full --errors-for-leak-kinds=definite \
		"$work/program"
else
	skip "tools: valgrind" "no valgrind"
fi

# gdb: breakpoints, and faults. The library catches faults in a program's
# memory itself, so a user who meets these tells gdb to pass SIGSEGV on.
debug() { # NAME PATTERN OPTION... -- PROGRAM
	local name=$1 pattern=$2 options=()

	shift 2
	while [ "$1" != -- ]; do
		options+=(-ex "$1")
		shift
	done
	shift
	a timeout 60 "$verbena" run -- gdb -q -nx -batch "${options[@]}" \
		--args "$@" >"$work/said" 2>&1
	if grep -Eq -- "$pattern" "$work/said"; then
		ok "tools: gdb, $name"
	else
		not_ok "tools: gdb, $name" "$work/said"
	fi
}
cat >"$work/fault.c" <<'END'
#include <infiniband/verbs.h>
#include <stdio.h>
#include <sys/mman.h>
int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = ibv_open_device(list[0]);
	struct ibv_pd *pd = ibv_alloc_pd(c);
	char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!ibv_reg_mr(pd, at, 4096, IBV_ACCESS_LOCAL_WRITE))
		return 1;
	munmap(at, 4096);
	puts("registered");
	fflush(stdout);
	return argc > 1 ? *at : 0;
}
END
if ! command -v gdb >/dev/null; then
	skip "tools: gdb" "no gdb"
else
	debug "to the end" "exited normally" run -- "$work/program"
	debug "a breakpoint in the program" "^#1 .* main" "break close_end" \
		run backtrace -- "$work/program"
	debug "a breakpoint in the library" "^#0 .*ibv_reg_mr" \
		"set breakpoint pending on" "break ibv_reg_mr" run backtrace \
		-- "$work/program"
	gcc -g "$work/fault.c" -o "$work/fault" -libverbs
	debug "a fault of the program's" "received signal SIGSEGV" run -- "$work/fault" x
	debug "a fault, where" "in main .*fault.c:17" \
		run backtrace -- "$work/fault" x
	debug "faults that are passed on" "exited normally" \
		"handle SIGSEGV nostop noprint pass" run -- "$work/program"
fi
summary
