"""Completion of words in shells: job names, option keys, allowed words, named studies. Imports nothing heavy.

A shell evaluates what ``ecjax --completion SHELL`` prints; at every TAB that asks ``ecjax --complete WORDS``. Hydra's
own completion is for programs whose words are all Hydra's.
"""

from collections.abc import Sequence
from dataclasses import Field, fields, is_dataclass
from typing import Any

from ecjax.command_words import is_group, option_of
from ecjax.engine.options import EngineOptions
from ecjax.errors import UserError
from ecjax.guides import pages
from ecjax.jobs_index import COMMANDS, GROUPS, JOBS, Job, choices, engines
from ecjax.options import Flag, Listed, Rule, Series, Words, rule_of

_BASH = r"""
_ecjax() {
    local line="${COMP_LINE:0:COMP_POINT}" words current
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    current="${words[${#words[@]}-1]}"
    mapfile -t COMPREPLY < <("$1" --complete "${words[@]:1}" 2> /dev/null)
    if (( ${#COMPREPLY[@]} )); then
        # bash replaces what stands behind the = only
        [[ $COMP_WORDBREAKS == *=* && $current == *=* ]] && COMPREPLY=("${COMPREPLY[@]#"${current%=*}="}")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "${current##*=}")
    fi
}
complete -o nospace -F _ecjax ecjax
"""
_ZSH = r"""
_ecjax() {
    local -a candidates
    candidates=("${(@f)$(${words[1]} --complete "${(@)words[2,CURRENT]}" 2> /dev/null)}")
    candidates=(${candidates%% })
    if (( ${#candidates} )); then
        compadd -S '' -- ${(M)candidates:#*[=.]}
        compadd -- ${candidates:#*[=.]}
    else
        compset -P '*='
        _files
    fi
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
compdef _ecjax ecjax
"""
_FISH = r"""
function __ecjax_has_candidates
    set -l words (commandline -opc) (commandline -ct)
    set -g __ecjax_candidates (command $words[1] --complete $words[2..-1] 2> /dev/null | string trim --right)
    count $__ecjax_candidates > /dev/null
end
# files where there are no candidates
complete -c ecjax -n __ecjax_has_candidates -f -a '$__ecjax_candidates'
"""
SHELLS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
_FLAGS = ("--help ", "--guide ", "--json ", "--quiet ")


def completion_script(words: Sequence[str]) -> str:
    """What a shell evaluates, for ``ecjax --completion SHELL``.

    Raises:
        UserError: there is none for this shell.
    """
    if len(words) != 1 or words[0] not in SHELLS:
        raise UserError(f"--completion: found {' '.join(words) or 'nothing'}; allowed: {', '.join(SHELLS)}")
    return SHELLS[words[0]].strip()


def candidates(words: Sequence[str]) -> list[str]:
    """What the last of some words may become; a space at the end of those that are complete.

    Args:
        words: behind ``ecjax``; the last one as far as it is typed.
    """
    current = words[-1] if words else ""
    if len(words) < 2:
        first = (*(f"{name} " for name in (*JOBS, *COMMANDS)), "--help ", "--version ", "--completion ")
        return [word for word in first if word.startswith(current)]
    if words[0] == "--completion":
        return [f"{shell} " for shell in SHELLS if shell.startswith(current)]
    if current.startswith("-"):
        return [flag for flag in _FLAGS if flag.startswith(current)]
    if words[0] == "guide":
        return [f"{name} " for name in pages() if name.startswith(current) and len(words) == 2]
    if words[0] not in JOBS:
        return []
    job = JOBS[words[0]]
    key, equals, text = current.partition("=")
    if not equals:
        return [each for each in _keys(job, key) if each.startswith(key)]
    before, _, part = text.rpartition(",")
    taken = before.split(",") if before else []
    start = f"{key}={before}," if before else f"{key}="
    return [start + word for word in _values(job, key, part, bool(taken)) if word not in taken]


def _keys(job: Job, key: str) -> list[str]:
    """Options, with = or, of sections, a point; those of a section that is begun."""
    options, prefix = job.options_class(), ""
    for part in key.split(".")[:-1]:
        options = getattr(options, part, None)
        prefix += f"{part}."
    if not is_dataclass(options):
        return []
    names = [f"{prefix}{item.name}" + ("." if _is_section(item) else "=") for item in fields(options)]
    if prefix:
        return names
    return (
        names
        + ["engine="] * ("engine." in names)
        + [f"{group}=" for group in GROUPS if choices(job.name, group)]
    )


def _is_section(item: Field[Any]) -> bool:
    return is_dataclass(item.type)


def _values(job: Job, key: str, text: str, several: bool) -> list[str]:
    """The words that an option takes, as far as they are words and begin with a text."""
    if is_group(job, key):
        words: Sequence[str] = tuple(choices(job.name, key))
    else:
        try:
            item = option_of(job, key)
        except UserError:
            return []
        if item is None:
            return []
        if item.type is EngineOptions:
            words = engines()
        elif _is_section(item):
            return []
        else:
            words = _words(rule_of(item), several)
    return [word for word in words if word.startswith(text)]


def _words(rule: Rule, several: bool) -> Sequence[str]:
    """The words that a rule allows, of a list each."""
    if isinstance(rule, Listed | Series):
        return _words(rule.rule, False)
    if several:
        return ()
    if isinstance(rule, Words):
        return rule.words
    return ("true", "false") if isinstance(rule, Flag) else ()
