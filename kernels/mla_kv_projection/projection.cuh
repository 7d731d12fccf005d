// A call as the CUDA variants see it: plain pointers to contiguous float32, and the sizes.
#ifndef PROJECTION_CUH
#define PROJECTION_CUH

#include "../include/contiguous.h"
#include "perfci_cuda.h"
#include "shape.h"

struct Projection {
  const float *hidden, *w_down, *w_up_k, *w_up_v;
  float *out;
  int64_t tokens;
  int model, rank, width;  // out has 2 x width columns: keys, then values
};

// Fill in the projection; 0, or the code of perfci_fail.
inline int read_projection(const perfci_call *call, Projection *projection) {
  static const char *const NAMES[] = {"hidden", "w_down", "w_up_k", "w_up_v"};
  constexpr int64_t LARGEST = 1 << 24;  // columns are counted in an int, twice the width included
  Shape shape{};
  if (int code = read_shape(call, &shape)) return code;
  if (int code = check_inputs_contiguous(call, NAMES)) return code;
  if (int code = check_at_most(call, "model", shape.model, LARGEST)) return code;
  if (int code = check_at_most(call, "rank", shape.rank, LARGEST)) return code;
  if (int code = check_at_most(call, "kv_heads x head_dim", shape.width, LARGEST)) return code;
  const auto input = [call](int i) { return static_cast<const float *>(call->inputs[i].data); };
  *projection = {input(0),      input(1),         input(2),        input(3),
                 static_cast<float *>(call->outputs[0].data),
                 shape.tokens,
                 (int)shape.model, (int)shape.rank, (int)shape.width};
  return 0;
}

#endif
