"use strict";
// What moves on the page: clusters are sorted, filtered and opened. Text goes in as text nodes, never as markup.
(() => {
  // --- elements

  function make(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  }
  const html = (name, attributes = {}, ...children) => make(document.createElement(name), attributes, children);
  const svg = (name, attributes = {}, ...children) =>
    make(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
  const named = (text) => html("span", { class: "name" }, text);

  // --- numbers, as numbers.py writes them

  const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  const digits = (number, places) =>
    number.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
  const count = (number) => digits(number, 0);
  const counted = (number, thing) => `${count(number)}\u00a0${thing}${number === 1 ? "" : "s"}`;
  const percent = (share) => `${count(share * 100)}\u00a0%`;
  const ratio = (cost, bound) => (bound ? digits(cost / bound, 2) : "");

  function size(bytes) {
    let unit = 0;
    for (; bytes >= 1000 && unit < UNITS.length - 1; unit++) bytes /= 1024;
    return `${bytes.toFixed(unit === 0 || bytes >= 100 ? 0 : bytes >= 10 ? 1 : 2)}\u00a0${UNITS[unit]}`;
  }

  function duration(seconds) {
    if (seconds < 90) return `${count(seconds)}\u00a0s`;
    return seconds < 5400 ? `${count(seconds / 60)}\u00a0min` : `${digits(seconds / 3600, 1)}\u00a0h`;
  }

  /** One unit for a whole column or axis of bytes, or of `what` begins with B, so that its numbers compare. */
  function unitOf(values, what = "B") {
    if (!what) return { name: "", size: 1, write: count };
    const greatest = Math.max(0, ...values);
    let unit = 0;
    while (unit < UNITS.length - 1 && greatest >= 1024 ** (unit + 1) * 10) unit++;
    return { name: UNITS[unit] + what.slice(1), size: 1024 ** unit, write: (bytes) => digits(bytes / 1024 ** unit, unit ? 1 : 0) };
  }

  /** Round steps of an axis from 0, three to six of them, the last at or above `greatest`. */
  function steps(greatest) {
    const power = 10 ** Math.floor(Math.log10(greatest / 4 || 1));
    const step = [1, 2, 5, 10].map((one) => one * power).find((one) => greatest / one <= 4.5) ?? power * 10;
    return Array.from({ length: Math.ceil(greatest / step - 1e-9) + 1 }, (_, i) => i * step);
  }

  // --- parts

  /** `columns` are names; one that ends in # is of numbers. A row's first cell is its head. */
  function table(label, columns, rows, attributes = {}) {
    const number = (i) => (columns[i].endsWith("#") ? "number" : null);
    return html("table", { "aria-label": label, ...attributes },
      html("thead", {}, html("tr", {}, columns.map((name, i) =>
        name ? html("th", { scope: "col", class: number(i) }, name.replace(/#$/, "")) : html("td")))),
      html("tbody", {}, rows.map((cells) => html("tr", {}, cells.map((cell, i) =>
        i === 0 ? html("th", { scope: "row", class: number(i) }, cell) : html("td", { class: number(i) }, cell ?? ""))))));
  }

  /** What is too wide, or too long, scrolls; by keyboard too, and only then it is a stop of the Tab key. */
  function scrolled(label, inside) {
    const box = html("div", { class: "scroll" }, inside);
    new ResizeObserver(() => {
      const over = box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight;
      const set = { tabindex: "0", role: "group", "aria-label": `${label}, scrolls` };
      Object.entries(set).forEach(([name, value]) => (over ? box.setAttribute(name, value) : box.removeAttribute(name)));
    }).observe(box);
    return box;
  }

  const section = (title, ...inside) => html("section", {}, html("h3", {}, title), ...inside);
  const folded = (title, inside) => html("details", {}, html("summary", {}, title), inside);
  const note = (text) => html("p", { class: "note" }, text);
  const swatch = (kind, text) => html("span", { class: `swatch ${kind}` }, text);

  /** Two lengths on one scale: what was there, and over it what will be. */
  function bar(before, after, greatest) {
    const width = (value) => `${greatest ? (100 * value) / greatest : 0}%`;
    return svg("svg", { class: "bar", width: "100%", height: 14, "aria-hidden": "true" },
      svg("rect", { class: "before", width: width(before), height: 14 }),
      after === null ? null : svg("rect", { class: "after", y: 4, width: width(after), height: 6 }));
  }

  // --- the sections of a cluster

  /** The balance goals, each with the unit of what it counts: "" for plain numbers. */
  const GOALS = JSON.parse(document.querySelector("table.clusters").dataset.goals);
  /** What the values of a goal are counted in; `unit` bytes. */
  const factor = (what, unit) => (what ? unit : 1);
  const headOf = (by, scale) => by + (scale.name && `, ${scale.name}`);

  function facts(cluster) {
    const known = [["Goal", cluster.goal], ["Snapshot", cluster.takenAt], ["Cluster id", cluster.clusterId],
      ["Topics", cluster.topics === null ? null : count(cluster.topics)],
      ["Replicas", cluster.replicas === null ? null : count(cluster.replicas)]];
    return html("dl", { class: "facts" }, known.filter(([, value]) => value)
      .map(([name, value]) => html("div", {}, html("dt", {}, name), html("dd", {}, named(value)))));
  }

  function problem({ problem: { reason, message } }) {
    return html("p", { class: "problem" }, html("b", {}, named(reason)), " ", named(message));
  }

  function quarantine({ quarantine: found }) {
    return section("Quarantined rows", scrolled("Quarantined rows", table("Quarantined rows",
      ["What is wrong", "Date", "Table", "Rows#", "Example"],
      found.map(([date, of, kind, rows, example]) => [named(kind), date, of, count(rows), named(example)]))));
  }

  function unmet({ unmet: found }) {
    return section("Not met", table("What of the goal is not met", ["Asked for", "Nearest that is reached"],
      found.map(({ what, nearest }) => [named(what), named(nearest)])));
  }

  function certificate({ certificate: plan }) {
    const rows = [["Bytes copied", plan.bytes, plan.bytes_bound, size], ["Replicas moved", plan.moves, plan.moves_bound, count],
      ["Waves", plan.waves, plan.waves_bound, count], ["Time at the throttle", plan.makespan, plan.makespan_bound, duration]];
    return section("Certificate", table("This plan beside what no plan can do without",
      ["", "This plan#", "At least#", "Ratio#"],
      [...rows.filter(([, cost]) => cost !== null).map(([name, cost, bound, write]) =>
        [name, write(cost), bound === null ? "" : write(bound), ratio(cost, bound)]),
        ["Preferred leaders changed", count(plan.leaders), "", ""]]),
      note("“At least”: no plan that meets this goal can do with less."));
  }

  function balance({ resources }) {
    const span = ([least, greatest]) => `${percent(least)} to ${percent(greatest)}`;
    return section("Balance", scrolled("Balance", table("Least and greatest share of a broker",
      ["", "Before#", "After#", "Target band#", "Best possible#"], resources.map(({ by, before, after, band, reachable }) =>
        [by, span(before), span(after), span(band), percent(reachable)]))),
      note("The emptiest and the fullest broker; 100 % is just what the broker should have. No plan has a fullest broker below “Best possible”."));
  }

  /** Before and after of each broker as columns, in the order of racks, over the band that is asked for. */
  function columns(brokers, [by, what], band, order, unit) {
    const values = (load) => (load ? load[by].map((value) => value * factor(what, unit)) : null);
    const [before, after, target] = [brokers.before, brokers.after, brokers.target].map(values);
    const bounds = target && band ? target.map((one) => band.map((share) => one * share)) : null;
    const scale = unitOf(before, what);
    const marks = steps(Math.max(...before, ...(after ?? []), ...(bounds ?? []).map(([, high]) => high), 1) / scale.size);
    const height = 140, top = marks[marks.length - 1] * scale.size;
    const y = (value) => height - (height * value) / top;
    let slots = 0;
    const place = order.map((i, n) => (slots += n && brokers.rack[i] !== brokers.rack[order[n - 1]] ? 1.6 : 1) - 1);
    const x = (slot) => `${((100 * slot) / slots).toFixed(3)}%`;
    const column = (kind, slot, width, from, to) => svg("rect",
      { class: kind, x: x(slot + (1 - width) / 2), width: x(width), y: y(to).toFixed(1), height: (y(from) - y(to)).toFixed(1) });
    const picture = order.map((i, n) => svg("g", {},
      svg("title", {}, `Broker ${brokers.id[i]} ${brokers.racks[brokers.rack[i]]}: ${scale.write(before[i])}`
        + (after ? ` → ${scale.write(after[i])}` : "") + (target ? `, target ${scale.write(target[i])}` : "") + ` ${scale.name}`),
      svg("rect", { class: "hit", x: x(place[n]), width: x(1), y: 0, height }),
      bounds ? column("band", place[n], 1, ...bounds[i]) : null,
      column("before", place[n], 0.78, 0, before[i]),
      after ? column("after", place[n], 0.4, 0, after[i]) : null,
      bounds ? bounds[i].map((bound) => svg("line",
        { class: "bound", x1: x(place[n]), x2: x(place[n] + 1), y1: y(bound), y2: y(bound) })) : null));
    const title = headOf(by, scale);
    const ends = (all) => `${scale.write(Math.min(...all))} to ${scale.write(Math.max(...all))}`;
    return html("figure", { class: "chart" }, html("figcaption", {}, title),
      svg("svg", { class: "axis", height, "aria-hidden": "true" }, marks.map((mark) =>
        svg("text", { x: "100%", dx: -6, y: y(mark * scale.size), dy: "0.32em" }, digits(mark, marks[1] % 1 ? 1 : 0)))),
      svg("svg", { class: "plot", width: "100%", height, role: "img", "aria-label": `${title} by broker: before ${ends(before)}`
        + (after ? `, after ${ends(after)}` : "") + ". The table of brokers has each of them." },
        marks.map((mark) => svg("line", { class: "grid", x2: "100%", y1: y(mark * scale.size), y2: y(mark * scale.size) })), picture),
      rackNames(brokers, order, place, slots));
  }

  /** The names of racks under their brokers, where there are few enough to read. */
  function rackNames(brokers, order, place, slots) {
    const spans = Map.groupBy ? [...Map.groupBy(order.keys(), (n) => brokers.rack[order[n]])] : [];
    if (spans.length < 2 || spans.length > 12) return null;
    let at = 0;
    return html("div", { class: "racks", "aria-hidden": "true" }, spans.map(([rack, of]) => {
      const name = html("span", {}, (brokers.racks[rack] || "no rack").replace(/^\//, "").replaceAll("/", "/\u200b"));
      name.style.marginLeft = `${(100 * (place[of[0]] - at)) / slots}%`;
      name.style.width = `${(100 * of.length) / slots}%`;
      at = place[of[0]] + of.length;
      return name;
    }));
  }

  function brokers({ brokers: all, resources, unit }) {
    const order = [...all.id.keys()].sort((a, b) => all.rack[a] - all.rack[b] || all.id[a] - all.id[b]);
    const band = (by) => resources.find((one) => one.by === by)?.band;
    return section(all.after ? "Brokers, before and after" : "Brokers",
      html("p", { class: "legend" }, swatch("before", all.after ? "before" : "now"), all.after ? swatch("after", "after") : null,
        all.target ? swatch("band", "target band") : null, ` Brokers in the order of racks, then of ids.`),
      html("div", { class: all.id.length > 60 ? "charts wide" : "charts" },
        GOALS.map((goal) => columns(all, goal, band(goal[0]), order, unit))),
      folded(`Table of ${counted(all.id.length, "broker")}`, scrolled("Brokers", brokerTable(all, unit))));
  }

  function brokerTable(all, unit) {
    const goals = GOALS.map(([by, what]) => {
      const scale = unitOf(all.before[by].map((value) => value * factor(what, unit)), what);
      return { by, head: headOf(by, scale), write: (value) => scale.write(value * factor(what, unit)) };
    });
    const disk = unitOf(all.before.Disk.map((value) => value * unit));
    const cells = ({ by, write }, i) => {
      const target = all.target?.[by][i];
      return [write(all.before[by][i]), all.after && write(all.after[by][i]), all.target && write(target),
        all.after && target ? percent(all.after[by][i] / target) : null];
    };
    const rows = [...all.id.keys()].map((i) => [String(all.id[i]), named(all.racks[all.rack[i]]),
      all.capacity[i] === null ? null : disk.write(all.capacity[i] * unit), ...goals.flatMap((goal) => cells(goal, i))]);
    const made = table("Brokers", ["Broker#", "Rack", `Capacity, ${disk.name}#`,
      ...goals.flatMap(() => ["Before#", "After#", "Target#", "Share#"])], rows);
    made.tHead.prepend(html("tr", {}, html("td", { colspan: 3 }),
      goals.map(({ head }) => html("th", { scope: "colgroup", colspan: 4, class: "group" }, head))));
    made.prepend(html("colgroup", { span: 3 }), ...goals.map(() => html("colgroup", { span: 4 })));
    return made;
  }

  function racks({ racks: all, unit }) {
    const levels = [...new Set(all.map(([level]) => level))].sort((a, b) => a - b);
    const scales = GOALS.map(([, what], k) => unitOf(all.map((rack) => rack[3][k] * factor(what, unit)), what));
    const planned = all.some(([, , , , after]) => after);
    const heads = GOALS.map(([by], k) => `${headOf(`${by} before`, scales[k])}#`)
      .flatMap((head) => (planned ? [head, "After#", ""] : [head.replace(" before", ""), ""]));
    return section(planned ? "Racks, before and after" : "Racks", levels.map((level) => {
      const of = all.filter((rack) => rack[0] === level);
      const greatest = GOALS.map((_, k) => Math.max(...of.flatMap(([, , , before, after]) => [before[k], after?.[k] ?? 0])));
      const cells = (before, after, k) => {
        const write = (value) => scales[k].write(value * factor(GOALS[k][1], unit));
        return [write(before[k]), ...(planned ? [after && write(after[k])] : []), bar(before[k], after && after[k], greatest[k])];
      };
      const label = `Level ${level}: ${counted(of.length, "rack")}`;
      return scrolled(label, table(label, [label, "Brokers#", ...heads], of.map(([, path, size, before, after]) =>
        [named(path || "no rack"), count(size), ...GOALS.flatMap((_, k) => cells(before, after, k))]),
      { class: planned ? "bars planned" : "bars" }));
    }));
  }

  /** Waves one after the other: width is time and height bytes per second, so area is bytes; without times width is bytes. */
  function waves({ waves: all }) {
    const timed = all.every(([, , seconds]) => seconds !== null) && all.some(([, , seconds]) => seconds > 0);
    const width = ([, bytes, seconds]) => (timed ? seconds : bytes);
    const rate = ([, bytes, seconds]) => (timed ? bytes / (seconds || Infinity) : 1);
    const total = all.reduce((sum, wave) => sum + width(wave), 0) || 1;
    const fastest = Math.max(...all.map(rate)) || 1, height = 72;
    const scale = unitOf(all.map(([, bytes]) => bytes));
    let at = 0;
    const starts = all.map((wave) => (at += width(wave)) - width(wave));
    const x = (value) => `${((100 * value) / total).toFixed(3)}%`;
    const blocks = all.map((wave, i) => {
      const tall = Math.max(2, (height * rate(wave)) / fastest);
      return svg("g", {},
        svg("title", {}, `Wave ${i + 1}: ${size(wave[1])}, ${counted(wave[0], "partition")}` + (timed ? `, ${duration(wave[2])}` : "")),
        svg("rect", { class: "wave", x: x(starts[i]), width: x(width(wave)), y: height - tall, height: tall }),
        width(wave) / total > 0.05 ? svg("text", { class: "inside", x: x(starts[i] + width(wave) / 2), y: height - 6 }, String(i + 1)) : null);
    });
    const [per, unit] = !timed ? [scale.size, scale.name] : total < 5400 ? [60, "min"] : [3600, "h"];
    const marks = steps(total / per).filter((mark) => mark * per <= total * 1.0001);
    return section("Waves",
      note(timed ? "Width is time at the throttle, height is bytes per second: the area of a wave is its bytes."
        : "How long they take is not known without a throttle: width is bytes."),
      html("figure", { class: "line" },
        svg("svg", { width: "100%", height: height + 22, role: "img",
          "aria-label": `${counted(all.length, "wave")}, ${timed ? duration(total) : size(total)} in all. The table of waves has each of them.` },
        blocks, svg("line", { class: "base", x2: "100%", y1: height, y2: height }), marks.map((mark, i) =>
          svg("text", { class: i ? "mark" : "mark first", x: x(mark * per), y: height + 16 }, `${i ? digits(mark, marks[1] % 1 ? 1 : 0) : `0 ${unit}`}`)))),
      folded(`Table of ${counted(all.length, "wave")}`, scrolled("Waves",
        table("Waves", ["Wave#", "Partitions#", `Bytes, ${scale.name}#`, ...(timed ? ["Begins after#", "Takes#"] : [])],
          all.map(([partitions, bytes, seconds], i) => [String(i + 1), count(partitions), scale.write(bytes),
            ...(timed ? [duration(starts[i]), duration(seconds)] : [])])))));
  }

  function growth({ topicGrowth, diskGrowth, unit }) {
    const perDay = (bytes) => (bytes < 0 ? `−${size(-bytes)}` : size(bytes));
    const topics = () => table("Topics that grow most", ["Topic", "Size#", "Per day#", "Per day, %#"],
      topicGrowth.map(([topic, bytes, daily]) =>
        [named(topic), size(bytes), perDay(daily), bytes ? digits((daily / bytes) * 100, 1) : null]));
    const disks = () => table("Disks that are full soonest", ["Broker#", "Directory", "Used#", "", "Per day#", "Days until full#"],
      diskGrowth.map(([broker, path, used, total, daily, days]) => [String(broker), named(path), size(used * unit),
        total ? html("div", { class: "used" }, bar(total, used, total), percent(used / total)) : null,
        perDay(daily), days === null ? "not in sight" : days < 1 ? "<\u00a01" : count(Math.floor(days))]));
    return section("Growth", html("div", { class: "pair growth" }, topicGrowth.length ? html("div", {}, scrolled("Topics that grow most", topics())) : null,
      diskGrowth.length ? html("div", {}, scrolled("Disks that are full soonest", disks())) : null));
  }

  function leftovers({ leftovers: found }) {
    return section("Leftovers", table("Leftovers", ["Kind", "What", "Since"],
      found.map(([kind, what, since]) => [named(kind), named(what), since])));
  }

  function panel(cluster) {
    const some = (list) => list.length > 0;
    return html("div", { class: "panel" }, facts(cluster),
      cluster.problem && problem(cluster),
      some(cluster.quarantine) ? quarantine(cluster) : null,
      some(cluster.unmet) ? unmet(cluster) : null,
      html("div", { class: "pair" }, cluster.certificate && certificate(cluster), some(cluster.resources) ? balance(cluster) : null),
      cluster.brokers && brokers(cluster),
      some(cluster.racks) ? racks(cluster) : null,
      some(cluster.waves) ? waves(cluster) : null,
      some(cluster.topicGrowth) || some(cluster.diskGrowth) ? growth(cluster) : null,
      some(cluster.leftovers) ? leftovers(cluster) : null);
  }

  // --- the table of clusters: sort, filter, open

  const list = document.querySelector("table.clusters"), body = list.tBodies[0], heads = [...list.tHead.rows[0].cells];
  const data = document.querySelectorAll("script.details");
  const rows = [...body.rows].map((row, i) => ({ row, data: data[i], state: row.dataset.state, kind: row.dataset.kind,
    text: `${row.cells[0].textContent} ${row.cells[1].textContent}`.toLowerCase(), details: null }));

  function open(one, button, id) {
    if (!one.details) {
      const cell = html("td", { colspan: heads.length }, panel(JSON.parse(one.data.textContent)));
      one.details = html("tr", { class: "details", id }, cell);
      one.row.after(one.details);
    } else one.details.hidden = !one.details.hidden;
    button.setAttribute("aria-expanded", String(!one.details.hidden));
  }

  function sort(head) {
    const descending = head.ariaSort ? head.ariaSort === "ascending" : head.dataset.first !== "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const value = ({ row }) => {
      const cell = row.cells[head.cellIndex];
      return head.dataset.by === "text" ? cell.textContent : cell.dataset.v ? Number(cell.dataset.v) : null;
    };
    const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
    const sorted = rows.map((one) => [value(one), one]).sort(([a], [b]) =>
      a === null || b === null ? (a === null) - (b === null) : compare(a, b) * (descending ? -1 : 1));
    body.append(...sorted.flatMap(([, { row, details }]) => (details ? [row, details] : [row])));
  }

  const form = document.querySelector(".filters"), shown = document.querySelector("#shown");
  function filter() {
    const words = form.querySelector("#find").value.toLowerCase().split(/\s+/), kind = form.querySelector("#kind").value;
    const states = [...form.querySelectorAll("[name=state]:checked")].map((box) => box.value);
    let found = 0;
    for (const one of rows) {
      const is = words.every((word) => one.text.includes(word)) && (!kind || one.kind === kind) && states.includes(one.state);
      one.row.classList.toggle("out", !is);
      one.details?.classList.toggle("out", !is);
      found += is;
    }
    shown.textContent = `${count(found)} of ${counted(rows.length, "cluster")}`;
    document.querySelector("#none").hidden = found > 0 || rows.length === 0;
  }

  rows.forEach((one, i) => {
    const id = `details-${i}`, name = one.row.cells[0].firstElementChild;
    const button = html("button", { type: "button", class: "open", "aria-expanded": "false", "aria-controls": id });
    name.replaceWith(button);
    button.append(name);
    button.addEventListener("click", () => open(one, button, id));
  });
  heads.forEach((head) => {
    const button = html("button", { type: "button" }, ...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(head));
  });
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  document.querySelector("#still").remove();
  filter();
})();
