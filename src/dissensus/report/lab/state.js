// The whole state of the laboratory in the address, #name=value&..., so that a figure can be shared. Defaults are left
// out.

const SLIDERS = {
  u: { label: "Attention u", min: 0, max: 3, step: 0.01, start: 0.75 },
  d: { label: "Damping d", min: 0.1, max: 3, step: 0.05, start: 1 },
  a: { label: "Self-reinforcement α", min: 0, max: 3, step: 0.05, start: 1 },
  b: { label: "Input b", min: -1, max: 1, step: 0.01, start: 0 },
  T: { label: "Depth T (time)", min: 1, max: 200, step: 1, start: 40 },
  n: { label: "Agents", min: 4, max: 300, step: 1, start: 60 },
};
const CHOICES = {
  graph: [...Object.keys(GRAPHS), "own"],
  model: Object.keys(MODELS),
  from: ["same", "initial"],
  sign: ["1", "-1"],
};
const DEFAULTS = {
  ...Object.fromEntries(Object.entries(SLIDERS).map(([name, { start }]) => [name, start])),
  graph: "karate", model: "opinions", from: "same", sign: 1, seed: 3, edges: "", t: null,
};

// A state from an address, and what was wrong with it, in sentences.
function readState(hash) {
  const state = { ...DEFAULTS }, problems = [];
  let entries;
  try {
    entries = hash.replace(/^#/, "").split("&").filter(Boolean).map((part) => {
      const [name, ...rest] = part.split("=");
      return [decodeURIComponent(name), decodeURIComponent(rest.join("=").replaceAll("+", " "))];
    });
  } catch {
    return { state, problems: ["The address is damaged, so defaults are used: copy the whole of it."] };
  }
  for (const [name, text] of entries) {
    const wrong = (cure) => problems.push(`The address says ${clipped(name)} = “${clipped(text)}”: ${cure}. The default is used.`);
    const number = text.trim() === "" ? NaN : Number(text);
    if (Object.hasOwn(SLIDERS, name)) {
      const { min, max } = SLIDERS[name];
      const whole = name !== "n" || Number.isInteger(number);
      if (number >= min && number <= max && whole) state[name] = number;
      else wrong(`give a number from ${min} to ${max}`);
    } else if (Object.hasOwn(CHOICES, name)) {
      if (CHOICES[name].includes(text)) state[name] = name === "sign" ? number : text;
      else wrong(`give ${CHOICES[name].slice(0, -1).join(", ")} or ${CHOICES[name].at(-1)}`);
    } else if (name === "seed") {
      if (Number.isInteger(number) && number >= 0 && number < 2 ** 31) state.seed = number;
      else wrong("give a whole number from 0 on");
    } else if (name === "t") {
      if (number >= 0) state.t = number;
      else wrong("give a time from 0 on");
    } else if (name === "edges") state.edges = text;
    else problems.push(`The address has “${clipped(name)}”, which means nothing here: it is ignored.`);
  }
  if (state.graph === "own") {
    try {
      readEdges(state.edges);
    } catch (error) {
      problems.push(`The edge list in the address cannot be read. ${error.message} The karate club is shown.`);
      Object.assign(state, { graph: DEFAULTS.graph, edges: "" });
    }
  }
  if (state.t !== null) state.t = Math.min(state.t, state.T);
  return { state, problems };
}

function writeState(state) {
  const parts = Object.keys(DEFAULTS)
    .filter((name) => state[name] !== DEFAULTS[name] && (name !== "edges" || state.graph === "own"))
    .map((name) => `${name}=${encodeURIComponent(name === "t" ? +state.t.toFixed(2) : state[name])}`);
  return parts.length ? `#${parts.join("&")}` : "#";
}
