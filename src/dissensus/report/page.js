"use strict";
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // Storage is refused to some pages opened from a file; the switch then lasts as long as the page.
  const stored = (value) => {
    try {
      if (value) localStorage.setItem("dissensus-theme", value);
      return localStorage.getItem("dissensus-theme");
    } catch {
      return null;
    }
  };
  const chosen = stored();
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const draw = (tag, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  // Without this script a heading or a legend entry is plain text; with it, the same text is a button.
  const press = (element, action) => {
    const button = make("button", { type: "button" }, ...element.childNodes);
    button.addEventListener("click", action);
    element.append(button);
    return button;
  };

  const themeSwitch = () => {
    const button = make("button", { type: "button", class: "theme" });
    const icon = draw("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" });
    icon.append(draw("path", { d: "M12 2a10 10 0 1 0 0 20a10 10 0 0 0 0-20Zm0 2.2v15.6a7.8 7.8 0 0 1 0-15.6Z" }));
    button.append(icon);
    const now = () => root.dataset.theme || (dark.matches ? "dark" : "light");
    const other = () => (now() === "dark" ? "light" : "dark");
    const label = () => {
      button.setAttribute("aria-label", `Switch to ${other()} colours`);
      button.title = button.getAttribute("aria-label");
    };
    button.addEventListener("click", () => {
      root.dataset.theme = other();
      stored(root.dataset.theme);
      label();
    });
    dark.addEventListener("change", label);
    label();
    document.querySelector("header").append(button);
  };

  const sortable = (table) => {
    const body = table.tBodies[0];
    const original = [...body.rows];
    if (original.length < 2) return;
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const opposite = { ascending: "descending", descending: "ascending" };
      const first = head.dataset.first || "ascending";
      press(head, () => {
        const now = head.getAttribute("aria-sort");
        const next = now === first ? opposite[first] : now ? null : first;
        for (const each of heads) each.removeAttribute("aria-sort");
        if (next) head.setAttribute("aria-sort", next);
        body.append(...(next ? sorted(original, column, next === "ascending" ? 1 : -1) : original));
      });
    });
  };
  const sorted = (rows, column, sign) => {
    const numeric = rows.some((row) => "value" in row.cells[column].dataset);
    const key = (row) => {
      const cell = row.cells[column];
      if (!numeric) return cell.textContent;
      return "value" in cell.dataset ? Number(cell.dataset.value.replace("inf", "Infinity")) : NaN;
    };
    const compare = (a, b) => {
      if (!numeric) return sign * a.localeCompare(b, undefined, { numeric: true });
      if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
      return a === b ? 0 : sign * (a < b ? -1 : 1);
    };
    return [...rows].sort((a, b) => compare(key(a), key(b)));
  };

  const scale = (text) => {
    const [low, high, start, end, log] = text.split(" ").map(Number);
    const bend = log ? Math.log10 : (value) => value;
    return {
      ends: [start, end],
      shows: (value) => value !== null && (!log || value >= 2 ** -1022),
      place: (value) => start + ((bend(value) - bend(low)) / (bend(high) - bend(low))) * (end - start),
    };
  };
  const format = (value) => {
    const size = Math.abs(value);
    const text = size && (size < 1e-3 || size >= 1e6) ? value.toExponential(2) : String(Number(value.toPrecision(4)));
    const powers = { "-": "⁻", "+": "" };
    [..."⁰¹²³⁴⁵⁶⁷⁸⁹"].forEach((mark, digit) => (powers[digit] = mark));
    return text.replace(/e([+-]\d+)/, (_, e) => "×10" + [...e].map((c) => powers[c]).join("")).replace("-", "−");
  };

  const chart = (figure) => {
    const data = JSON.parse(figure.querySelector("script").textContent);
    const plot = figure.querySelector(".plot");
    const off = new Set();
    const parts = (index) => plot.querySelectorAll(`.series[data-series="${index}"]`);

    for (const entry of figure.querySelectorAll(".legend li")) {
      const index = Number(entry.dataset.series);
      const button = press(entry, () => {
        off.has(index) ? off.delete(index) : off.add(index);
        button.setAttribute("aria-pressed", String(!off.has(index)));
        for (const part of parts(index)) part.classList.toggle("off", off.has(index));
        hide();
      });
      button.setAttribute("aria-pressed", "true");
      const light = (on) => () => {
        plot.classList.toggle("dim", on && !off.has(index));
        for (const part of parts(index)) part.classList.toggle("lit", on);
      };
      entry.addEventListener("pointerenter", light(true));
      entry.addEventListener("pointerleave", light(false));
      button.addEventListener("focus", () => button.matches(":focus-visible") && light(true)());
      button.addEventListener("blur", light(false));
    }

    const tip = make("div", { class: "tip", role: "status" });
    plot.append(tip);
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-label", plot.getAttribute("aria-label") + ". Arrow keys read the values.");
    let current = null;

    // The drawing in use, wide or narrow, with its scales and what it shows now.
    const view = () => {
      const svg = [...plot.querySelectorAll("svg")].find((each) => each.getBoundingClientRect().width > 0);
      const [x, y] = [scale(svg.dataset.x), scale(svg.dataset.y)];
      const lines = data.lines.filter((line) => !off.has(line.series));
      const points = lines.flatMap((line) =>
        line.x.map((value, i) => ({ line, i })).filter(({ i }) => x.shows(line.x[i]) && y.shows(line.y[i])),
      );
      const stops = [...new Set(points.map(({ line, i }) => line.x[i]))].sort((a, b) => a - b);
      return { svg, x, y, points, stops };
    };
    const hide = () => {
      current = null;
      tip.replaceChildren();
      for (const cursor of plot.querySelectorAll(".cursor")) cursor.replaceChildren();
    };
    const show = ({ svg, x, y, points }, stop) => {
      hide();
      current = stop;
      const at = x.place(stop);
      const near = new Map();
      for (const point of points) {
        const distance = Math.abs(x.place(point.line.x[point.i]) - at);
        const best = near.get(point.line);
        if (distance <= 3 && (!best || distance < best.distance)) near.set(point.line, { ...point, distance });
      }
      const found = [...near.values()].sort((a, b) => b.line.y[b.i] - a.line.y[a.i]);
      const [bottom, top] = y.ends;
      const cursor = svg.querySelector(".cursor");
      cursor.append(draw("line", { x1: at, x2: at, y1: top, y2: bottom }));
      tip.append(make("b", {}, `${data.x} ${format(stop)}`));
      for (const { line, i } of found) {
        const colour = `c${line.series % 8}`;
        const spot = { cx: x.place(line.x[i]), cy: y.place(line.y[i]), r: 6.5, class: colour };
        cursor.append(draw("circle", spot));
        const value = make("span", {}, format(line.y[i]));
        if (line.low && line.low[i] !== null && line.high[i] !== null) {
          value.append(make("small", {}, ` (${format(line.low[i])} to ${format(line.high[i])})`));
        }
        tip.append(make("div", { class: colour }, make("i"), make("span", {}, data.names[line.series]), value));
      }
      const box = svg.getBoundingClientRect();
      const outer = plot.getBoundingClientRect();
      const left = box.left - outer.left + (at / svg.viewBox.baseVal.width) * box.width;
      const right = left + 14 + tip.offsetWidth <= outer.width;
      const wanted = right ? left + 14 : left - 14 - tip.offsetWidth;
      tip.style.left = `${Math.max(0, Math.min(wanted, outer.width - tip.offsetWidth))}px`;
      tip.style.top = `${(top / svg.viewBox.baseVal.height) * box.height}px`;
    };
    const point = (event) => {
      const now = view();
      if (!now.stops.length) return;
      const box = now.svg.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * now.svg.viewBox.baseVal.width;
      const gap = (stop) => Math.abs(now.x.place(stop) - at);
      show(now, now.stops.reduce((best, stop) => (gap(stop) < gap(best) ? stop : best)));
    };
    plot.addEventListener("pointermove", point);
    plot.addEventListener("pointerdown", point);
    plot.addEventListener("pointerleave", hide);
    plot.addEventListener("blur", hide);
    plot.addEventListener("keydown", (event) => {
      const now = view();
      const last = now.stops.length - 1;
      const place = now.stops.indexOf(current);
      const stride = Math.max(1, Math.round(now.stops.length / 50));
      const moves = {
        ArrowRight: place < 0 ? 0 : Math.min(last, place + stride),
        ArrowLeft: place < 0 ? last : Math.max(0, place - stride),
        Home: 0,
        End: last,
      };
      if (event.key === "Escape") hide();
      if (last < 0 || !(event.key in moves)) return;
      event.preventDefault();
      show(now, now.stops[moves[event.key]]);
    });
  };

  document.addEventListener("DOMContentLoaded", () => {
    themeSwitch();
    document.querySelectorAll("main table").forEach(sortable);
    document.querySelectorAll("main .chart").forEach(chart);
  });
})();
