// The sizes of a call, read once and checked against each other.
#ifndef SHAPE_H
#define SHAPE_H

#include <cstdint>

#include "../include/arguments.h"

struct Shape {
  int64_t batch, sequence, model, rank, kv_heads, head_dim;
  int64_t tokens, width;  // batch * sequence, or 0 without an output; kv_heads * head_dim
};

// Fill in the shape; 0, or the code of perfci_fail. Inputs may have any strides.
inline int read_shape(const perfci_call *call, Shape *shape) {
  if (call->output_count != 1 || call->input_count != 4 || call->scalar_count != 2)
    return perfci_fail(call, "needs 1 output, 4 inputs and 2 scalars; has %d, %d and %d",
                       (int)call->output_count, (int)call->input_count, (int)call->scalar_count);
  const perfci_tensor &out = call->outputs[0];
  const perfci_tensor &hidden = call->inputs[0], &w_down = call->inputs[1];
  const perfci_tensor &w_up_k = call->inputs[2], &w_up_v = call->inputs[3];
  if (int code = check_tensor(call, "output", out, 5)) return code;
  if (int code = check_tensor(call, "hidden", hidden, 3)) return code;
  if (int code = check_tensor(call, "w_down", w_down, 2)) return code;
  if (int code = check_tensor(call, "w_up_k", w_up_k, 2)) return code;
  if (int code = check_tensor(call, "w_up_v", w_up_v, 2)) return code;

  if (int code = check_count(call, "kv_heads", call->scalars[0])) return code;
  if (int code = check_count(call, "head_dim", call->scalars[1])) return code;
  const int64_t kv_heads = call->scalars[0].integer, head_dim = call->scalars[1].integer;
  if (kv_heads > 0 && head_dim > INT64_MAX / kv_heads)
    return perfci_fail(call, "kv_heads x head_dim is %lld x %lld, too much for any tensor",
                       (long long)kv_heads, (long long)head_dim);
  const int64_t batch = hidden.shape[0], sequence = hidden.shape[1], model = hidden.shape[2];
  const int64_t rank = w_down.shape[1], width = kv_heads * head_dim;
  if (int code = check_size(call, "w_down", w_down, 0, model)) return code;
  for (int slot = 0; slot < 2; ++slot) {
    const char *name = slot == 0 ? "w_up_k" : "w_up_v";
    if (int code = check_size(call, name, call->inputs[2 + slot], 0, rank)) return code;
    if (int code = check_size(call, name, call->inputs[2 + slot], 1, width)) return code;
  }
  const int64_t expected[5] = {batch, sequence, 2, kv_heads, head_dim};
  for (int d = 0; d < 5; ++d)
    if (int code = check_size(call, "output", out, d, expected[d])) return code;
  if (int code = check_contiguous(call, "output", out)) return code;
  const int64_t tokens = is_empty(out) ? 0 : batch * sequence;
  *shape = {batch, sequence, model, rank, kv_heads, head_dim, tokens, width};
  return 0;
}

#endif
