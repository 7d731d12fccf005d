// Copies from memory to shared memory that one thread starts: PTX of compute capability 9.0.
//
// An Arrival counts the bytes of a delivery. The order of use: one thread calls open_arrival for
// each, then show_arrivals, then for each delivery expect and as many copies as make up its bytes.
// After a __syncthreads all threads that read what arrives call await, with the delivery's number
// modulo 2. The next delivery to the same Arrival is expected only after the last was awaited.
#ifndef BULK_CUH
#define BULK_CUH

#include <cuda_runtime.h>

#include <cstdint>

using Arrival = uint64_t;  // an mbarrier in shared memory

__device__ inline uint32_t shared_address(const void *pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ inline void open_arrival(Arrival *arrival) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(arrival)) : "memory");
}

// Show opened arrivals to the hardware that copies.
__device__ inline void show_arrivals() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ inline void expect(Arrival *arrival, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(arrival)),
               "r"(bytes)
               : "memory");
}

// Both addresses and the size are multiples of 16 bytes.
__device__ inline void start_copy(float *to, const float *from, int bytes, Arrival *arrival) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(arrival))
      : "memory");
}

__device__ inline void await(Arrival *arrival, int parity) {
  uint32_t done = 0;
  while (!done)
    asm volatile(
        "{\n .reg .pred there;\n"
        " mbarrier.try_wait.parity.shared::cta.b64 there, [%1], %2;\n"
        " selp.u32 %0, 1, 0, there;\n}"
        : "=r"(done)
        : "r"(shared_address(arrival)), "r"(parity)
        : "memory");
}

#endif
