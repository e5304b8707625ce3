"""How a corpus is shown: a table, or JSON."""

from collections import Counter

from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from nestor.cli.console import counted, print_json, stdout
from nestor.corpus.model import Corpus


def show(corpus: Corpus, json: bool) -> None:
    """Print a corpus, as JSON if ``json`` is set."""
    if json:
        print_json(as_json(corpus))
    else:
        print_table(corpus)


def show_modules(corpus: Corpus, json: bool) -> None:
    """Print the name of each module, as JSON with its programs if ``json`` is set."""
    if not json:
        for module in corpus.modules:
            stdout.print(escape(module.name), soft_wrap=True)
        return
    programs: dict[str, list[str]] = {module.name: [] for module in corpus.modules}
    for program in corpus.programs:
        for name in program.modules:
            programs[name].append(program.name)
    print_json([{"name": name, "programs": own} for name, own in programs.items()])


def print_table(corpus: Corpus, present: tuple[str, ...] = ()) -> None:
    """Print what is missing, then one row a project.

    :param present: projects that were complete before the command.
    """
    for lost in corpus.missing:
        stdout.print(f"[red]missing[/red] {lost.project}: {escape(lost.reason)}")
    table = Table("project", "version", "split", box=SIMPLE)
    table.add_column("style", overflow="fold")
    table.add_column("modules", justify="right")
    table.add_column("programs", overflow="fold")
    table.add_column("licence", overflow="fold")
    modules = Counter(module.project for module in corpus.modules)
    for project in corpus.projects:
        programs = [p.name.partition("/")[2] for p in corpus.programs_of_project(project.name)]
        table.add_row(
            project.name,
            project.version,
            project.split,
            project.style,
            str(modules[project.name]),
            ", ".join(programs),
            project.licence,
        )
    stdout.print(table)
    stdout.print(
        f"{counted(len(corpus.modules), 'module')}, {counted(len(corpus.programs), 'program')}, "
        f"{counted(corpus.dropped_options, 'option')} left out, corpus {corpus.digest[:12]}, "
        f"clang {corpus.toolchain or 'unknown'} {corpus.level}"
        + (f"; {len(present)} projects were complete already" if present else "")
    )


def as_json(corpus: Corpus) -> dict[str, object]:
    """Return what a corpus holds as plain data."""
    modules = Counter(module.project for module in corpus.modules)
    return {
        "root": str(corpus.root),
        "digest": corpus.digest,
        "toolchain": corpus.toolchain,
        "level": corpus.level,
        "modules": len(corpus.modules),
        "bytes": sum(
            path.stat().st_size for path in map(corpus.bitcode, corpus.modules) if path.exists()
        ),
        "dropped_options": corpus.dropped_options,
        "projects": [
            {
                "name": p.name,
                "version": p.version,
                "split": p.split,
                "style": p.style,
                "licence": p.licence,
                "modules": modules[p.name],
                "programs": [program.name for program in corpus.programs_of_project(p.name)],
                "dropped_options": p.dropped_options,
            }
            for p in corpus.projects
        ],
        "missing": [{"project": m.project, "reason": m.reason} for m in corpus.missing],
    }
