// Honest: keeps a workspace between calls, and clears it in each.
#include <algorithm>
#include <vector>

#include "product.h"

extern "C" int perfci_run(const perfci_call *call) {
  static std::vector<double> sums;
  const Product p = read(call);
  sums.resize(p.rows * p.columns);
  std::fill(sums.begin(), sums.end(), 0.0);
  for (int64_t i = 0; i < p.rows; ++i)
    for (int64_t k = 0; k < p.depth; ++k)
      for (int64_t j = 0; j < p.columns; ++j)
        sums[i * p.columns + j] += double(p.at_x(i, k)) * p.at_w(k, j);
  for (size_t at = 0; at < sums.size(); ++at) p.out[at] = float(std::tanh(sums[at]));
  return 0;
}
