// Wrong: the columns beyond the last whole group of four are not written.
#include <vector>

#include "../shape.h"

extern "C" int perfci_run(const perfci_call *call) {
  Shape shape{};
  if (int code = read_shape(call, &shape)) return code;
  for (int input = 0; input < 4; ++input)
    if (!perfci_is_contiguous(&call->inputs[input]))
      return perfci_fail(call, "input %d must be contiguous", input);
  const perfci_tensor *inputs = call->inputs;
  std::vector<float> latent(shape.rank);
  float *out = static_cast<float *>(call->outputs[0].data);
  for (int64_t token = 0; token < shape.tokens; ++token) {
    const float *row = static_cast<const float *>(inputs[0].data) + token * shape.model;
    for (int64_t r = 0; r < shape.rank; ++r) {
      double sum = 0.0;
      for (int64_t m = 0; m < shape.model; ++m)
        sum += double(row[m]) * static_cast<const float *>(inputs[1].data)[m * shape.rank + r];
      latent[r] = float(sum);
    }
    for (int slot = 0; slot < 2; ++slot, out += shape.width) {
      const float *up = static_cast<const float *>(inputs[2 + slot].data);
      for (int64_t c = 0; c < shape.width / 4 * 4; ++c) {
        double sum = 0.0;
        for (int64_t r = 0; r < shape.rank; ++r) sum += double(latent[r]) * up[r * shape.width + c];
        out[c] = float(sum);
      }
    }
  }
  return 0;
}
