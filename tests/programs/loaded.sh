#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Other layers, beside processes that use the processors all the time:
#
#	tests/programs/loaded.sh [LAYER...]
#
# A layer passes only if all its cases do; it plays those of make check.
here=$(dirname "$(readlink -f "$0")")
export VERBENA_QUICK=yes
loops=16
[ "${1:-}" != --full ] || shift
if [ $# -gt 0 ]; then
	layers=("$@")
else
	layers=(near conformance misuse cm mtu users events broker)
fi
failed=0

# The time limits of the layers are for a machine that has nothing else to do.
# So another timeout(1) is found first, which gives every program longer.
longer=5
work=$(mktemp -d) || exit
chmod 755 "$work"
cat >"$work/timeout" <<-END
	#!/bin/bash
	if [ "\$1" = -k ]; then
		set -- "\$1" "\$2" "\$((\$3 * $longer))" "\${@:4}"
	else
		set -- "\$((\$1 * $longer))" "\${@:2}"
	fi
	exec $(type -P timeout) "\$@"
END
chmod 755 "$work/timeout"
PATH=$work:$PATH

# A loop ends with this process, too, however that ends.
pids=()
for ((i = 0; i < loops; i++)); do
	setpriv --pdeathsig KILL bash -c 'while :; do :; done' &
	pids+=($!)
done
trap 'kill "${pids[@]}"; rm -rf "$work"' EXIT

for layer in "${layers[@]}"; do
	SECONDS=0
	said=$("$here/$layer.sh" 2>&1)
	status=$?
	if [ $status -eq 0 ] && ! grep -q '^not ok' <<<"$said"; then
		echo "ok beside $loops busy loops:" \
			"$(tail -n 1 <<<"$said" | sed 's/^# //'), $SECONDS s"
	else
		failed=$((failed + 1))
		echo "not ok beside $loops busy loops: $layer"
		grep -vE '^(ok|skip) ' <<<"$said" | sed 's/^/    | /'
	fi
done
[ $failed -eq 0 ]
