// What the blocks of a cluster need to send each other values: PTX of compute capability 9.0.
//
// The order of use: open_mailbox by one thread; announce by all threads; await_all, after which the
// shared memory and the mailboxes of all blocks are there; send; await_mail. Nobody sends to a
// block that may have ended, since a block waits for all that it expects.
#ifndef CLUSTER_CUH
#define CLUSTER_CUH

#include <cstdint>

using Mailbox = uint64_t;  // an mbarrier in shared memory, used once

__device__ inline uint32_t shared_address(const void *pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ inline int block_in_cluster() {
  uint32_t block;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(block));
  return block;
}

// Expect `bytes` of mail, in all.
__device__ inline void open_mailbox(Mailbox *box, int bytes) {
  const uint32_t address = shared_address(box);
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address), "r"(bytes)
               : "memory");
}

__device__ inline void announce() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

__device__ inline void await_all() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Store a value where `slot` is in block `to`, and count it in that block's mailbox.
__device__ inline void send(int to, float *slot, float4 value, Mailbox *box) {
  uint32_t there, mailbox;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(slot)), "r"(to));
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mailbox) : "r"(shared_address(box)), "r"(to));
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32"
      " [%0], {%1, %2, %3, %4}, [%5];"
      ::"r"(there), "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(mailbox)
      : "memory");
}

// Wait until all expected mail is there; every thread that reads it must.
__device__ inline void await_mail(Mailbox *box) {
  uint32_t done = 0;
  while (!done)
    asm volatile(
        "{\n .reg .pred there;\n"
        " mbarrier.try_wait.parity.shared::cta.b64 there, [%1], 0;\n"
        " selp.u32 %0, 1, 0, there;\n}"
        : "=r"(done)
        : "r"(shared_address(box))
        : "memory");
}

#endif
