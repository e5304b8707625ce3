"""Put policies and the plugin into a folder of the user's, with compilers that use them.

File names are digests of contents, so several policies share a folder, and a build that is going
on keeps its files. The compilers are shell scripts: a shell starts in a millisecond, they find
their files beside themselves, and ccache takes them for what they are.
"""

import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from nestor.cli.use.command import BEST_WITH_THIN_LTO, LTO_WITH_SUMMARY, Ingredients
from nestor.errors import NestorError
from nestor.files import write_atomically, write_script

_DIGITS: Final = 16
_SCRIPT: Final = """\
#!/bin/sh
# {name} {version} under a policy, written by: {command}
# For the compiler with the build id {build_id}.
self=$0
[ ! -h "$self" ] || self=$(readlink -f -- "$self")
case $self in
  */*) here=${{self%/*}} ;;
  *) here=. ;;
esac
for file in {files}; do
  if [ ! -r "$here/$file" ]; then
    printf '%s\\n' "nestor: $here/$file is missing; write it again by: "{command_word} >&2
    exit 1
  fi
done
lto=
for word do
  case $word in
    -flto | -flto=auto | -flto=jobserver) lto=full ;;
    -flto=*) lto=${{word#-flto=}} ;;
    -fno-lto) lto= ;;
  esac
done
# The options must not warn where nothing is compiled, as in a link.
{refusal}if [ "$lto" ]; then
  {link}
else
  set -- --start-no-unused-arguments \\
    {compile} \\
    --end-no-unused-arguments "$@"
fi
exec {compiler} "$@"
"""


def install(found: Ingredients, folder: Path, command: str) -> Ingredients:
    """Copy what a build needs into ``folder`` and write the compilers ``clang`` and ``clang++``.

    :param command: the command line that does this again, for messages.
    :return: the same with the paths of the copies.
    :raises NestorError: if the folder cannot be written.
    """
    folder = folder.absolute()
    try:
        plugin = replace(found.plugin, path=_copied(found.plugin.path, folder, "nestor.plugin"))
        options = (
            replace(option, value=_copied(option.value, folder, option.file_name))
            if isinstance(option.value, Path)
            else option
            for option in found.choice.options
        )
        copied = Ingredients(plugin, replace(found.choice, options=tuple(options)))
        for name in ("clang", "clang++"):
            write_script(folder / name, _script(copied, folder, name, command))
    except OSError as error:
        place = error.filename or folder
        raise NestorError(f"{place} cannot be written: {error.strerror}.") from None
    return copied


def sentence(found: Ingredients, folder: Path) -> str:
    """Say what is where."""
    version = found.plugin.toolchain.version
    return (
        f"{folder} holds all that a build by clang {version} needs; the compiler is"
        f" {folder.absolute()}/clang."
    )


def _copied(file: Path, folder: Path, name: str) -> Path:
    """Copy ``file`` unless it is there; its digest goes into ``name``, before the suffix."""
    content = file.read_bytes()
    stem, _, suffix = name.partition(".")
    target = folder / f"{stem}-{hashlib.sha256(content).hexdigest()[:_DIGITS]}.{suffix}"
    if not target.is_file() or target.read_bytes() != content:
        write_atomically(target, content)
    return target


def _script(found: Ingredients, folder: Path, name: str, command: str) -> str:
    """Return the text of a compiler that adds the options."""
    toolchain = found.plugin.toolchain
    if not found.choice.has_summary:
        options = _words(found.link_options(), folder)
        link = (
            f"set -- --start-no-unused-arguments \\\n    {options} \\\n"
            '    --end-no-unused-arguments "$@"'
        )
    else:
        link = _refuse(LTO_WITH_SUMMARY)
    thin = f'if [ "$lto" = thin ]; then\n  {_refuse(BEST_WITH_THIN_LTO)}\nfi\n'
    return _SCRIPT.format(
        name=name,
        version=toolchain.version,
        build_id=toolchain.build_id,
        command=command.replace("\n", " "),
        command_word=shlex.quote(command),
        files=" ".join(path.name for path in (found.plugin.path, *found.files)),
        compile=_words(found.compile_options(), folder),
        refusal=thin if found.choice.best else "",
        link=link,
        compiler=shlex.quote(str(toolchain.clang.with_name(name))),
    )


def _refuse(sentence: str) -> str:
    """Return the lines of a shell script that end with an error."""
    return f"printf '%s\\n' {shlex.quote(f'nestor: {sentence}')} >&2\n  exit 1"


def _words(options: Sequence[str], folder: Path) -> str:
    """Return ``options`` for a shell, with ``$here`` for the folder."""
    before = f"{folder}/"
    return " ".join(
        shlex.quote(word.partition(before)[0]) + '"$here"/' + shlex.quote(word.partition(before)[2])
        if before in word
        else shlex.quote(word)
        for word in options
    )
