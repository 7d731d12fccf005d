// What the CUDA kernels share: the elements as integers of their bits, whose highest is the sign.
#ifndef NEGATION_CUH
#define NEGATION_CUH

#include <perfci_cuda.h>

template <typename Word, typename Index>
__global__ void negate(const Word *x, Word *out, Index count) {
  const Index stride = Index(gridDim.x) * blockDim.x;
  constexpr Word SIGN = Word(1) << (8 * sizeof(Word) - 1);
  for (Index i = Index(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
    out[i] = x[i] ^ SIGN;
}

template <typename Word, typename Index>
int launch_negate(const perfci_call *call) {
  return perfci_launch(call, {1024, 256, 0}, negate<Word, Index>,
                       static_cast<const Word *>(call->inputs[0].data),
                       static_cast<Word *>(call->outputs[0].data),
                       static_cast<Index>(call->inputs[0].shape[0]));
}

template <typename Index>
int run_negate(const perfci_call *call) {
  return call->inputs[0].dtype == PERFCI_FLOAT32 ? launch_negate<uint32_t, Index>(call)
                                                 : launch_negate<uint16_t, Index>(call);
}

#endif
