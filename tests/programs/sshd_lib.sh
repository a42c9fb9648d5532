# SPDX-License-Identifier: BSD-2-Clause
# sshd for tests, and how ssh reaches it; sourced after lib.sh. Debian's package
# is only unpacked: installed, it would run a server on the machine.
# shellcheck shell=bash disable=SC2154,SC2034 # lib.sh sets them; used there

# has_libraries PROGRAM: one that was only unpacked.
has_libraries() {
	[ -x "$1" ] && ! ldd "$1" 2>&1 | grep -q "not found"
}

# find_sshd ADDRESS: $work/sshd is a shell script that becomes sshd, in a mount
# namespace of its own, at port 2222 of the address. What its package would make,
# is made where only it sees it. False: there is none to be had, or no root.
find_sshd() {
	[ -z "${VERBENA_USERNS:-}" ] && command -v ssh >/dev/null || return
	[ -x "$work/ssh/usr/sbin/sshd" ] ||
		(cd "$work" && apt-get download -qq openssh-server &&
			dpkg-deb -x openssh-server_*.deb ssh) >/dev/null 2>&1
	has_libraries "$work/ssh/usr/sbin/sshd" || return
	[ -e "$work/key" ] ||
		ssh-keygen -q -t ed25519 -N '' -f "$work/key" || return
	cp /etc/passwd "$work/passwd"
	grep -q ^sshd: "$work/passwd" ||
		echo sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin \
			>>"$work/passwd"
	cat >"$work/sshd_config" <<-EOF
		Port 2222
		ListenAddress $1
		HostKey $work/key
		AuthorizedKeysFile $work/key.pub
		PidFile none
		UsePAM no
		StrictModes no
	EOF
	cat >"$work/sshd" <<-EOF
		mount --bind "$work/passwd" /etc/passwd
		mount -t tmpfs none /run && mkdir -m 755 /run/sshd
		exec "$work/ssh/usr/sbin/sshd" -D -e -f "$work/sshd_config"
	EOF
}

# The words before the host's name and the command.
ssh_words=(ssh -p 2222 -i "$work/key" -o BatchMode=yes
	-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null)

# ssh_carries FROM TO ADDRESS: a session from one host to sshd at another, which
# sends 3 MB each way.
ssh_carries() {
	local server status=0

	become "$2" unshare -m sh -c ". $work/sshd" >"$work/server" 2>&1 &
	server=$!
	if listening "$2" 2222 20 $server; then
		head -c 3000000 /dev/zero | on "$1" timeout 60 \
			"${ssh_words[@]}" "root@$3" \
			'wc -c; head -c 3000000 /dev/zero' >"$work/client" 2>"$work/ssh_said" ||
			status=$?
	else
		status=1
	fi
	kill "$server" 2>/dev/null
	wait "$server" 2>/dev/null
	[ "$status" = 0 ] && [ "$(head -c 7 "$work/client")" = 3000000 ] &&
		[ "$(wc -c <"$work/client")" = 3000008 ] && return
	cat "$work/server" "$work/ssh_said"
	return 1
}
