"""The report in a real browser: what it says, by mouse and by keyboard, without a network, and in print."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

from localplatform import prerequisites
from reassign.fleet.report.model import Fleet
from reassign.fleet.report.page import render
from tests.fleet.made_report import made

Show = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    prerequisites.require(["browser"])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Show]:
    """Open the report of this data from a file; at the end nothing was asked for, and the browser had no complaint."""
    asked: list[str] = []
    said: list[str] = []

    def opened(data: Fleet, **options: object) -> Page:
        file = tmp_path / "report.html"
        file.write_text(render(data), encoding="utf-8")

        def only_the_file(route: Route) -> None:
            if route.request.url == file.as_uri():
                route.continue_()
            else:
                asked.append(route.request.url)
                route.abort()

        page = browser.new_page(**options)
        page.route("**/*", only_the_file)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(file.as_uri())
        return page

    yield opened
    for context in browser.contexts:
        context.close()
    assert (asked, said) == ([], [])


def figures(page: Page) -> dict[str, str]:
    names, values = page.locator(".figures dt").all_inner_texts(), page.locator(".figures dd").all_inner_texts()
    return dict(zip(names, values, strict=True))


def names(page: Page) -> list[str]:
    return page.locator("table.clusters .open:visible").all_inner_texts()


def test_the_overview_says_what_the_data_say(show: Show) -> None:
    data = made(40, brokers=6)
    page = show(data)

    def total(name: str) -> str:
        return f"{sum(cluster[name] or 0 for cluster in data['clusters']):,}"

    found = figures(page)
    assert found["Clusters"] == "40"
    assert [found[name] for name in ("Brokers", "Topics", "Partitions", "Replicas")] == [
        total("brokers"),
        total("topics"),
        total("partitions"),
        total("replicas"),
    ]
    assert found["Not spread over racks"] == total("violations")


def test_the_same_data_give_the_same_bytes() -> None:
    data = made(20)
    shuffled: Fleet = json.loads(json.dumps(data, sort_keys=True))
    shuffled["clusters"].reverse()
    shuffled["quarantine"].reverse()
    assert render(shuffled) == render(data)


def test_it_names_no_address_that_a_browser_would_ask() -> None:
    text = render(made(3))
    assert re.findall(r"(?:src|href)=\"(?!#)", text) == []
    assert 'content="default-src &#39;none&#39;; ' in text


def test_a_cluster_opens_by_keyboard(show: Show) -> None:
    page = show(made(5, brokers=6))
    button = page.locator(".open").nth(4)
    button.focus()
    expect(button).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(page.locator(f"#{button.get_attribute('aria-controls')}")).to_be_visible()
    page.keyboard.press("Space")
    expect(button).to_have_attribute("aria-expanded", "false")
    expect(page.locator(f"#{button.get_attribute('aria-controls')}")).to_be_hidden()
