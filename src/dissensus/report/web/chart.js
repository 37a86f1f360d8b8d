// Charts. uPlot (web/uplot.js, version 1.6.32, MIT) gives axes, grid, scales and sizes; the lines are drawn here, since
// they may turn back (folds), have gaps, bands and abscissae of their own. It is inlined in every page, hence the
// smallest library that is well kept: 51 KB, against 210 KB of Chart.js 4.6, 490 KB of Observable Plot 0.6 with D3, and
// 500 KB to 1.1 MB of ECharts 6.1; and it draws on canvas, fast enough for 300 lines while a slider moves.
//
// A chart is plain data: {title, describe, xLabel, yLabel, xLog, yLog, yFloor, x: [low, high], y: [low, high], lines, dots},
// a line {name, x, y, low, high, dashed, colour, width, markers, every: [first, step] of the markers}. Null leaves a gap. Without ranges they are those of
// the data. Lines of one name share a colour and an entry in the legend.

const SERIES = 8;
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif';

class Chart {
  // `box` takes the chart's width and is `height(width)` pixels high.
  constructor(box, spec, height = (width) => Math.max(230, Math.min(400, 0.5 * width))) {
    this.box = box;
    this.height = height;
    this.marks = {};
    this.canvasBox = make("div", { class: "canvas" });
    this.legend = make("ul", { class: "legend" });
    box.append(this.canvasBox, this.legend);
    this.update(spec);
    new ResizeObserver(() => this.resize()).observe(box);
    onTheme(() => this.update(this.spec));
  }

  update(spec) {
    const axes = !this.plot || !sameAxes(this.spec, spec);
    this.spec = spec;
    this.canvasBox.setAttribute("role", "img");
    this.canvasBox.setAttribute("aria-label", spec.describe || spec.title || "Line chart");
    this.drawLegend();
    if (axes) {
      this.plot?.destroy();
      this.plot = this.make(this.canvasBox, this.width());
    }
    this.plot.setData(frame(spec));
    this.place();
  }

  // A vertical line at x, or a dot at (x, y), that moves without the chart being drawn again; null takes it away.
  mark(name, point) {
    if (point) this.marks[name] = point;
    else delete this.marks[name];
    this.place();
  }

  svg() {
    const width = this.width();
    const context = new SvgContext(width, this.height(width), devicePixelRatio || 1);
    const original = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = () => context;
    const aside = make("div");
    try {
      const plot = this.make(aside, width, true);
      plot.batch(() => plot.setData(frame(this.spec)));  // draws at once, not in the next task
      plot.destroy();
    } finally {
      HTMLCanvasElement.prototype.getContext = original;
    }
    return context.toString();
  }

  csv() {
    const rows = [["series", this.spec.xLabel || "x", this.spec.yLabel || "y"]];
    for (const line of this.spec.lines) line.x.forEach((x, i) => rows.push([line.name, x, line.y[i]]));
    return csv(rows);
  }

  width() {
    return Math.max(240, Math.floor(this.box.clientWidth));
  }

  resize() {
    const width = this.width();
    if (width === this.plot.width) return;
    this.plot.setSize({ width, height: this.height(width) });
    this.place();
  }

  make(target, width, all = false) {
    const { spec } = this;
    const ink = () => colour("muted");
    const named = (value, side) => side === 3 && spec.yFloor && value <= spec.yFloor && (value < spec.yFloor ? "0" : `< ${logLabel(value)}`);
    const axis = (side, label, log) => ({
      side, label, font: FONT, labelFont: FONT, labelSize: 20, labelGap: 0, stroke: ink, gap: 4,
      grid: { stroke: () => colour("grid"), width: 1 },
      ticks: { stroke: () => colour("faint"), width: 1, size: 4 },
      border: { show: true, stroke: () => colour("faint"), width: 1 },
      space: side === 2 ? 56 : 34,
      size: side === 2 ? 28 : (_, values) => 12 + 7 * Math.max(2, ...(values || []).map((text) => text.length)),
      ...(log && { splits: (u) => logTicks(side === 2 ? u.scales.x : u.scales.y, this.spec, side), filter: (_, all) => all }),
      values: (_, splits) => splits.map((value) => (log ? named(value, side) || logLabel(value) : linearLabel(value, splits))),
    });
    const range = (axis) => () => limits(this.spec, axis);
    const plot = new uPlot(
      {
        width, height: this.height(width), padding: [10, 14, 0, 4],
        scales: {
          x: { time: false, range: range("x"), distr: spec.xLog ? 3 : 1 },
          y: { range: range("y"), distr: spec.yLog ? 3 : 1 },
        },
        axes: [axis(2, spec.xLabel, spec.xLog), axis(3, spec.yLabel, spec.yLog)],
        series: [{}, { paths: () => null, points: { show: false } }],
        cursor: { show: false }, legend: { show: false },
        hooks: { draw: [(u) => this.draw(u, all), (u) => u === this.plot && this.place()] },
      },
      frame(spec), target,
    );
    plot.root.setAttribute("aria-hidden", "true");
    return plot;
  }

  draw(u, all) {
    const { ctx, bbox } = u;
    const ratio = devicePixelRatio || 1;
    const px = pixels(u.scales.x, bbox.left, bbox.width, this.spec.xLog);
    const height = pixels(u.scales.y, bbox.top + bbox.height, -bbox.height, this.spec.yLog);
    const lift = lifted(this.spec), py = (value) => height(lift(value));
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.lineJoin = "round";
    const names = seriesNames(this.spec);
    for (const line of this.spec.lines) {
      ctx.strokeStyle = ctx.fillStyle = paint(line, names);
      ctx.lineWidth = (line.width ?? 1.8) * ratio;
      ctx.setLineDash(line.dashed ? [5 * ratio, 3.5 * ratio] : []);
      if (line.low) {
        ctx.globalAlpha = 0.15;
        for (const run of runs(line, (i) => line.low[i] !== null && line.high[i] !== null)) fillBand(ctx, line, run, px, py);
        ctx.globalAlpha = 1;
      }
      ctx.beginPath();
      let down = false;
      for (let i = 0; i < line.x.length; i++) {
        const there = line.y[i] !== null && line.x[i] !== null && (!this.spec.yLog || lift(line.y[i]) > 0);
        if (there && down) ctx.lineTo(px(line.x[i]), py(line.y[i]));
        else if (there) ctx.moveTo(px(line.x[i]), py(line.y[i]));
        down = there;
      }
      if (line.width !== 0) ctx.stroke();
      if (line.markers) {
        ctx.setLineDash([]);
        if (line.dashed) ctx.fillStyle = colour("paper");
        const [first, step] = line.every || [0, 1];
        for (let i = first; i < line.x.length; i += step) {
          if (line.y[i] === null || (this.spec.yLog && lift(line.y[i]) <= 0)) continue;
          drawMarker(ctx, shape(line, names), px(line.x[i]), py(line.y[i]), line.markers * ratio);
          if (line.dashed) ctx.stroke();
        }
      }
    }
    ctx.setLineDash([]);
    ctx.strokeStyle = ctx.fillStyle = colour("muted");
    ctx.lineWidth = ratio;
    for (const { x, label } of this.spec.verticals || []) {
      ctx.setLineDash([2 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(px(x), bbox.top);
      ctx.lineTo(px(x), bbox.top + bbox.height);
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.font = FONT.replace(/\d+/, (size) => size * ratio);
      ctx.textAlign = "left";
      ctx.textBaseline = "top";
      ctx.fillText(label, px(x) + 4 * ratio, bbox.top + 3 * ratio);
    }
    for (const { x, y } of all ? Object.values(this.marks) : []) {
      ctx.strokeStyle = ctx.fillStyle = colour("ink");
      ctx.beginPath();
      if (y === undefined) {
        ctx.moveTo(px(x), bbox.top);
        ctx.lineTo(px(x), bbox.top + bbox.height);
        ctx.stroke();
      } else {
        ctx.arc(px(x), py(y), 5 * ratio, 0, 2 * Math.PI);
        ctx.fill();
      }
    }
    ctx.restore();
  }

  place() {
    const { over } = this.plot;
    for (const element of over.querySelectorAll(".mark")) if (!(element.dataset.name in this.marks)) element.remove();
    for (const [name, { x, y }] of Object.entries(this.marks)) {
      let element = over.querySelector(`.mark[data-name="${name}"]`);
      if (!element) over.append((element = make("div", { class: y === undefined ? "mark line" : "mark dot", "data-name": name })));
      const clamp = (value, most) => Math.max(0, Math.min(most, value));
      const left = clamp(this.plot.valToPos(x, "x"), over.clientWidth);
      const top = y === undefined ? 0 : clamp(this.plot.valToPos(y, "y"), over.clientHeight);
      element.style.transform = `translate(${left}px, ${top}px)`;
    }
  }

  drawLegend() {
    const names = seriesNames(this.spec);
    this.legend.hidden = names.length < 2;
    this.legend.replaceChildren(
      ...names.map((name) => {
        const line = this.spec.lines.find((each) => each.name === name);
        return make("li", {}, legendKey(line, names), name);
      }),
    );
  }
}

const seriesNames = (spec) => [...new Set(spec.lines.map((line) => line.name).filter(Boolean))];
const paint = (line, names) => {
  const name = line.colour || `s${Math.max(0, names.indexOf(line.name)) % SERIES}`;
  return /^[a-z]+\d?$/.test(name) ? colour(name) : name;
};
// The pairs of colour and shape repeat only after 64 names.
const shape = (line, names) => {
  const index = Math.max(0, names.indexOf(line.name));
  return line.colour ? 0 : (index + Math.floor(index / SERIES)) % SHAPES.length;
};
const corners = (count, turn) => Array.from({ length: count }, (_, k) => [Math.sin(turn + (2 * Math.PI * k) / count), -Math.cos(turn + (2 * Math.PI * k) / count)]);
const star = (count) => corners(2 * count, 0).map(([x, y], k) => (k % 2 ? [0.45 * x, 0.45 * y] : [x, y]));
// The first is the circle.
const SHAPES = [null, corners(4, Math.PI / 4), corners(3, 0), corners(4, 0), corners(3, Math.PI), star(4), corners(6, 0), star(5)];

function drawMarker(ctx, index, x, y, radius) {
  ctx.beginPath();
  if (!SHAPES[index]) ctx.arc(x, y, radius, 0, 2 * Math.PI);
  else {
    SHAPES[index].forEach(([dx, dy], k) => ctx[k ? "lineTo" : "moveTo"](x + 1.35 * radius * dx, y + 1.35 * radius * dy));
    ctx.closePath();
  }
  ctx.fill();
}

function legendKey(line, names) {
  const context = new SvgContext(30, 12);
  context.root.setAttribute("aria-hidden", "true");
  context.strokeStyle = context.fillStyle = paint(line, names);
  context.lineWidth = line.width ?? 1.8;
  context.setLineDash(line.dashed ? [5, 3.5] : []);
  context.moveTo(1, 6);
  context.lineTo(29, 6);
  if (context.lineWidth) context.stroke();
  if (line.markers) drawMarker(context, shape(line, names), 15, 6, line.markers);
  return context.root;
}

// Where a value stands on the vertical axis: below the floor there is one place for all but zero, and one for zero.
const lifted = (spec) => (value) => (!spec.yFloor || value === null || value >= spec.yFloor || value < 0 ? value : value > 0 ? spec.yFloor : 1e-5 * spec.yFloor);
const sameAxes = (a, b) => ["xLabel", "yLabel", "xLog", "yLog", "yFloor"].every((name) => a[name] === b[name]);
// What uPlot sees: two points that give it something to scale.
const frame = (spec) => [limits(spec, "x"), [null, null]];

function pixels(scale, start, length, log) {
  const f = log ? Math.log10 : (value) => value;
  const low = f(scale.min), step = length / (f(scale.max) - low);
  return (value) => start + (f(value) - low) * step;
}

function limits(spec, axis) {
  if (spec[axis]) return spec[axis];
  const log = spec[`${axis}Log`], lift = lifted(spec);
  let low = Infinity, high = -Infinity;
  for (const line of spec.lines) {
    for (const part of axis === "x" ? [line.x] : [line.y, line.low || [], line.high || []]) {
      for (const each of part) {
        const value = axis === "y" ? lift(each) : each;
        if (value === null || (log && value <= 0)) continue;
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
  }
  if (low > high) return log ? [0.1, 10] : [0, 1];
  if (log) {
    const room = (high / low) ** 0.04 === 1 ? 2 : (high / low) ** 0.04;
    return [Math.max(low / room, 1e-307), Math.min(high * room, 1e307)];
  }
  const room = 0.04 * (high - low) || 0.1 * Math.abs(low) || 1;
  return [low - room, high + room];
}

function* runs(line, has) {
  let run = [];
  for (let i = 0; i < line.x.length; i++) {
    if (line.y[i] !== null && has(i)) run.push(i);
    else if (run.length) {
      yield run;
      run = [];
    }
  }
  if (run.length) yield run;
}

function fillBand(ctx, line, run, px, py) {
  ctx.beginPath();
  run.forEach((i, k) => ctx[k ? "lineTo" : "moveTo"](px(line.x[i]), py(line.high[i])));
  for (const i of run.reverse()) ctx.lineTo(px(line.x[i]), py(line.low[i]));
  ctx.closePath();
  ctx.fill();
}

// Powers of two where all abscissae are such (depths), else decades, or 1, 2 and 5 of each where there are few.
function logTicks(scale, spec, side) {
  const own = side === 2 ? [...new Set(spec.lines.flatMap((line) => line.x))].filter((x) => x > 0) : [];
  const first = Math.ceil(Math.log10(scale.min) - 1e-9), last = Math.floor(Math.log10(scale.max) + 1e-9);
  if (own.length > 1 && own.length <= 16 && own.every((x) => Number.isInteger(Math.log2(x)))) return own.sort((a, b) => a - b);
  const decades = Math.log10(scale.max / scale.min);
  const ticks = side === 3 && spec.yFloor ? [1e-5 * spec.yFloor, spec.yFloor].filter((value) => value >= scale.min) : [];
  const least = ticks.length ? 1e3 * spec.yFloor : 0;
  const step = Math.max(1, Math.ceil(decades / 7));
  for (let e = first - 1; e <= last; e++) {
    for (const factor of decades < 1.5 ? [1, 2, 5] : [1]) {
      const value = factor * 10 ** e;
      if (value >= scale.min && value <= scale.max && value > least && (decades < 1.5 || (e - first) % step === 0)) ticks.push(value);
    }
  }
  return ticks;
}

function logLabel(value) {
  const exponent = Math.log10(value);
  const whole = Math.round(exponent);
  if (Math.abs(exponent - whole) < 1e-9 && !(whole > -3 && whole < 5)) return `10${superscript(whole)}`;
  return String(+value.toPrecision(6));
}
const superscript = (value) => String(value).replace(/[-\d]/g, (letter) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(letter)]);

function linearLabel(value, splits) {
  const step = Math.abs(splits[1] - splits[0]) || 1;
  if (Math.abs(value) >= 1e7 || (step < 1e-9 && value !== 0)) return value.toExponential(2).replace(/-/g, "−");
  let digits = 0;
  while (digits < 12 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits++;
  return value.toFixed(digits).replace("-", "−");
}

// Files. A cell that starts like a formula is kept from being one in a spreadsheet.
const csv = (rows) => `${rows.map((row) => row.map(csvCell).join(",")).join("\r\n")}\r\n`;
const csvCell = (cell) => {
  if (typeof cell === "number" || cell === null || cell === undefined) return cell ?? "";
  const safe = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

function download(name, type, text) {
  const link = make("a", { download: name });
  link.href = URL.createObjectURL(text instanceof Blob ? text : new Blob([text], { type }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// PNG of an SVG, at twice its size, on the page's ground.
function rasterise(svg, width, height) {
  return new Promise((resolve, reject) => {
    const image = new Image();
    image.onload = () => {
      const canvas = make("canvas");
      canvas.width = 2 * width;
      canvas.height = 2 * height;
      const context = canvas.getContext("2d");
      context.fillStyle = colour("paper");
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(resolve, "image/png");
    };
    image.onerror = () => reject(new Error("the picture cannot be drawn"));
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  });
}

// A chart whose data are in the document.
const storedChart = (box) => new Chart(box, JSON.parse(document.getElementById(box.dataset.chart).textContent));
