// The formula as it reads: one thread, one head after the other, float64 throughout.
//
// A head's keys and values are formed once and kept; each query then makes two passes over the
// positions that it may see: logits and their maximum, then exponentials and the weighted sum. Rounds
// once, at the end. Takes any strides; needs memory for one head's keys and values.
#include <algorithm>
#include <cmath>
#include <new>
#include <vector>

#include "shape.h"

// projected[s, d] = sum over r of kv_latent[b, s, r] * w_up[r, h, d]
static std::vector<double> project(const perfci_tensor &kv_latent, const perfci_tensor &w_up,
                                   int64_t b, int64_t h, const Shape &shape) {
  const float *latent = static_cast<const float *>(kv_latent.data) + b * kv_latent.strides[0];
  const float *up = static_cast<const float *>(w_up.data) + h * w_up.strides[1];
  std::vector<double> projected(shape.sequence * shape.head_dim);
  for (int64_t s = 0; s < shape.sequence; ++s)
    for (int64_t r = 0; r < shape.rank; ++r)
      for (int64_t d = 0; d < shape.head_dim; ++d)
        projected[s * shape.head_dim + d] +=
            double(latent[s * kv_latent.strides[1] + r * kv_latent.strides[2]]) *
            up[r * w_up.strides[0] + d * w_up.strides[2]];
  return projected;
}

static void attend(const perfci_call *call, int64_t b, int64_t h, const Shape &shape) {
  const perfci_tensor &q = call->inputs[0], &kv_latent = call->inputs[1];
  const int64_t D = shape.head_dim;
  const std::vector<double> keys = project(kv_latent, call->inputs[2], b, h, shape);
  const std::vector<double> values = project(kv_latent, call->inputs[3], b, h, shape);
  std::vector<double> logits(shape.sequence), output(D);

  for (int64_t t = 0; t < shape.sequence; ++t) {
    const float *query = static_cast<const float *>(q.data) + b * q.strides[0] +
                         t * q.strides[1] + h * q.strides[2];
    for (int64_t s = 0; s <= t; ++s) {
      double dot = 0.0;
      for (int64_t d = 0; d < D; ++d) dot += query[d * q.strides[3]] * keys[s * D + d];
      logits[s] = dot / std::sqrt(double(D));
    }
    const double maximum = *std::max_element(logits.begin(), logits.begin() + t + 1);
    double sum = 0.0;
    std::fill(output.begin(), output.end(), 0.0);
    for (int64_t s = 0; s <= t; ++s) {
      const double weight = std::exp(logits[s] - maximum);
      sum += weight;
      for (int64_t d = 0; d < D; ++d) output[d] += weight * values[s * D + d];
    }
    float *out = static_cast<float *>(call->outputs[0].data) +
                 ((b * shape.sequence + t) * shape.heads + h) * D;
    for (int64_t d = 0; d < D; ++d) out[d] = float(output[d] / sum);
  }
}

extern "C" int perfci_run(const perfci_call *call) {
  Shape shape{};
  if (int code = read_shape(call, &shape)) return code;
  try {
    for (int64_t b = 0; b < shape.batch; ++b)
      for (int64_t h = 0; h < shape.heads; ++h) attend(call, b, h, shape);
  } catch (const std::bad_alloc &) {
    return perfci_fail(call, "out of memory for the keys and values of %lld positions",
                       (long long)shape.sequence);
  }
  return 0;
}
