# SPDX-License-Identifier: BSD-2-Clause
# Completion of verbena(1) for bash. What can be completed is read from the
# command's own help, so it is that of the command that is installed.
# shellcheck shell=bash

# The subcommands, one a line.
_verbena_commands() {
	"$1" help --all 2>/dev/null | sed -n 's/^command\t\([a-z-]*\)\t.*/\1/p' | sort -u
}

# _verbena_options VERBENA SUBCOMMAND [WORD]: the options in its help.
_verbena_options() {
	"$1" help --all 2>/dev/null |
		awk -F'\t' -v c="$2" '$1 == "option" && ($2 == c || index($2, c " ") == 1) { print $3 }' |
		sort -u
}

# The specs of --device: the devices there are, and the forms.
_verbena_specs() {
	local device

	for device in $("$1" devices 2>/dev/null | grep -E '^[a-z0-9_]+$'); do
		echo "$device"
		case $device in
		roce_*) printf '%s:%s\n' iwarp "${device#roce_}" rocev1 "${device#roce_}" ;;
		esac
	done
	echo ib
}

_verbena() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[0]} sub=${COMP_WORDS[1]:-} i words

	COMPREPLY=()
	# bash breaks words at colons and at equals signs.
	[ "$prev" != : ] || prev=${COMP_WORDS[COMP_CWORD - 3]:-}
	if [ "$COMP_CWORD" -eq 1 ]; then
		words=$(_verbena_commands "$command")
	elif [ "$prev" = --device ]; then
		words=$(_verbena_specs "$command")
		[ "${COMP_WORDS[COMP_CWORD - 1]}" != : ] ||
			words=$(sed -n "s/^${COMP_WORDS[COMP_CWORD - 2]}://p" <<<"$words")
	elif [ "$sub" = run ] && i=$(_verbena_program) && [ "$COMP_CWORD" -gt "$i" ]; then
		declare -F _command_offset >/dev/null && _command_offset "$i"
		return
	elif [ "$sub" = run ] && [[ $cur != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -c -- "$cur")
		return
	elif [[ $cur == -* ]]; then
		words=$(_verbena_options "$command" "$sub")
	elif [ "$sub" = fabric ] && [ "$COMP_CWORD" -eq 2 ]; then
		words="ctl show capture"
	fi
	mapfile -t COMPREPLY < <(compgen -W "${words:-}" -- "$cur")
	[ ${#COMPREPLY[@]} -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}

# Of `verbena run OPTIONS PROGRAM ...`: which word is the program. False: none
# is complete yet.
_verbena_program() {
	local i

	for ((i = 2; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--) echo $((i + 1)) && return ;;
		--device) i=$((i + 1)) ;;
		# a spec behind its colon, --rsockets=all
		: | =) i=$((i + 1)) ;;
		-*) ;;
		*) echo "$i" && return ;;
		esac
	done
	return 1
}

complete -F _verbena verbena
