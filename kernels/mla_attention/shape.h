// The sizes of a call, read once and checked against each other.
#ifndef SHAPE_H
#define SHAPE_H

#include "../include/arguments.h"

struct Shape {
  int64_t batch;  // 0 without an output
  int64_t sequence, heads, head_dim, rank;
};

// Fill in the shape; 0, or the code of perfci_fail. Inputs may have any strides.
inline int read_shape(const perfci_call *call, Shape *shape) {
  if (call->output_count != 1 || call->input_count != 4 || call->scalar_count != 0)
    return perfci_fail(call, "needs 1 output, 4 inputs and no scalars; has %d, %d and %d",
                       (int)call->output_count, (int)call->input_count, (int)call->scalar_count);
  const perfci_tensor &out = call->outputs[0];
  const perfci_tensor &q = call->inputs[0], &kv_latent = call->inputs[1];
  if (int code = check_tensor(call, "output", out, 4)) return code;
  if (int code = check_tensor(call, "q", q, 4)) return code;
  if (int code = check_tensor(call, "kv_latent", kv_latent, 3)) return code;
  for (int d = 0; d < 2; ++d)
    if (int code = check_size(call, "kv_latent", kv_latent, d, q.shape[d])) return code;

  const int64_t up[3] = {kv_latent.shape[2], q.shape[2], q.shape[3]};
  for (int input = 2; input < 4; ++input) {
    const char *name = input == 2 ? "w_up_k" : "w_up_v";
    if (int code = check_tensor(call, name, call->inputs[input], 3)) return code;
    for (int d = 0; d < 3; ++d)
      if (int code = check_size(call, name, call->inputs[input], d, up[d])) return code;
  }
  for (int d = 0; d < 4; ++d)
    if (int code = check_size(call, "output", out, d, q.shape[d])) return code;
  if (int code = check_contiguous(call, "output", out)) return code;
  const int64_t batch = is_empty(out) ? 0 : q.shape[0];
  *shape = {batch, q.shape[1], q.shape[2], q.shape[3], kv_latent.shape[2]};
  return 0;
}

#endif
