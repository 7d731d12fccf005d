/* What every CUDA variant needs beside perfci.h: one launch, with its errors put into words.
 *
 *     return perfci_launch(call, {blocks, threads, shared_bytes}, kernel, arguments...);
 *
 * launches on the call's stream, opts in to shared memory above 48 KiB, and turns what the runtime
 * refuses into the call's error. It does not wait and allocates nothing, so that it can run behind
 * other work and inside the capture of a graph. A fault while the kernel runs shows at a later call
 * to the runtime, as always in CUDA.
 */
#ifndef PERFCI_CUDA_H
#define PERFCI_CUDA_H

#include <cuda_runtime.h>
#include <limits.h>

#include <initializer_list>

#include "perfci.h"

/* How to launch; the launched kernel's blocks come in clusters where `cluster` is above 1. Where the
 * arguments decide how much shared memory is needed, `shared_for` names them for the refusal. */
struct perfci_grid {
  int64_t blocks;
  int threads;
  int64_t shared_bytes;
  int cluster = 1;
  const char *shared_for = "";
};

inline cudaStream_t perfci_stream(const perfci_call *call) {
  return static_cast<cudaStream_t>(call->stream);
}

/* An attribute of the current device, or 0 where it cannot be read. */
inline int perfci_device_attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 0;
  return cudaDeviceGetAttribute(&value, attribute, device) == cudaSuccess ? value : 0;
}

/* "8.0, 9.0": what the binary was compiled for, as far as the compiler tells. */
inline void perfci_write_architectures(char *text, size_t size) {
#ifdef __CUDA_ARCH_LIST__
  size_t written = 0;
  for (const int each : {__CUDA_ARCH_LIST__})
    if (written < size)
      written += (size_t)snprintf(text + written, size - written, "%s%d.%d", written ? ", " : "",
                                  each / 100, each / 10 % 10);
#else
  snprintf(text, size, "unknown architectures");
#endif
}

/* Put an error of the CUDA runtime into words and clear it, so that it is not found by others. */
inline int perfci_cuda_fail(const perfci_call *call, const char *what, cudaError_t error) {
  cudaGetLastError();
  if (error != cudaErrorNoKernelImageForDevice && error != cudaErrorInvalidDeviceFunction)
    return perfci_fail(call, "%s: %s: %s", what, cudaGetErrorName(error),
                       cudaGetErrorString(error));
  char architectures[128];
  perfci_write_architectures(architectures, sizeof architectures);
  return perfci_fail(call, "%s: %s: the device has compute capability %d.%d, the binary is for %s",
                     what, cudaGetErrorName(error),
                     perfci_device_attribute(cudaDevAttrComputeCapabilityMajor),
                     perfci_device_attribute(cudaDevAttrComputeCapabilityMinor), architectures);
}

/* Refuse what the device cannot hold, and allow what it can; 0, or the code of perfci_fail. */
template <typename Kernel>
int perfci_allow_shared(const perfci_call *call, Kernel *kernel, int64_t bytes,
                        const char *what_for) {
  constexpr int64_t ALWAYS_ALLOWED = 48 * 1024;
  if (bytes <= ALWAYS_ALLOWED) return 0;
  const int wanted = (int)(bytes < INT_MAX ? bytes : INT_MAX);
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, wanted);
  if (error == cudaSuccess) return 0;
  const int limit = perfci_device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  if (limit == 0 || bytes <= limit) return perfci_cuda_fail(call, "setting shared memory", error);
  cudaGetLastError();
  return perfci_fail(call, "needs %lld bytes of shared memory a block%s%s, this device has %d",
                     (long long)bytes, *what_for ? " for " : "", what_for, limit);
}

/* Launch on the call's stream; 0, or the code of perfci_fail. No blocks: nothing is launched. */
template <typename... Parameters, typename... Arguments>
int perfci_launch(const perfci_call *call, perfci_grid grid, void (*kernel)(Parameters...),
                  Arguments... arguments) {
  constexpr int64_t MOST_BLOCKS = 0x7fffffff;
  if (grid.blocks == 0) return 0;
  if (grid.blocks > MOST_BLOCKS)
    return perfci_fail(call, "needs %lld blocks, a launch takes at most %lld",
                       (long long)grid.blocks, (long long)MOST_BLOCKS);
  if (int code = perfci_allow_shared(call, kernel, grid.shared_bytes, grid.shared_for))
    return code;

  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {(unsigned)grid.cluster, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)grid.blocks);
  config.blockDim = dim3((unsigned)grid.threads);
  config.dynamicSmemBytes = (size_t)grid.shared_bytes;
  config.stream = perfci_stream(call);
  config.attrs = &cluster;
  config.numAttrs = grid.cluster > 1 ? 1 : 0;
  const cudaError_t error = cudaLaunchKernelEx(&config, kernel, arguments...);
  return error == cudaSuccess ? 0 : perfci_cuda_fail(call, "launching", error);
}

#endif
