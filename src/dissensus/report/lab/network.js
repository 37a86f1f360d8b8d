// The agents on their graph, coloured by opinion.

// From one opinion to the other, through grey: colours for −1 ... 1 in 101 steps.
function shades() {
  const ends = ["s0", "faint", "s1"].map((name) => colour(name).match(/[\da-f]{2}/gi).map((part) => parseInt(part, 16)));
  return Array.from({ length: 101 }, (_, k) => {
    const position = k / 50 - 1, [from, to] = position < 0 ? [ends[1], ends[0]] : [ends[1], ends[2]];
    const share = Math.abs(position) ** 0.7;  // clear colours soon beside the middle
    return `rgb(${from.map((part, i) => Math.round(part + share * (to[i] - part))).join(",")})`;
  });
}
const shadeOf = (palette, x, limit) => palette[Math.round(50 * (1 + Math.max(-1, Math.min(1, x / limit))))];

class Network {
  constructor(canvas) {
    this.canvas = canvas;
    this.back = make("canvas");
    this.palette = shades();
    new ResizeObserver(() => this.layout()).observe(canvas.parentElement);
    onTheme(() => {
      this.palette = shades();
      this.layout();
    });
  }

  show(graph) {
    this.graph = graph;
    this.layout();
  }

  // Places and edges, once for each graph and size; then `draw` colours the agents.
  layout() {
    const { clientWidth: width, clientHeight: height } = this.canvas.parentElement, ratio = devicePixelRatio || 1;
    if (!this.graph || !width || !height) return;  // not in sight
    Object.assign(this, { width, height });
    for (const canvas of [this.canvas, this.back]) Object.assign(canvas, { width: width * ratio, height: height * ratio });
    this.radius = Math.max(2.2, Math.min(11, (0.32 * Math.min(width, height)) / Math.sqrt(this.graph.names.length)));
    this.at = fitted(this.graph.layout, width, height, this.radius + 6);
    const context = this.back.getContext("2d");
    context.scale(ratio, ratio);
    this.drawEdges(context);
    if (this.opinions) this.draw(this.opinions, this.limit);
  }

  draw(opinions, limit) {
    Object.assign(this, { opinions, limit });
    if (!this.width || opinions.length !== this.at.length) return;
    const context = this.canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.back, 0, 0);
    const ratio = devicePixelRatio || 1;
    context.scale(ratio, ratio);
    this.drawAgents(context);
  }

  drawEdges(context) {
    context.strokeStyle = colour("faint");
    context.lineWidth = this.graph.edges.length > 1500 ? 0.5 : 1;
    for (const hostile of [false, true]) {
      context.setLineDash(hostile ? [4, 3] : []);
      context.beginPath();
      for (const [i, k, weight] of this.graph.edges) {
        if (weight < 0 !== hostile) continue;
        context.moveTo(...this.at[i]);
        context.lineTo(...this.at[k]);
      }
      context.stroke();
    }
    context.setLineDash([]);
  }

  drawAgents(context) {
    context.strokeStyle = colour("paper");
    context.lineWidth = 1;
    for (let i = 0; i < this.at.length; i++) {
      const [x, y] = this.at[i];
      context.fillStyle = shadeOf(this.palette, this.opinions[i], this.limit);
      context.beginPath();
      context.arc(x, y, this.radius, 0, 2 * Math.PI);
      context.fill();
      if (this.radius > 3) context.stroke();
    }
  }

  svg() {
    const context = new SvgContext(this.width, this.height);
    this.drawEdges(context);
    this.drawAgents(context);
    return context.toString();
  }

  // The agent under a point of the canvas, or -1.
  find(x, y) {
    let best = -1, least = (this.radius + 6) ** 2;
    this.at?.forEach(([px, py], i) => {
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least) [best, least] = [i, distance];
    });
    return best;
  }
}

// Places scaled to a box.
function fitted(layout, width, height, margin) {
  const xs = layout.map(([x]) => x), ys = layout.map(([, y]) => y);
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const scale = Math.min((width - 2 * margin) / (right - left || 1), (height - 2 * margin) / (bottom - top || 1));
  return layout.map(([x, y]) => [width / 2 + scale * (x - (left + right) / 2), height / 2 + scale * (y - (top + bottom) / 2)]);
}
