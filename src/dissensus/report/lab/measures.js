// What is left of a state at depth, as in the package's `measure`.

// E(X) / |X|² with E(X) = 1/n Σ_i Σ_{k in N(i)} |x_i − x_k|²
function relativeEnergy(x, { n, start, column }) {
  let energy = 0, square = 0;
  for (let i = 0; i < n; i++) {
    for (let e = start[i]; e < start[i + 1]; e++) {
      for (let j = 0; j < OPTIONS; j++) energy += (x[OPTIONS * i + j] - x[OPTIONS * column[e] + j]) ** 2;
    }
  }
  for (const value of x) square += value * value;
  return square > 0 ? energy / n / square : 0;
}

// exp(−Σ p_k log p_k), p_k = σ_k / Σ σ_l, from the eigenvalues σ² of X'X
function effectiveRank(x) {
  const gram = Array.from({ length: OPTIONS }, () => new Float64Array(OPTIONS));
  for (let i = 0; i < x.length; i += OPTIONS) {
    for (let j = 0; j < OPTIONS; j++) for (let l = 0; l < OPTIONS; l++) gram[j][l] += x[i + j] * x[i + l];
  }
  const values = eigenvalues(gram).map((value) => Math.sqrt(Math.max(0, value)));
  const total = values.reduce((sum, value) => sum + value, 0);
  if (!total) return 0;
  return Math.exp(values.reduce((sum, value) => (value > 0 ? sum - (value / total) * Math.log(value / total) : sum), 0));
}

// Of a small symmetric matrix, which is overwritten: Jacobi's rotations.
function eigenvalues(m) {
  const size = m.length;
  for (let sweep = 0, rotated = true; rotated && sweep < 30; sweep++) {
    rotated = false;
    for (let p = 0; p < size; p++) {
      for (let q = p + 1; q < size; q++) {
        if (m[p][q] ** 2 <= 1e-32 * Math.abs(m[p][p] * m[q][q])) continue;
        rotated = true;
        const angle = 0.5 * Math.atan2(2 * m[p][q], m[q][q] - m[p][p]), c = Math.cos(angle), s = Math.sin(angle);
        for (let k = 0; k < size; k++) [m[k][p], m[k][q]] = [c * m[k][p] - s * m[k][q], s * m[k][p] + c * m[k][q]];
        for (let k = 0; k < size; k++) [m[p][k], m[q][k]] = [c * m[p][k] - s * m[q][k], s * m[p][k] + c * m[q][k]];
      }
    }
  }
  return m.map((row, i) => row[i]);
}

// What the opinions on one option have come to: {verdict, favour, against, mean, spread}.
function outcome(opinions, largest, fades) {
  let low = Infinity, high = -Infinity, sum = 0, favour = 0;
  for (const x of opinions) {
    low = Math.min(low, x);
    high = Math.max(high, x);
    sum += x;
    if (x > 0) favour++;
  }
  const tol = 0.01 * largest, spread = high - low;
  const neutral = Math.max(-low, high) <= tol;
  const verdict = neutral ? "neutral consensus" : fades ? "fading to neutral consensus" : spread <= tol ? "consensus" : "dissensus";
  return { verdict, favour, against: opinions.length - favour, mean: sum / opinions.length, spread };
}
