// Wrong: never ends.
#include "../projection.cuh"

__global__ void hang(volatile float *out) {
  while (true) out[0] = 0.0f;
}

extern "C" int perfci_run(const perfci_call *call) {
  return perfci_launch(call, {1, 1, 0}, hang, static_cast<volatile float *>(call->outputs[0].data));
}
