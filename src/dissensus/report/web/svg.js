// A drawing context that writes SVG in place of pixels, so that one drawing routine serves the screen and the file.
// It knows what the charts and the network use of CanvasRenderingContext2D, and no more.
class SvgContext {
  constructor(width, height, ratio = 1) {
    this.root = svgElement("svg", {
      xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width * ratio} ${height * ratio}`,
    });
    this.parent = this.root;
    this.matrix = [1, 0, 0, 1, 0, 0];
    this.stack = [];
    this.dash = [];
    this.path = "";
    Object.assign(this, {
      fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1, font: "12px sans-serif",
      textAlign: "start", textBaseline: "alphabetic", lineCap: "butt", lineJoin: "miter",
    });
  }
  save() {
    const { parent, matrix, dash, fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, textBaseline } = this;
    const { lineCap, lineJoin } = this;
    this.stack.push({
      parent, matrix, dash, fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign, textBaseline, lineCap,
      lineJoin,
    });
  }
  restore() {
    Object.assign(this, this.stack.pop());
  }
  transform(a, b, c, d, e, f) {
    const [A, B, C, D, E, F] = this.matrix;
    this.matrix = [A * a + C * b, B * a + D * b, A * c + C * d, B * c + D * d, A * e + C * f + E, B * e + D * f + F];
  }
  translate(x, y) { this.transform(1, 0, 0, 1, x, y); }
  scale(x, y) { this.transform(x, 0, 0, y, 0, 0); }
  rotate(angle) { this.transform(Math.cos(angle), Math.sin(angle), -Math.sin(angle), Math.cos(angle), 0, 0); }
  setLineDash(dash) { this.dash = dash; }
  clearRect() {}
  beginPath() { this.path = ""; }
  closePath() { this.path += "Z"; }
  moveTo(x, y) { this.path += `M${short(x)} ${short(y)}`; }
  lineTo(x, y) { this.path += `L${short(x)} ${short(y)}`; }
  rect(x, y, width, height) { this.path += `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}Z`; }
  arc(x, y, r) {  // whole circles only
    this.path += `M${short(x - r)} ${short(y)}a${short(r)} ${short(r)} 0 1 0 ${short(2 * r)} 0a${short(r)} ${short(r)} 0 1 0 ${short(-2 * r)} 0`;
  }
  clip() {
    const id = `clip${this.root.querySelectorAll("clipPath").length}`;
    const clip = svgElement("clipPath", { id });
    clip.append(svgElement("path", { d: this.path, transform: this.place() }));
    const group = svgElement("g", { "clip-path": `url(#${id})` });
    this.parent.append(clip, group);
    this.parent = group;
  }
  stroke() {
    this.add("path", {
      d: this.path, fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth, "stroke-linejoin": this.lineJoin,
      "stroke-linecap": this.lineCap, "stroke-dasharray": this.dash.length ? this.dash.join(" ") : null,
    });
  }
  fill() { this.add("path", { d: this.path, fill: this.fillStyle }); }
  fillText(text, x, y) {
    const anchor = { center: "middle", right: "end", end: "end" }[this.textAlign] || "start";
    const baseline = { top: "text-before-edge", middle: "central", bottom: "text-after-edge" }[this.textBaseline] || "auto";
    const element = this.add("text", {
      x: short(x), y: short(y), fill: this.fillStyle, "text-anchor": anchor, "dominant-baseline": baseline,
      style: `font:${this.font}`,
    });
    element.textContent = text;
  }
  place() {
    return this.matrix.join() === "1,0,0,1,0,0" ? null : `matrix(${this.matrix.map(short).join(" ")})`;
  }
  add(tag, attributes) {
    const opacity = this.globalAlpha === 1 ? null : this.globalAlpha;
    const element = svgElement(tag, { ...attributes, opacity, transform: this.place() });
    this.parent.append(element);
    return element;
  }
  toString() { return new XMLSerializer().serializeToString(this.root); }
}

const short = (value) => +value.toFixed(3);

function svgElement(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && name !== "xmlns") element.setAttribute(name, value);
  }
  return element;
}
