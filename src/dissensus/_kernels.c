/* Sparse products in float32, each with what is done to its rows while they are in registers, and linear combinations
 * of states, which is all that a Runge-Kutta method does between them.
 *
 * A matrix A comes as CSR: entries pointers[i] .. pointers[i + 1] - 1 are those of row i. Dense arrays are contiguous,
 * [rows, channels]. A product does not depend on the number of threads: every row is made by one, entry by entry.
 * _native.py declares these functions to Python, and says when they serve.
 */

#include <stdint.h>
#include <string.h>

/* Raised with every change of what these functions take. */
const int dissensus_interface = 1;

typedef int64_t count;

/* The loops are compiled for several processors, and the one at hand chosen when the library is loaded. */
#if defined(__x86_64__)
#define EVERY_CPU __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define EVERY_CPU
#endif
#define INLINE static inline __attribute__((always_inline))

/* Numbers in a register of the widest kind, registers for the columns of a row, and how many entries ahead the rows are
 * fetched that they are about. */
enum { LANES = 16, WIDEST = 8, AHEAD = 4 };

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t bits __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef float half __attribute__((vector_size(2 * LANES)));
typedef float quarter __attribute__((vector_size(LANES)));

INLINE lanes all(float a) { return (lanes){} + a; }

/* n numbers, and zeros after them; n is the constant LANES but for the last channels of a row. */
INLINE lanes load(const float *from, count n)
{
    lanes v = {};
    memcpy(&v, from, sizeof(float) * n);
    return v;
}

INLINE void store(float *to, lanes v, count n) { memcpy(to, &v, sizeof(float) * n); }

INLINE float sum(lanes v)
{
    half a = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7)
        + __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
    quarter b = __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
    return (b[0] + b[2]) + (b[1] + b[3]);
}

INLINE lanes least(lanes a, lanes b)
{
    bits first = a < b;
    return (lanes)(((bits)a & first) | ((bits)b & ~first));
}

INLINE lanes most(lanes a, lanes b)
{
    bits first = a > b;
    return (lanes)(((bits)a & first) | ((bits)b & ~first));
}

/* 1 / (1 + e^-z), with e^x = 2^n e^f for the whole number n nearest to x / ln 2 and a polynomial for e^f. */
INLINE lanes sigmoid(lanes z)
{
    lanes x = most(all(-87.0f), least(all(88.0f), -z)); /* not a number stays what it is */
    lanes n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
    lanes f = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    lanes p = all(1.9875691500e-4f);
    p = p * f + 1.3981999507e-3f;
    p = p * f + 8.3334519073e-3f;
    p = p * f + 4.1665795894e-2f;
    p = p * f + 1.6666665459e-1f;
    p = p * f + 5.0000001201e-1f;
    p = p * f * f + f + 1.0f;
    lanes power = (lanes)((__builtin_convertvector(n, bits) + 127) << 23);
    return 1.0f / (1.0f + p * power);
}

/* What a call is about; a pointer may be NULL where its formula says so. It is passed as a copy, which no store can
 * change. */
typedef struct {
    count channels;
    const int32_t *pointers, *columns;
    const float *values, *x;
    float scale;
    const float *add;
    float *out;
    const float *y;
    const int32_t *order;
    float *by_values;
    const float *state, *source;
    float own, outer, damping;
    float *value;
    int count_terms;
    const float *const *terms, *weights;
    float *next;
} task;

/* Where the row begins that entry e is about; that of an entry further on is sent for. */
INLINE const float *row_of(const task t, count e, count end, count c, const int width)
{
    const float *later = t.x + t.columns[e + AHEAD < end ? e + AHEAD : e] * t.channels + c;
    for (int k = 0; k < width; k++)
        __builtin_prefetch(later + k * LANES);
    return t.x + t.columns[e] * t.channels + c;
}

/* Columns c .. c + width LANES - 1 of out = scale (A x + add), and by_values[order[e]] += scale <x_j, y_i> for entry e
 * at (i, j); without `add` or `by_values` the one or the other is left out. The last of the columns are only n. */
INLINE void product_block(const task t, count start, count stop, count c, const int width, count n)
{
    for (count i = start; i < stop; i++) {
        lanes total[WIDEST], y[WIDEST];
        count at = i * t.channels + c;
        for (int k = 0; k < width; k++) {
            total[k] = t.add ? load(t.add + at + k * LANES, n) : all(0.0f);
            if (t.by_values)
                y[k] = load(t.y + at + k * LANES, n);
        }
        for (count e = t.pointers[i]; e < t.pointers[i + 1]; e++) {
            const float *x = row_of(t, e, t.pointers[stop], c, width);
            lanes dot = all(0.0f);
            for (int k = 0; k < width; k++) {
                lanes part = load(x + k * LANES, n);
                total[k] += t.values[e] * part;
                if (t.by_values)
                    dot += part * y[k];
            }
            if (t.by_values)
                t.by_values[t.order[e]] += t.scale * sum(dot);
        }
        for (int k = 0; k < width; k++)
            store(t.out + at + k * LANES, t.scale * total[k], n);
    }
}

/* The same columns of out = sigmoid(A x + add + own state), of value = outer out + source - damping state, and of next
 * = sum_j weights[j] terms[j], where these are given; the last of the terms is out. */
INLINE void saturate_block(const task t, count start, count stop, count c, const int width, count n)
{
    for (count i = start; i < stop; i++) {
        lanes total[WIDEST];
        count at = i * t.channels + c;
        for (int k = 0; k < width; k++)
            total[k] = t.add ? load(t.add + at + k * LANES, n) : all(0.0f);
        for (count e = t.pointers[i]; e < t.pointers[i + 1]; e++) {
            const float *x = row_of(t, e, t.pointers[stop], c, width);
            for (int k = 0; k < width; k++)
                total[k] += t.values[e] * load(x + k * LANES, n);
        }
        for (int k = 0; k < width; k++, at += LANES) {
            lanes state = load(t.state + at, n);
            lanes saturated = sigmoid(total[k] + t.own * state);
            store(t.out + at, saturated, n);
            if (t.value)
                store(t.value + at, t.outer * saturated + load(t.source + at, n) - t.damping * state, n);
            if (t.next) {
                lanes next = all(0.0f); /* in the order of combine_block, so that both are the same to the bit */
                for (int j = 0; j < t.count_terms - 1; j++)
                    next += t.weights[j] * load(t.terms[j] + at, n);
                store(t.next + at, next + t.weights[t.count_terms - 1] * saturated, n);
            }
        }
    }
}

/* All columns of some rows, as many at once as registers hold. */
#define ALL_COLUMNS(block)                                                                                             \
    count c = 0;                                                                                                       \
    for (; t.channels - c >= WIDEST * LANES; c += WIDEST * LANES)                                                      \
        block(t, start, stop, c, WIDEST, LANES);                                                                       \
    switch ((t.channels - c) / LANES) {                                                                                \
    case 7: block(t, start, stop, c, 7, LANES); break;                                                                 \
    case 6: block(t, start, stop, c, 6, LANES); break;                                                                 \
    case 5: block(t, start, stop, c, 5, LANES); break;                                                                 \
    case 4: block(t, start, stop, c, 4, LANES); break;                                                                 \
    case 3: block(t, start, stop, c, 3, LANES); break;                                                                 \
    case 2: block(t, start, stop, c, 2, LANES); break;                                                                 \
    case 1: block(t, start, stop, c, 1, LANES); break;                                                                 \
    }                                                                                                                  \
    if (t.channels % LANES)                                                                                            \
        block(t, start, stop, t.channels / LANES * LANES, 1, t.channels % LANES);

EVERY_CPU static void product_rows(const task t, count start, count stop) { ALL_COLUMNS(product_block) }

EVERY_CPU static void saturate_rows(const task t, count start, count stop) { ALL_COLUMNS(saturate_block) }

/* The first row of one of so many parts with about the same number of rows and entries. A thread has the same part in
 * every call, and much of it in its own cache. */
static count part(count rows, const int32_t *pointers, count which, count parts)
{
    count wanted = (pointers[rows] + rows) * which / parts, low = 0, high = rows;
    while (low < high) {
        count middle = (low + high) / 2;
        if (pointers[middle] + middle < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Where one of so many equal parts of n numbers begins, at a cache line if the numbers do. */
static count share(count n, count which, count parts) { return which == parts ? n : n / LANES * which / parts * LANES; }

void dissensus_product(int threads, count rows, count channels, const int32_t *pointers, const int32_t *columns,
    const float *values, const float *x, float scale, const float *add, float *out, const float *y,
    const int32_t *order, float *by_values)
{
    const task t = { channels, pointers, columns, values, x, .scale = scale, .add = add, .out = out, .y = y,
        .order = order, .by_values = by_values };
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int i = 0; i < threads; i++)
        product_rows(t, part(rows, pointers, i, threads), part(rows, pointers, i + 1, threads));
}

void dissensus_saturate(int threads, count rows, count channels, const int32_t *pointers, const int32_t *columns,
    const float *values, const float *x, const float *add, float *out, const float *state, float own, float outer,
    float damping, const float *source, float *value, int count_terms, const float *const *terms, const float *weights,
    float *next)
{
    const task t = { channels, pointers, columns, values, x, .add = add, .out = out, .state = state, .own = own,
        .outer = outer, .damping = damping, .source = source, .value = value, .count_terms = count_terms,
        .terms = terms, .weights = weights, .next = next };
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int i = 0; i < threads; i++)
        saturate_rows(t, part(rows, pointers, i, threads), part(rows, pointers, i + 1, threads));
}

/* out = sum_j weights[j] terms[j], times k (1 - k) where k is given, and total += sum_j others[j] terms[j] where it is;
 * numbers start .. stop - 1, n at a time, where n is the constant LANES but at the end. */
INLINE void combine_block(count start, count stop, count n, int count_terms, const float *const *terms,
    const float *weights, const float *k, float *out, const float *others, float *total)
{
    for (count i = start; i < stop; i += LANES) {
        lanes sum = all(0.0f), other = total ? load(total + i, n) : all(0.0f);
        for (int j = 0; j < count_terms; j++) {
            lanes part = load(terms[j] + i, n);
            sum += weights[j] * part;
            if (total)
                other += others[j] * part;
        }
        if (k) {
            lanes value = load(k + i, n);
            sum *= value * (1.0f - value);
        }
        store(out + i, sum, n);
        if (total)
            store(total + i, other, n);
    }
}

EVERY_CPU static void combine_part(count start, count stop, int count_terms, const float *const *terms,
    const float *weights, const float *k, float *out, const float *others, float *total)
{
    count last = start + (stop - start) / LANES * LANES;
    combine_block(start, last, LANES, count_terms, terms, weights, k, out, others, total);
    combine_block(last, stop, stop - last, count_terms, terms, weights, k, out, others, total);
}

void dissensus_combine(int threads, count n, int count_terms, const float *const *terms, const float *weights,
    const float *k, float *out, const float *others, float *total)
{
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int i = 0; i < threads; i++)
        combine_part(share(n, i, threads), share(n, i + 1, threads), count_terms, terms, weights, k, out, others,
            total);
}

/* The sum of the squares of sum_j weights[j] terms[j] / (atol + rtol max(|x|, |new|)). */
INLINE double squares_block(count start, count stop, count n, int count_terms, const float *const *terms,
    const float *weights, const float *x, const float *new, float atol, float rtol)
{
    double total = 0.0;
    for (count i = start; i < stop; i += LANES) {
        lanes error = all(0.0f), one = load(x + i, n), other = load(new + i, n);
        for (int j = 0; j < count_terms; j++)
            error += weights[j] * load(terms[j] + i, n);
        error /= atol + rtol * most(most(one, -one), most(other, -other));
        total += sum(error * error);
    }
    return total;
}

EVERY_CPU static double squares_part(count start, count stop, int count_terms, const float *const *terms,
    const float *weights, const float *x, const float *new, float atol, float rtol)
{
    count last = start + (stop - start) / LANES * LANES;
    return squares_block(start, last, LANES, count_terms, terms, weights, x, new, atol, rtol)
        + squares_block(last, stop, stop - last, count_terms, terms, weights, x, new, atol, rtol);
}

double dissensus_squares(int threads, count n, int count_terms, const float *const *terms, const float *weights,
    const float *x, const float *new, float atol, float rtol)
{
    double total = 0.0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : total)
    for (int i = 0; i < threads; i++)
        total += squares_part(
            share(n, i, threads), share(n, i + 1, threads), count_terms, terms, weights, x, new, atol, rtol);
    return total;
}
