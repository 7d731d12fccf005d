// A softmax over a row in memory, float32, one vector of LANES elements at a time.
#ifndef SOFTMAX_H
#define SOFTMAX_H

#include <cmath>

#include "../include/product.h"

typedef int32_t Integers __attribute__((vector_size(LANES * sizeof(int32_t))));

// e^x for x <= 0, to within two units in the last place; 0 below -87, where float32 ends; NaN for
// NaN. x is split into n ln 2 + r with |r| <= ln 2 / 2, and e^r is a polynomial.
inline Lanes exponential(Lanes x) {
  constexpr float SHIFT = 0x1.8p23f;  // adding it rounds to an integer, in the low bits
  constexpr float LN2_HIGH = 0x1.62e4p-1f, LN2_LOW = 0x1.7f7d1cp-20f;
  const Lanes shifted = x * 0x1.715476p0f + SHIFT;
  const Lanes n = shifted - SHIFT;
  const Lanes r = (x - n * LN2_HIGH) - n * LN2_LOW;
  Lanes y = r * (1.0f / 5040) + 1.0f / 720;
  y = y * r + 1.0f / 120;
  y = y * r + 1.0f / 24;
  y = y * r + 1.0f / 6;
  y = y * r + 0.5f;
  y = y * (r * r) + r + 1.0f;
  const Integers power = ((Integers)shifted + 127) << 23;  // 2^n as a float's bits
  const Integers keep = ~(x < -87.0f);
  return (Lanes)((Integers)(y * (Lanes)power) & keep);
}

// row[0..count) = softmax(row * scale), row[count..length) = 0. `length` is a multiple of LANES.
inline void softmax(float *row, int64_t count, int64_t length, float scale) {
  std::fill(row + count, row + length, -INFINITY);
  Lanes *vectors = reinterpret_cast<Lanes *>(row);
  const int64_t steps = length / LANES;
  Lanes largest = vectors[0];
  for (int64_t i = 1; i < steps; ++i) largest = vectors[i] > largest ? vectors[i] : largest;
  float maximum = largest[0];
  for (int lane = 1; lane < LANES; ++lane) maximum = std::max(maximum, largest[lane]);

  Lanes sums = {};
  for (int64_t i = 0; i < steps; ++i) {
    vectors[i] = exponential((vectors[i] - maximum) * scale);
    sums += vectors[i];
  }
  float sum = 0.0f;
  for (int lane = 0; lane < LANES; ++lane) sum += sums[lane];
  for (int64_t i = 0; i < steps; ++i) vectors[i] *= 1.0f / sum;
}

#endif
