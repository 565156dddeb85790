"""The page about one PartitionReassignment in a real browser: what can be read, by keyboard too, and in print."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from playwright.sync_api import Locator, Page, expect

from reassign.cli.report.history import Row, Sources, history
from reassign.cli.report.page import render
from tests.browser import HOSTILE, Opened, browser, contrast, opened_page, pages, table, texts_and_grounds
from tests.unit.reports import made, named

__all__ = ["browser", "opened_page"]


def show(opened_page: Opened, sources: Sources, **options: object) -> Page:
    return opened_page(render(history(sources), "1"), **options)


def lines(page: Page) -> Locator:
    return page.locator("table.lines > tbody > tr")


def shares(page: Page) -> list[tuple[float, float]]:
    """Where the last bar of each line begins and ends, as shares of the picture's width in pixels."""
    found: list[tuple[float, float]] = page.locator("table.lines td.bar svg").evaluate_all(
        """all => all.map(svg => {
            const whole = svg.getBoundingClientRect(), bar = [...svg.children].at(-1).getBoundingClientRect();
            return [(bar.left - whole.left) / whole.width, (bar.right - whole.left) / whole.width];
        })"""
    )
    return found


def test_each_partition_has_a_bar_of_the_length_of_its_move(opened_page: Opened) -> None:
    known = history(made())
    page = show(opened_page, made())
    span = (known.ended - known.began).total_seconds()

    def share(row: Row) -> tuple[float, float]:
        assert row.began
        assert row.ended
        return (row.began - known.began).total_seconds() / span, (row.ended - known.began).total_seconds() / span

    topics = ("orders", "payments")
    expected = [share(row) for topic in topics for row in known.rows if row.tp.topic == topic]
    assert len(shares(page)) == len(known.rows) == 12
    for drawn, wanted in zip(shares(page), expected, strict=True):
        assert drawn == pytest.approx(wanted, abs=0.005)


def test_what_waited_for_what_can_be_read(opened_page: Opened) -> None:
    page = show(opened_page, made(now=50))
    assert table(page, "Now") == [
        [
            "WaitingForBudget",
            "3",
            "orders-4, orders-5, payments-4",
            "broker 3 receives 4 replicas already; it starts when one of them is done",
        ],
        ["BrokerFenced", "1", "payments-5", "broker 3 is fenced; start it"],
    ]
    assert table(page, "Before the moves began") == [
        ["WaitingForBudget", "4", "41\u00a0s", "orders-2, payments-2, orders-3, payments-3"]
    ]
    rows = {row[0]: row for row in table(page, "Partitions of orders")}
    assert rows["2"][3:8] == [
        "12:00:20",
        "30\u00a0s",
        "20\u00a0s",
        "WaitingForBudget, until orders-0 ended",
        "0,1,2 → 3,1,2",
    ]
    assert rows["4"][6] == "WaitingForBudget"


def test_bytes_throttle_and_events_are_those_of_the_objects(opened_page: Opened) -> None:
    page = show(opened_page, made(now=50))
    picture = page.get_by_role("img", name="Bytes copied over time: 402 MiB of 768 MiB.")
    assert picture.locator("circle").count() == 21
    assert picture.locator(".warning-line").count() == 2
    page.get_by_text("Table of 21\u00a0samples").click()
    assert table(page, "Bytes copied over time")[0] == ["12:00:00", "0\u00a0B"]
    facts = page.locator("section", has=page.get_by_role("heading", name="Throttle")).locator("dl.facts")
    assert "20.0\u00a0MiB/s between brokers" in facts.inner_text()
    assert "this one and 1\u00a0other" in facts.inner_text()
    events = table(page, "Events")
    assert [event[2] for event in events] == ["ReassignmentStarted", "BudgetHalved", "BrokerFenced"]
    assert events[2][:2] == ["12:00:40 to 12:00:50", "Warning"]


def test_what_is_missing_is_said_at_the_top(opened_page: Opened) -> None:
    page = show(opened_page, replace(made(300), records=[], events=[], missing=("events are not shown",)))
    said = page.get_by_role("list", name="Not known").get_by_role("listitem").all_inner_texts()
    assert said == ["events are not shown", "the times of 200 partitions are not recorded"]


def test_folds_open_by_keyboard_and_the_focus_is_seen(opened_page: Opened) -> None:
    page = show(opened_page, made(2000, ("orders", "payments"), at_once=50))
    expect(lines(page).first).to_be_hidden()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the time line")).to_be_in_viewport()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    summary = page.locator("details.topic > summary").first
    expect(summary).to_be_focused()
    assert summary.evaluate("one => getComputedStyle(one).outlineStyle") not in ("none", "")
    page.keyboard.press("Enter")
    expect(lines(page).first).to_be_visible()
    assert lines(page).count() == 2000
    assert lines(page).locator("visible=true").count() == 500
    names = page.locator("details.topic > summary").all_inner_texts()
    assert [name.splitlines()[0] for name in names][:2] == [
        "orders 1 to 500 of 1,000 500 Completed",
        "orders 501 to 1,000 of 1,000 500 Completed",
    ]


def test_names_that_are_markup_show_as_text(opened_page: Opened) -> None:
    page = show(opened_page, named(HOSTILE))
    for heading in ("Overview", "What waited for what", "Conditions", "Events"):
        section = page.locator("section", has=page.get_by_role("heading", name=heading, exact=True))
        assert HOSTILE in section.inner_text(), heading
    assert page.get_by_role("heading", level=1).inner_text() == f"kafka/{HOSTILE}"
    assert page.locator("details.topic b").first.inner_text() == HOSTILE
    assert page.locator("img, iframe, object, script, [onerror]").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_and_all_bars_have_contrast(opened_page: Opened, scheme: str) -> None:
    page = show(opened_page, made(now=50), color_scheme=scheme)
    pairs = texts_and_grounds(page)
    assert len(pairs) >= 3
    assert [one for one in pairs if contrast(one[0], one[1]) < 4.5] == []
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    for kind in ("wait", "InFlight", "Completed"):
        fill = page.locator(f"rect.{kind}").first.evaluate("one => getComputedStyle(one).fill")
        assert contrast(fill, ground) >= 3, kind
    signs = page.locator(".state").evaluate_all("all => all.map(one => getComputedStyle(one, '::before').content)")
    assert len(set(signs)) == 4


def test_every_picture_and_table_has_a_name_and_every_column_a_head(opened_page: Opened) -> None:
    page = show(opened_page, made(now=50))
    assert page.locator("svg:not([role=img]):not([aria-hidden=true])").count() == 0
    for role in ("img", "table", "link"):
        all_, with_name = page.get_by_role(role), page.get_by_role(role, name=re.compile(r"\w"))
        assert all_.count() == with_name.count() >= 1, role
    wrong = page.locator("table").evaluate_all(
        """tables => tables.filter(table => {
            const name = table.ariaLabel || document.getElementById(table.getAttribute("aria-labelledby"))?.innerText;
            const heads = [...table.tHead.rows[0].cells], rows = [...table.tBodies[0].rows];
            const scoped = [...table.querySelectorAll("th")].every(head => head.scope);
            const whole = rows.every(row => row.cells[0].tagName === "TH" && row.cells.length === heads.length);
            return !name || !scoped || !whole;
        }).length"""
    )
    assert wrong == 0
    levels = page.locator("h1, h2, h3").evaluate_all("all => all.map(one => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1


@pytest.mark.parametrize("width", [360, 800, 1600])
def test_the_page_fits_its_window(opened_page: Opened, width: int) -> None:
    page = show(opened_page, made(now=50), viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_in_print_is_what_is_open_in_dark_on_white(opened_page: Opened) -> None:
    page = show(opened_page, made(now=50), color_scheme="dark", viewport={"width": 703, "height": 1000})
    assert pages(page) >= 2
    page.emulate_media(media="print")
    expect(lines(page).first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 703
    clipped = page.locator(".scroll").evaluate_all("all => all.filter(one => one.scrollWidth > one.clientWidth).length")
    assert clipped == 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
