/**
 * The completion scripts. Each sends the words up to the cursor to `holdfast complete` and follows the last line of its reply, which
 * print.ts documents. The scripts need no other package, and can be sourced repeatedly.
 */

/** Bash splits words at colons and equals signs, so the script joins them before the call, and cuts the candidates after it. */
const bash = String.raw`# bash completion for holdfast
_holdfast() {
  local line=\${COMP_LINE:0:COMP_POINT} piece reply directive cut="" i
  local -a words=() starts=()
  COMPREPLY=()
  for ((i = 0; i <= COMP_CWORD; i++)); do
    piece=\${COMP_WORDS[i]}
    if [[ $line == [[:space:]]* || $i == 0 ]]; then
      line=\${line#"\${line%%[![:space:]]*}"}
      words+=("") starts+=("$i")
    fi
    ((i == COMP_CWORD)) && piece=$line
    words[\${#words[@]} - 1]+=$piece
    line=\${line#"$piece"}
  done
  local current=\${words[\${#words[@]} - 1]}
  reply=$(command holdfast complete -- "\${words[@]:1}" 2>/dev/null) || return
  directive=\${reply##*$'\n'}
  case $directive in
    ":files")
      compopt -o filenames 2>/dev/null
      [[ $current == --*=* ]] && current=\${current#*=}
      while IFS= read -r piece; do COMPREPLY+=("$piece"); done < <(compgen -f -- "$current")
      ;;
    ":command "*)
      i=\${starts[\${directive#:command } + 1]}
      if declare -F _comp_command_offset >/dev/null; then
        _comp_command_offset "$i"
      elif declare -F _command_offset >/dev/null; then
        _command_offset "$i"
      else
        compopt -o filenames 2>/dev/null
        local -a kind=(-f)
        ((i == COMP_CWORD)) && kind=(-c)
        while IFS= read -r piece; do COMPREPLY+=("$piece"); done < <(compgen "\${kind[@]}" -- "$current" | sort -u)
      fi
      ;;
    *)
      [[ $COMP_WORDBREAKS == *:* && $current == *:* ]] && cut=\${current%"\${current##*:}"}
      [[ $COMP_WORDBREAKS == *=* && $current == *=* && \${current%"\${current##*=}"} == "$cut"* ]] && cut=\${current%"\${current##*=}"}
      while IFS=$'\t' read -r piece _; do
        [[ $piece == :* || $piece != "$current"* ]] && continue
        piece=\${piece#"$cut"}
        [[ $piece == *[!A-Za-z0-9_./:@%+=,-]* ]] && printf -v piece %q "$piece"
        COMPREPLY+=("$piece")
      done <<<"$reply"
      ;;
  esac
}
complete -F _holdfast holdfast
`;

const zsh = String.raw`#compdef holdfast
# zsh completion for holdfast
_holdfast() {
  local reply directive line
  local -a values descriptions
  reply=$(command holdfast complete -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null) || return
  directive=\${reply##*$'\n'}
  case $directive in
    ":files")
      compset -P '--*='
      _files
      ;;
    ":command "*)
      local start=$((\${directive#:command } + 2))
      words=("\${(@)words[start,-1]}")
      ((CURRENT -= start - 1))
      _normal
      ;;
    *)
      for line in "\${(@f)reply}"; do
        [[ $line == :* ]] && continue
        values+=("\${line%%$'\t'*}")
        descriptions+=("\${line%%$'\t'*}  \${line#*$'\t'}")
      done
      compadd -l -d descriptions -a values
      ;;
  esac
}
if [[ \${funcstack[1]-} == _holdfast ]]; then
  _holdfast "$@"
else
  compdef _holdfast holdfast
fi
`;

const fish = String.raw`# fish completion for holdfast
function __holdfast_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l reply (command holdfast complete -- $words[2..-1] 2>/dev/null)
    set -l directive $reply[-1]
    switch "$directive"
        case ':files'
            set -l current (string replace -r -- '^--[^=]*=' '' "$words[-1]")
            set -l flag (string match -r -- '^--[^=]*=' "$words[-1]")
            printf '%s\n' "$flag"(__fish_complete_path "$current")
        case ':command *'
            set -l start (math (string replace ':command ' '' -- $directive) + 2)
            set -l line
            test $start -lt (count $words); and set line (string escape -- $words[$start..-2])
            complete -C (string join ' ' -- $line $words[-1])
        case '*'
            printf '%s\n' $reply[1..-2]
    end
end
complete -c holdfast -e
complete -c holdfast -f -a '(__holdfast_complete)'
`;

const powershell = String.raw`# PowerShell completion for holdfast
Register-ArgumentCompleter -Native -CommandName holdfast -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Select-Object -Skip 1 | ForEach-Object { $_.ToString() })
    # Before PowerShell 7.3 an empty argument has to be quoted twice.
    $empty = if ($PSVersionTable.PSVersion -lt [version]'7.3') { '""' } else { '' }
    if ($wordToComplete -eq '') { $words += $empty }
    $reply = @(holdfast complete '--' $words 2>$null)
    $reply | Where-Object { $_ -notmatch '^:' } | ForEach-Object {
        $text, $description = $_ -split [char]9, 2
        if (-not $description) { $description = $text }
        [System.Management.Automation.CompletionResult]::new($text, $text, 'ParameterValue', $description)
    }
}
`;

export type Shell = "bash" | "zsh" | "fish" | "powershell";

/** The completion script of each shell. */
export const shells: Readonly<Record<Shell, string>> = {
  bash: unescaped(bash),
  zsh: unescaped(zsh),
  fish,
  powershell,
};

/** In a template, a dollar sign before a brace has a backslash. */
function unescaped(script: string): string {
  return script.replaceAll("\\${", "${");
}
