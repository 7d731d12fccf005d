// A matrix product on the CPU: C = A x B, float32, one thread.
//
// B is read in panels of PANEL columns, where it lies if whole vectors fit, else from a copy in which
// missing columns are zeros: odd widths and strides need no case of their own. A tile of
// ROWS x PANEL sums stays in registers, and A is read where it lies, through a pointer a row. Sums
// run over CHUNK terms and are then added up in C: that keeps a chunk of a panel in the first-level
// cache for all rows, and rounds less than one long sum.
#ifndef PRODUCT_H
#define PRODUCT_H

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#if defined(__AVX512F__)
constexpr int LANES = 16;
#elif defined(__AVX__)
constexpr int LANES = 8;
#else
constexpr int LANES = 4;
#endif

// 32 vector registers hold 8 x 3 sums, 16 hold 4 x 3.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int ROWS = 8;
#else
constexpr int ROWS = 4;
#endif

constexpr int VECTORS = 3;
constexpr int PANEL = VECTORS * LANES;
constexpr int64_t CHUNK = 64;

typedef float Lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));

// Rows of floats on a cache line's boundary, not initialised; throws std::bad_alloc, also where
// their bytes cannot be counted.
struct Deleter {
  void operator()(float *memory) const { ::operator delete[](memory, std::align_val_t(64)); }
};
using Buffer = std::unique_ptr<float[], Deleter>;

inline Buffer buffer(int64_t rows, int64_t columns) {
  size_t bytes;
  if (__builtin_mul_overflow(rows, columns, &bytes) ||
      __builtin_mul_overflow(bytes, sizeof(float), &bytes))
    throw std::bad_alloc();
  return Buffer(static_cast<float *>(::operator new[](bytes, std::align_val_t(64))));
}

// A matrix anywhere in memory: element (i, j) is data[i * row_stride + j * column_stride].
struct Matrix {
  const float *data;
  int64_t row_stride, column_stride;
};

// B, ready to be multiplied with: panel p holds columns [p * PANEL, (p + 1) * PANEL) and starts at
// data + p * panel_stride. The memory is B's own, or `copy`, where columns are filled up with zeros
// to whole vectors.
struct Panels {
  const float *data;
  int64_t row_stride, panel_stride;
  Buffer copy;
};

inline int64_t rounded_up(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

// Whether whole vectors can be read where B lies, from rows that don't share a few cache sets.
inline bool usable_in_place(Matrix b, int64_t columns) {
  return b.column_stride == 1 && columns % LANES == 0 && b.row_stride > 0 && b.row_stride < 1024;
}

// Prepare B (depth x columns): in place, or copied panel by panel and filled up with zeros.
inline Panels prepare(Matrix b, int64_t depth, int64_t columns) {
  if (usable_in_place(b, columns)) return {b.data, b.row_stride, PANEL, nullptr};
  Buffer copy = buffer(depth, rounded_up(columns, PANEL));
  float *target = copy.get();
  for (int64_t first = 0; first < columns; first += PANEL) {
    for (int64_t k = 0; k < depth; ++k, target += PANEL) {
      const float *row = b.data + k * b.row_stride + first * b.column_stride;
      const int64_t width = std::min<int64_t>(PANEL, columns - first);
      for (int64_t j = 0; j < width; ++j) target[j] = row[j * b.column_stride];
      std::fill(target + width, target + PANEL, 0.0f);
    }
  }
  const float *data = copy.get();
  return {data, PANEL, depth * PANEL, std::move(copy)};
}

// The rows of A: element (i, k) is row[i][k * step].
struct Rows {
  const float *const *row;
  int64_t count, step;
};

// One tile: sums over `depth` terms of ROWS rows and COUNT vectors of columns, stored (or added,
// where `add`) to the first `columns` columns of the first `count` rows of C.
template <int COUNT>
inline void tile(Rows a, int64_t depth, const float *b, int64_t b_stride, float *c,
                 int64_t c_stride, int64_t columns, bool add) {
  const float *row[ROWS];  // rows that are not there repeat the last one and are not stored
  for (int i = 0; i < ROWS; ++i) row[i] = a.row[std::min<int64_t>(i, a.count - 1)];
  Lanes sum[ROWS][COUNT] = {};
  for (int64_t k = 0; k < depth; ++k) {
    const Lanes *terms = reinterpret_cast<const Lanes *>(b + k * b_stride);
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 3
      for (int j = 0; j < COUNT; ++j) sum[i][j] += row[i][k * a.step] * terms[j];
  }
#pragma GCC unroll 8
  for (int i = 0; i < ROWS; ++i) {
    if (i >= a.count) break;
#pragma GCC unroll 3
    for (int j = 0; j < COUNT; ++j) {
      float *target = c + i * c_stride + j * LANES;
      const int64_t width = std::min<int64_t>(LANES, columns - j * LANES);
      Lanes value = sum[i][j];
      if (width == LANES) {
        Lanes *whole = reinterpret_cast<Lanes *>(target);
        *whole = add ? *whole + value : value;
      } else {
        for (int64_t n = 0; n < width; ++n) target[n] = add ? target[n] + value[n] : value[n];
      }
    }
  }
}

// C (a.count x columns, rows c_stride apart) = A (a.count x depth) x B (depth x columns).
inline void product(Rows a, int64_t depth, const Panels &b, int64_t columns, float *c,
                    int64_t c_stride) {
  for (int64_t first = 0; first < columns; first += PANEL) {
    const int64_t width = std::min<int64_t>(PANEL, columns - first);
    const auto run = width > 2 * LANES ? tile<3> : width > LANES ? tile<2> : tile<1>;
    const float *panel = b.data + first / PANEL * b.panel_stride;
    for (int64_t k = 0; k == 0 || k < depth; k += CHUNK) {  // once for depth 0: C is zero
      for (int64_t i = 0; i < a.count; i += ROWS) {
        const float *rows[ROWS];
        const int64_t count = std::min<int64_t>(ROWS, a.count - i);
        for (int64_t r = 0; r < count; ++r) rows[r] = a.row[i + r] + k * a.step;
        run({rows, count, a.step}, std::min(CHUNK, depth - k), panel + k * b.row_stride,
            b.row_stride, c + i * c_stride + first, c_stride, width, k > 0);
      }
    }
  }
}

// A (a.count x depth) x B (depth x columns), ready to be multiplied with in its turn.
inline Panels panel_product(Rows a, int64_t depth, const Panels &b, int64_t columns) {
  Buffer memory = buffer(a.count, rounded_up(columns, PANEL));
  for (int64_t first = 0; first < columns; first += PANEL) {
    const Panels panel = {b.data + first / PANEL * b.panel_stride, b.row_stride, 0, nullptr};
    const int64_t width = std::min<int64_t>(PANEL, rounded_up(columns - first, LANES));
    product(a, depth, panel, width, memory.get() + first * a.count, PANEL);
  }
  const float *data = memory.get();
  return {data, PANEL, a.count * PANEL, std::move(memory)};
}

#endif
