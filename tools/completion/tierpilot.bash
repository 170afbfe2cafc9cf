# Completion of tierctl, tiertool and tierpilot-swap in bash: what their --help says of the words so far, so that it
# is never out of date.

_tierpilot_help() {
  "$@" --help 2>/dev/null
}

# The subcommands that stand on the line before the cursor, as far as help knows them.
_tierpilot_path() {
  local word help subcommands
  path=("$1")
  help=$(_tierpilot_help "${path[@]}")
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    subcommands=$(_tierpilot_subcommands <<<"$help")
    [[ " ${subcommands//$'\n'/ } " == *" $word "* ]] || continue
    path+=("$word")
    help=$(_tierpilot_help "${path[@]}")
  done
}

_tierpilot_subcommands() {
  sed -n '/^Subcommands:/,/^$/s/^  \([a-z][a-z-]*\).*/\1/p'
}

_tierpilot_options() {
  sed -n 's/^ *\(-[a-zA-Z],\)\{0,1\}\(--[a-z-]*\).*/\2/p'
}

# What may stand for an option's value or a positional, from its line of help.
_tierpilot_values() {
  local line=$1 word=$2
  case "$line" in
    *"{"[a-z]*,*"}"*)
      compgen -W "$(grep -o '{[a-z][^}]*}' <<<"$line" | head -1 | tr '{,}' ' ')" -- "$word" ;;
    *[a-z]"|"[a-zA-Z]*)
      compgen -W "$(grep -o -m1 '[a-z-]*|[a-z|-]*' <<<"$line" | tr '|' ' ')" -- "$word" ;;
    *" FILE"* | *" PATH"* | *" TASKS.json"*) compgen -f -- "$word" ;;
    *" DIR"*) compgen -d -- "$word" ;;
    *" pid "*) compgen -W "$(cd /proc && printf '%s\n' [0-9]*)" -- "$word" ;;
  esac
}

_tierpilot() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path help line
  _tierpilot_path "$1"
  help=$(_tierpilot_help "${path[@]}")
  COMPREPLY=()
  if [[ $before == --* ]]; then
    line=$({ echo "$help"; _tierpilot_help "$1"; } |
      grep -E -m1 -e "^ *(-[a-zA-Z],)?$before " | sed 's/\(  *--[a-z-]* [^ ]*\).*/\1 /')
    mapfile -t COMPREPLY < <(_tierpilot_values "$line" "$word")
    # A flag has two spaces and its text behind it, anything else the kind of its value.
    [[ $line == *"$before "[A-Za-z{]* ]] && return
  fi
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$({ echo "$help"; _tierpilot_help "$1"; } |
      _tierpilot_options | sort -u)" -- "$word")
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$(_tierpilot_subcommands <<<"$help")" -- "$word")
  [[ ${#COMPREPLY[@]} -gt 0 ]] && return
  line=$(sed -n '/^Positionals:/,/^$/p' <<<"$help" | tr '\n' ' ')
  mapfile -t COMPREPLY < <(_tierpilot_values "$line" "$word")
}

complete -o filenames -F _tierpilot tierctl tiertool tierpilot-swap
