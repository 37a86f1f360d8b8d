// Graphs: made from a seed, or read from an edge list. A graph is {names, edges, layout}: an undirected edge is
// [i, k, weight] with i < k, once.

const MOST_AGENTS = 1000;
const MOST_EDGES = 10000;
// Zachary's karate club (1977): the neighbours of each member among those that come later.
const KARATE = [
  "1 2 3 4 5 6 7 8 10 11 12 13 17 19 21 31", "2 3 7 13 17 19 21 30", "3 7 8 9 13 27 28 32", "7 12 13", "6 10", "6 10 16",
  "16", "", "30 32 33", "33", "", "", "", "33", "32 33", "32 33", "", "", "32 33", "33", "32 33", "", "32 33",
  "25 27 29 32 33", "25 27 31", "31", "29 33", "33", "31 33", "32 33", "32 33", "32 33", "33", "",
];

// Numbers in [0, 1) that depend on the seed alone (Mulberry32).
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let z = Math.imul(state ^ (state >>> 15), state | 1);
    z = (z + Math.imul(z ^ (z >>> 7), z | 61)) ^ z;
    return ((z ^ (z >>> 14)) >>> 0) / 4294967296;
  };
}

const circle = (n) => Array.from({ length: n }, (_, i) => [Math.sin((2 * Math.PI * i) / n), -Math.cos((2 * Math.PI * i) / n)]);

const GRAPHS = {
  karate: { label: "Karate club", sized: false, make: () => ({ n: 34, pairs: KARATE.flatMap((row, i) => row.split(" ").filter(Boolean).map((k) => [i, +k])) }) },
  ring: {
    label: "Ring", sized: true,
    make: (n) => ({ n, pairs: Array.from({ length: n }, (_, i) => [i, (i + 1) % n]), layout: circle(n) }),
  },
  grid: {
    label: "Grid", sized: true,
    make: (n) => {
      const width = Math.ceil(Math.sqrt(n)), pairs = [];
      for (let i = 0; i < n; i++) {
        if ((i + 1) % width && i + 1 < n) pairs.push([i, i + 1]);
        if (i + width < n) pairs.push([i, i + width]);
      }
      return { n, pairs, layout: Array.from({ length: n }, (_, i) => [i % width, Math.floor(i / width)]) };
    },
  },
  tree: {
    label: "Binary tree", sized: true,
    make: (n) => {
      const pairs = Array.from({ length: n - 1 }, (_, i) => [Math.floor(i / 2), i + 1]);
      const depth = (i) => Math.floor(Math.log2(i + 1));
      // Around the root, every generation on a circle of its own.
      const layout = Array.from({ length: n }, (_, i) => {
        const generation = depth(i), angle = (2 * Math.PI * (i + 1.5 - 2 ** generation)) / 2 ** generation;
        return [generation * Math.sin(angle), -generation * Math.cos(angle)];
      });
      return { n, pairs, layout };
    },
  },
  random: { label: "Random", sized: true, make: (n, draw) => ({ n, pairs: joined(n, draw, () => Math.min(1, 5 / n)) }) },
  blocks: {
    label: "Two blocks", sized: true,
    make: (n, draw) => ({ n, pairs: joined(n, draw, (i, k) => Math.min(1, (2 * i < n === 2 * k < n ? 9 : 0.6) / n)) }),
  },
};

// Every pair with its probability, and a path through all, so that nobody is left alone.
function joined(n, draw, probability) {
  const pairs = [];
  for (let i = 0; i < n; i++) for (let k = i + 1; k < n; k++) if (draw() < probability(i, k) || k === i + 1) pairs.push([i, k]);
  return pairs;
}

function makeGraph({ graph, n, seed, edges }) {
  if (graph === "own") return readEdges(edges);
  const { sized, make } = GRAPHS[graph];
  const { n: agents, pairs, layout } = make(sized ? n : 0, random(seed));
  return finished(Array.from({ length: agents }, (_, i) => String(i)), pairs.map(([i, k]) => [Math.min(i, k), Math.max(i, k), 1]), layout);
}

function finished(names, edges, layout) {
  const distinct = new Map(edges.map((edge) => [edge[0] * names.length + edge[1], edge]));
  const list = [...distinct.values()];
  return { names, edges: list, layout: layout || springs(names.length, list) };
}

// A graph from text: a line an edge, its two ends and perhaps a weight, apart by commas, semicolons, tabs or blanks.
// Of several lines on the same pair the last counts. A first line such as "source, target" is a header; one that starts
// with # or % is a comment.
function readEdges(text) {
  const index = new Map(), edges = [];
  const place = (name) => index.get(name) ?? (index.set(name, index.size), index.size - 1);
  text.split(/\r\n|\r|\n/).forEach((line, number) => {
    const bare = line.replace(/^\uFEFF/, "").trim();
    if (!bare || /^[#%]/.test(bare)) return;
    const parts = (/[,;\t]/.test(bare) ? bare.split(/[,;\t]/) : bare.split(/\s+/)).map((part) => part.trim().replace(/^"(.*)"$/, "$1"));
    if (number === 0 && /^(source|from|target|to|node.?\d)$/i.test(parts[0]) && /^(source|from|target|to|node.?\d)$/i.test(parts[1])) return;
    const where = `Line ${number + 1} (“${clipped(bare)}”)`;
    if (parts.length < 2 || parts.length > 3 || !parts[0] || !parts[1]) {
      throw new Error(`${where} is no edge: write two names and, if you like, a weight, such as “ann, bob, 0.5”.`);
    }
    const weight = parts[2] === undefined || parts[2] === "" ? 1 : Number(parts[2]);
    if (!Number.isFinite(weight)) throw new Error(`${where} has the weight “${clipped(parts[2])}”: write a number, or leave it out.`);
    const [i, k] = [place(parts[0]), place(parts[1])];
    if (i !== k && weight !== 0) edges.push([Math.min(i, k), Math.max(i, k), weight]);
    if (index.size > MOST_AGENTS || edges.length > MOST_EDGES) {
      throw new Error(`The graph has more than ${MOST_AGENTS} agents or ${MOST_EDGES} edges: give a part of it, or run “dissensus simulate”.`);
    }
  });
  if (!edges.length) throw new Error("There is no edge in it: write a line an edge, two names each, such as “ann, bob”.");
  return finished([...index.keys()], edges);
}

const clipped = (text) => (text.length > 40 ? `${text.slice(0, 39)}…` : text);
const quoted = (name) => (/^[#%"]/.test(name) ? `"${name}"` : name);  // it is no comment
const edgeText = ({ names, edges }) => edges.map(([i, k, w]) => `${quoted(names[i])},${names[k]}${w === 1 ? "" : `,${w}`}`).join("\n");

// Where to draw the agents: all push each other away, neighbours pull together (Fruchterman and Reingold, 1991).
function springs(n, edges) {
  const draw = random(1), length = 1.6 / Math.sqrt(n);
  const start = circle(n).flat(), at = Float64Array.from(start, (value) => value + 0.1 * draw()), push = new Float64Array(2 * n);
  const rounds = n > 400 ? 60 : n > 150 ? 150 : 300;
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < 2 * n; i++) push[i] = -0.15 * at[i];  // a weak pull to the middle holds parts together
    for (let i = 0; i < n; i++) {
      const x = at[2 * i], y = at[2 * i + 1];
      let px = 0, py = 0;
      for (let k = 0; k < i; k++) {
        const dx = x - at[2 * k], dy = y - at[2 * k + 1], force = (length * length) / (dx * dx + dy * dy + 1e-12);
        px += force * dx;
        py += force * dy;
        push[2 * k] -= force * dx;
        push[2 * k + 1] -= force * dy;
      }
      push[2 * i] += px;
      push[2 * i + 1] += py;
    }
    for (const [i, k] of edges) {
      const dx = at[2 * i] - at[2 * k], dy = at[2 * i + 1] - at[2 * k + 1], force = Math.hypot(dx, dy) / length;
      push[2 * i] -= force * dx;
      push[2 * i + 1] -= force * dy;
      push[2 * k] += force * dx;
      push[2 * k + 1] += force * dy;
    }
    const most = 0.15 * (1 - round / rounds);
    for (let i = 0; i < n; i++) {
      const size = Math.hypot(push[2 * i], push[2 * i + 1]) || 1, share = Math.min(size, most) / size;
      at[2 * i] += share * push[2 * i];
      at[2 * i + 1] += share * push[2 * i + 1];
    }
  }
  return Array.from({ length: n }, (_, i) => [at[2 * i], at[2 * i + 1]]);
}

// The communication matrix A by rows: each agent's weights divided by the sum of their absolute values, times the sign
// of the coupling. Rows without entries stay empty.
function communication({ names, edges }, sign) {
  const n = names.length;
  const start = new Int32Array(n + 1), total = new Float64Array(n);
  for (const [i, k, w] of edges) {
    start[i + 1]++;
    start[k + 1]++;
    total[i] += Math.abs(w);
    total[k] += Math.abs(w);
  }
  for (let i = 0; i < n; i++) start[i + 1] += start[i];
  const next = start.slice(), column = new Int32Array(start[n]), value = new Float64Array(start[n]);
  for (const [i, k, w] of edges) {
    column[next[i]] = k;
    value[next[i]++] = (sign * w) / total[i];
    column[next[k]] = i;
    value[next[k]++] = (sign * w) / total[k];
  }
  return { n, start, column, value, total };
}
