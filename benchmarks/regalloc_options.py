"""Is the stock object what the plugin gives, whatever else the compiler is asked to do?

    python -m benchmarks.regalloc_options --work FOLDER [--sources LUA LZIP] [--sample N] [--jobs N]
        [--json benchmarks/results/regalloc.json]

The sources of lua (C) and lzip (C++), fetched from the Debian archive unless two folders are named,
and some with inline assembly that is written here, are compiled with each of many options, by the
stock compiler and by the plugin with the default policy and a log. All files that a compile leaves
must be equal, bit for bit, but those that differ between two stock compiles. Programs are linked by
LTO in the same two ways.
A run that was stopped goes on from the records in FOLDER.
"""

import hashlib
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.regalloc_sweep import DEFAULTS, LIMITS, Journal, arguments, conclude, say, sweep
from nestor.compiler.plugin import Plugin, ensure_plugin
from nestor.compiler.process import Outcome, run
from nestor.compiler.toolchain import find
from nestor.corpus.fetch import debian
from nestor.corpus.fetch.tiers import recipes
from nestor.regalloc import allocation_log
from nestor.regalloc.plugin_flags import as_flags
from nestor.temporary import temporary_folder

_HEADERS: Final = "-isystem /usr/include/x86_64-linux-gnu"
"""For targets whose own C headers are not installed; nothing is linked."""

VARIANTS: Final[tuple[str, ...]] = (
    "-O2", "-O2 -fPIC", "-O2 -fno-pic", "-O2 -fPIE -fno-plt", "-O2 -fexceptions",
    "-O2 -funwind-tables", "-O2 -fno-exceptions -fno-asynchronous-unwind-tables", "-O2 -g",
    "-O2 -g -gsplit-dwarf", "-O3 -g -fno-omit-frame-pointer", "-O0", "-Og -g", "-Oz",
    "-O2 -fsanitize=address,undefined", "-O2 -fsanitize=thread", "-O2 -fsanitize=memory",
    "-O1 -fsanitize=fuzzer-no-link", "-O2 -fsanitize=kcfi", "-O2 -fprofile-generate",
    "-O2 -fprofile-instr-generate -fcoverage-mapping", "-O2 -fprofile-use=PROFILE",
    "-O2 -march=native", "-O3 -mavx512f -mavx512vl", "-O2 -msse4.2 -mno-red-zone",
    "-O2 -mcmodel=large", "-O2 -mcmodel=medium", "-O2 -fstack-protector-all",
    "-O2 -fstack-clash-protection -fcf-protection=full", "-O2 -mretpoline",
    "-O2 -ffunction-sections -fdata-sections", "-O2 -pg",
    "-O2 -fxray-instrument -fxray-instruction-threshold=1",
    "-O2 -fpatchable-function-entry=16,8", "-O2 -finstrument-functions",
    "-O2 -fbasic-block-sections=all", "-O2 -fbasic-block-address-map", "-O2 -fsplit-stack",
    "-O2 -fstack-usage", "-O2 -ffast-math", "-O2 -fno-inline",
    "-O2 -fsave-optimization-record", "-O2 -Rpass-missed=regalloc", "-O2 -save-temps",
    "-O2 -S", "-O2 -emit-llvm", "-O2 -flto", "-O2 -flto=thin -fsplit-lto-unit",
    "-O2 -ffat-lto-objects -flto", "-O2 -fembed-bitcode",
    f"-O2 -m32 {_HEADERS} -ISTUBS", f"-O2 --target=aarch64-linux-gnu {_HEADERS} -ISTUBS",
    f"-O3 --target=aarch64-linux-gnu -mcpu=neoverse-v2 {_HEADERS} -ISTUBS",
    "-O2 -mllvm -enable-local-reassign", "-O2 -mllvm -greedy-reverse-local-assignment",
    "-O2 -mllvm -regalloc=basic", "-O2 -mllvm -regalloc=fast", "-O2 -mllvm -join-liveintervals=0",
    "-O2 -mllvm -enable-shrink-wrap=0", "-O2 -mllvm -disable-branch-fold",
    "-O2 -mllvm -verify-machineinstrs", "-O2 -mllvm -stress-regalloc=4",
)  # fmt: skip

_REPEATS: Final = 8
"""Stock compiles that tell which files of the stock compiler differ from run to run."""

_C_ONLY: Final = ("-m32", "--target")

_ASSEMBLY: Final = """
/* Inline assembly that takes registers away: {number} */
typedef unsigned long word;
word cpuid{number}(word leaf, word *out) {{
  word a = leaf, b, c = {number}, d;
  __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d) : : "memory");
  for (int i = 0; i < {number}; ++i) out[i] = a * i + b * out[i + 1] + c * out[i + 2] + d;
  return a ^ b ^ c ^ d;
}}
word mix{number}(word *p, word n) {{
  word a = p[0], b = p[1], c = p[2], d = p[3], e = p[4], f = p[5], g = p[6], h = p[7];
  for (word i = 0; i < n; ++i) {{
    __asm__("addq %1, %0\\n\\trolq $7, %0" : "=r"(a) : "r"(b), "0"(a) : "cc");
    __asm__ volatile("xorq %2, %0\\n\\tmovq %3, %1" : "+&r"(c), "=m"(p[i & 7])
                     : "r"(d), "r"(e) : "r8", "r9", "r10", "r12", "cc");
    __asm__ volatile("" : "+r"(f), "+r"(g), "+r"(h) : : "rbx", "rsi", "rdi");
    a += h * {number}; b ^= a; d += c; e -= f; f ^= g; h += p[i & 7];
  }}
  return a + b + c + d + e + f + g + h;
}}
double vectors{number}(double *p, int n) {{
  double s = 0;
  for (int i = 0; i < n; ++i) {{
    double x = p[i], y = p[i + {number}];
    __asm__("mulsd %1, %0" : "+x"(x) : "x"(y));
    __asm__ volatile("" : : : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
    s += x * y;
  }}
  return s;
}}
"""


@dataclass(frozen=True)
class Sources:
    """What is compiled: files by a short name, with the options that they need anyway."""

    files: Mapping[str, Path]
    options: Mapping[str, tuple[str, ...]]
    """By the name of the project, which is the first part of the file's."""

    def words(self, name: str) -> tuple[str, ...]:
        """Return the options of one file."""
        return self.options.get(name.partition("/")[0], ())


def collect(lua: Path, lzip: Path, folder: Path) -> Sources:
    """Return the files of both projects and those with inline assembly, which are written."""
    files = {f"lua/{path.name}": path for path in sorted(lua.glob("src/*.c"))}
    files |= {f"lzip/{path.name}": path for path in sorted(lzip.glob("*.cc"))}
    for number in range(1, 11):
        path = folder / f"assembly{number}.c"
        path.write_text(_ASSEMBLY.format(number=number))
        files[f"assembly/{path.name}"] = path
    stubs = folder / "stubs" / "gnu"
    stubs.mkdir(parents=True, exist_ok=True)
    (stubs / "stubs-32.h").touch()
    version = '-DPROGVERSION="1"'
    return Sources(files, {"lua": ("-DLUA_USE_POSIX",), "lzip": (version,)})


def fetch(folder: Path) -> list[Path]:
    """Return the folders of the sources of lua and lzip, from the Debian archive."""
    (folder / "apt").mkdir()
    archive = debian.Archive(folder / "apt")
    by_project = {recipe.project: recipe for recipe in recipes("bench")}
    found = []
    for project in ("lua", "lzip"):
        recipe, place = by_project[project], folder / f"{project}-download"
        files = archive.download(recipe.package, recipe.version, recipe.sources, place)
        found.append(debian.extract(files[0], folder / project))
    return found


def check(plugin: Plugin, sources: Sources, work: Path, variant: str, name: str) -> dict[str, Any]:
    """Compile one source with one set of options, stock and through the plugin."""
    path = sources.files[name]
    variant = variant.replace("PROFILE", str(work / "lua.profdata"))
    flags = variant.replace("STUBS", str(work / "stubs")).split()
    if name.startswith("assembly") and any(f.startswith(("-m32", "--target")) for f in flags):
        return {"skipped": "assembly for x86-64"}
    if path.suffix == ".cc" and any(f.startswith(_C_ONLY) for f in flags):
        return {"skipped": "no C++ library of that target"}
    toolchain = plugin.toolchain
    clang = toolchain.clangxx if path.suffix == ".cc" else toolchain.clang
    with temporary_folder("options") as text:
        place, log = Path(text) / "compile", Path(text) / "log"
        options = as_flags(plugin, (*DEFAULTS, f"-nestor-allocation-log={log}"))

        def compile_with(words: Sequence[str]) -> dict[str, str] | str:
            """Return the digests of what a compile leaves, or why it failed."""
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            command: list[str | Path] = [clang, *flags, *sources.words(name), *words]
            command += [*([] if "-S" in flags else ["-c"]), path, "-o", "unit.out"]
            done: Outcome = run(command, LIMITS, cwd=place)
            if not done.ok:
                return done.reason
            files = sorted(p for p in place.rglob("*") if p.is_file())
            found = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in files}
            return found | {"messages": hashlib.sha256(done.stderr.encode()).hexdigest()}

        stock, ours = compile_with([]), compile_with(options)
        if isinstance(stock, str):
            return {"refused by stock": stock}
        if isinstance(ours, str):
            return {"failure": ours}
        functions = len(allocation_log.read(log)) if log.exists() else 0
        different = {
            file for file in stock.keys() | ours.keys() if stock.get(file) != ours.get(file)
        }
        # LLVM's record of optimisations names one of several stores, by their addresses.
        for _ in range(_REPEATS if different else 0):
            again = compile_with([])
            if not isinstance(again, str):
                different -= {file for file in different if again.get(file) != stock.get(file)}
    return {"same": not different, "different": sorted(different), "functions": functions}


def profile(plugin: Plugin, sources: Sources, work: Path) -> None:
    """Write ``lua.profdata``: a run of an instrumented lua."""
    out = work / "lua.profdata"
    if out.exists():
        return
    script = work / "run.lua"
    script.write_text(
        "local t = {} for i = 1, 30000 do t[i] = (i * 7919) % 10007 end table.sort(t)\n"
        "local s = '' for i = 1, 300 do s = s .. string.format('%x', t[i * 50]) end\n"
        "print(#s, s:gsub('[0-4]+', function(x) return x:rep(2) end))\n"
    )
    clang = plugin.toolchain.clang
    units = [path for name, path in sources.files.items() if name.startswith("lua/")]
    units = [path for path in units if path.name != "luac.c"]
    program, raw = work / "lua-instrumented", work / "lua.profraw"
    words: list[str | Path] = [*sources.options["lua"], "-lm", "-ldl", "-o", program]
    subprocess.run([clang, "-O2", "-fprofile-generate", *units, *words], check=True)
    environment = {"LLVM_PROFILE_FILE": str(raw)}
    subprocess.run([program, script], check=True, env=environment, stdout=subprocess.DEVNULL)
    merge = clang.with_name("llvm-profdata")
    subprocess.run([merge, "merge", raw, "-o", out], check=True)


def link_by_lto(plugin: Plugin, sources: Sources, mode: str, project: str) -> dict[str, Any]:
    """Link one project by LTO, stock and through the plugin in lld."""
    toolchain = plugin.toolchain
    units = {n: p for n, p in sources.files.items() if n.startswith(f"{project}/")}
    units.pop("lua/luac.c", None)
    clang = toolchain.clangxx if project == "lzip" else toolchain.clang
    digests, functions = [], 0
    with temporary_folder("lto") as text:
        folder = Path(text)
        objects: list[Path] = []
        for name, path in units.items():
            objects.append(folder / f"{path.name}.o")
            compile_words: list[str | Path] = [*sources.words(name), "-c", path, "-o", objects[-1]]
            done = run([clang, "-O2", f"-flto={mode}", *compile_words], LIMITS)
            if not done.ok:
                return {"refused by stock": done.reason}
        link: list[str | Path] = [
            clang,
            "-O2",
            f"-flto={mode}",
            "-fuse-ld=lld",
            *objects,
            "-lm",
            "-o",
            "program",
        ]
        logs = folder / "logs"
        llvm = (f"-load={plugin.path}", *DEFAULTS, f"-nestor-allocation-log={logs}/")
        through = [f"-Wl,--load-pass-plugin={plugin.path}", *(f"-Wl,-mllvm,{o}" for o in llvm)]
        for words in ([], through):
            done = run([*link, *words], LIMITS, cwd=folder)
            if not done.ok:
                return {"failure" if words else "refused by stock": done.reason}
            digests.append(hashlib.sha256((folder / "program").read_bytes()).hexdigest())
        functions = sum(len(allocation_log.read(log)) for log in logs.iterdir())
    return {"same": digests[0] == digests[1], "different": ["program"], "functions": functions}


def rows(results: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Yield a row for each set of options: how many were compiled, and how many are equal."""
    for variant in dict.fromkeys(key.partition(" | ")[0] for key in results):
        own = [v for k, v in results.items() if k.partition(" | ")[0] == variant]
        done = [value for value in own if "same" in value]
        functions = sum(value["functions"] for value in done)
        failed = sum("failure" in value for value in own)
        refused = sum("refused by stock" in value for value in own)
        equal = sum(value["same"] for value in done)
        yield [variant, len(done) + failed, equal, functions, refused]


def _keys(sources: Sources, count: int) -> list[str]:
    projects: dict[str, list[str]] = {}
    for name in sources.files:
        projects.setdefault(name.partition("/")[0], []).append(name)
    names = [name for every in projects.values() for name in every[:count]]
    linked = [f"LTO in lld, {mode} | {p}" for mode in ("full", "thin") for p in ("lua", "lzip")]
    return [*linked, *(f"{variant} | {name}" for variant in VARIANTS for name in names)]


def main() -> None:
    """Check, print and record."""
    parser = arguments(str(__doc__).partition("\n")[0], "sources of each project")
    parser.add_argument("--sources", type=Path, nargs=2, help="folders of lua and lzip")
    options = parser.parse_args()
    plugin = ensure_plugin(find())
    options.work.mkdir(parents=True, exist_ok=True)
    with temporary_folder("sources") as text:
        lua, lzip = options.sources or fetch(Path(text))
        sources = collect(lua.resolve(), lzip.resolve(), options.work)
        profile(plugin, sources, options.work)

        def work(key: str) -> dict[str, Any]:
            variant, _, name = key.partition(" | ")
            if variant.startswith("LTO"):
                return link_by_lto(plugin, sources, variant.split()[-1], name)
            return check(plugin, sources, options.work, variant, name)

        results = sweep(
            Journal(options.work / "options.jsonl", plugin.digest),
            _keys(sources, options.sample),
            work,
            options.jobs,
            say,
        )
    columns = [("options", "`{}`"), ("files", "{}"), ("equal", "{}"), ("functions", "{:,}")]
    columns.append(("refused by stock", "{}"))
    wrong = {
        key: value.get("failure", value.get("different"))
        for key, value in results.items()
        if "failure" in value or not value.get("same", True)
    }
    conclude("options", columns, list(rows(results)), wrong, plugin, options.json)


if __name__ == "__main__":
    main()
