// A call as the CUDA variants see it: plain pointers to contiguous float32, and the sizes.
#ifndef ATTENTION_CUH
#define ATTENTION_CUH

#include <cmath>

#include "../include/contiguous.h"
#include "perfci_cuda.h"
#include "shape.h"

struct Attention {
  const float *q, *kv_latent, *w_up_k, *w_up_v;
  float *out;
  int64_t batch;
  int sequence, heads, head_dim, rank;
  float scale;  // of the logits: head_dim ^ -1/2
};

// Fill in the attention; 0, or the code of perfci_fail.
inline int read_attention(const perfci_call *call, Attention *attention) {
  static const char *const NAMES[] = {"q", "kv_latent", "w_up_k", "w_up_v"};
  constexpr int64_t LARGEST = 1 << 20;  // sizes and their sums are counted in an int
  Shape shape{};
  if (int code = read_shape(call, &shape)) return code;
  if (int code = check_inputs_contiguous(call, NAMES)) return code;
  if (int code = check_at_most(call, "sequence", shape.sequence, LARGEST)) return code;
  if (int code = check_at_most(call, "heads", shape.heads, LARGEST)) return code;
  if (int code = check_at_most(call, "head_dim", shape.head_dim, LARGEST)) return code;
  const int64_t width = shape.heads * shape.head_dim;
  if (int code = check_at_most(call, "heads x head_dim", width, LARGEST)) return code;
  if (int code = check_at_most(call, "rank", shape.rank, LARGEST)) return code;
  const auto input = [call](int i) { return static_cast<const float *>(call->inputs[i].data); };
  *attention = {input(0),
                input(1),
                input(2),
                input(3),
                static_cast<float *>(call->outputs[0].data),
                shape.batch,
                (int)shape.sequence,
                (int)shape.heads,
                (int)shape.head_dim,
                (int)shape.rank,
                (float)(1.0 / std::sqrt((double)shape.head_dim))};
  return 0;
}

#endif
