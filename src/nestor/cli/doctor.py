"""``nestor doctor``: is there an LLVM that Nestor can work with?"""

from dataclasses import asdict, dataclass
from typing import Any, Final

from nestor.cli.console import print_json, print_line, progress, stderr, stdout
from nestor.compiler.plugin import ensure_plugin, plugin_path
from nestor.compiler.releases import Support
from nestor.compiler.toolchain import (
    INSTALL_HINT,
    Toolchain,
    ToolchainError,
    capabilities,
    discover,
)
from nestor.progress import Progress


@dataclass(frozen=True)
class Doctor:
    """Find LLVM installations, probe them, build the plugin and run the identity gate.

    For each problem the gate compiles built-in C and C++ modules at -Oz and -O2 by the stock
    compiler, through the plugin with the default policy, and over LLVM's interactive channel. All
    objects must be equal bit for bit. The exit status is 0 if at least one toolchain is ready.
    Of each LLVM it says whether its release is tested, expected to work or refused, and what the
    release lacks.

    Examples:
        nestor doctor                               look at this machine
        nestor doctor --llvm clang-19               look at one compiler
        nestor doctor --llvm /opt/llvm-22 --json    look at one installation
    """

    llvm: str | None = None
    """A prefix, a bin folder or a clang to look at instead of the machine."""
    json: bool = False
    """Print JSON."""

    def run(self) -> int:
        """Examine, print, and return 0 if one toolchain is ready."""
        with progress() as report:
            found = [_examine(toolchain, report) for toolchain in discover(self.llvm)]
        if self.json:
            print_json({"toolchains": found})
        else:
            for entry in found:
                _show(entry)
        ready = any(entry["identity"]["identical"] for entry in found)
        if not ready:
            why = "No LLVM on this machine is ready" if found else "No LLVM was found"
            stderr.print(f"nestor: {why}: {INSTALL_HINT}.", soft_wrap=True)
        return 0 if ready else 1


def _examine(toolchain: Toolchain, report: Progress) -> dict[str, Any]:
    from nestor.problem.registry import find_problem, problem_names  # These take numpy.
    from nestor.rollout import gate

    abilities = capabilities(toolchain)
    entry: dict[str, Any] = {
        "version": toolchain.version,
        "clang": str(toolchain.clang),
        "build_id": toolchain.build_id,
        "plugin": {"built": False, "path": None},
        "identity": {"checked": 0, "identical": False, "differing": []},
        "capabilities": asdict(abilities),
        "problem": abilities.problem(),
    }
    if entry["problem"] is None:
        try:
            plugin = ensure_plugin(toolchain, report)
        except ToolchainError as error:
            entry["problem"] = str(error)
        else:
            checks = {}
            for problem in map(find_problem, problem_names()):
                try:
                    if gate.has_ways(problem, plugin):
                        checks[problem.name] = gate.check(problem, plugin)
                except ToolchainError:
                    continue  # This release lacks what the problem needs; see 'lacks'.
            differing = [d for check in checks.values() for d in check.differing]
            identical = all(check.identical for check in checks.values())
            entry["plugin"] = {"built": True, "path": str(plugin_path(toolchain))}
            entry["identity"] = {
                "checked": sum(check.checked for check in checks.values()),
                "identical": identical,
                "differing": differing,
                "problems": {name: check.identical for name, check in checks.items()},
            }
            if not identical:
                entry["problem"] = f"objects differ: {', '.join(differing)}"
    return entry


_SUPPORT: Final[dict[Support, str]] = {
    "tested": "tested",
    "expected": "expected to work, never tested; the identity gate decides",
    "refused": "refused",
}


def _show(entry: dict[str, Any]) -> None:
    ready = entry["problem"] is None
    print_line(f"LLVM {entry['version']}  {entry['clang']}")
    stdout.print(f"  ready       {'[green]yes[/]' if ready else '[red]no[/]'}")
    if not ready:
        print_line(f"  problem     {entry['problem']}")
    print_line(f"  release     {_SUPPORT[entry['capabilities']['support']]}")
    if entry["plugin"]["built"]:
        print_line(f"  plugin      {entry['plugin']['path']}")
        checked = entry["identity"]["checked"]
        verdict = "all objects identical" if entry["identity"]["identical"] else "objects differ"
        stdout.print(f"  identity    {checked} comparisons, {verdict}")
        print_line(f"  decides     {', '.join(entry['identity']['problems'])}")
    able = [name for name, value in entry["capabilities"].items() if value is True]
    able += [f"{name} channel" for name in entry["capabilities"]["channels"]]
    stdout.print(f"  offers      {', '.join(able)}")
    if entry["problem"] is None and entry["capabilities"]["lacks"]:
        lacks = ", ".join(entry["capabilities"]["lacks"])
        print_line(f"  lacks       {lacks}")
