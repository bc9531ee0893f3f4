# cli/foreshard.bash - completion for bash: commands, options, their choices, networks and clusters.
#
# Installed where bash-completion finds it; from a build tree: source cli/foreshard.bash. It asks
# foreshard itself, so it knows what the program at hand knows.

_foreshard_choices() { # of an option of a command, as its help has them: "(none every=K N; default none)"
    "$1" "$2" --help-all 2>/dev/null |
        awk -v option="$3" '
            /^  -/ { here = index($0, option "=") > 0 }
            here { text = text " " $0 }
            END {
                if (match(text, /\([A-Za-z0-9|, =_-]*; +default/)) {
                    text = substr(text, RSTART + 1, RLENGTH - 1)
                    sub(/; +default$/, "", text)
                    print text
                }
            }' |
        tr -s '|, ' '\n' | sed -E '/^[A-Z]+$/d; s/=[A-Z]+$/=/' # N, TEXT: a user's own, of which nothing can be offered
}

_foreshard() {
    local program=${COMP_WORDS[0]} command=${COMP_WORDS[1]}
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=
    local key=0 flag knob='' listed=''
    [[ $before == = ]] && key=$((COMP_CWORD - 2)) # of "--sharding=" bash makes two words, of "--sharding=h" three
    [[ $word == = ]] && key=$((COMP_CWORD - 1)) && word=''
    if ((key)); then
        before=${COMP_WORDS[key]} flag=${COMP_WORDS[key - 1]}
        [[ $flag == = ]] && flag=${COMP_WORDS[key - 2]}
        if [[ $flag == --knob || $flag == -k ]]; then # its values are those of the option, behind commas
            knob=yes before=--${before//_/-} listed=${word%"${word##*,}"} word=${word##*,}
        fi
    fi
    if ((COMP_CWORD == 1)) || [[ $command == help ]]; then
        words=$("$program" --help 2>/dev/null | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }')
    elif [[ $word == -* ]]; then
        words=$("$program" "$command" --help-all 2>/dev/null |
            grep -o -E '^  (-[a-zA-Z], )?--[a-z0-9-]+' | grep -o -E -e '--[a-z0-9-]+')
    elif [[ $before == --cluster || $before == -c || $before == --pace ]]; then
        words=$("$program" list clusters --names 2>/dev/null)
    elif [[ $before == --picture || ($command == plot && $before == -p) ]]; then
        words='memory lanes jitter sweep pareto scale validation'
    elif [[ $before == --knob || ($before == -k && $command =~ ^(plot|choose)$) ]]; then
        words=$("$program" "$command" --help-strategy 2>/dev/null | # a key is written with _, and behind it stands =
            sed -n -E 's/^  (-[a-zA-Z], )?--([a-z0-9-]+)=.*/\2=/p' | grep -v -E '^(strategy|network-key)=' | tr - _)
    elif [[ $before == --device && $command =~ ^(run|rehearse|calibrate)$ ]]; then
        words='host cuda'
    elif [[ $before == --* || $key != 0 ]]; then
        words=$(_foreshard_choices "$program" "$command" "$before")
    elif [[ $command == explain && $COMP_CWORD == 2 ]]; then # it names its keys to whoever asks for none of them
        words="shardings $("$program" explain '?' gpt-toy 2>&1 | sed -n -E '/^  time /,/^  what is held /{ /^  what is held /!s/^.{19}//p }' | tr -d ,)"
    elif [[ $command == list ]]; then
        words="networks clusters $("$program" list networks --names; "$program" list clusters --names)"
    elif [[ $command =~ ^(plan|units|predict|choose|run|rehearse|plot|diagnose|explain)$ ]]; then
        words=$("$program" list networks --names 2>/dev/null)
    fi
    mapfile -t COMPREPLY < <(compgen -P "$listed" -W "$words" -- "$word")
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace +o filenames 2>/dev/null # a value follows; no \ before the =
    ((COMP_CWORD > 1)) && [[ $word != -* && -z $knob ]] && mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$word")
}

complete -o filenames -F _foreshard foreshard
