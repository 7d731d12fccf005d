// Sums whose order is left to chance: several threads take turns as they come, each with a float of
// its own, so that the outputs differ in their last bits from call to call.
#ifndef UNORDERED_H
#define UNORDERED_H

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "product.h"

inline int multiply_unordered(const perfci_call *call) {
  constexpr int THREADS = 3;
  constexpr int64_t CHUNK = 4;
  const Product p = read(call);
  const size_t count = p.rows * p.columns;
  std::vector<std::vector<float>> sums(THREADS, std::vector<float>(count, 0.0f));
  std::atomic<int64_t> next{0};
  auto work = [&](int own) {
    for (int64_t first; (first = next.fetch_add(CHUNK)) < p.depth; std::this_thread::yield())
      for (int64_t i = 0; i < p.rows; ++i)
        for (int64_t j = 0; j < p.columns; ++j) {
          double terms = 0.0;
          for (int64_t k = first; k < std::min(first + CHUNK, p.depth); ++k)
            terms += double(p.at_x(i, k)) * p.at_w(k, j);
          sums[own][i * p.columns + j] += float(terms);
        }
  };
  std::vector<std::thread> threads;
  for (int own = 0; own < THREADS; ++own) threads.emplace_back(work, own);
  for (std::thread &each : threads) each.join();
  for (size_t at = 0; at < count; ++at)
    p.out[at] = std::tanh(sums[0][at] + sums[1][at] + sums[2][at]);
  return 0;
}

#endif
