# cli/foreshard.bash - completion for bash: commands, options, their choices, networks and clusters.
#
# Installed where bash-completion finds it; from a build tree: source cli/foreshard.bash. It asks
# foreshard itself, so it knows what the program at hand knows.

_foreshard_choices() { # of an option of a command, as its help has them: "(none|full; default full)"
    "$1" "$2" --help-all 2>/dev/null |
        awk -v option="$3" '
            /^  -/ { here = index($0, option "=") > 0 }
            here { text = text " " $0 }
            END { if (match(text, /\([a-z0-9|, -]*;/)) print substr(text, RSTART + 1, RLENGTH - 2) }' |
        tr -s '|, ' '\n'
}

_foreshard() {
    local program=${COMP_WORDS[0]} command=${COMP_WORDS[1]}
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=
    [[ $word == = ]] && word='' # of "--sharding=" bash makes two words, of "--sharding=h" three
    [[ $before == = ]] && before=${COMP_WORDS[COMP_CWORD - 2]}
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
        compopt -o nospace 2>/dev/null
    elif [[ $before == --device && $command =~ ^(run|rehearse|calibrate)$ ]]; then
        words='host cuda'
    elif [[ $before == --* ]]; then
        words=$(_foreshard_choices "$program" "$command" "$before")
    elif [[ $command == explain && $COMP_CWORD == 2 ]]; then # it names its keys to whoever asks for none of them
        words="shardings $("$program" explain '?' gpt-toy 2>&1 | sed -n -E '/^  time /,/^  what is held /{ /^  what is held /!s/^.{19}//p }' | tr -d ,)"
    elif [[ $command == list ]]; then
        words="networks clusters $("$program" list networks --names; "$program" list clusters --names)"
    elif [[ $command =~ ^(plan|units|predict|choose|run|rehearse|plot|diagnose|explain)$ ]]; then
        words=$("$program" list networks --names 2>/dev/null)
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    ((COMP_CWORD > 1)) && [[ $word != -* ]] && mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$word")
}

complete -o filenames -F _foreshard foreshard
