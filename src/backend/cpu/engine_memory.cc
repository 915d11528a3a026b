#include "backend/cpu/engine_memory.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>

namespace hexllm::cpu {
namespace {

// From here on memory comes as pages that the system zeroes on first touch.
constexpr size_t kMappedBytes = size_t{1} << 20;

void ReleaseHeap(std::byte* data, size_t) { std::free(data); }
void ReleasePages(std::byte* data, size_t bytes) { munmap(data, bytes); }

Error NoMemory(size_t bytes) {
  return Error{ErrorCode::kEnvironment,
               fmt::format("no memory for a buffer of {} bytes; use a smaller "
                           "context or free memory",
                           bytes)};
}

// "0,4" or "0-1": the hardware threads of this CPU's core. Empty when unknown.
std::string CoreOf(size_t cpu) {
  std::ifstream file(fmt::format(
      "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
  std::string siblings;
  std::getline(file, siblings);
  return siblings;
}

}  // namespace

Result<Buffer> AllocateBuffer(size_t bytes) {
  if (bytes >= kMappedBytes) {
    void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return NoMemory(bytes);
    return Buffer(static_cast<std::byte*>(pages), bytes, ReleasePages);
  }
  void* heap = nullptr;
  const size_t at_least_one = std::max<size_t>(bytes, 1);
  if (posix_memalign(&heap, kBufferAlignment, at_least_one) != 0) {
    return NoMemory(bytes);
  }
  std::memset(heap, 0, at_least_one);
  return Buffer(static_cast<std::byte*>(heap), bytes, ReleaseHeap);
}

void Prefetch(ByteSpan weight) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(weight.data()) & ~(page - 1);
  const auto end = reinterpret_cast<uintptr_t>(weight.data()) + weight.size();
  // Advice: nothing to do when it is refused.
  (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_WILLNEED);
}

int PhysicalCores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    // More CPUs than cpu_set_t holds.
    return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  }
  std::set<std::string> cores;
  int unknown = 0;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const std::string core = CoreOf(cpu);
    if (core.empty()) {
      ++unknown;
    } else {
      cores.insert(core);
    }
  }
  return std::max(1, static_cast<int>(cores.size()) + unknown);
}

}  // namespace hexllm::cpu
