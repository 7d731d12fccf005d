// Run independent tasks on several threads.
//
// One pool a process, made at the first call. Waking a thread that sleeps can take as long as a
// small kernel, so a thread that has worked looks out for more work for a short while before it
// sleeps. A call never waits for a thread that is late: tasks are taken one by one, and the caller
// does those that nobody else has taken. OpenMP would do it too, but PyTorch brings an
// OpenMP runtime of its own, and two of them in a process spin against each other.
//
// The library must stay loaded while its threads live: link with -Wl,-z,nodelete.
#ifndef PARALLEL_H
#define PARALLEL_H

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

class Pool {
 public:
  // What a thread does; `place` is 0 for the caller, then counts up.
  using Job = std::function<void(int64_t place)>;

  // Run `job` on this thread and on up to `others` more; return when all have left it.
  void run(int64_t others, const Job &job) {
    std::unique_lock<std::mutex> whole(busy_, std::try_to_lock);
    if (others < 1 || !whole) {  // another caller has the pool: do it alone
      job(0);
      return;
    }
    grow(others);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      job_ = &job;
      places_ = others;
      generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    job(0);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      job_ = nullptr;
    }
    while (running_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
  }

  static Pool &of_this_process() { return *instance(); }

 private:
  static constexpr std::chrono::microseconds PATIENCE{200};

  // A forked child has none of its parent's threads and starts a pool of its own. Pools are never
  // destroyed: their threads end with the process.
  static Pool *&instance() {
    static Pool *pool = [] {
      pthread_atfork(nullptr, nullptr, [] { instance() = new Pool; });
      return new Pool;
    }();
    return pool;
  }

  void grow(int64_t wanted) {
    const uint64_t seen = generation_.load(std::memory_order_relaxed);
    try {
      for (; threads_ < wanted; ++threads_) std::thread([this, seen] { serve(seen); }).detach();
    } catch (const std::system_error &) {
      // No more threads to be had: those that are there do the work.
    }
  }

  void serve(uint64_t seen) {
    for (;;) {
      seen = next_generation(seen);
      const Job *job;
      int64_t place;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        if (job_ == nullptr || places_ == 0) continue;
        job = job_;
        place = places_--;
        running_.fetch_add(1, std::memory_order_relaxed);
      }
      (*job)(place);
      running_.fetch_sub(1, std::memory_order_release);
    }
  }

  uint64_t next_generation(uint64_t seen) {
    using Clock = std::chrono::steady_clock;
    for (const auto end = Clock::now() + PATIENCE; Clock::now() < end;)
      if (generation_.load(std::memory_order_acquire) != seen) return generation_.load();
    std::unique_lock<std::mutex> lock(mutex_);
    wake_.wait(lock, [&] { return generation_.load() != seen; });
    return generation_.load();
  }

  std::mutex busy_, mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<int64_t> running_{0};
  const Job *job_ = nullptr;
  int64_t places_ = 0, threads_ = 0;
};

// The CPUs that this process may use, or OMP_NUM_THREADS where that is set to fewer.
inline int64_t allowed_threads() {
  cpu_set_t allowed;
  int64_t count = 1;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) count = CPU_COUNT(&allowed);
  const char *wanted = std::getenv("OMP_NUM_THREADS");
  const int64_t limit = wanted ? std::strtoll(wanted, nullptr, 10) : 0;
  return limit > 0 ? std::min(limit, count) : count;
}

// How many threads are worth their start for so many multiply-adds.
inline int64_t threads_for(double multiply_adds) {
  constexpr double WORK_PER_THREAD = 1e6;
  const int64_t allowed = allowed_threads();
  return multiply_adds < WORK_PER_THREAD * allowed ? 1 + int64_t(multiply_adds / WORK_PER_THREAD)
                                                   : allowed;
}

// Call body(task) for each task in [0, tasks), on at most `threads` threads with this one. A thread
// begins at the same task in every call, where its cache holds what it touched, then helps others.
template <typename Body>
void parallel_for(int64_t tasks, int64_t threads, const Body &body) {
  threads = std::max<int64_t>(1, std::min(threads, tasks));
  std::vector<std::atomic<bool>> taken(static_cast<size_t>(tasks));
  Pool::of_this_process().run(threads - 1, [&](int64_t place) {
    for (int64_t i = 0, task = place * tasks / threads; i < tasks; ++i, task = (task + 1) % tasks)
      if (!taken[task].exchange(true, std::memory_order_relaxed)) body(task);
  });
}

#endif
