"""The report in a real browser: what it says, by mouse and by keyboard, without a network, and in print."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from reassign.fleet.choose import Verdict
from reassign.fleet.outcomes import KINDS
from reassign.fleet.report import page as report
from reassign.fleet.report.model import Cluster, Fleet
from reassign.page.numbers import percent, size
from tests.browser import ADDRESSES, HOSTILE, Opened, browser, contrast, opened_page, pages, table, texts_and_grounds
from tests.fleet.made_report import NOTHING, made

__all__ = ["browser", "opened_page"]

Show = Callable[..., Page]
LINE = 4  # pixels that the lines around rectangles may add


@pytest.fixture
def show(opened_page: Opened) -> Show:
    """Open the report of this data."""
    return lambda data, **options: opened_page(render(data), **options)


def render(data: Fleet) -> str:
    return "".join(report.render(data))


def listed(page: Page) -> list[str]:
    """The clusters that the table shows, from its top."""
    return page.locator("table.clusters .open:visible").all_inner_texts()


def opened(page: Page, cluster: str) -> Locator:
    """The details of a cluster, after a click on its name."""
    button = page.locator(".open", has_text=re.compile(f"^{re.escape(cluster)}$"))
    button.click()
    return page.locator(f"#{button.get_attribute('aria-controls')}")


def named(data: Fleet, name: str) -> Cluster:
    return next(cluster for cluster in data.clusters if cluster.name == name)


def some(data: Fleet, state: str) -> str:
    return next(cluster.name for cluster in data.clusters if cluster.state == state)


def test_what_is_made_has_the_columns_of_the_tables() -> None:
    for cluster in made(20, brokers=6).clusters:
        assert cluster.load.keys() <= KINDS["cluster_load"].keys()
        assert cluster.brokers.keys() <= KINDS["broker_load"].keys()
        assert {*cluster.plan} in (
            set(),
            (KINDS["plans"].keys() | KINDS["planned_load"].keys()) - {"cluster_id", "problem"},
        )
        assert all(row.keys() == KINDS["rack_load"].keys() for row in (*cluster.racks, *cluster.plan.get("racks", ())))


# What it says


def test_the_overview_has_the_numbers_of_the_data(show: Show) -> None:
    data = made(40, brokers=6)
    page = show(data)
    figures = dict(
        zip(
            page.locator(".figures dt").all_inner_texts(),
            page.locator(".figures dd").all_inner_texts(),
            strict=True,
        )
    )
    totals = {
        name: sum(cluster.load.get(name, 0) for cluster in data.clusters)
        for name in ("brokers", "topics", "partitions", "replicas", "bytes", "violations")
    }
    plans = [cluster.plan for cluster in data.clusters if cluster.plan]
    copied, least = (sum(plan[name] for plan in plans) for name in ("bytes", "bytes_bound"))
    assert figures == {
        "Clusters": "40",
        "Brokers": f"{totals['brokers']:,}",
        "Topics": f"{totals['topics']:,}",
        "Partitions": f"{totals['partitions']:,}",
        "Replicas": f"{totals['replicas']:,}",
        "Stored": size(totals["bytes"]),
        "To copy": size(copied),
        "Not spread over racks": f"{totals['violations']:,}",
    }
    assert table(page, "What the plans move, beside the least possible")[0][:4] == [
        "Bytes copied",
        size(copied),
        size(least),
        f"{copied / least:.2f}",
    ]


@pytest.mark.parametrize(("seconds", "shown"), [(0.0, "0 s"), (50.0, "50 s")])
def test_the_slowest_plan_is_named_even_one_of_leaders_alone(show: Show, seconds: float, shown: str) -> None:
    data = made(20, brokers=3)
    slowest = named(data, some(data, "Planned"))
    slowest.plan["makespan"] = seconds
    faster = replace(slowest, name="faster", plan={**slowest.plan, "makespan": seconds / 2})
    others = (cluster for cluster in data.clusters if cluster.state != "Planned")
    data.clusters = [slowest, *([faster] if seconds else []), *others]
    assert f"The waves of {slowest.name} take longest: {shown}" in show(data).locator("body").inner_text()


def test_clusters_are_counted_by_state(show: Show) -> None:
    data = made(60, brokers=3)
    rows = table(show(data), "Clusters by state")
    found = Counter(cluster.state.replace("NotP", "Not p") for cluster in data.clusters)
    assert {name: int(clusters) for name, clusters, *_ in rows} == found
    assert sum(float(share.removesuffix("\u00a0%")) for _, _, share, _ in rows) == pytest.approx(100, abs=0.2)


def test_what_was_quarantined_is_counted_by_kind_with_examples(show: Show) -> None:
    data = made(3, brokers=3)
    data.quarantine = [Verdict(f"c{i}", "2026-11-21", "brokers", "Odd", 7, f"row {i}", True) for i in range(5)]
    page = show(data)
    entry = page.get_by_role("list", name="Quarantined").get_by_role("listitem").first
    assert [text in entry.inner_text() for text in ("Odd", "brokers", "5\u00a0clusters", "35\u00a0rows")] == [True] * 4
    expect(page.get_by_text("row 2")).to_be_visible()
    expect(page.get_by_text("row 3")).to_be_hidden()
    page.get_by_text("2 more").click()
    expect(page.get_by_text("row 3")).to_be_visible()


def test_the_worst_come_first_and_those_that_a_plan_fixes_last(show: Show) -> None:
    data = made(8, brokers=3)
    for number, cluster in enumerate(data.clusters):
        cluster.name, cluster.state, cluster.problem = f"c{number}", "Unchanged", None
        cluster.load, cluster.disks, cluster.leftovers = {}, [], []
        balance = {"by": "Disk", "before": [0.95, 1.05], "after": [0.95, 1.05], "reachable": 1.0, "band": [0.9, 1.1]}
        cluster.plan = NOTHING | {"balance": [balance], "unmet": []}
    _, leftover, mild, uneven, spread, unmet, full, broken = data.clusters
    leftover.leftovers = [{"kind": "Throttle", "what": "a rate", "since": None}]
    mild.plan["balance"][0]["before"] = [0.5, 1.2]
    uneven.plan["balance"][0]["before"] = [0.9, 3.0]
    spread.load = {"violations": 3}
    unmet.plan["unmet"] = [{"what": "all of it", "nearest": "some of it"}]
    full.disks = [
        {"broker": 1, "path": "/d", "used_bytes": 9, "total_bytes": 10, "bytes_per_day": 1.0, "days_until_full": 3.5}
    ]
    broken.state, broken.problem = "Quarantined", {"reason": "SnapshotBroken", "message": "take it again"}
    page = show(data)
    assert listed(page) == [f"c{number}" for number in (7, 6, 5, 4, 3, 2, 1, 0)]
    reasons = page.locator("table.clusters > tbody > tr > td:nth-child(2)").all_inner_texts()
    assert [reason.split("\u00a0")[0] for reason in reasons][1:6] == [
        "Disk full soon in 3",
        "Goal partly met all of it",
        "Not spread 3",
        "Out of band one broker at 300",
        "Out of band one broker at 50",
    ]
    assert reasons[-1] == ""


def test_the_same_data_give_the_same_bytes() -> None:
    data = made(20)
    shuffled = replace(data, clusters=data.clusters[::-1], quarantine=data.quarantine[::-1])
    assert render(shuffled) == render(data)


def test_a_time_reads_alike_on_machines_of_all_zones() -> None:
    data = made(3)
    text = render(data)
    assert "2026-11-21 23:05 UTC" in text
    data.newest = datetime.fromisoformat("2026-11-22T00:05:00+01:00")
    assert 'Newest snapshot <time datetime="2026-11-22T00:05:00+01:00">2026-11-21 23:05 UTC' in render(data)
    data.newest = datetime(2026, 11, 21, 23, 5)
    assert "2026-11-21 23:05 UTC" in render(data)


def test_notes_on_the_policy_are_shown_where_there_are_any(show: Show) -> None:
    data = made(3)
    assert "Notes on the policy" not in render(data)
    data.notes = ["no topic matches <b>* of topics.include in its cluster a"]
    expect(show(data).get_by_role("list", name="Notes on the policy")).to_have_text(data.notes[0])


def test_a_fleet_of_nothing_has_a_report(show: Show) -> None:
    page = show(Fleet(None, "1", "", [], []))
    expect(page.get_by_text("No snapshot could be read")).to_be_visible()
    expect(page.get_by_role("status")).to_have_text("0 of 0\u00a0clusters")


# The details of a cluster


def test_the_details_have_the_certificate_and_the_balance_of_the_plan(show: Show) -> None:
    data = made(12, brokers=6)
    name = some(data, "Planned")
    plan = named(data, name).plan
    page = show(data)
    opened(page, name)
    assert table(page, "This plan beside what no plan can do without")[:2] == [
        ["Bytes copied", size(plan["bytes"]), size(plan["bytes_bound"]), f"{plan['bytes'] / plan['bytes_bound']:.2f}"],
        [
            "Replicas moved",
            f"{plan['moves']:,}",
            f"{plan['moves_bound']:,}",
            f"{plan['moves'] / plan['moves_bound']:.2f}",
        ],
    ]
    disk = plan["balance"][0]
    assert table(page, "Least and greatest share of a broker")[0] == [
        "Disk",
        *(f"{percent(low)} to {percent(high)}" for low, high in (disk["before"], disk["after"], disk["band"])),
        percent(disk["reachable"]),
    ]


def test_the_details_have_each_broker_in_a_picture_and_in_a_table(show: Show) -> None:
    data = made(12, brokers=6)
    name = some(data, "Planned")
    cluster = named(data, name)
    page = show(data)
    details = opened(page, name)
    picture = details.get_by_role("img", name=re.compile("^Replicas by broker"))
    assert picture.locator("rect.before").count() == picture.locator("rect.after").count() == 6
    details.get_by_text("Table of 6\u00a0brokers").click()
    rows = table(page, "Brokers")
    assert [row[0] for row in rows] == ["0", "1", "2", "3", "4", "5"]
    assert [row[7:9] for row in rows] == [
        [f"{before:,.0f}", f"{after:,.0f}"]
        for before, after in zip(cluster.brokers["replicas"], cluster.plan["after"]["Replicas"], strict=True)
    ]


def test_the_band_of_a_broker_is_where_its_target_is(show: Show) -> None:
    data = made(12, brokers=6)
    name = some(data, "Planned")
    plan = named(data, name).plan
    plan["target"] = plan["after"]  # each is just right, and its column ends in the middle of its band
    details = opened(show(data), name)
    picture = details.get_by_role("img", name=re.compile("^Replicas by broker"))
    for column in picture.locator("g").all():
        band, after = (column.locator(f"rect.{kind}").bounding_box() for kind in ("band", "after"))
        assert band
        assert after
        assert after["y"] == pytest.approx(band["y"] + band["height"] / 2, abs=0.6)


def test_waves_follow_one_another_on_a_line_of_time(show: Show) -> None:
    data = made(12, brokers=6)
    cluster = next(cluster for cluster in data.clusters if cluster.state == "Planned")
    cluster.plan["waves"] = [
        {"partitions": 20, "bytes": 3 * 2**30, "seconds": 300.0},
        {"partitions": 10, "bytes": 2**30, "seconds": 100.0},
    ]
    page = show(data)
    details = opened(page, cluster.name)
    first, second = (block.bounding_box() for block in details.locator("rect.wave").all())
    assert first
    assert second
    assert first["width"] == pytest.approx(3 * second["width"], abs=LINE)
    assert second["x"] == pytest.approx(first["x"] + first["width"], abs=LINE)
    assert second["height"] == pytest.approx(first["height"], abs=LINE)
    details.get_by_text("Table of 2\u00a0waves").click()
    assert table(page, "Waves") == [
        ["1", "20", "3,072.0", "0\u00a0s", "5\u00a0min"],
        ["2", "10", "1,024.0", "5\u00a0min", "2\u00a0min"],
    ]


def test_waves_of_unknown_time_are_as_wide_as_their_bytes(show: Show) -> None:
    data = made(12, brokers=6)
    cluster = next(cluster for cluster in data.clusters if cluster.state == "Planned")
    cluster.plan["waves"] = [{"partitions": 1, "bytes": n * 2**30, "seconds": None} for n in (3, 1, 0)]
    page = show(data)
    details = opened(page, cluster.name)
    first, second, _ = (block.bounding_box() for block in details.locator("rect.wave").all())
    assert first
    assert second
    assert first["width"] == pytest.approx(3 * second["width"], abs=LINE)
    expect(details.get_by_text("not known without a throttle")).to_be_visible()


@pytest.mark.parametrize("state", ["Planned", "Unchanged", "NotPlanned", "Quarantined"])
def test_clusters_of_all_states_open(show: Show, state: str) -> None:
    data = made(60, brokers=3)
    expect(opened(show(data), some(data, state)).get_by_text("Goal", exact=True)).to_be_visible()


# By mouse and by keyboard


def test_a_cluster_opens_and_closes_by_keyboard(show: Show) -> None:
    page = show(made(5, brokers=6))
    button = page.locator(".open").nth(4)
    button.focus()
    expect(button).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-expanded", "true")
    details = page.locator(f"#{button.get_attribute('aria-controls')}")
    expect(details).to_be_visible()
    page.keyboard.press("Space")
    expect(button).to_have_attribute("aria-expanded", "false")
    expect(details).to_be_hidden()


def test_the_first_tab_leads_past_the_overview(show: Show) -> None:
    page = show(made(5, brokers=6))
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the clusters")).to_be_focused()
    expect(page.get_by_role("link", name="Skip to the clusters")).to_be_in_viewport()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("searchbox", name="Find")).to_be_focused()


def test_tab_goes_through_filters_heads_and_clusters_visibly(show: Show) -> None:
    page = show(made(3, brokers=3))
    page.get_by_role("searchbox", name="Find").focus()
    visited = []
    while not page.evaluate("document.activeElement.classList.contains('open')"):
        page.keyboard.press("Tab")
        visited.append(page.evaluate("document.activeElement.name || document.activeElement.innerText"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline not in ("none", ""), visited[-1]
    heads = page.locator("table.clusters thead button").all_inner_texts()
    assert visited[-len(heads) - 1 : -1] == heads
    assert visited[-1] == listed(page)[0]


def test_a_click_on_a_head_sorts_and_another_one_turns_it_round(show: Show) -> None:
    data = made(30, brokers=3)
    data.clusters[0].load["brokers"] = 500
    page = show(data)
    head = page.get_by_role("columnheader", name="Brokers")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    assert listed(page)[0] == data.clusters[0].name
    head.get_by_role("button").press("Enter")
    expect(head).to_have_attribute("aria-sort", "ascending")
    known = [cluster for cluster in data.clusters if cluster.load]
    assert listed(page)[len(known) - 1] == data.clusters[0].name  # what is not known is last either way
    assert page.locator("[aria-sort]").count() == 1


def test_every_column_sorts(show: Show) -> None:
    data = made(40, brokers=3)
    page = show(data)
    for head in page.locator("table.clusters > thead th").all():
        head.get_by_role("button").click()
        order = head.get_attribute("aria-sort")
        number, column = head.get_attribute("data-by") == "number", head.evaluate("head => head.cellIndex")
        cells = page.locator(f"table.clusters > tbody > tr > :nth-child({column + 1})")
        values = cells.evaluate_all("cells => cells.map(cell => cell.dataset.v ?? cell.textContent.trim())")
        known = [float(value) for value in values if value] if number else values
        assert known == sorted(known, reverse=order == "descending"), head.inner_text()
        assert "" not in values[: len(known)]


def test_what_is_open_stays_below_its_cluster_when_others_come_first(show: Show) -> None:
    data = made(10, brokers=3)
    page = show(data)
    last = listed(page)[-1]
    opened(page, last)
    page.get_by_role("columnheader", name="Attention").get_by_role("button").click()
    assert listed(page)[0] == last
    expect(page.locator("table.clusters > tbody > tr").nth(1)).to_have_class("details")


def test_filters_by_name_by_state_and_by_reason(show: Show) -> None:
    data = made(60, brokers=3)
    page = show(data)
    find = page.get_by_role("searchbox", name="Find")
    find.fill("EU ledger")
    assert listed(page)
    assert all("ledger-eu" in name for name in listed(page))
    expect(page.get_by_role("status")).to_have_text(f"{len(listed(page))} of 60\u00a0clusters")
    find.fill("")
    page.get_by_role("checkbox", name=re.compile("^Planned")).press("Space")
    states = {cluster.name: cluster.state for cluster in data.clusters}
    assert {states[name] for name in listed(page)} == {"Unchanged", "NotPlanned", "Quarantined"}
    page.get_by_role("combobox", name="Attention").select_option("Not planned")
    assert {states[name] for name in listed(page)} == {"NotPlanned"}
    find.fill("no such thing")
    expect(page.get_by_text("No cluster is like that.")).to_be_visible()


def test_without_a_script_the_overview_and_the_table_are_there(show: Show) -> None:
    page = show(made(30, brokers=3), java_script_enabled=False)
    assert len(table(page, "Clusters")) == 30
    assert len(table(page, "What needs attention")) == 8
    expect(page.get_by_text("need JavaScript")).to_be_visible()
    expect(page.get_by_role("searchbox")).to_have_count(0)


# For everybody


def all_open(show: Show, **options: object) -> Page:
    """A report with a cluster of each state open, and all that is folded unfolded."""
    data = made(60, brokers=6)
    page = show(data, **options)
    for state in ("Planned", "Unchanged", "NotPlanned", "Quarantined"):
        opened(page, some(data, state))
    for summary in page.locator("summary").all():
        summary.click()
    return page


def test_every_control_and_every_picture_has_a_name(show: Show) -> None:
    page = all_open(show)
    for role in ("button", "link", "searchbox", "combobox", "checkbox", "img", "table", "list"):
        all_, named = page.get_by_role(role), page.get_by_role(role, name=re.compile(r"\w"))
        assert all_.count(), role
        assert role == "list" or all_.count() == named.count(), role
    hidden = page.locator("svg:not([role=img]):not([aria-hidden=true])")
    assert hidden.count() == 0  # the others only repeat a number that is beside them
    for id_ in page.locator("[aria-controls]").evaluate_all("all => all.map(one => one.getAttribute('aria-controls'))"):
        assert page.locator(f"#{id_}").count() <= 1
    ids = page.locator("[id]").evaluate_all("all => all.map(one => one.id)")
    assert len(ids) == len(set(ids))


def test_every_table_has_heads_for_its_columns_and_its_rows(show: Show) -> None:
    page = all_open(show)
    wrong = page.locator("table").evaluate_all(
        """tables => tables.filter(table => {
            const heads = [...table.tHead.rows].at(-1).cells, rows = [...table.tBodies[0].rows];
            const scoped = [...table.querySelectorAll("th")].every(head => head.scope);
            const named = rows.filter(row => row.className !== "details").every(row =>
                row.cells[0].tagName === "TH" && row.cells.length === heads.length);
            const empty = [...heads].some((head, i) => head.tagName === "TD" && i > 0
                && rows.some(row => row.cells[i]?.textContent.trim() && !row.cells[i].querySelector("svg")));
            return !scoped || !named || empty;
        }).map(table => table.ariaLabel || table.getAttribute("aria-labelledby"))"""
    )
    assert wrong == []


def test_headings_leave_out_no_level(show: Show) -> None:
    levels = all_open(show).locator("h1, h2, h3, h4").evaluate_all("all => all.map(one => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert max(b - a for a, b in pairwise(levels)) == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_contrast(show: Show, scheme: str) -> None:
    page = all_open(show, color_scheme=scheme)
    pairs = texts_and_grounds(page)
    assert len(pairs) >= 6
    assert [one for one in pairs if contrast(one[0], one[1]) < 4.5] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_charts_draw_has_contrast_and_differs_in_more_than_colour(show: Show, scheme: str) -> None:
    page = all_open(show, color_scheme=scheme)

    def style(selector: str, name: str) -> str:
        return str(page.locator(selector).first.evaluate("(one, name) => getComputedStyle(one)[name]", name))

    panel, ground = style(".panel", "backgroundColor"), style("body", "backgroundColor")
    edge, after, bound = style("rect.before", "stroke"), style("rect.after", "fill"), style(".bound", "stroke")
    assert min(contrast(colour, panel) for colour in (edge, after, bound)) >= 3
    assert min(contrast(style(f".states .{state}", "fill"), ground) for state in ("Planned", "Unchanged")) >= 3
    assert contrast(style("rect.before", "fill"), after) >= 3  # light and dark, however colours are seen
    assert style(".bound", "strokeDasharray") != "none"
    signs = page.locator(".state").evaluate_all("all => all.map(one => getComputedStyle(one, '::before').content)")
    assert len(set(signs)) == 4


# What it must stand


def test_names_that_are_markup_show_as_text_and_run_nothing(show: Show) -> None:
    data = made(2, brokers=3)
    one = next(cluster for cluster in data.clusters if cluster.state == "Planned")
    one.name = one.cluster_id = one.goal = HOSTILE
    one.problem = {"reason": HOSTILE, "message": HOSTILE}
    one.plan["unmet"] = [{"what": HOSTILE, "nearest": HOSTILE}]
    one.leftovers = [{"kind": HOSTILE, "what": HOSTILE, "since": None}]
    one.brokers = {**one.brokers, "rack": [HOSTILE] * 3}
    one.racks[0]["path"] = one.topics[0]["topic"] = one.disks[0]["path"] = HOSTILE
    data.quarantine = [Verdict(HOSTILE, HOSTILE, HOSTILE, HOSTILE, 1, HOSTILE, True)]
    data.version = data.policy = HOSTILE
    page = show(data)
    page.locator(".open").first.click()
    assert listed(page)[0] == HOSTILE
    details = page.locator("tr.details")
    assert details.inner_text().count(HOSTILE) >= 8
    assert page.locator("img, iframe, object, [onerror]").count() == 0
    assert page.locator("script").count() == len(data.clusters) + 1


def test_a_script_that_came_in_would_not_run(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(render(made(1, brokers=3)), encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    seen = page.evaluate(
        """() => new Promise(resolve => {
            document.addEventListener("securitypolicyviolation", event => resolve(event.violatedDirective));
            const script = document.createElement("script");
            script.textContent = "document.title = 'ran'";
            document.body.append(script);
        })"""
    )
    assert seen == "script-src-elem"
    assert page.title() != "ran"
    page.close()


def test_it_names_no_address_that_a_browser_would_ask() -> None:
    text = render(made(3))
    assert re.findall(ADDRESSES, text) == []
    assert 'content="default-src &#39;none&#39;; ' in text


@pytest.mark.parametrize(("clusters", "brokers", "giant"), [(500, 30, 0), (1, 30, 300)])
def test_large_fleets_and_large_clusters_render(show: Show, clusters: int, brokers: int, giant: int) -> None:
    data = made(clusters, brokers=brokers, giant=giant)
    page = show(data)
    expect(page.get_by_role("status")).to_have_text(re.compile(f"^{clusters} of"))
    details = opened(page, some(data, "Planned"))
    expect(details.locator("rect.before:visible").first).to_be_visible()
    assert details.get_by_role("img", name=re.compile("^Disk")).locator("g").count() == (giant or brokers)


def test_a_thousand_clusters_take_a_few_megabytes() -> None:
    assert len(render(made(1000, brokers=30)).encode()) < 5 * 2**20


@pytest.mark.parametrize("width", [360, 800, 1600])
def test_the_page_fits_its_window(show: Show, width: int) -> None:
    data = made(20, brokers=30)
    page = show(data, viewport={"width": width, "height": 800})
    opened(page, some(data, "Planned"))
    for summary in page.locator("summary:visible").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


# In print


def test_in_print_is_what_is_open_and_all_of_it(show: Show) -> None:
    data = made(20, brokers=30)
    page = show(data, color_scheme="dark", viewport={"width": 703, "height": 1000})  # A4 less its margins
    closed = pages(page)
    details = opened(page, some(data, "Planned"))
    for summary in details.locator("summary").all():
        summary.click()
    assert pages(page) > closed >= 2
    page.emulate_media(media="print")
    expect(page.get_by_role("searchbox")).to_have_count(0)
    expect(details).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 703
    clipped = details.locator(".scroll").evaluate_all(
        "all => all.filter(one => one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight).length"
    )
    assert clipped == 0
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
