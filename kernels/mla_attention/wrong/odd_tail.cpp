// Wrong: queries go in pairs, and the last one of an odd sequence is not written.
#include <algorithm>
#include <cmath>
#include <vector>

#include "../shape.h"

static double at(const perfci_tensor &x, int64_t i, int64_t j, int64_t k, int64_t l = 0) {
  const int64_t *stride = x.strides;
  const int64_t last = x.rank == 4 ? l * stride[3] : 0;
  return static_cast<const float *>(x.data)[i * stride[0] + j * stride[1] + k * stride[2] + last];
}

extern "C" int perfci_run(const perfci_call *call) {
  Shape shape{};
  if (int code = read_shape(call, &shape)) return code;
  const perfci_tensor &q = call->inputs[0], &latent = call->inputs[1];
  const perfci_tensor &up_k = call->inputs[2], &up_v = call->inputs[3];
  const int64_t D = shape.head_dim;
  std::vector<double> weights(shape.sequence);
  std::vector<double> folded(shape.rank), mean(shape.rank);
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t h = 0; h < shape.heads; ++h)
      for (int64_t t = 0; t < shape.sequence / 2 * 2; ++t) {
        double sum = 0.0;
        for (int64_t r = 0; r < shape.rank; ++r) {
          folded[r] = mean[r] = 0.0;
          for (int64_t d = 0; d < D; ++d) folded[r] += at(q, b, t, h, d) * at(up_k, r, h, d);
        }
        for (int64_t s = 0; s <= t; ++s) {
          double logit = 0.0;
          for (int64_t r = 0; r < shape.rank; ++r) logit += folded[r] * at(latent, b, s, r);
          weights[s] = logit / std::sqrt(double(D));
        }
        const double maximum = *std::max_element(weights.begin(), weights.begin() + t + 1);
        for (int64_t s = 0; s <= t; ++s) sum += weights[s] = std::exp(weights[s] - maximum);
        for (int64_t s = 0; s <= t; ++s)
          for (int64_t r = 0; r < shape.rank; ++r) mean[r] += weights[s] * at(latent, b, s, r);
        float *out = static_cast<float *>(call->outputs[0].data) +
                     ((b * shape.sequence + t) * shape.heads + h) * D;
        for (int64_t d = 0; d < D; ++d) {
          double value = 0.0;
          for (int64_t r = 0; r < shape.rank; ++r) value += mean[r] * at(up_v, r, h, d);
          out[d] = float(value / sum);
        }
      }
  return 0;
}
