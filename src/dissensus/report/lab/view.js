// The page: controls, charts, and what happens when something changes.

const SAMPLES = 160;
const $ = (query) => document.querySelector(query);
const shown = (value, digits = 3) => String(+value.toPrecision(digits)).replace("-", "−");

class Laboratory {
  constructor() {
    this.network = new Network($("#network canvas"));
    this.controls();
    this.charts = {
      opinions: new Chart($("#opinions .plot"), { lines: [] }, (width) => Math.max(230, Math.min(460, 0.86 * width))),
      bifurcation: new Chart($("#bifurcation .plot"), { lines: [] }),
      energy: new Chart($("#energy .plot"), { lines: [] }),
      rank: new Chart($("#rank .plot"), { lines: [] }),
    };
    this.downloads();
    this.drops();
    addEventListener("hashchange", () => {
      if (location.hash !== this.hash) this.open();
    });
    onTheme(() => this.drawOpinions());
    this.open();
    this.playing = this.state.t === null && !matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.time = this.state.t ?? (this.playing ? 0 : this.state.T);
    this.playLabel();
    this.show();
    this.last = performance.now();
    const frame = (now) => {
      this.frame(now);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  // State from the address.
  open() {
    const { state, problems } = readState(location.hash);
    this.state = state;
    this.hash = location.hash;
    if (state.t !== null) {
      this.playing = false;
      this.time = state.t;
    }
    this.fill();
    this.graphChanged();
    this.problem(problems.join(" "));
  }

  set(changes) {
    Object.assign(this.state, changes);
    if (["graph", "n", "seed", "edges"].some((name) => name in changes)) this.graphDirty = true;
    this.dirty = true;
    this.fill();
  }

  graphChanged() {
    this.graph = makeGraph(this.state);
    this.graphDirty = false;
    this.network.show(this.graph);
    $("#size").textContent = `${this.graph.names.length} agents, ${this.graph.edges.length} edges`;
    this.changed();
  }

  // Everything that follows from the parameters at once; what takes longer follows when they have come to rest.
  changed() {
    this.dirty = false;
    const { state } = this;
    this.matrix = communication(this.graph, state.sign);
    const of = `${state.sign}`;
    if (this.leadOf?.graph !== this.graph || this.leadOf.of !== of) {
      this.lead = leading(this.matrix);
      this.leadOf = { graph: this.graph, of };
    }
    this.x0 = initialOpinions(this.graph.names.length, state.seed);
    this.B = input(state, this.x0);
    this.critical = criticalAttention(state, this.lead);
    this.times = Array.from({ length: SAMPLES + 1 }, (_, k) => (k * state.T) / SAMPLES);
    this.time = Math.min(this.time ?? 0, state.T);
    try {
      this.opinions = trajectory(state.model, this.matrix, state, this.x0, this.times, true);
      this.failed = "";
    } catch (error) {
      this.opinions = [firstOption(this.x0)];
      this.failed = `The simulation stopped: ${error.message}.`;
    }
    this.limit = Math.max(1e-12, ...this.opinions.map((x) => x.reduce((most, value) => Math.max(most, Math.abs(value)), 0)));
    this.drawOpinions();
    this.drawBifurcation();
    $("#critical").textContent = this.critical > 3 ? `u* = ${shown(this.critical)}, beyond the slider` : `u* = ${shown(this.critical)}`;
    $("#tick").style.left = `${Math.min(100, (100 * this.critical) / SLIDERS.u.max)}%`;
    this.show();
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.rested(), this.graph.names.length > 100 ? 150 : 0);
    this.settle();
  }

  // What takes too long for every movement of a slider, on a large graph.
  rested() {
    this.drawBifurcation(true);
    this.drawDepth();
  }

  settle() {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.settled(), 300);
  }

  // Words and the address, once the parameters have come to rest.
  settled() {
    this.tell();
    this.hash = writeState(this.state);
    try {
      history.replaceState(null, "", this.hash);
    } catch {
      location.replace(this.hash);
    }
  }

  drawOpinions() {
    if (!this.opinions) return;
    const { palette } = this.network;
    const n = this.graph.names.length;
    const final = this.opinions.at(-1);
    const room = 1.05 * this.limit;
    this.charts.opinions.update({
      title: "Opinions against time",
      describe: `Opinions of ${n} agents against time: from ${shown(Math.min(...final))} to ${shown(Math.max(...final))} at the end`,
      xLabel: "time", yLabel: this.state.model === "kuramoto" ? "phase" : "opinion",
      x: [0, this.state.T], y: [-room, room],
      lines: this.graph.names.map((_, i) => ({
        x: this.times.slice(0, this.opinions.length), y: this.opinions.map((x) => x[i]),
        colour: shadeOf(palette, final[i], this.limit), width: n > 100 ? 0.7 : 1.1,
      })),
    });
  }

  drawBifurcation(rested = false) {
    const { state, lead, critical } = this;
    const first = firstOption(this.B);
    const b = first.reduce((sum, value, i) => sum + lead.w[i] * value, 0);
    const longest = Math.max(2.5 * critical, 1.2 * state.u, 0.1);
    const pieces = reducedDiagram(state, lead, Math.abs(b) < 1e-12 ? 0 : b, longest);
    const lines = pieces.map(({ stable, u, z }) => ({
      name: stable ? "stable" : "unstable", x: u, y: z, dashed: !stable, colour: stable ? "s0" : "muted", width: stable ? 2.4 : 1.5,
    }));
    if (rested) {
      const attentions = Array.from({ length: 24 }, (_, k) => ((k + 1) * longest) / 24);
      const found = networkEquilibria(this.matrix, state, lead, first, attentions, state.model === "opinions" ? this.opinions.at(-1) : null);
      this.equilibria = { x: found.map(([u]) => u), y: found.map(([, z]) => z) };
    }
    if (this.equilibria) lines.push({ name: "equilibria of this network", ...this.equilibria, colour: "s2", width: 0, markers: 2.6 });
    const highest = 1.15 * Math.max(...lines.flatMap((line) => line.y.map(Math.abs)), Math.abs(this.z(0)), 0.1);
    this.charts.bifurcation.update({
      title: "Bifurcation diagram",
      describe: `Equilibria against attention; the neutral opinion loses stability at u* = ${shown(critical)}; you are at u = ${shown(state.u)}`,
      xLabel: "attention u", yLabel: "weighted average z", x: [0, longest], y: [-highest, highest], lines,
      verticals: [{ x: critical, label: `u* = ${shown(critical)}` }],
    });
  }

  drawDepth() {
    const energy = [], rank = [];
    for (const [model, { label }] of Object.entries(MODELS)) {
      let states;
      try {
        states = trajectory(model, this.matrix, this.state, this.x0, this.times);
      } catch {
        continue;  // it grows without bound; the others can be seen
      }
      const x = this.times;
      // Below 1e-12 the energy is that of rounding.
      energy.push({ name: label, x, y: states.map((state) => Math.max(1e-12, relativeEnergy(state, this.matrix))) });
      rank.push({ name: label, x, y: states.map(effectiveRank) });
    }
    const last = (lines) => lines.map(({ name, y }) => `${name} ${shown(y.at(-1))}`).join(", ");
    this.charts.energy.update({
      title: "Dirichlet energy", describe: `Relative Dirichlet energy against depth, at the end: ${last(energy)}`,
      xLabel: "depth (time)", yLabel: "relative Dirichlet energy", yLog: true, x: [0, this.state.T], lines: energy,
    });
    this.charts.rank.update({
      title: "Effective rank", describe: `Effective rank of ${OPTIONS} options against depth, at the end: ${last(rank)}`,
      xLabel: "depth (time)", yLabel: "effective rank", x: [0, this.state.T], y: [0.9, OPTIONS + 0.1], lines: rank,
    });
  }

  // Opinions at the time shown, between two samples.
  at(time) {
    const place = Math.min(this.opinions.length - 1, (SAMPLES * time) / this.state.T), k = Math.floor(place), share = place - k;
    if (!share) return this.opinions[k];
    return this.opinions[k].map((value, i) => value + share * (this.opinions[k + 1][i] - value));
  }

  z(time) {
    return this.at(time).reduce((sum, value, i) => sum + this.lead.w[i] * value, 0);
  }

  show() {
    const { state } = this, x = this.at(this.time);
    this.network.draw(x, this.limit);
    this.charts.opinions.mark("now", { x: this.time });
    this.charts.energy.mark("now", { x: this.time });
    this.charts.rank.mark("now", { x: this.time });
    const nonlinear = state.model === "opinions";
    this.charts.bifurcation.mark("here", nonlinear ? { x: state.u, y: this.z(this.time) } : null);
    this.charts.bifurcation.mark("u", nonlinear ? null : { x: state.u });
    $("#time").value = this.time;
    $("#time").setAttribute("aria-valuetext", `time ${shown(this.time)} of ${state.T}`);
    $("#clock").textContent = `t = ${this.time.toFixed(state.T < 20 ? 1 : 0)}`;
  }

  frame(now) {
    const begun = performance.now();
    const passed = Math.min(100, now - this.last);
    this.last = now;
    if (this.graphDirty) this.guard(() => this.graphChanged());
    else if (this.dirty) this.changed();
    if (!this.playing) return;
    // A trajectory takes eight seconds, and stays for one at its end.
    this.clock = (this.clock ?? (8000 * this.time) / this.state.T) + passed;
    if (this.clock > 9000) this.clock = 0;
    this.time = Math.min(1, this.clock / 8000) * this.state.T;
    this.show();
    this.cost = performance.now() - begun;
  }

  // What is seen, in words; read out by a screen reader when the parameters have come to rest.
  tell() {
    const { state } = this;
    const final = this.opinions.at(-1);
    const fades = state.model === "opinions" && state.u <= this.critical * (1 + 1e-9) && state.b === 0;
    const { verdict, favour, against, mean, spread } = outcome(final, this.limit, fades);
    const ratio = state.model === "opinions" ? `u is ${shown(state.u / this.critical)} times u*. ` : "";
    const broken = state.model === "opinions" && state.u > this.critical && state.b === 0 ? "The neutral consensus has broken. " : "";
    const words = {
      "neutral consensus": "All opinions have faded to zero: a neutral consensus.",
      "fading to neutral consensus": "Opinions are fading to a neutral consensus.",
      consensus: `${broken}All agents agree on ${shown(mean)}: a consensus.`,
      dissensus: `${broken}Dissensus: ${favour} in favour, ${against} against, opinions up to ${shown(spread)} apart.`,
    };
    const text = this.failed || `${ratio}${words[verdict]}`;
    $("#status").textContent = text;
    $("#network canvas").setAttribute("aria-label", `Network of ${this.graph.names.length} agents coloured by opinion. ${text}`);
  }

  problem(text) {
    $("#problem span").textContent = text;
    $("#problem").hidden = !text;
  }

  guard(action) {
    try {
      action();
      return true;
    } catch (error) {
      this.graphDirty = false;
      this.problem(error.message);
      return false;
    }
  }

  // Controls

  controls() {
    for (const [name, { label, min, max, step }] of Object.entries(SLIDERS)) {
      const row = $(`[data-slider=${name}]`), id = `slider-${name}`;
      const slider = make("input", { type: "range", id, min, max, step });
      const number = make("input", { type: "number", min, max, step, "aria-label": `${label}, as a number` });
      slider.addEventListener("input", () => this.set({ [name]: Number(slider.value) }));
      number.addEventListener("change", () => {
        const value = Number(number.value);
        if (number.value === "" || !Number.isFinite(value)) this.fill();
        else this.set({ [name]: Math.min(max, Math.max(min, name === "n" ? Math.round(value) : value)) });
      });
      const track = make("div", { class: "track" }, slider);
      if (name === "u") track.append(make("span", { id: "tick", "aria-hidden": "true" }));
      row.prepend(make("label", { for: id }, label), number, track);
    }
    for (const [name, { label }] of Object.entries(GRAPHS)) $("#graph").append(make("option", { value: name }, label));
    $("#graph").append(make("option", { value: "own" }, "Your own edge list"));
    for (const [name, { label }] of Object.entries(MODELS)) $("#model").append(make("option", { value: name }, label));
    $("#graph").addEventListener("change", (event) => {
      const graph = event.target.value;
      if (graph !== "own" || this.state.edges) return this.set({ graph });
      event.target.value = this.state.graph;
      $("#own").open = true;
      $("#edges").focus();
    });
    $("#model").addEventListener("change", (event) => this.set({ model: event.target.value }));
    $("#from").addEventListener("change", (event) => this.set({ from: event.target.value }));
    for (const radio of document.querySelectorAll("[name=sign]")) {
      radio.addEventListener("change", () => this.set({ sign: Number(radio.value) }));
    }
    $("#seed").addEventListener("change", (event) => {
      const seed = Math.round(Number(event.target.value));
      if (seed >= 0 && seed < 2 ** 31) this.set({ seed });
      else this.fill();
    });
    $("#redraw").addEventListener("click", () => this.set({ seed: (this.state.seed + 1) % 2 ** 31 }));
    $("#reset").addEventListener("click", () => {
      this.problem("");
      this.set({ ...DEFAULTS, t: null });
    });
    $("#share").addEventListener("click", () => this.share());
    $("#problem button").addEventListener("click", () => this.problem(""));
    $("#use").addEventListener("click", () => this.own($("#edges").value, "your text"));
    $("#file").addEventListener("change", (event) => this.file(event.target.files[0]));
    $("#play").addEventListener("click", () => this.play(!this.playing));
    $("#time").addEventListener("input", (event) => this.pause(Number(event.target.value)));
    const canvas = $("#network canvas");
    canvas.addEventListener("pointermove", (event) => {
      const place = this.network.find(event.offsetX, event.offsetY);
      $("#agent").textContent = place < 0 ? "" : `Agent ${this.graph.names[place]}: ${shown(this.at(this.time)[place])}`;
    });
    canvas.addEventListener("pointerleave", () => ($("#agent").textContent = ""));
  }

  // The controls as the state has them.
  fill() {
    const { state } = this;
    const { uses, formula } = MODELS[state.model];
    for (const [name, { max, min }] of Object.entries(SLIDERS)) {
      const row = $(`[data-slider=${name}]`), [slider, number] = [row.querySelector("[type=range]"), row.querySelector("[type=number]")];
      slider.value = number.value = state[name];
      slider.style.setProperty("--share", (state[name] - min) / (max - min));
      const acts = name === "n" ? GRAPHS[state.graph]?.sized : name === "T" || uses.includes(name);
      row.classList.toggle("idle", !acts);
      slider.disabled = number.disabled = !acts;
    }
    $("#from").disabled = !uses.includes("b");
    for (const radio of document.querySelectorAll("[name=sign]")) {
      radio.checked = Number(radio.value) === state.sign;
      radio.disabled = !uses.includes("sign");
    }
    $("#graph").value = state.graph;
    $("#model").value = state.model;
    $("#from").value = state.from;
    $("#seed").value = state.seed;
    $("#formula").textContent = formula;
    $("#time").max = state.T;
    if (state.graph === "own" && document.activeElement !== $("#edges")) $("#edges").value = state.edges;
  }

  play(on) {
    this.playing = on;
    if (on) {
      this.clock = this.time >= this.state.T ? 0 : undefined;
      this.state.t = null;
    } else this.state.t = this.time;
    this.playLabel();
    this.settle();
  }

  pause(time) {
    this.time = time;
    this.play(false);
    this.show();
  }

  playLabel() {
    $("#play").textContent = this.playing ? "Pause" : "Play";
  }

  async share() {
    this.settled();
    const say = (text) => ($("#shared").textContent = text);
    try {
      await navigator.clipboard.writeText(location.href);
      say("The address is copied.");
    } catch {
      say("The address bar has this figure: copy it there.");
    }
  }

  // An edge list of the reader's.
  own(text, where) {
    this.guard(() => {
      let graph;
      try {
        graph = readEdges(text);
      } catch (error) {
        throw new Error(`The graph in ${where} cannot be read. ${error.message}`);
      }
      this.problem("");
      $("#edges").value = edgeText(graph);
      this.set({ graph: "own", edges: edgeText(graph) });
      this.graphChanged();
    });
  }

  async file(file) {
    if (!file) return;
    if (file.size > 1e6) return this.problem(`${file.name} has over a megabyte: an edge list of at most ${MOST_EDGES} edges is needed.`);
    this.own(await file.text(), `the file ${file.name}`);
  }

  drops() {
    addEventListener("dragover", (event) => {
      event.preventDefault();
      document.body.classList.add("dropping");
    });
    addEventListener("dragleave", () => document.body.classList.remove("dropping"));
    addEventListener("drop", (event) => {
      event.preventDefault();
      document.body.classList.remove("dropping");
      const file = event.dataTransfer.files[0];
      if (file) this.file(file);
      else this.own(event.dataTransfer.getData("text/plain"), "the dropped text");
    });
  }

  downloads() {
    const tables = {
      network: () => {
        const x = this.at(this.time);
        return csv([["agent", "opinion", "time"], ...this.graph.names.map((name, i) => [name, x[i], this.time])]);
      },
      opinions: () => csv([["time", ...this.graph.names], ...this.opinions.map((x, k) => [this.times[k], ...x])]),
      bifurcation: () => this.charts.bifurcation.csv(),
      energy: () => this.charts.energy.csv(),
      rank: () => this.charts.rank.csv(),
    };
    for (const [name, table] of Object.entries(tables)) downloadButtons(name, this.charts[name] || this.network, table);
  }
}

// SVG, PNG and CSV of a view.
function downloadButtons(name, picture, table) {
  const title = $(`#${name} h2, #${name} h3`).textContent;
  const actions = {
    SVG: () => download(`${name}.svg`, "image/svg+xml", picture.svg()),
    PNG: async () => {
      const svg = picture.svg(), [width, height] = ["width", "height"].map((side) => Number(svg.match(`${side}="([\\d.]+)"`)[1]));
      download(`${name}.png`, "image/png", await rasterise(svg, width, height));
    },
    CSV: () => download(`${name}.csv`, "text/csv", table()),
  };
  const buttons = Object.entries(actions).map(([kind, action]) => {
    const button = make("button", { type: "button", "aria-label": `Download ${title.toLowerCase()} as ${kind}` }, kind);
    button.addEventListener("click", action);
    return button;
  });
  $(`#${name} .downloads`).append(...buttons);
}
