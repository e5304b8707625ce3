"""A comparison of sizes as Markdown, for the summary of a run or a comment on a change.

Names come from code that somebody else may have written: they stand in code spans, in which
neither markup nor a mention of a person does anything.
"""

from collections.abc import Mapping

from nestor.change import change_pct, change_text
from nestor.report.sizes import SizeCheck


def as_markdown(
    check: SizeCheck,
    *,
    limit: float | None = None,
    most: int = 20,
    readable: Mapping[str, str] | None = None,
) -> str:
    """Return the comparison, the worst first.

    :param limit: the growth of a file in per cent that is still accepted.
    :param most: how many rows a table of functions or decisions has.
    :param readable: names of functions as people write them, by symbol.
    """
    names = readable or {}
    lines = [
        f"### Size: {_signed(check.after - check.before)} bytes ({change_text(check.percent)})",
        "",
    ]
    if limit is not None:
        beyond = check.beyond(limit)
        verdict = f"**{len(beyond)} beyond it**" if beyond else "kept"
        lines += [f"Limit of {limit:g} % for each: {verdict}.", ""]
    lines += ["| file | base | head | change | | code |", "|---|---:|---:|---:|---:|---:|"]
    for file in check.files:
        if file.before is None or file.after is None:
            size = file.after if file.before is None else file.before
            cells = ("", f"{size:,}") if file.before is None else (f"{size:,}", "")
            what = "new" if file.before is None else "gone"
            lines.append(f"| {_code(file.name)} | {cells[0]} | {cells[1]} | {what} | | |")
            continue
        mark = "**" if limit is not None and file.name in check.beyond(limit) else ""
        change = change_text(change_pct(file.before, file.after))
        lines.append(
            f"| {_code(file.name)} | {file.before:,} | {file.after:,} |"
            f" {_signed(file.after - file.before)} | {mark}{change}{mark} |"
            f" {_signed(file.text_after - file.text_before)} |"
        )
    lines += _functions(check, most, names)
    lines += _decisions(check, most, names)
    return "\n".join(lines) + "\n"


def _functions(check: SizeCheck, most: int, names: Mapping[str, str]) -> list[str]:
    if not check.functions:
        return ["", "No function changed its size."]
    grown = [f for f in check.functions if f.change > 0]
    lines = [
        "",
        f"#### Functions: {len(grown):,} larger, {len(check.functions) - len(grown):,} smaller",
        "",
        "| function | file | base | head | change |",
        "|---|---|---:|---:|---:|",
    ]
    shown = check.functions[:most]
    lines += [
        f"| {_code(names.get(f.name, f.name))} | {_code(f.file)} | {f.before or 'new'} |"
        f" {f.after or 'gone'} | {_signed(f.change)} |"
        for f in shown
    ]
    left = len(check.functions) - len(shown)
    return lines + ([f"\n… and {left:,} more"] if left else [])


def _decisions(check: SizeCheck, most: int, names: Mapping[str, str]) -> list[str]:
    if check.decisions is None:
        return []
    lines = [
        "",
        f"#### Decisions: {len(check.decisions):,} of {check.compared_decisions:,} changed"
        f" ({check.only_before:,} only in the base, {check.only_after:,} only in the head)",
    ]
    if check.decisions:
        lines += ["", "| call of | in | base | head | site |", "|---|---|---|---|---|"]
    for d in check.decisions[:most]:
        callee, caller = (_code(names.get(name, name)) for name in (d.callee, d.caller))
        lines.append(f"| {callee} | {caller} | {d.before} | {d.after} | `{d.site}` |")
    left = len(check.decisions) - most
    return lines + ([f"\n… and {left:,} more"] if left > 0 else [])


def _code(text: str) -> str:
    """Return ``text`` as a code span of a table cell."""
    plain = "".join(c if c.isprintable() else "?" for c in text)
    return "`" + (plain.replace("`", "'").replace("|", "\\|").strip() or "?") + "`"


def _signed(change: int) -> str:
    return f"{change:+,}" if change else "0"
