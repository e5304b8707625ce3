"""The page of a program in a real browser."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nestor.compiler.plugin import Plugin
from nestor.report.sides import Sides
from tests.inlining import PROBLEM
from tests.report.programs import HOSTILE, compiled, hostile, text_of


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory, plugin: Plugin) -> Sides:
    return compiled(tmp_path_factory.mktemp("report"), plugin)


SOURCE = "https://example.org/blob/{file}#L{line}"


def show(tab: Any, folder: Path, sides: Sides, anchor: str = "") -> None:
    (folder / "page.html").write_text(text_of(sides, SOURCE))
    tab.goto(f"{(folder / 'page.html').as_uri()}{anchor}")
    tab.wait_for_selector("body[data-ready]")


def rows(tab: Any, table: str) -> list[list[str]]:
    """Return the texts of the cells in view, in the order of the rows."""
    lines = tab.locator(f"#{table} .body .row").all()
    lines.sort(key=lambda line: int(line.get_attribute("data-number")))
    return [line.locator(".cell").all_text_contents() for line in lines]


def wait_for(tab: Any, condition: Callable[[], bool]) -> None:
    """Wait until the page is as it should be; its policy lets no text be evaluated in it."""
    for _ in range(1200):  # two minutes, on a busy machine
        if condition():
            return
        tab.wait_for_timeout(100)
    raise AssertionError("the page did not become as it should be")


def has_rows(tab: Any, table: str, count: int) -> None:
    """Wait until a table shows so many rows."""
    wait_for(tab, lambda: tab.locator(f"{table} .body .row").count() == count)


def test_overview_shows_program_modules_and_maps(tab: Any, tmp_path: Path, sides: Sides) -> None:
    show(tab, tmp_path, sides)
    assert tab.locator("h1").text_content() == sides.program
    figures = tab.locator("#figures tr").all_text_contents()
    stock = round(sides.default.columns["linked"])
    assert f"{stock:,}" in figures[1]
    assert len(rows(tab, "module-table")) == 2
    assert tab.locator(".map").count() == 2
    tab.locator(".tile").first.click()
    assert "Functions of" in tab.locator("#map-title").text_content()
    tab.locator("#map-up").click()
    assert "Modules" in tab.locator("#map-title").text_content()


def test_decisions_are_searched_and_chosen_by_keyboard(
    tab: Any, tmp_path: Path, sides: Sides
) -> None:
    show(tab, tmp_path, sides)
    tab.locator("#tab-overview").focus()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowRight")
    tab.wait_for_selector("#decision-table .body .row")
    assert tab.locator("#tab-decisions").get_attribute("aria-selected") == "true"
    logs = [m.trajectory for m in sides.policies[0].modules.values()]
    left = sum(int((log.answer != log.default).sum()) for log in logs)
    assert f"{left} of {sum(map(len, logs))}" == tab.locator("#decision-count").text_content()
    tab.locator("#decision-kind").select_option("all")
    tab.locator("#decision-query").fill("large answer=1")
    has_rows(tab, "#decision-table", 3)
    assert {line[0] for line in rows(tab, "decision-table")} == {"large"}
    tab.locator("#decision-query").fill("cost_estimate>1000000")
    has_rows(tab, "#decision-table", 0)
    tab.locator("#decision-query").fill("nothing<1")
    wait_for(tab, lambda: tab.locator("#query-error").text_content() != "")
    assert tab.locator("#query-error").text_content() == "there is no column nothing"
    tab.locator("#decision-query").fill("")
    tab.locator("#decision-table .body").focus()
    tab.keyboard.press("End")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#details .features")
    assert "cost_estimate" in tab.locator("#details").text_content()


def test_clicked_decisions_become_a_file_that_the_compiler_reads(
    tab: Any, tmp_path: Path, sides: Sides
) -> None:
    show(tab, tmp_path, sides, "#decisions")
    tab.locator("#decision-table .body").focus()
    tab.keyboard.press("Space")
    tab.wait_for_selector("#decision-table .row.marked")
    tab.keyboard.press("Enter")
    words = tab.locator("#details .key").text_content()
    tab.locator("#tab-overrides").click()
    with tab.expect_download() as download:
        tab.locator("#save").click()
    text = Path(download.value.path()).read_text()
    assert text == tab.locator("#override-text").input_value()
    found = {str(key): answer for key, answer in PROBLEM.overrides().parse(text).items()}
    assert found == {words: False}
    # It is the key that takes the decision back.
    reverts = [
        str(key)
        for module in sides.policies[0].modules.values()
        for key in _reverted(sides, module.trajectory)
    ]
    assert words in reverts
    tab.locator("#override-list button").click()
    assert "site" not in tab.locator("#override-text").input_value()


def test_a_clicked_decision_takes_the_place_of_the_line_about_the_same_call(
    tab: Any, tmp_path: Path, sides: Sides
) -> None:
    """A line for a call alone is stronger than one for a call and its copies."""
    show(tab, tmp_path, sides, "#decisions")
    tab.locator("#decision-table .body").press("Enter")
    words = tab.locator("#details .key").text_content()
    kind, number, *_ = words.split()
    assert kind == "site"
    lines = [f"site-only {number} inline", "site-only 0123456789abcdef keep"]
    over = replace(sides, overrides="\n".join(["nestor-overrides 1", *lines]))
    tab.goto("about:blank")  # the address of a page that is there loads nothing
    show(tab, tmp_path, over, "#decisions")
    text = tab.locator("#override-text").input_value()
    assert all(line in text for line in lines)
    tab.locator("#decision-table .body").focus()
    tab.keyboard.press("Space")
    tab.wait_for_selector("#decision-table .row.marked")
    text = tab.locator("#override-text").input_value()
    found = {str(key): answer for key, answer in PROBLEM.overrides().parse(text).items()}
    assert found == {words: False, "site-only 0123456789abcdef": False}


def _reverted(sides: Sides, trajectory: Any) -> list[Any]:
    from nestor.compiler.toolchain import find

    return [k for d in PROBLEM.overrides().deviations(find(), trajectory) for k in d.revert]


def test_places_are_links_to_the_source(tab: Any, tmp_path: Path, sides: Sides) -> None:
    show(tab, tmp_path, sides, "#decisions")
    tab.locator("#decision-kind").select_option("all")
    tab.locator("#decision-query").fill("one.c:105:25 answer=1")
    has_rows(tab, "#decision-table", 1)
    link = tab.locator("#decision-table .body .row a.place")
    assert link.text_content() == "one.c:105"
    assert link.get_attribute("href") == "https://example.org/blob/one.c#L105"
    tab.locator("#decision-table .body").press("Enter")
    tab.wait_for_selector("#details a.place")
    tab.locator("#tab-functions").click()
    tab.locator("#function-query").fill("one.c:105")
    has_rows(tab, "#function-table", 1)
    (row,) = rows(tab, "function-table")
    assert row[:3] == ["two", "one.o", "one.c:105"]
    assert row[-2] == "1 of 2"


def test_the_second_policy(tab: Any, tmp_path: Path, sides: Sides) -> None:
    show(tab, tmp_path, sides, "#decisions")
    tab.locator("#sides button", has_text="never").click()
    tab.locator("#decision-kind").select_option("all")
    count = sum(len(m.trajectory) for m in sides.policies[1].modules.values())
    shown = f"{count} of {count}"
    wait_for(tab, lambda: tab.locator("#decision-count").text_content() == shown)
    assert "policy never" in tab.locator("#override-text").input_value()


def test_paper_has_rows_that_a_screen_would_scroll_to(
    tab: Any, tmp_path: Path, sides: Sides
) -> None:
    tab.set_viewport_size({"width": 1000, "height": 300})
    show(tab, tmp_path, sides, "#decisions")
    tab.locator("#decision-kind").select_option("all")
    tab.emulate_media(media="print")
    tab.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    count = sum(len(m.trajectory) for m in sides.policies[0].modules.values())
    assert len(rows(tab, "decision-table")) == count >= 4
    assert not tab.locator("#decision-query").is_visible()


@pytest.mark.parametrize("anchor", ["#overview", "#functions", "#decisions"])
def test_a_hostile_log_shows_as_text(tab: Any, tmp_path: Path, sides: Sides, anchor: str) -> None:
    show(tab, tmp_path, hostile(sides), anchor)
    if anchor == "#decisions":
        tab.locator("#decision-kind").select_option("all")
        for _ in range(4):
            tab.locator("#decision-table .body").press("Space")
            tab.locator("#decision-table .body").press("Enter")
            tab.locator("#decision-table .body").press("ArrowDown")
        tab.wait_for_selector("#details .features")
        tab.wait_for_selector("#decision-table .row.marked")
    assert tab.locator("h1").text_content() == HOSTILE[1]
    assert tab.evaluate("window.hacked") is None
    assert tab.locator("#planted, main img, main script").count() == 0
    shown = tab.evaluate("document.querySelector('main').textContent")
    assert HOSTILE[1] in shown
    if anchor == "#decisions":
        assert any(name in shown for name in (HOSTILE[0], HOSTILE[3]))
        text = tab.locator("#override-text").input_value()
        found = PROBLEM.overrides().parse(text)
        assert found
        assert all(key.number != 0x0123456789ABCDEF for key in found)
