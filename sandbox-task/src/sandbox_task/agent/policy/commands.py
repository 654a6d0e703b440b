"""Which commands destroy something that can't be had back: outside of the sandbox, or the run's own work wholesale.

The sandbox itself is disposable and the base commit is kept, so deleting files, installing packages, rewriting history
or breaking the sandbox are ordinary work and no reason to ask. Quoting, spacing and wrappers (`sudo`, `env`, `sh -c`,
`xargs`, …) make no difference; what is only known when it runs (`$VARIABLE`) is taken for harmless.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from sandbox_task.agent.policy import risks
from sandbox_task.agent.policy.shell import Command, simple_commands

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sandbox_task.agent.policy.places import Place
    from sandbox_task.agent.policy.risks import Risk

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
_INTERPRETERS = re.compile(r"(?:python|node|perl|ruby|php|deno|bun)[0-9.]*$")
_DOWNLOADERS = frozenset({"curl", "wget", "fetch", "http", "aria2c"})
_KEYWORDS = frozenset({"if", "then", "else", "elif", "while", "until", "do", "!", "{", "}", "fi", "done", "esac"})
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
# Wrappers, and those of their options that take the next word with them
_WRAPPERS: dict[str, frozenset[str]] = {
    "env": frozenset({"-u", "-C", "-S"}),
    "sudo": frozenset({"-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T"}),
    "doas": frozenset({"-u", "-C"}),
    "nice": frozenset({"-n"}),
    "ionice": frozenset({"-c", "-n"}),
    "timeout": frozenset({"-k", "-s"}),
    "stdbuf": frozenset({"-i", "-o", "-e"}),
    "xargs": frozenset({"-I", "-n", "-P", "-L", "-d", "-a", "-E", "-s"}),
    "flock": frozenset({"-w", "-E"}),
    **dict.fromkeys(("nohup", "time", "exec", "command", "builtin", "setsid", "unbuffer", "chronic"), frozenset[str]()),
}
_WITH_OPERAND = frozenset({"timeout", "flock"})  # a duration, a file: stands before the command
_DRY_RUN = re.compile(r"--dry-?run(?:=(?!none).*)?$")

# Programs whose sub-commands reach outside. A pattern is matched against the words that are no options; the few that
# may stand before the sub-command are the values of options.
_OUTSIDE: dict[str, tuple[tuple[str, Risk], ...]] = {
    **dict.fromkeys(("npm", "pnpm", "bun"), ((r"((?!run )\S+ )?(publish|unpublish|deprecate)", risks.PUBLISHES),)),
    "yarn": ((r"(npm )?publish", risks.PUBLISHES),),
    "npx": ((r"(semantic-release|np|lerna publish)", risks.PUBLISHES),),
    "lerna": ((r"publish", risks.PUBLISHES),),
    "twine": ((r"upload", risks.PUBLISHES),),
    **dict.fromkeys(("poetry", "uv", "flit", "hatch", "pdm", "vsce"), ((r"publish", risks.PUBLISHES),)),
    "cargo": ((r"(\+\S+ )?(publish|yank)", risks.PUBLISHES),),
    "gem": ((r"(push|yank)", risks.PUBLISHES),),
    "dotnet": ((r"nuget (push|delete)", risks.PUBLISHES),),
    **dict.fromkeys(("mvn", "mvnw"), ((r"(\S+ )*(deploy|release:perform)", risks.PUBLISHES),)),
    **dict.fromkeys(("gradle", "gradlew"), ((r"(\S+ )*(\S*:)?publish(?!ToMavenLocal)\w*", risks.PUBLISHES),)),
    **dict.fromkeys(("docker", "podman"), ((r"(\S+ ){0,2}push", risks.PUBLISHES),)),
    "gh": (
        (r"release (create|delete|upload|edit)", risks.PUBLISHES),
        (r"(repo (delete|create|archive|edit|rename)|pr (merge|close|create)|issue (close|delete|create))",
         risks.CHANGES_SERVICES),
        (r"(secret (set|delete|remove)|workflow run)", risks.CHANGES_SERVICES),
    ),
    **dict.fromkeys(
        ("terraform", "tofu", "terragrunt"), ((r"(\S+ )?(apply|destroy|state rm)", risks.CHANGES_SERVICES),)
    ),
    **dict.fromkeys(
        ("kubectl", "oc"), ((r"(\S+ ){0,2}(delete|drain|apply|replace|patch|scale)", risks.CHANGES_SERVICES),)
    ),
    "helm": (
        (r"push", risks.PUBLISHES),
        (r"(\S+ ){0,2}(install|uninstall|delete|upgrade|rollback)", risks.CHANGES_SERVICES),
    ),
    "aws": (
        (r"(\S+ ){0,3}s3 (rm|rb)", risks.CHANGES_SERVICES),
        (r"(\S+ ){1,4}(delete|terminate|remove|purge|deregister|destroy|disable|revoke|stop|reboot)-\S+",
         risks.CHANGES_SERVICES),
    ),
    **dict.fromkeys(("gcloud", "az", "doctl"), ((r"(\S+ ){1,5}(delete|destroy|purge)", risks.CHANGES_SERVICES),)),
    **dict.fromkeys(
        ("cdk", "sam", "serverless", "sls"), ((r"(deploy|destroy|delete|remove)", risks.CHANGES_SERVICES),)
    ),
    "pulumi": ((r"(up|update|destroy)", risks.CHANGES_SERVICES),),
    **dict.fromkeys(
        ("wrangler", "vercel", "netlify", "firebase", "fly", "flyctl", "heroku"),
        ((r"(pages )?(deploy|publish|delete|destroy|apps:destroy)", risks.CHANGES_SERVICES),),
    ),
}  # fmt: skip
_STOPS = frozenset({"shutdown", "reboot", "halt", "poweroff"})
_DEVICE_NOT_LOST = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/", "/dev/shm/")  # noqa: S108 - no file is made
_FIND_FILTERS = re.compile(r"-(i?name|i?path|i?regex|newer\S*|[acm](time|min)|empty|size|user|perm|type)$")
_MAX_DEPTH = 8


class CommandRules:
    """`look_at_code` judges what is handed to another language's interpreter."""

    def __init__(self, look_at_code: Callable[[str, Place], Risk | None]) -> None:
        self._look_at_code = look_at_code

    def of_text(self, text: str, place: Place, depth: int = 0) -> Risk | None:
        """The first risk in a shell text. A `cd` in it moves what comes after."""
        if depth > _MAX_DEPTH:
            return None
        for command in simple_commands(text):
            if risk := self._of(command, place, depth):
                return risk
            place = _moved(_unwrapped(command.words), place)
        return None

    def of_words(self, words: Sequence[str], place: Place, depth: int = 0) -> Risk | None:
        return self._of(Command(list(words)), place, depth)

    def _of(self, command: Command, place: Place, depth: int) -> Risk | None:
        words = _unwrapped(command.words)
        if not words:
            return None
        program, arguments = PurePosixPath(words[0]).name, words[1:]
        if _INTERPRETERS.match(program) and arguments[:1] == ["-m"]:
            return self.of_words(arguments[1:], place, depth + 1)
        if program in _SHELLS or program in {"eval", "source", "."} or _INTERPRETERS.match(program):
            return self._of_interpreter(program, arguments, command, place, depth)
        if program == "find":
            return self._of_find(arguments, place, depth)
        return _of_program(program, arguments, place)

    def _of_interpreter(
        self, program: str, arguments: list[str], command: Command, place: Place, depth: int
    ) -> Risk | None:
        """What it is given to run: in its arguments, in a here-document, or by what stands before a pipe."""
        before = _unwrapped(command.after_pipe.words) if command.after_pipe else []
        if _downloads(before) or any(_downloads(_first_words(text)) for text in command.substituted):
            return risks.RUNS_DOWNLOAD
        texts = [command.stdin, _inline(program, arguments)]
        if before and before[0] in {"echo", "printf"}:
            texts.append(" ".join(before[1:]))
        is_shell = not _INTERPRETERS.match(program)
        for text in filter(None, texts):
            risk = self.of_text(text, place, depth + 1) if is_shell else self._look_at_code(text, place)
            if risk:
                return risk
        return None

    def _of_find(self, arguments: list[str], place: Place, depth: int) -> Risk | None:
        roots = _before_options(arguments) or ["."]
        narrowed = any(_FIND_FILTERS.match(word) for word in arguments)
        if "-delete" in arguments and not narrowed and any(place.is_whole_work(root) for root in roots):
            return risks.DELETES_WORK
        for number, word in enumerate(arguments):
            if word in {"-exec", "-execdir", "-ok"}:
                found = [] if narrowed else roots
                inner = [part for part in arguments[number + 1 :] if part not in {";", "+"}]
                words = [each for part in inner for each in (found if part == "{}" else [part])]
                return self.of_words(words, place, depth + 1)
        return None


def _of_program(program: str, arguments: list[str], place: Place) -> Risk | None:
    if program == "git":
        return _of_git(arguments, place)
    if program == "rm":
        recursive = any(re.match(r"-[a-zA-Z]*[rR]|--recursive$", word) for word in arguments)
        targets = [word for word in arguments if not word.startswith("-")]
        return risks.DELETES_WORK if recursive and any(map(place.is_whole_work, targets)) else None
    if program.startswith("mkfs") or program in _STOPS | {"wipefs"}:
        return risks.TOUCHES_MACHINE
    if program == "dd":
        targets = [word[3:] for word in arguments if word.startswith("of=/dev/")]
        return risks.TOUCHES_MACHINE if any(not word.startswith(_DEVICE_NOT_LOST) for word in targets) else None
    return _of_outside(program, arguments)


def _of_outside(program: str, arguments: list[str]) -> Risk | None:
    if any(map(_DRY_RUN.match, arguments)):
        return None
    if program in {"docker", "podman"} and "--push" in arguments:
        return risks.PUBLISHES
    if program == "aws" and arguments[:2] == ["s3", "sync"] and "--delete" in arguments:
        return risks.CHANGES_SERVICES
    said = " ".join(word for word in arguments if not word.startswith("-"))
    return next((risk for pattern, risk in _OUTSIDE.get(program, ()) if re.match(rf"{pattern}(?= |$)", said)), None)


def _of_git(arguments: list[str], place: Place) -> Risk | None:
    words = list(arguments)
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option in {"-C", "-c", "--git-dir", "--work-tree", "--namespace"} and words:
            value = words.pop(0)
            place = place.moved(value) if option == "-C" else place
    if not words:
        return None
    name, rest = words[0], words[1:]
    if name == "push":
        return None if "-n" in rest or any(map(_DRY_RUN.match, rest)) else risks.PUSHES
    return risks.DISCARDS_WORK if place.is_in_work() and _discards(name, rest, place) else None


def _discards(name: str, rest: list[str], place: Place) -> bool:
    options = [word for word in rest if word.startswith("-") and word != "--"]
    paths = [word for word in rest if not word.startswith("-")]
    everything = any(map(place.is_whole_work, paths))
    match name:
        case "reset":
            return "--hard" in options
        case "clean":
            forced = any(re.match(r"-[a-zA-Z]*f|--force$", option) for option in options)
            dry = any(re.match(r"-[a-zA-Z]*n|--dry-run$", option) for option in options)
            return forced and not dry and (everything or not paths)
        case "checkout" | "switch":
            forced = any(option in {"-f", "--force", "--discard-changes"} for option in options)
            return forced or (name == "checkout" and everything)
        case "restore":
            staged_only = bool({"-S", "--staged"} & set(options)) and not {"-W", "--worktree"} & set(options)
            return everything and not staged_only
        case _:
            return False


def _unwrapped(words: Sequence[str]) -> list[str]:
    """Without what stands before the program: assignments, keywords, `sudo`, `env`, `timeout 5`, …"""
    rest = list(words)
    while rest:
        program = PurePosixPath(rest[0]).name
        if _ASSIGNMENT.match(rest[0]) or rest[0] in _KEYWORDS:
            rest = rest[1:]
        elif program in _WRAPPERS:
            rest = _without_options(rest[1:], _WRAPPERS[program])
            rest = rest[1:] if program in _WITH_OPERAND else rest
        else:
            return rest
    return rest


def _without_options(words: list[str], with_value: frozenset[str]) -> list[str]:
    while words and words[0].startswith("-"):
        option, words = words[0], words[1:]
        if option == "--":
            break
        words = words[1:] if option in with_value else words
    return words


def _inline(program: str, arguments: list[str]) -> str:
    if program == "eval":
        return " ".join(arguments)
    flag = r"-[a-z]*c$" if program in _SHELLS else r"-(c|e|p|r|-eval|-print)$"
    for number, word in enumerate(arguments[:-1]):
        if re.match(flag, word):
            return arguments[number + 1]
    return ""


def _downloads(words: Sequence[str]) -> bool:
    return bool(words) and PurePosixPath(words[0]).name in _DOWNLOADERS


def _first_words(text: str) -> list[str]:
    return next((_unwrapped(command.words) for command in simple_commands(text)), [])


def _before_options(arguments: list[str]) -> list[str]:
    end = next((n for n, word in enumerate(arguments) if word.startswith(("-", "!", "("))), len(arguments))
    return arguments[:end]


def _moved(words: list[str], place: Place) -> Place:
    return place.moved(words[1]) if words[:1] in (["cd"], ["pushd"]) and len(words) > 1 else place
