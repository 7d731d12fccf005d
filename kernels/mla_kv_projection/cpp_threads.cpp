// perfci: flags = ["-march=native", "-pthread", "-Wl,-z,nodelete"]
//
// Blocks of tokens on several threads, the latent kept in cache.
//
// A block's latent is a product of its rows of hidden with w_down, and goes straight on into the
// products with w_up_k and w_up_v, whose rows land in the output's two slots: nothing is stacked
// afterwards. Traffic: hidden read once, the output written once, the weights read from cache once a
// block. Takes any strides. Needs memory for the latents, and for a copy of a weight whose columns
// are strided, a page apart, or no whole vectors.
#include "../include/parallel.h"
#include "../include/product.h"
#include "shape.h"

constexpr int64_t BLOCK = 3 * ROWS;  // tokens

static Panels prepare(const perfci_tensor &weight) {
  const Matrix matrix = {static_cast<const float *>(weight.data), weight.strides[0],
                         weight.strides[1]};
  return prepare(matrix, weight.shape[0], weight.shape[1]);
}

static void project(const perfci_call *call, const Shape &shape) {
  const perfci_tensor &hidden = call->inputs[0];
  float *out = static_cast<float *>(call->outputs[0].data);
  const Panels down = prepare(call->inputs[1]);
  const Panels up_k = prepare(call->inputs[2]), up_v = prepare(call->inputs[3]);
  const int64_t blocks = (shape.tokens + BLOCK - 1) / BLOCK;
  const double work = double(shape.tokens) * shape.rank * (double(shape.model) + 2 * shape.width);
  const Buffer latents = buffer(shape.tokens, shape.rank);

  parallel_for(blocks, threads_for(work), [&](int64_t block) {
    const int64_t first = block * BLOCK, count = std::min(BLOCK, shape.tokens - first);
    float *latent = latents.get() + first * shape.rank;
    const float *tokens[BLOCK], *latent_rows[BLOCK];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t b = (first + i) / shape.sequence, s = (first + i) % shape.sequence;
      tokens[i] = static_cast<const float *>(hidden.data) + b * hidden.strides[0] +
                  s * hidden.strides[1];
      latent_rows[i] = latent + i * shape.rank;
    }
    product({tokens, count, hidden.strides[2]}, shape.model, down, shape.rank, latent,
            shape.rank);
    float *keys = out + first * 2 * shape.width, *values = keys + shape.width;
    product({latent_rows, count, 1}, shape.rank, up_k, shape.width, keys, 2 * shape.width);
    product({latent_rows, count, 1}, shape.rank, up_v, shape.width, values, 2 * shape.width);
  });
}

extern "C" int perfci_run(const perfci_call *call) {
  Shape shape{};
  if (int code = read_shape(call, &shape)) return code;
  if (shape.tokens == 0) return 0;
  try {
    project(call, shape);
  } catch (const std::bad_alloc &) {
    return perfci_fail(call, "out of memory for the packed weights and latents");
  }
  return 0;
}
