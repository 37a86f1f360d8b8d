// Dormand and Prince's method of order five with adaptive steps, and the continuous extension of order four, as in
// Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I.

const A = [
  [1 / 5],
  [3 / 40, 9 / 40],
  [44 / 45, -56 / 15, 32 / 9],
  [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
  [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
  [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
];
const ERROR = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40];
const DENSE = [
  -12715105075 / 11282082432, 0, 87487479700 / 32700410799, -10690763975 / 1880347072, 701980252875 / 199316789632,
  -1453857185 / 822651844, 69997945 / 29380423,
];
const MOST_STEPS = 20000;

// States at `times` (ascending, from 0) of x' = field(x): one Float64Array each. `field(x, out)` writes to `out`.
function solve(field, start, times, tol = 1e-8) {
  const size = start.length;
  const k = Array.from({ length: 7 }, () => new Float64Array(size));
  const zero = new Float64Array(size), saved = [];
  let x = Float64Array.from(start), next = new Float64Array(size), stage = new Float64Array(size);
  const end = times[times.length - 1];
  let t = 0, place = 0, h = Math.min(end, 0.01), steps = 0;
  field(x, k[0]);
  while (place < times.length && times[place] <= 0) saved[place++] = Float64Array.from(x);
  while (place < times.length) {
    if (++steps > MOST_STEPS) throw new Error("the step size became too small: lower the attention or the depth");
    h = Math.min(h, end - t);
    for (let s = 0; s < 6; s++) {
      const to = s === 5 ? next : stage;
      combine(x, k, A[s], h, to);
      field(to, k[s + 1]);
    }
    // root mean square of the error over tol (1 + |x|)
    combine(zero, k, ERROR, h, stage);
    let square = 0;
    for (let i = 0; i < size; i++) {
      const part = stage[i] / (1 + Math.max(Math.abs(x[i]), Math.abs(next[i])));
      square += part * part;
    }
    const error = Math.sqrt(square / size) / tol;
    if (!Number.isFinite(error)) throw new Error("the opinions grow without bound: raise the damping");
    const factor = Math.min(5, Math.max(0.2, 0.9 * (error || 1e-10) ** -0.2));
    if (error <= 1) {
      for (; place < times.length && times[place] <= t + h * (1 + 1e-12); place++) {
        saved[place] = between(x, next, k, h, Math.min(1, (times[place] - t) / h));
      }
      t += h;
      [x, next] = [next, x];
      [k[0], k[6]] = [k[6], k[0]];  // the last stage is the first of the next step
    }
    h *= factor;
  }
  return saved;
}

// out = x + h Σ_j row_j k_j
function combine(x, k, row, h, out) {
  out.set(x);
  for (let j = 0; j < row.length; j++) {
    const factor = h * row[j], slope = k[j];
    if (factor) for (let i = 0; i < out.length; i++) out[i] += factor * slope[i];
  }
}

// The state at time theta h after x, 0 <= theta <= 1.
function between(x, next, k, h, theta) {
  const state = new Float64Array(x.length), rest = 1 - theta, zero = new Float64Array(x.length);
  combine(zero, k, DENSE, h, state);
  for (let i = 0; i < x.length; i++) {
    const difference = next[i] - x[i];
    const bend = h * k[0][i] - difference;
    state[i] = x[i] + theta * (difference + rest * (bend + theta * (difference - h * k[6][i] - bend + rest * state[i])));
  }
  return state;
}
