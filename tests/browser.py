"""Pages in a real browser. Each is opened from a file, asks for nothing, and the browser has no complaint about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright

from localplatform import prerequisites

Opened = Callable[..., Page]
HOSTILE = """</script><script>alert(1)</script><img src=x onerror="alert(2)">'"`&amp;{{7*7}}\u202e"""
"""A name that is markup."""
ADDRESSES = r"(?:src|href)=\"(?!#)|url\(|@import"
"""What a browser would ask for."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    prerequisites.require(["browser"])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened_page(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    """Open a page from a file; at the end it asked for nothing, and the browser had no complaint."""
    asked: list[str] = []
    said: list[str] = []

    def opened(text: str, **options: object) -> Page:
        file = tmp_path / "report.html"
        file.write_text(text, encoding="utf-8")

        def only_the_file(route: Route) -> None:
            if route.request.url == file.as_uri():
                route.continue_()
            else:
                asked.append(route.request.url)
                route.abort()

        page = browser.new_page(**{"viewport": {"width": 1440, "height": 900}} | options)
        page.route("**/*", only_the_file)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.goto(file.as_uri())
        return page

    yield opened
    for context in browser.contexts:
        context.close()
    assert (asked, said) == ([], [])


def table(page: Page, name: str) -> list[list[str]]:
    """The rows of the table of this name, as their cells are written."""
    rows = page.get_by_role("table", name=name, exact=True).locator("tbody tr")
    return [[cell.strip() for cell in row.locator("th, td").all_inner_texts()] for row in rows.all()]


def texts_and_grounds(page: Page) -> list[list[str]]:
    """Each colour of text with the colour under it, and one of the texts."""
    pairs: list[list[str]] = page.evaluate(
        """() => {
            const found = new Map(), walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            while (walk.nextNode()) {
                const one = walk.currentNode.parentElement;
                const seen = one.checkVisibility() && !one.closest("script, title, option");
                if (!walk.currentNode.data.trim() || !seen) continue;
                const style = getComputedStyle(one), wave = one.matches(".inside") && document.querySelector(".wave");
                let back = one;
                while (getComputedStyle(back).backgroundColor === "rgba(0, 0, 0, 0)") back = back.parentElement;
                const under = wave ? getComputedStyle(wave).fill : getComputedStyle(back).backgroundColor;
                found.set([one instanceof SVGElement ? style.fill : style.color, under].join(" on "), one.textContent);
            }
            return [...found].map(([colours, text]) => [...colours.split(" on "), text]);
        }"""
    )
    return pairs


def contrast(one: str, other: str) -> float:
    """WCAG 2.2, "contrast ratio"; colours as `rgb(1, 2, 3)`."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def pages(page: Page) -> int:
    """Sheets of paper that it is printed on."""
    return len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4")))
