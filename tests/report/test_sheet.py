"""The pages about training runs and about cost models, in a real browser."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from nestor.cli.blocks.cost_page import CostPage
from nestor.cli.policies.compare_page import compare_page
from nestor.errors import NestorError
from nestor.evaluate.compare_runs import compare, read_run
from nestor.report.sheet import Bar, Bars, Chart, Column, Series, Table, Text, sheet
from tests.report.programs import HOSTILE

LOOP = "mulsd %xmm1, %xmm0; addsd %xmm2, %xmm0; movq (%rdi), %rax; addq %rax, %rbx; divq %rcx; nop"


def show(tab: Any, folder: Path, text: str) -> None:
    (folder / "page.html").write_text(text)
    tab.goto((folder / "page.html").as_uri())
    tab.wait_for_selector("body[data-ready]")


def runs(folder: Path) -> list[Path]:
    """Write the folders of four runs: two settings, two seeds."""
    found = []
    for clip, gain in ((0.1, 4.0), (0.2, 2.0)):
        for seed in (0, 1):
            run = folder / f"ppo-{clip}-{seed}"
            run.mkdir()
            identity = {"learner": "ppo", "seed": seed, "settings": {"clip": clip}}
            (run / "run.json").write_text(json.dumps(identity))
            rows = [
                {
                    "mean_change_pct": -gain * n / 9 + seed / 10,
                    "entropy": 1 / n,
                    "spent/compiles": 100 * n,
                    "spent/cpu_minutes": 0.5 * n,
                }
                for n in range(1, 10)
            ]
            (run / "curves.jsonl").write_text("\n".join(map(json.dumps, rows)) + '\n{"cut')
            programs = [
                {
                    "name": f"{project}/p",
                    "project": project,
                    "stock": {"linked": 1000},
                    "policy": {"linked": 1000 - 10 * gain + grown},
                }
                for project, grown in (("a", 0), ("b", 5), (HOSTILE[0], 20))
            ]
            content = {"evaluations": [{"score": "linked", "programs": programs, "failures": []}]}
            (run / "evaluation.json").write_text(json.dumps(content))
            found.append(run)
    return found


def test_training_runs_are_bars_and_curves(tab: Any, tmp_path: Path) -> None:
    folders = runs(tmp_path)
    found = [read_run(folder) for folder in folders]
    recorded = Path(__file__).parents[2] / "benchmarks" / "results" / "ablation.json"
    show(tab, tmp_path, compare_page(found, compare(found), [recorded]))
    learners = compare(found)
    names = tab.locator(".bars").first.locator(".bar-name").all_text_contents()
    assert names == [row.name for row in learners] == ["ppo (clip=0.1)", "ppo (clip=0.2)"]
    assert f"{learners[0].change_pct:.2f}" in tab.locator(".bar-value").first.text_content()
    titles = tab.locator("figcaption").all_text_contents()
    assert "Training objective against compiles" in titles
    assert "entropy" in titles
    entropy = tab.locator("figure", has=tab.locator("figcaption", has_text="entropy"))
    assert entropy.locator("polyline.curve").count() == 2 * len(folders)  # with the legend's
    assert entropy.locator("circle title").first.text_content() == "ppo-0.1-0: 100, 1"
    rows = json.loads(recorded.read_text())["tables"]["variants"]["rows"]
    shown = tab.locator("table.plain").last.locator("tr")
    assert shown.count() == len(rows) + 1
    assert tab.locator("main img").count() == 0
    assert HOSTILE[0] in tab.locator("main").text_content()


def test_what_holds_no_tables_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"tables": {"a": {"columns": [["x"]], "rows": [[1]]}}}')
    with pytest.raises(NestorError, match="no recorded tables"):
        compare_page([], [], [tmp_path / "x.json"])


def test_a_block_is_chosen_by_keyboard(tab: Any, tmp_path: Path) -> None:
    out = tmp_path / "cost.html"
    assert CostPage(assembly=LOOP, out=out).run() == 0
    show(tab, tmp_path, out.read_text())
    body = tab.locator(".table .body", has=tab.locator(".row")).last
    body.press("Enter")
    tab.wait_for_selector(".details .bars")
    details = tab.locator(".details")
    assert "divider" in details.text_content()
    assert details.locator("tr").count() == 7
    assert details.locator("tr", has_text="mulsd").locator("td").nth(4).text_content() in (
        "",
        "on it",
    )
    values = details.locator(".bar-value").all_text_contents()
    low, high = values[0].split("(")[1].rstrip(")").split(" … ")
    assert float(low) <= float(values[0].split(" ")[0]) <= float(high)


def test_hostile_text_is_text_everywhere(tab: Any, tmp_path: Path) -> None:
    one, other = HOSTILE[0], HOSTILE[1]
    table = Table(one, (Column(other), Column(one, numeric=True)), ((one, 1), (other, math.nan)))
    long = Table(other, table.columns, ((one, 2.5),) * 20, ((Text(other), table),) * 20)
    sections = (
        Text(one),
        Bars(one, other, (Bar(one, -1.0, -2.0, 0.5, other), Bar(other, math.inf))),
        Chart(one, other, one, (Series(one, ((0, 1), (1, 2))), Series(other, ((0, math.nan),)))),
        table,
        long,
    )
    show(tab, tmp_path, sheet(one, other, sections))
    assert tab.locator("h1").text_content() == one
    tab.locator(".body").press("Enter")
    tab.wait_for_selector(".details p")
    assert tab.evaluate("window.hacked") is None
    assert tab.locator("main img, main script, #planted").count() == 0
    assert tab.locator(".bar-row").count() == 1  # infinity is no bar


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(tab: Any, tmp_path: Path, scheme: str) -> None:
    """Contrast of the text and of what is small print: at least 4.5 to 1 (WCAG 2, AA)."""
    tab.emulate_media(color_scheme=scheme)
    show(tab, tmp_path, sheet("title", "below", (Text("a paragraph"),)))
    for place in ("h1", "#subtitle", "p.note"):
        colours = tab.evaluate(
            "(s) => [getComputedStyle(document.querySelector(s)).color,"
            " getComputedStyle(document.body).backgroundColor]",
            place,
        )
        front, back = (_luminance(colour) for colour in colours)
        assert (max(front, back) + 0.05) / (min(front, back) + 0.05) >= 4.5


def _luminance(colour: str) -> float:
    """Return the relative luminance of a colour such as ``rgb(1, 2, 3)``."""
    parts = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
