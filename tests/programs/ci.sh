#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What ci/ has for other projects' jobs, run as far as that is possible without
# those services: tests/programs/ci.sh
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/programs/lib.sh
. "$here/lib.sh"
tests_begin "$0" "$@"
# shellcheck source=tests/programs/roots.sh
. "$here/roots.sh"
python=/usr/bin/python3

if ! $python -c 'import yaml' 2>/dev/null; then
	skip "ci: the files of YAML" "no python3-yaml here"
else
	$python "$here/ci_check.py" "$top/ci" >"$work/yaml" 2>&1
	while read -r line; do
		case $line in
		"ok "*) ok "${line#ok }" ;;
		*) not_ok "${line#not ok }" ;;
		esac
	done <"$work/yaml"
	[ -s "$work/yaml" ] || not_ok "ci: ci_check.py says nothing"
fi
[ "$(wc -l <"$top/ci/example/write.c")" -le 60 ] &&
	ok "ci: the example has at most 60 lines" ||
	not_ok "ci: the example has more than 60 lines"

if ! make_bundle; then
	not_ok "ci: make bundle" "$work/bundle"
	summary
	exit
fi
if [ "$hosts" = no ]; then
	skip "ci: jobs" "no network namespaces here"
	summary
	exit
fi

# A job is a shell of an ordinary user in a network with a loopback alone, who
# has no way to become root. It sees the project's files, and a home.
cp -a "$top/ci" "$work/ci"
cp "$bundle" "$work/verbena.tar.gz"
chmod -R a+rX "$work/ci" "$work/verbena.tar.gz"
mkdir -m 777 "$work/job"
drop=(--bounding-set=-all --inh-caps=-all --no-new-privs)
[ -n "${VERBENA_USERNS:-}" ] ||
	drop+=(--reuid=65534 --regid=65534 --clear-groups)

# job DIRECTORY VARIABLE=VALUE... : the script on standard input.
job() {
	local where=$1

	shift
	mkdir -p "$where" && chmod 777 "$where"
	timeout -k 5 120 unshare -n -- sh -c 'ip link set lo up && exec "$@"' sh \
		setpriv "${drop[@]}" -- env -i -C "$where" HOME="$where" \
		PATH=/usr/bin:/bin "$@" bash -eo pipefail -s
}

case_of() {
	local name=$1 file=$2

	if grep -q 'roce_lo: success, "written"' "$file"; then
		ok "$name"
	else
		not_ok "$name" "$file"
	fi
}

# The steps of the action, with the values that GitHub would put in.
at=$work/job/github
if $python "$here/ci_check.py" "$top/ci" steps >"$work/steps" 2>"$work/steps.err"; then
	{
		cat "$work/steps"
		# The runner does this between the steps.
		echo 'PATH=$(tail -n 1 "$GITHUB_PATH"):$PATH'
		echo '[ ! -f "$GITHUB_ENV" ] || while IFS= read -r l; do export "$l"; done <"$GITHUB_ENV"'
		echo 'make -C "$ACTION/../example" test OUT="$PWD"'
	} | sed 's/^verbena devices$/PATH=$(tail -n 1 "$GITHUB_PATH"):$PATH verbena devices/' |
		job "$at" RUNNER_TEMP="$at/temp" GITHUB_PATH="$at/path" \
			GITHUB_ENV="$at/env" GITHUB_OUTPUT="$at/output" \
			ACTION="$work/ci/github" BUNDLE="$work/verbena.tar.gz" DEV=true \
			SETUP="$work/ci/github/../setup.sh" >"$work/github.txt" 2>&1
	case_of "ci: the steps of the GitHub action, then the example" "$work/github.txt"
else
	skip "ci: the steps of the GitHub action" "$(tail -n 1 "$work/steps.err")"
fi

at=$work/job/gitlab
if $python "$here/ci_check.py" "$top/ci" gitlab >"$work/lines" 2>/dev/null; then
	# The example is built where its source is.
	mkdir -p "$at" && cp -a "$work/ci" "$at/ci" && chmod -R a+rwX "$at"
	job "$at" VERBENA_BUNDLE="$work/verbena.tar.gz" VERBENA_CI=ci \
		CI_PROJECT_DIR="$at" <"$work/lines" >"$work/gitlab.txt" 2>&1
	case_of "ci: the lines of the GitLab job" "$work/gitlab.txt"
else
	skip "ci: the lines of the GitLab job" "no python3-yaml here"
fi

# What unpacks headers, as on an image that lacks them: a compiler that does not
# look in the system's directories.
at=$work/job/dev
if ! apt-get download --print-uris libibverbs-dev >/dev/null 2>&1; then
	skip "ci: headers without root" "apt knows no libibverbs-dev"
else
	mkdir -p "$at/bin" && chmod 777 "$at"
	printf '#!/bin/sh\nexit 1\n' >"$at/bin/cc"
	chmod 755 "$at/bin/cc"
	# It needs the network, so it is no job of the kind above.
	if (setpriv "${drop[@]}" -- env -i -C "$at" HOME="$at" PATH=/usr/bin:/bin \
		CC="$at/bin/cc" sh "$work/ci/setup.sh" "$work/verbena.tar.gz" "$at/v" dev) \
		>"$work/dev.txt" 2>&1 && [ -f "$at/v/dev/usr/include/infiniband/verbs.h" ] &&
		(. "$at/v/env" && [ -e "${LIBRARY_PATH%%:*}/libibverbs.so" ] &&
			gcc -o "$work/write" "$top/ci/example/write.c" -libverbs); then
		ok "ci: headers and libraries unpacked without root"
	elif grep -qE 'Could not resolve|Failed to fetch|Unable to fetch' "$work/dev.txt"; then
		skip "ci: headers without root" "apt reaches no archive"
	else
		not_ok "ci: headers without root" "$work/dev.txt"
	fi
fi

# The pod: root read-only, no capability, a user that is nobody, two volumes.
if ! command -v bwrap >/dev/null; then
	skip "ci: the pod's confinement" "bubblewrap is not installed"
elif ! bwrap --ro-bind / / --unshare-all true 2>"$work/bwrap"; then
	skip "ci: the pod's confinement" "$(tail -n 1 "$work/bwrap")"
else
	mkdir -p "$work/pod/verbena" "$work/pod/opt"
	tar -C "$work/pod/opt" --strip-components=1 -xf "$bundle"
	cp -a "$work/pod/opt/." "$work/pod/verbena/"
	chmod -R a+rX "$work/pod"
	${CC:-gcc} -o "$work/pod/verbena/write" "$top/ci/example/write.c" -libverbs
	bwrap --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp --unshare-all \
		--ro-bind "$work/pod/verbena" /mnt --uid 65534 --gid 65534 \
		--cap-drop ALL --clearenv --setenv PATH /usr/bin:/bin \
		sh -c '! touch /etc/x 2>/dev/null && /mnt/bin/verbena run -- /mnt/write' \
		>"$work/pod.txt" 2>&1
	case_of "ci: the example as confined as the pod" "$work/pod.txt"
fi

# The image's lines, in the system that it begins with.
if [ "$quick" = yes ]; then
	:
elif why=$(no_root bookworm); then
	skip "ci: the lines of the Dockerfile" "$why"
else
	unpack_root bookworm "$work/image"
	mkdir "$work/image/src"
	git -C "$top" ls-files -z | tar -C "$top" --null -T - -cf - |
		tar -C "$work/image/src" -xf -
	sed -n '/ AS build/,/^FROM scratch/s/^RUN //p' "$top/ci/Dockerfile" >"$work/run"
	{
		echo 'set -eu; cd /src'
		cat "$work/run"
	} >"$work/image/run.sh"
	if [ "$(wc -l <"$work/run")" -ge 3 ] &&
		at_root "$work/image" sh /run.sh >"$work/docker.txt" 2>&1 &&
		[ -x "$work/image/opt/verbena/bin/verbena" ]; then
		ok "ci: the lines of the Dockerfile, in a bare Debian 12"
	elif grep -qE 'Failed to fetch|Unable to fetch' "$work/docker.txt"; then
		skip "ci: the lines of the Dockerfile" "apt reaches no archive"
	else
		not_ok "ci: the lines of the Dockerfile" "$work/docker.txt"
	fi
fi
summary
