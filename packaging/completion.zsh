#compdef verbena
# SPDX-License-Identifier: BSD-2-Clause
# Completion of verbena(1) for zsh. What can be completed is read from the
# command's own help, so it is that of the command that is installed.

_verbena() {
	local command=$words[1] sub=$words[2]
	local -a found
	local i

	if (( CURRENT == 2 )); then
		found=(${(f)"$($command help --all 2>/dev/null |
			sed -n 's/^command\t\([a-z-]*\)\t.*/\1/p' | sort -u)"})
		compadd -a found
		return
	fi
	if [[ $words[CURRENT-1] == --device ]]; then
		found=(${(f)"$($command devices 2>/dev/null | grep -E '^[a-z0-9_]+$')"} ib)
		compadd -a found
		return
	fi
	if [[ $sub == run ]]; then
		for (( i = 3; i < CURRENT; i++ )); do
			case $words[i] in
			(--device) (( i++ )) ;;
			(--) (( i++ )); break ;;
			(-*) ;;
			(*) break ;;
			esac
		done
		if (( i < CURRENT )) || [[ $words[CURRENT] != -* ]]; then
			(( i > CURRENT )) && i=$CURRENT
			shift $(( i - 1 )) words
			(( CURRENT -= i - 1 ))
			_normal
			return
		fi
	fi
	if [[ $words[CURRENT] == -* ]]; then
		found=(${(f)"$($command $sub --help 2>&1 </dev/null |
			sed '1{/unrecognized option/d;}' |
			grep -oE -e '--[a-z][a-z-]*' | sort -u)"})
		compadd -a found
		return
	fi
	if [[ $sub == fabric ]] && (( CURRENT == 3 )); then
		compadd ctl show capture
	fi
	_files
}

_verbena "$@"
