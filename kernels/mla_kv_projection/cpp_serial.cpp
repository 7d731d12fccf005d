// The formula as it reads: one thread, one token after the other, sums in float64.
//
// A token's latent is kept, so hidden and the output are touched once; the weights are read again
// for each token. Rounds once, at the end. Takes any strides; no limits but patience.
#include <algorithm>
#include <exception>
#include <vector>

#include "shape.h"

static float at(const perfci_tensor &matrix, int64_t row, int64_t column) {
  const float *data = static_cast<const float *>(matrix.data);
  return data[row * matrix.strides[0] + column * matrix.strides[1]];
}

// sums[j] = sum over i of x(i) * matrix[i, j]
template <typename Vector>
static void project(const Vector &x, const perfci_tensor &matrix, std::vector<double> *sums) {
  std::fill(sums->begin(), sums->end(), 0.0);
  for (int64_t i = 0; i < matrix.shape[0]; ++i)
    for (int64_t j = 0; j < matrix.shape[1]; ++j) (*sums)[j] += x(i) * at(matrix, i, j);
}

static void project_all(const perfci_call *call, const Shape &shape) {
  const perfci_tensor &hidden = call->inputs[0];
  float *out = static_cast<float *>(call->outputs[0].data);
  std::vector<double> latent(shape.rank), up(shape.width);

  for (int64_t token = 0; token < shape.tokens; ++token) {
    const float *row = static_cast<const float *>(hidden.data) +
                       token / shape.sequence * hidden.strides[0] +
                       token % shape.sequence * hidden.strides[1];
    project([&](int64_t m) { return double(row[m * hidden.strides[2]]); }, call->inputs[1],
            &latent);
    for (int slot = 0; slot < 2; ++slot) {
      project([&](int64_t r) { return latent[r]; }, call->inputs[2 + slot], &up);
      for (double value : up) *out++ = float(value);
    }
  }
}

extern "C" int perfci_run(const perfci_call *call) {
  Shape shape{};
  if (int code = read_shape(call, &shape)) return code;
  try {
    project_all(call, shape);
  } catch (const std::exception &) {  // no memory, or more than any vector can have
    return perfci_fail(call, "out of memory for a latent of rank %lld", (long long)shape.rank);
  }
  return 0;
}
