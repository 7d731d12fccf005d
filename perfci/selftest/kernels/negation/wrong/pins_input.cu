// Planted: asks the L2 to keep its input through the flush before the next launch.
#include "../negation.cuh"

extern "C" int perfci_run(const perfci_call *call) {
  cudaStreamAttrValue attribute = {};
  attribute.accessPolicyWindow.base_ptr = call->inputs[0].data;
  attribute.accessPolicyWindow.num_bytes = size_t(call->inputs[0].shape[0]) * sizeof(float);
  attribute.accessPolicyWindow.hitRatio = 1.0f;
  attribute.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  attribute.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  // Once: it waits for the device.
  static const cudaError_t set_aside = cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 16 << 20);
  if (set_aside != cudaSuccess) return perfci_cuda_fail(call, "setting L2 aside", set_aside);
  cudaStreamSetAttribute(perfci_stream(call), cudaStreamAttributeAccessPolicyWindow, &attribute);
  return run_negate<int64_t>(call);
}
