// The models, formula above the line, as in the package's `dynamics`. A state X is [n, o], row by row: what each of n
// agents thinks of each of o options, which do not mix. A is the communication matrix of graphs.js.

const OPTIONS = 4;

// out = A X
function product({ n, start, column, value }, x, out) {
  const width = out.length / n;
  out.fill(0);
  for (let i = 0; i < n; i++) {
    for (let e = start[i]; e < start[i + 1]; e++) {
      const a = value[e], from = width * column[e], to = width * i;
      for (let j = 0; j < width; j++) out[to + j] += a * x[from + j];
    }
  }
  return out;
}

// The input B: the same for all, or a share of the initial opinions.
const input = ({ b, from }, x0) => x0.map((value) => (from === "initial" ? b * value : b));

// A model: its formula, which parameters act in it, its initial state from the initial opinions, and its field.
const MODELS = {
  opinions: {
    label: "Nonlinear opinions",
    formula: "Ẋ = −d X + tanh(u ((α − 1) X + (A + I) X)) + B",
    uses: ["u", "d", "a", "b", "sign"],
    field(matrix, { u, d, a }, B) {
      const heard = new Float64Array(B.length);
      return (x, out) => {
        product(matrix, x, heard);
        // −d X + tanh(u ((α − 1) X + (A + I) X)) + B; options do not mix, so that A_o = 0
        for (let i = 0; i < x.length; i++) out[i] = -d * x[i] + Math.tanh(u * (a * x[i] + heard[i])) + B[i];
      };
    },
  },
  consensus: {
    label: "Linear consensus",
    formula: "Ẋ = A X − D X,  Dᵢᵢ = Σ |aᵢₖ|",
    uses: ["sign"],
    field(matrix, _, B) {
      const width = B.length / matrix.n;
      const degree = Float64Array.from(matrix.total, (total) => (total > 0 ? 1 : 0));  // of rows divided by their sums
      return (x, out) => {
        product(matrix, x, out);
        // A X − D X
        for (let i = 0; i < x.length; i++) out[i] -= degree[(i / width) | 0] * x[i];
      };
    },
  },
  grand: {
    label: "GRAND",
    formula: "Ẋ = (A(X₀) − I) X + B,  A(X₀) = softmax(X₀ X₀ᵀ / √o) on the edges and loops",
    uses: ["b"],
    field(matrix, _, B, x0) {
      const attention = attended(matrix, x0);
      return (x, out) => {
        product(attention, x, out);
        // A X − X + B
        for (let i = 0; i < x.length; i++) out[i] += B[i] - x[i];
      };
    },
  },
  kuramoto: {
    label: "Kuramoto",
    formula: "Ẋᵢ = bᵢ + u Σ aᵢₖ sin(Xₖ − Xᵢ),  X(0) = π/2 X₀",
    uses: ["u", "b", "sign"],
    initial: (x0) => x0.map((value) => 0.5 * Math.PI * value),
    field(matrix, { u }, B) {
      const [sine, cosine, p, q] = Array.from({ length: 4 }, () => new Float64Array(B.length));
      return (x, out) => {
        for (let i = 0; i < x.length; i++) {
          sine[i] = Math.sin(x[i]);
          cosine[i] = Math.cos(x[i]);
        }
        product(matrix, sine, p);
        product(matrix, cosine, q);
        // ω + K (cos X ⊙ A sin X − sin X ⊙ A cos X), with ω = B and K = u
        for (let i = 0; i < x.length; i++) out[i] = B[i] + u * (cosine[i] * p[i] - sine[i] * q[i]);
      };
    },
  },
  graphcon: {
    label: "GraphCON",
    formula: "Ẍ = A X − X − d Ẋ,  X(0) = Ẋ(0) = X₀",
    uses: ["d", "sign"],
    // positions, then velocities
    initial: (x0) => Float64Array.from([...x0, ...x0]),
    field(matrix, { d }, B) {
      const size = B.length, heard = new Float64Array(size);
      return (x, out) => {
        product(matrix, x, heard);
        for (let i = 0; i < size; i++) {
          // Y' = V,  V' = A Y − γ Y − α V with γ = 1 and α = d
          out[i] = x[size + i];
          out[size + i] = heard[i] - x[i] - d * x[size + i];
        }
      };
    },
  },
};

// GRAND's attention: softmax over neighbours and the agent itself of scores <x_i, x_k> / √o.
function attended({ n, start, column }, x0) {
  const from = new Int32Array(n + 1), columns = [], values = [];
  const score = (i, k) => {
    let sum = 0;
    for (let j = 0; j < OPTIONS; j++) sum += x0[OPTIONS * i + j] * x0[OPTIONS * k + j];
    return sum / Math.sqrt(OPTIONS);
  };
  for (let i = 0; i < n; i++) {
    const heard = [i, ...column.slice(start[i], start[i + 1])];
    const weights = heard.map((k) => Math.exp(score(i, k)));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    heard.forEach((k, place) => {
      columns.push(k);
      values.push(weights[place] / total);
    });
    from[i + 1] = columns.length;
  }
  return { n, start: from, column: Int32Array.from(columns), value: Float64Array.from(values) };
}

// Initial opinions, uniform in [−1, 1].
function initialOpinions(n, seed) {
  const draw = random(seed + 7919);
  return Float64Array.from({ length: n * OPTIONS }, () => 2 * draw() - 1);
}

// The opinions on the first option alone.
const firstOption = (x) => x.filter((_, i) => i % OPTIONS === 0);

// States [n, OPTIONS], or of the first option [n], at the given times, from initial opinions [n, OPTIONS].
function trajectory(model, matrix, parameters, x0, times, first = false) {
  const { field, initial } = MODELS[model];
  const start = first ? firstOption(x0) : x0;
  const states = solve(field(matrix, parameters, input(parameters, start), x0), initial ? initial(start) : start, times);
  return states.map((state) => state.subarray(0, start.length));
}

// The eigenvalue of A with the largest real part, and its eigenvectors: v on the right; w on the left, of absolute sum
// one, with <w, v> = 1. A is similar to a symmetric matrix, so that both are real.
function leading(matrix) {
  const { n, start, column, value, total } = matrix;
  // A graph whose signs are balanced splits into camps that agree inside: A v = v with v = ±1.
  const v = camps(matrix);
  let eigenvalue = 1;
  if (!v.balanced) {
    const draw = random(3), heard = new Float64Array(n);
    for (let i = 0; i < n; i++) v[i] = draw() - 0.5;
    for (let round = 0, change = 1; round < 20000 && change > 1e-15; round++) {
      // power iteration with A + I, whose eigenvalues are in [0, 2]; lengths in the norm in which A is symmetric
      product(matrix, v, heard);
      let length = 0, rayleigh = 0;
      for (let i = 0; i < n; i++) rayleigh += total[i] * v[i] * heard[i];
      for (let i = 0; i < n; i++) length += total[i] * (v[i] + heard[i]) ** 2;
      change = Math.abs(rayleigh - eigenvalue);
      eigenvalue = rayleigh;
      for (let i = 0; i < n; i++) v[i] = (v[i] + heard[i]) / Math.sqrt(length);
    }
  }
  // w = D v: the left eigenvector of D^-1 W with W symmetric
  const w = v.map((value, i) => total[i] * value);
  const sum = w.reduce((all, value) => all + Math.abs(value), 0) || 1;
  const product_ = w.reduce((all, value, i) => all + value * v[i], 0) / sum || 1;
  return { eigenvalue, w: w.map((value) => value / sum), v: v.map((value) => value / product_) };
}

function camps({ n, start, column, value }) {
  const camp = new Float64Array(n);
  camp.balanced = true;
  for (let first = 0; first < n; first++) {
    if (camp[first]) continue;
    camp[first] = 1;
    for (const queue = [first]; queue.length; ) {
      const i = queue.pop();
      for (let e = start[i]; e < start[i + 1]; e++) {
        const expected = Math.sign(value[e]) * camp[i];
        if (!camp[column[e]]) {
          camp[column[e]] = expected;
          queue.push(column[e]);
        } else if (camp[column[e]] !== expected) camp.balanced = false;
      }
    }
  }
  return camp;
}

// u* = d / (α − 1 + λ), λ = (λ_a + 1)(λ_o + 1), with λ_o = 0 for options that do not mix
const criticalAttention = ({ d, a }, { eigenvalue }) => d / (a + eigenvalue);

// Equilibria of the one-dimensional equation z' = −d z + tanh(u m z) + b, m = α − 1 + λ, as pieces of one stability:
// solved for u = atanh(d z − b) / (m z), and stable where u m sech² = u m (1 − (d z − b)²) <= d.
function reducedDiagram({ d, a }, { eigenvalue }, b, longest) {
  const m = a + eigenvalue, pieces = [];
  const neutral = b === 0;
  if (neutral) {
    const critical = d / m;
    pieces.push({ stable: true, u: [0, Math.min(critical, longest)], z: [0, 0] });
    if (critical < longest) pieces.push({ stable: false, u: [critical, longest], z: [0, 0] });
  }
  for (const side of [1, -1]) {
    // |tanh| < 1: z between (b − 1)/d and (b + 1)/d; a fine mesh towards the ends, where u grows without bound
    const end = (b + side) / d, from = neutral ? 0 : side * b > 0 ? b / d : 0;
    let piece = null;
    for (let k = neutral ? 1 : 0; k <= 400; k++) {
      const z = from + (end - from) * (1 - (1 - k / 401) ** 3);
      const u = k === 0 ? (side * b > 0 ? 0 : NaN) : Math.atanh(d * z - b) / (m * z);
      if (!(u >= 0) || u > longest) continue;
      const stable = u * m * (1 - (d * z - b) ** 2) <= d * (1 + 1e-12);
      if (!piece || piece.stable !== stable) {
        const last = piece && [piece.u.at(-1), piece.z.at(-1)];
        pieces.push((piece = { stable, u: last ? [last[0]] : neutral && d / m < longest ? [d / m] : [], z: last ? [last[1]] : neutral && d / m < longest ? [0] : [] }));
      }
      piece.u.push(u);
      piece.z.push(z);
    }
  }
  return pieces;
}

// Stable equilibria [u, z] of the whole network for one option, at each of `attentions`: followed downwards from a strong
// opinion along v to either side, and both ways from the opinions `now`, by damped fixed-point iteration (Euler steps of
// size 1/(2d)).
function networkEquilibria(matrix, { u: here, d, a }, lead, B, attentions, now) {
  const n = matrix.n, found = [], heard = new Float64Array(n);
  const follow = (x, path) => {
    for (const u of path) {
      for (let round = 0, change = 1; round < 400 && change > 1e-7; round++) {
        product(matrix, x, heard);
        change = 0;
        for (let i = 0; i < n; i++) {
          const step = 0.5 * ((Math.tanh(u * (a * x[i] + heard[i])) + B[i]) / d - x[i]);
          x[i] += step;
          change = Math.max(change, Math.abs(step));
        }
      }
      found.push([u, x.reduce((sum, value, i) => sum + lead.w[i] * value, 0)]);
    }
  };
  const up = [...attentions].sort((p, q) => p - q), down = [...up].reverse();
  for (const side of [1, -1]) follow(lead.v.map((value) => (2 * side * value) / d), down);
  if (now) {
    follow(Float64Array.from(now), up.filter((u) => u >= here));
    follow(Float64Array.from(now), down.filter((u) => u < here));
  }
  return found;
}
