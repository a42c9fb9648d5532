#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The broker among users: root's program has a slot and listens, and an
# unprivileged user claims that slot for itself, or all that there is to have.
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
need_hosts 1500
if [ -n "${VERBENA_USERNS:-}" ]; then
	skip "broker: two users" "not root"
	summary
	exit
fi

python=/usr/bin/python3 # the user may not reach another
if [ ! -x $python ]; then
	skip "broker: two users" "no $python"
	summary
	exit
fi
version=$(sed -n 's/^#define VB_IPC_CM_VERSION //p' "$top/wire/ipc_cm.h")
cp "$here/broker_user.py" "$work"
chmod 644 "$work/broker_user.py"
# A user of its own: the broker's quotas are of users, and others test, too.
user=(setpriv --reuid=64001 --regid=64001 --clear-groups
	--bounding-set=-all --inh-caps=-all --)
other=(setpriv --reuid=64002 --regid=64002 --clear-groups
	--bounding-set=-all --inh-caps=-all --)

# It has a slot, the first, and a listener; it stays.
become a timeout -k 5 300 "$verbena" run -- "$programs/cm_many" \
	-s "$HOST_A" -n 100000 </dev/null >"$work/root" 2>&1 &
tries=0
until grep -q listening "$work/root"; do
	tries=$((tries + 1))
	[ $tries -lt 250 ] || break
	sleep 0.02
done

for pid in $(pgrep -f 'verbena broker'); do
	[ "$(readlink "/proc/$pid/ns/net")" != \
		"$(readlink "/proc/$HOSTS_PID_a/ns/net")" ] || broker=$pid
done
export BROKER=$broker

# Root's programs get a slot, a port and a connection.
root_works() {
	on a timeout -k 5 20 "$verbena" run -- "$programs/cm_many" \
		-c "$HOST_A" -n 3 </dev/null >"$work/client" 2>&1
}

mkfifo "$work/asks" "$work/answers"

# tries CASE: of the user's, who is told whether root's work goes on. Sets $said.
tries() {
	local line pid asks answers

	said=badly
	become a timeout -k 5 90 "${user[@]}" $python "$work/broker_user.py" \
		"$version" "$1" <"$work/answers" >"$work/asks" \
		2>"$work/errors" &
	pid=$!
	exec {answers}>"$work/answers" {asks}<"$work/asks"
	while read -r line <&"$asks"; do
		case $line in
		look)
			if root_works; then
				echo well
			else
				echo badly
			fi >&"$answers"
			;;
		other)
			if on a timeout -k 5 20 "${other[@]}" $python \
				"$work/broker_user.py" "$version" own_packets \
				</dev/null >"$work/other" 2>&1; then
				echo well
			else
				echo badly
			fi >&"$answers"
			;;
		"ok "*) said=well ;;
		"skip"*) said=$line ;;
		*) echo "$line" >>"$work/errors" ;;
		esac
	done
	exec {answers}>&- {asks}<&-
	wait $pid
}

# case_of CASE NAME
case_of() {
	local said

	tries "$1"
	if [[ "$said" == skip* ]]; then
		skip "broker: $2" "${said#skip: }"
	elif [ "$said" = well ] && root_works; then
		ok "broker: $2"
	else
		not_ok "broker: $2" "$work/errors" "$work/client" "$work/root" \
			"$work/other"
	fi
}

case_of rejoin "another user's slot is not rejoined"
case_of addresses "ports of the host's addresses only"
case_of sessions "sessions: 320 of one user, and root's"
case_of slots "slots: 128 of one user, and root's"
case_of squat "the report says who bound slots' names"
case_of steering "a slot's holder steers nobody's packets"
case_of keep "a slot's next holder has another socket"
case_of binds "25000 binds of one port: 16384, and soon"
case_of linger "a socket that lingers delays nobody"
case_of flush "a file that never closes delays nobody"
case_of unread "a session that does not read is closed"

# The next broker knows nobody: who is first?
(sleep 0.5 && kill -9 "$broker") &
case_of rejoin_first "nor after the broker was killed"
summary
