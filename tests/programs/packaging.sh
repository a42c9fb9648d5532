#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What a package has besides programs: the manual page and the completions say
# what the command says of itself; the broker takes the socket that systemd
# made; make install and make uninstall ask no package manager.
# tests/programs/packaging.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"

# The page with the options' hyphens as they are typed.
page=$work/page
sed -e 's/\\-/-/g' -e '/systemctl/d' "$top/packaging/verbena.1" >"$page"
# All that the command says of its use, as a table.
"$verbena" help --all >"$work/help"
mapfile -t commands < <(sed -n 's/^command\t\([a-z-]*\)\t.*/\1/p' "$work/help" | sort -u)
words() {
	grep -oE -e "$1" "$2" | sort -u
}
# lists WHAT PATTERN: the page has what the help has, and nothing else.
lists() {
	local missing extra

	missing=$(comm -23 <(words "$2" "$work/help") <(words "$2" "$page"))
	extra=$(comm -13 <(words "$2" "$work/help") <(words "$2" "$page"))
	if [ -n "$(words "$2" "$work/help")" ] && [ -z "$missing$extra" ]; then
		ok "verbena(1): $1 are those of the help"
	else
		not_ok "verbena(1): $1: missing: ${missing//$'\n'/ };\
 not in the help: ${extra//$'\n'/ }"
	fi
}
lists options '--[a-z][a-z-]*'
lists "environment variables" 'VERBENA_[A-Z_]+'
for sub in "${commands[@]}"; do
	grep -qE "^\.BI? +\"?(verbena )?$sub\b" "$page" ||
		missing_commands="${missing_commands:-} $sub"
done
[ ${#commands[@]} -gt 5 ] && [ -z "${missing_commands:-}" ] &&
	ok "verbena(1): all commands are there" ||
	not_ok "verbena(1): missing commands:${missing_commands:-}"
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" "$top/meson.build")
for file in "$top"/packaging/*.[1-8]; do
	name=${file##*/}
	grep -q "^\.TH .*\"verbena $version\"" "$file" && ok "$name: the version" ||
		not_ok "$name: the version is not $version"
	if ! command -v man >/dev/null; then
		skip "$name: groff" "man is not installed"
		continue
	fi
	warned=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 \
		-l -Tutf8 -Z "$file" 2>&1 >/dev/null)
	[ -z "$warned" ] && ok "$name: groff has nothing to say" ||
		not_ok "$name: $warned"
done
"$build/ipoib/verbena-ipoib" --walk >"$work/usage" 2>&1
sed 's/\\-/-/g' "$top/packaging/verbena-ipoib.8" >"$work/ipoib.8"
[ "$(words '--[a-z]+' "$work/ipoib.8" | xargs)" = \
	"$(sed 1d "$work/usage" | words '--[a-z]+' - | xargs)" ] &&
	ok "verbena-ipoib(8): options are those of the program" ||
	not_ok "verbena-ipoib(8): options are not those of the program" "$work/usage"

# completes WORD...: what bash offers for the last of these words.
completes() {
	PATH=$build/cli:$PATH bash -c '
		. "$1" && shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
		_verbena
		printf "%s\n" "${COMPREPLY[@]}"' bash "$top/packaging/completion.bash" "$@"
}
# expects NAME WANTED WORD...: these are offered for the last word, in order.
expects() {
	local name=$1 wanted=$2 got

	shift 2
	got=$(completes "$@" | sort | xargs)
	[ "$got" = "$wanted" ] && ok "bash completes $name" ||
		not_ok "bash completes $name: \"$got\", not \"$wanted\""
}
expects "commands" "$(printf '%s\n' "${commands[@]}" | sort | xargs)" verbena ""
expects "the start of a command" "status" verbena st
expects "an option" "--namespace" verbena run --na
expects "a subcommand of fabric" "capture" verbena fabric cap
[ "$hosts" = no ] || {
	got=$(HOSTS_PID_a=here unshare -n -- bash -c "ip link set lo up
		PATH=$build/cli:\$PATH; . $top/packaging/completion.bash
		COMP_WORDS=(verbena run --device roce_) COMP_CWORD=3; _verbena
		echo \"\${COMPREPLY[*]}\"")
	[ "$got" = roce_lo ] && ok "bash completes a device" ||
		not_ok "bash completes a device: \"$got\""
}
if ! command -v zsh >/dev/null; then
	skip "zsh completes" "zsh is not installed"
else
	# compadd of zsh works within its line editor alone, so a function stands
	# for it.
	got=$(PATH=$build/cli:$PATH zsh -f -c '
		compadd() { [[ $1 == -a ]] && print -l -- ${(P)2} || print -l -- $@; }
		_files() { :; }
		words=(verbena "") CURRENT=2
		. '"$top"'/packaging/completion.zsh' | sort | xargs)
	[ "$got" = "$(printf '%s\n' "${commands[@]}" | sort | xargs)" ] &&
		ok "zsh completes commands" || not_ok "zsh completes commands: \"$got\""
	got=$(PATH=$build/cli:$PATH zsh -f -c '
		compadd() { [[ $1 == -a ]] && print -l -- ${(P)2} || print -l -- $@; }
		_files() { :; }
		words=(verbena run --) CURRENT=3
		. '"$top"'/packaging/completion.zsh' | xargs)
	[[ $got == *--device*--rsockets* ]] &&
		ok "zsh completes options" || not_ok "zsh completes options: \"$got\""
fi

# systemd makes the socket before the broker is there, and keeps it.
if [ "$hosts" = no ]; then
	skip "the broker at a socket of systemd" "no network namespaces here"
else
	lines_of() {
		unshare -n -- sh -c 'ip link set lo up && exec "$@"' sh \
			python3 "$here/packaging_socket.py" "$verbena" \
			"$top/packaging/verbena.socket"
	}
	# The lines go to a file first: a Python that ends early must not pass.
	lines_of >"$work/socket" 2>"$work/socket.err"
	status=$?
	while read -r line; do
		case $line in
		"ok "*) ok "${line#ok }" ;;
		*) not_ok "the broker at a socket of systemd: $line" ;;
		esac
	done <"$work/socket"
	if [ $status -ne 0 ] || [ "$(grep -c '^ok ' "$work/socket")" -ne 5 ]; then
		not_ok "the broker at a socket of systemd: status $status, 5 cases" \
			"$work/socket" "$work/socket.err"
	fi
fi
if command -v systemd-analyze >/dev/null; then
	mkdir "$work/units"
	cp "$top/packaging/verbena.socket" "$work/units"
	sed "s,@bindir@/verbena,$verbena," "$top/packaging/verbena.service.in" \
		>"$work/units/verbena.service"
	if SYSTEMD_UNIT_PATH=$work/units: systemd-analyze verify --man=no \
		"$work/units/verbena.socket" "$work/units/verbena.service" \
		>"$work/verify" 2>&1 && ! grep -q "$work/units/" "$work/verify"; then
		ok "systemd-analyze finds nothing in the units"
	else
		not_ok "systemd-analyze finds nothing in the units" "$work/verify"
	fi
else
	skip "systemd-analyze" "not installed"
fi

# A package manager that says that it was asked.
mkdir "$work/bin"
for tool in apt-get apt sudo; do
	printf '#!/bin/sh\necho asked >>%s\nexit 1\n' "$work/asked" >"$work/bin/$tool"
	chmod 755 "$work/bin/$tool"
done
# One need is not met.
printf '#!/bin/sh\n[ "$2" != libisal ] || exit 1\nexec %s "$@"\n' \
	"$(command -v pkg-config)" >"$work/bin/pkg-config"
chmod 755 "$work/bin/pkg-config"
for goal in install "all DEPS=0"; do
	# shellcheck disable=SC2086 # words
	PATH=$work/bin:$PATH make -s -C "$top" $goal BUILD="$work/none" \
		DESTDIR="$work/d" >"$work/asks" 2>&1
	status=$?
	if [ ! -e "$work/asked" ] && [ $status -ne 0 ] &&
		grep -q '^deps: missing: libisal-dev' "$work/asks"; then
		ok "make $goal says what is missing, and asks no package manager"
	else
		not_ok "make $goal asks no package manager" "$work/asks"
	fi
	rm -f "$work/asked"
done
# deps.sh where apt lacks one of two packages, and where the system is too old.
mkdir "$work/old"
cat >"$work/old/apt-get" <<-'END'
	#!/bin/sh
	case "$*" in
	*update*) ;;
	*libisal-dev*) exit 100 ;;
	*-s*) ;;
	*) echo "installed ${*##*recommends }" >>"$ASKED" ;;
	esac
END
printf '#!/bin/sh\ncase "$2" in libisal | libdeflate) exit 1 ;; esac\nexec %s "$@"\n' \
	"$(command -v pkg-config)" >"$work/old/pkg-config"
printf '#!/bin/sh\nexec "$@"\n' >"$work/old/sudo"
chmod 755 "$work/old"/*
ASKED=$work/asked PATH=$work/old:$PATH DEPS=1 "$top/scripts/deps.sh" build \
	>"$work/asks" 2>&1
if [ $? -eq 1 ] && [ "$(cat "$work/asked")" = "installed libdeflate-dev" ] &&
	grep -q '^deps: apt cannot install these here: libisal-dev' "$work/asks" &&
	grep -q '^deps: missing: libdeflate-dev libisal-dev' "$work/asks"; then
	ok "deps.sh installs the others where apt lacks a package, and names it"
else
	not_ok "deps.sh where apt lacks a package" "$work/asks" "$work/asked"
fi
rm -f "$work/asked"
printf '#!/bin/sh\necho glibc 2.31\n' >"$work/old/getconf"
chmod 755 "$work/old/getconf"
ASKED=$work/asked PATH=$work/old:$PATH DEPS=1 "$top/scripts/deps.sh" build \
	>"$work/asks" 2>&1
if [ $? -eq 1 ] && [ ! -e "$work/asked" ] &&
	grep -q '^deps: this system has glibc 2.31, and Verbena needs 2.33' "$work/asks"; then
	ok "deps.sh says that the system is too old, and installs nothing"
else
	not_ok "deps.sh on a system that is too old" "$work/asks" "$work/asked"
fi
# The packages, built by a tool that writes an empty one, in a directory whose
# name is relative, as the Makefile gives it.
printf '#!/bin/sh\n: >"../verbena_%s_all.deb"\n' \
	"$(sed -n '1s/.*(\(.*\)).*/\1/p' "$top/debian/changelog")" \
	>"$work/bin/dpkg-buildpackage"
printf '#!/bin/sh\n' >"$work/bin/dh"
chmod 755 "$work/bin/dpkg-buildpackage" "$work/bin/dh"
if (cd "$work" && PATH=$work/bin:$PATH "$top/packaging/deb.sh" debs) \
	>"$work/deb.txt" 2>&1 && grep -q '^verbena_.*_all.deb$' "$work/deb.txt" &&
	[ -z "$(find "$work/debs" -mindepth 1 -type d)" ]; then
	ok "deb.sh removes its copy of the sources"
else
	find "$work/debs" -maxdepth 1 >>"$work/deb.txt"
	not_ok "deb.sh removes its copy of the sources" "$work/deb.txt"
fi
files() {
	find "$work/stage" -mindepth 1 ! -type d | wc -l
}
make -s -C "$top" install BUILD="$build" PREFIX=/usr/local \
	DESTDIR="$work/stage" >"$work/install" 2>&1
mkdir -p "$work/stage/usr/local/bin" && touch "$work/stage/usr/local/bin/other"
many=$(files)
make -s -C "$top" uninstall BUILD="$build" PREFIX=/usr/local \
	DESTDIR="$work/stage" >"$work/uninstall" 2>&1
if [ "$many" -gt 12 ] && [ "$(files)" -eq 1 ] &&
	[ -z "$(find "$work/stage" -type d -path '*verbena*')" ]; then
	ok "make uninstall leaves what is not ours"
else
	not_ok "make uninstall: $many files before, $(files) after" "$work/uninstall"
	find "$work/stage" | sed 's/^/    | /'
fi
summary
