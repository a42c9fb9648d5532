# SPDX-License-Identifier: BSD-2-Clause
# Sources as this host's Debian has them; sourced.
# shellcheck shell=bash

# debian_source PACKAGE DIRECTORY: fetch and unpack the sources of the installed
# release's PACKAGE below DIRECTORY, and print the name of their directory.
# apt's own state is not touched: no list of sources is added to the host, and
# no privilege is needed. False: they cannot be had here; why is in
# DIRECTORY/apt.log.
debian_source() {
	local package=$1 dir=$2 site release options

	mkdir -p "$dir/lists/partial" "$dir/cache" || return
	# shellcheck disable=SC2016 # that is apt's to expand
	read -r site release < <(apt-get indextargets 'Created-By: Packages' \
		--format '$(SITE) $(RELEASE)' 2>/dev/null |
		grep '/debian ' | head -n 1)
	[ -n "${release:-}" ] || {
		echo "apt-get knows no Debian release" >"$dir/apt.log"
		return 1
	}
	echo "deb-src $site $release main" >"$dir/sources.list"
	options=(-o "Dir::Etc::sourcelist=$dir/sources.list"
		-o Dir::Etc::sourceparts=/dev/null
		-o "Dir::State::lists=$dir/lists" -o "Dir::Cache=$dir/cache"
		-o APT::Sandbox::User=root -o Acquire::Retries=2)
	(
		cd "$dir" || exit
		timeout 120 apt-get "${options[@]}" update &&
			timeout 120 apt-get "${options[@]}" source "$package"
	) >"$dir/apt.log" 2>&1 || return
	(
		cd "$dir" || exit
		find "$dir" -maxdepth 1 -type d -name "$package-[0-9]*" | head -n 1
	)
}
