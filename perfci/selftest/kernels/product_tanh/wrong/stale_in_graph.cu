// Planted: computes nothing while it is captured; a replay writes elsewhere.
#include "../product.cuh"

__device__ float elsewhere;

__global__ void write_elsewhere() { elsewhere = 1.0f; }

extern "C" int perfci_run(const perfci_call *call) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(perfci_stream(call), &status);
  if (status == cudaStreamCaptureStatusNone) return launch(call, read(call));
  return perfci_launch(call, {1, 1, 0}, write_elsewhere);
}
