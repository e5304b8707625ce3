"""Which options of a recorded command may be replayed.

A corpus is data, possibly from a stranger, so its command lines are never trusted: only options
named here reach the compiler or the linker again. Everything else is left out. Options that the
bitcode has already absorbed (include paths, macros, warnings) go silently; any other is counted,
because leaving it out may change the code.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple


class Filtered(NamedTuple):
    """What is left of a command line.

    ``kept`` can be replayed; ``left_out`` are the options that were neither known to be safe nor
    known to be without effect on code generation from bitcode.
    """

    kept: tuple[str, ...]
    left_out: tuple[str, ...]

    @property
    def dropped(self) -> int:
        """How many options were left out."""
        return len(self.left_out)


_VALUE = re.compile(r"[A-Za-z0-9_.+=,-]{1,200}")
"""No slash, no blank, no ``@``: a value can name a feature or a number, never a file elsewhere."""

# Back-end options of one word. Sources: the cc1 lines that clang 22 writes, and its CodeGen*.def.
_CC1_WORD = re.compile(
    r"""-emit-obj | -O[0-3sz] | -disable-free | -clear-ast-before-backend
    | -disable-llvm-verifier | -disable-llvm-passes | -discard-value-names
    | -f(half-)?(no-)?semantic-interposition | -f(no-)?math-errno | -f(no-)?rounding-math
    | -ffp-contract=(on|off|fast|fast-honor-pragmas) | -ffp-eval-method=\w+
    | -ffp-exception-behavior=\w+ | -fdenormal-fp-math(-f32)?=[a-z,-]+
    | -ffast-math | -ffinite-math-only | -funsafe-math-optimizations | -fno-signed-zeros
    | -mreassociate | -freciprocal-math | -fapprox-func | -menable-no-(infs|nans)
    | -mconstructor-aliases | -funwind-tables=[012] | -ffunction-sections | -fdata-sections
    | -f(no-)?unique-section-names | -f(no-)?addrsig | -fno-dwarf2-cfi-asm | -fdwarf2-cfi-asm
    | -fexceptions | -fcxx-exceptions | -fasync-exceptions | -exception-model=\w+
    | -mframe-pointer=[a-z-]+ | -pic-is-pie | -fno-plt | -mcmodel=\w+ | -ftls-model=[a-z-]+
    | -femulated-tls | -f(no-)?jump-tables | -f(no-)?delete-null-pointer-checks
    | -vectorize-(loops|slp) | -f(no-)?unroll-loops | -f(no-)?finite-loops
    | -f(no-)?inline(-functions|-hint-functions)? | -fforce-emit-vtables
    | -fstrict-vtable-pointers | -fno-builtin(-\w+)? | -ffreestanding
    | -fveclib=\w+ | -fstack-clash-protection | -fcf-protection=\w+ | -mstackrealign
    | -mstack-alignment=\d+ | -mstack-probe-size=\d+ | -disable-red-zone | -no-implicit-float
    | -mno-tls-direct-seg-refs | -mno-check-zero-division | -fzero-call-used-regs=[a-z-]+
    | -ftrap-function=\w+ | -ftrapv | -fwrapv | -debugger-tuning=\w+ | -msoft-float
    | -fno-verbose-asm | -mrelax-all | -mno-relax | -fshort-enums
    | -mnoexecstack | -mlarge-data-threshold=\d+ | -relaxed-aliasing | -no-struct-path-tbaa
    | -fprofile-instrument-use=(cs)?llvm | -fprofile-instrument-use-path=[0-9a-f]{64}\.profdata""",
    re.VERBOSE,
)
# Back-end options followed by one value.
_CC1_PAIR = frozenset(
    {
        "-triple", "-mrelocation-model", "-pic-level", "-target-cpu", "-tune-cpu",
        "-target-feature", "-target-abi", "-stack-protector", "-stack-protector-buffer-size",
        "-mfloat-abi", "-mregparm", "-mthread-model",
    }
)  # fmt: skip

# Options whose work is done once there is bitcode, or that only speak of places and messages.
_CC1_SPENT_PAIR = frozenset(
    {
        "-main-file-name", "-resource-dir", "-D", "-U", "-I", "-isystem", "-internal-isystem",
        "-internal-externc-isystem", "-internal-iframework", "-iquote", "-idirafter",
        "-iprefix", "-iwithprefix", "-isysroot", "-include", "-include-pch", "-ferror-limit",
        "-fmessage-length", "-dependency-file", "-MT", "-MQ", "-x", "-o", "-fobjc-runtime",
        "-ftemplate-depth", "-fvisibility", "-diagnostic-log-file",
        "-serialize-diagnostic-file", "-header-include-file", "-source-date-epoch", "-dumpdir",
    }
)  # fmt: skip
_CC1_SPENT_WORD = re.compile(
    r"""-[DUIW].* | -w | -pedantic(-errors)? | -std=.* | -cc1
    | -f(no-)?visibility.* | -f(no-)?color-diagnostics | -f(no-)?diagnostics-.*
    | -fdebug-(compilation-dir|prefix-map).* | -fcoverage-(compilation-dir|prefix-map).*
    | -fmacro-prefix-map=.* | -ffile-prefix-map=.* | -fgnuc-version=.* | -fdeprecated-macro
    | -fskip-odr-check-in-gmf | -sys-header-deps | -MP | -MV | -f(no-)?signed-char
    | -f(no-)?common | -f(no-)?strict-aliasing | -f(no-)?use-cxa-atexit | -f(no-)?rtti
    | -f(no-)?threadsafe-statics | -f(no-)?sized-deallocation | -f(no-)?aligned-allocation
    | -f(no-)?char8_t | -fno-operator-names | -fmerge-all-constants | -fopenmp.*
    | -f(no-)?cxx-modules | -f(no-)?implicit-modules | -fgnu89-inline | -fasm-blocks
    | -f(no-)?gnu-keywords | -fblocks | -ferror-limit=.* | -ftemplate-depth=.*
    | -fconstexpr-.* | -fbracket-depth=.* | -fstrict-flex-arrays=\d | -f(no-)?assume-.*
    | -fno-knr-functions | -fmessage-length=.* | -fdiagnostics-.* | -fcommon
    | -fno-elide-constructors | -fcomplex-arithmetic=.*
    | -emit-llvm-bc | -emit-llvm-uselists | -disable-O0-optnone | -fspell-checking-limit=.*
    | -debug-info-kind=.* | -dwarf-version=.* | -target-linker-version .* | -ftrivial-auto-.*
    | -pthread | -gkey-instructions | -complex-range=\w+ | -fconst-strings | -fwrapv-pointer
    | -f(no-)?implement-inlines | -nobuiltininc | -nostdsysteminc | -nostdinc(\+\+)?
    | -f(no-)?embed-bitcode.* | -fno-autolink | -f(no-)?pch-.* | -f(no-)?experimental-.*""",
    re.VERBOSE,
)


def safe_cc1(arguments: Iterable[str]) -> Filtered:
    """Return the replayable part of a cc1 line, beginning with ``-cc1``.

    The line names neither an input nor an output, and always makes an object file.
    """
    words = list(arguments)
    kept: list[str] = []
    left_out: list[str] = []
    index = 0
    while index < len(words):
        word = words[index]
        following = words[index + 1] if index + 1 < len(words) else None
        index += 1
        if word in _CC1_PAIR and following is not None:
            index += 1
            if _VALUE.fullmatch(following):
                kept += [word, following]
            else:
                left_out.append(f"{word} {following}")
        elif word in _CC1_SPENT_PAIR:
            index += 1
        elif _CC1_WORD.fullmatch(word):
            kept.append(word)
        elif word.startswith("-") and not _CC1_SPENT_WORD.fullmatch(word):
            left_out.append(word)
        # A word without a dash is an input or the value of an option that was left out.
    if "-emit-obj" not in kept:
        kept.append("-emit-obj")
    return Filtered(("-cc1", *kept), tuple(left_out))


# One link option as the compiler driver takes it.
_LINK = re.compile(
    r"""-l:?[A-Za-z0-9_][A-Za-z0-9_.+-]* | -pthread | -static | -shared | -no-pie | -pie
    | -static-pie | -static-libgcc | -static-libstdc\+\+ | -m(32|64)
    | -Wl,--(no-)?as-needed | -Wl,--(no-)?whole-archive | -Wl,--(start|end)-(group|lib)
    | -Wl,--(no-)?export-dynamic | -Wl,-B(static|dynamic|symbolic|symbolic-functions)
    | -Wl,-z,(no)?(relro|now|execstack|separate-code|defs|start-stop-gc|text|muldefs)
    | -Wl,-z,lazy | -Wl,--allow-multiple-definition | -Wl,--hash-style=(gnu|sysv|both)""",
    re.VERBOSE,
)


def is_safe_link_option(option: str) -> bool:
    """Tell whether one driver-level link option may be replayed."""
    return _LINK.fullmatch(option) is not None
