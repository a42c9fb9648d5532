# SPDX-License-Identifier: BSD-2-Clause
# Bare systems to try packages in; sourced after lib.sh.
# shellcheck shell=bash
# shellcheck disable=SC2154 # work is lib.sh's

# Debian's archive, as apt has it here; empty: apt has none.
debian_mirror() {
	apt-get indextargets --format '$(LABEL) $(REPO_URI)' \
		'Created-By: Packages' 2>/dev/null |
		sed -n 's/^Debian //p' | head -n 1
}

# no_root SUITE: why there can be no bare system here; false: there can.
no_root() {
	if [ "$(id -u)" -ne 0 ] || [ -n "${VERBENA_USERNS:-}" ]; then
		echo "debootstrap needs root"
	elif ! command -v debootstrap >/dev/null; then
		echo "debootstrap is not installed"
	elif [ -z "$(debian_mirror)" ]; then
		echo "apt has no archive of Debian here"
	elif ! make_root_tar "$1" >"$work/debootstrap" 2>&1; then
		echo "debootstrap $1: $(tail -n 1 "$work/debootstrap")"
	else
		return 1
	fi
}

# The bare system is made once, and kept beside the builds.
root_tar() {
	echo "${VERBENA_ROOTS:-$build-roots}/$1.tar"
}

make_root_tar() {
	local tar

	tar=$(root_tar "$1")
	[ ! -s "$tar" ] || return 0
	mkdir -p "$(dirname "$tar")" &&
		debootstrap --variant=minbase "$1" "$work/bare" "$(debian_mirror)" &&
		rm -rf "$work"/bare/var/cache/apt/archives/*.deb &&
		tar -C "$work/bare" --one-file-system -cf "$tar.part" . &&
		mv "$tar.part" "$tar" && rm -rf "$work/bare"
}

# unpack_root SUITE DIRECTORY
unpack_root() {
	mkdir -p "$2" && tar -C "$2" -xpf "$(root_tar "$1")" &&
		cp /etc/resolv.conf "$2/etc/resolv.conf"
}

# at_root DIRECTORY COMMAND...: there, with this machine's network, for apt.
at_root() {
	local root=$1

	shift
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C \
		DEBIAN_FRONTEND=noninteractive ${http_proxy:+http_proxy="$http_proxy"} \
		unshare -m -p -f --kill-child bash -c '
			mount --make-rprivate / && mount -t proc proc "$1/proc" &&
				mount -t sysfs -o ro sysfs "$1/sys" &&
				mount -t tmpfs tmpfs "$1/run" && root=$1 && shift &&
				exec chroot "$root" "$@"' bash "$root" "$@" </dev/null
}

# pair_at_root DIRECTORY VERBENA PROGRAM...: two programs there, by an ordinary
# user, with a loopback of their own and nothing else. The first is the server,
# and the second gets 127.0.0.1 as the last argument. Nothing of the directory
# but VERBENA and the program is used, so it need not be a whole system.
pair_at_root() {
	# shellcheck disable=SC2016 # that is the inner shell's to expand
	timeout -k 5 120 unshare -n -m -p -f --kill-child bash -c '
		root=$1 verbena=$2 && shift 2
		mount --make-rprivate / && ip link set lo up || exit
		mount -t proc proc /proc && mount -t proc proc "$root/proc" &&
			mount -t tmpfs tmpfs "$root/tmp" || exit
		mkdir -m 700 "$root/tmp/run" && chown 65534:65534 "$root/tmp/run" &&
			chmod 1777 "$root/tmp"
		there() {
			env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C \
				XDG_RUNTIME_DIR=/tmp/run chroot \
				--userspec=65534:65534 --groups= "$root" \
				"$verbena" run -- "$@"
		}
		there "$@" & server=$!
		for ((i = 0; i < 400; i++)); do
			[ -z "$(ss -Hltn "sport = :18515")" ] || break
			kill -0 $server 2>/dev/null || break
			sleep 0.05
		done
		there "$@" 127.0.0.1 && wait $server' bash "$@" </dev/null
}

# make_bundle [CROSS SYSROOT]: the tar of this tree, kept beside the builds, into
# $bundle. Layers that run side by side make it once.
make_bundle() {
	flock "${build%/}-bundle.lock" make -s -C "$top" bundle \
		BUILD="$build${1:+-$1}" DEPS=0 ${1:+CROSS="$1" SYSROOT="$2"} \
		>"$work/bundle" 2>&1
	bundle=$(tail -n 1 "$work/bundle")
	[ -s "$bundle" ]
}
