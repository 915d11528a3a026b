#include "backend/htp/lower_queue.h"

#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "backend/htp/lower_context.h"
#include "backend/htp/lower_memory.h"
#include "base/child_process.h"
#include "base/file_cache.h"
#include "base/machine_memory.h"
#include "ir/fingerprint.h"

namespace hexllm::htp {
namespace {

// Finds and keeps contexts; without a cache nothing.
class ContextCache {
 public:
  explicit ContextCache(const QueueJob& job)
      : job_(job), fingerprints_(job.module) {}

  Status Open() {
    // Binaries of estimates hold the path of their trace, and are not for use.
    if (job_.options.cache == nullptr || !job_.options.trace_dir.empty())
      return OkStatus();
    HX_ASSIGN_OR_RETURN(target_, TargetDigest(job_.options));
    return OkStatus();
  }

  std::optional<Digest> KeyOf(const ContextPlan& plan) {
    if (!target_) return std::nullopt;
    Hasher key = job_.options.cache->StartKey("htp context");
    key.Add(*target_);
    key.AddNumber(plan.sharing);
    fingerprints_.AddGraphs(plan.graphs, key);
    return key.Finish();
  }

  std::optional<FileCache::Entry> Find(const std::optional<Digest>& key) {
    if (!key) return std::nullopt;
    return job_.options.cache->Find(*key, job_.progress);
  }
  void Store(const std::optional<Digest>& key, ByteSpan binary) {
    if (key) job_.options.cache->Store(*key, binary, job_.progress);
  }

 private:
  const QueueJob& job_;
  ir::Fingerprints fingerprints_;
  std::optional<Digest> target_;
};

// How far a context is.
struct Slot {
  std::optional<Digest> key;
  std::optional<FileCache::Entry> found;
  std::optional<ChildProcess> child;
  std::optional<ChildOutcome> made;
  std::optional<Error> failure;
  uint64_t peak = 0;  // that the child is expected to have

  bool ready() const { return found || made; }
  ByteSpan binary() const { return found ? found->bytes : made->bytes.bytes(); }
};

class Queue {
 public:
  Queue(const QueueJob& job, const TakeContext& take)
      : job_(job), take_(take), cache_(job), slots_(job.plans.size()) {}

  Status Run();

 private:
  bool MayStart(size_t index) const;
  Status Start(size_t index);
  Status TakeNext();
  void WaitForNews();
  void TakeNewsOf(size_t index);
  void NoteOf(size_t index) const;
  void ShowProgress() const;

  const QueueJob& job_;
  const TakeContext& take_;
  ContextCache cache_;
  std::vector<Slot> slots_;
  size_t started_ = 0;
  size_t taken_ = 0;
  bool failed_ = false;  // one of the started contexts
  int processes_ = 1;
  uint64_t memory_ = 0;  // for the children together
};

Status Queue::Run() {
  HX_RETURN_IF_ERROR(cache_.Open());
  ReturnFreedMemory();
  const LowerOptions& options = job_.options;
  processes_ = options.processes > 0
                   ? options.processes
                   : static_cast<int>(std::thread::hardware_concurrency());
  memory_ = options.max_memory.value_or(AvailableMemory().value_or(UINT64_MAX) /
                                        4 * 3);
  memory_ -= std::min(memory_, OwnMemory());
  while (taken_ < slots_.size()) {
    // In the order of the plans, however fast each is: the same error each
    // time.
    if (slots_[taken_].failure) return *slots_[taken_].failure;
    if (started_ < slots_.size() && MayStart(started_)) {
      HX_RETURN_IF_ERROR(Start(started_++));
    } else if (slots_[taken_].ready()) {
      HX_RETURN_IF_ERROR(TakeNext());
    } else {
      WaitForNews();
    }
    ShowProgress();
  }
  return OkStatus();
}

// What waits to be taken counts, as it is in memory too. One may always run:
// whether it can was checked before.
bool Queue::MayStart(size_t index) const {
  if (failed_) return false;
  int running = 0;
  uint64_t used = PeakBytes(job_.module, job_.plans[index]);
  for (size_t i = taken_; i < started_; ++i) {
    const Slot& slot = slots_[i];
    if (slot.child) ++running;
    used += slot.child ? slot.peak : slot.binary().size();
  }
  return running == 0 || (running < processes_ && used <= memory_);
}

Status Queue::Start(size_t index) {
  const ContextPlan& plan = job_.plans[index];
  Slot& slot = slots_[index];
  slot.key = cache_.KeyOf(plan);
  slot.found = cache_.Find(slot.key);
  if (slot.found) {
    job_.progress.Note(plan.name + ": from the cache");
    return OkStatus();
  }
  slot.peak = PeakBytes(job_.module, plan);
  HX_ASSIGN_OR_RETURN(
      slot.child, ChildProcess::Start([&](const ChildChannel& channel) {
        // The library pads constants with what malloc gives it: with zeros,
        // so that equal contexts are equal.
        ::mallopt(M_PERTURB, 0xFF);
        return CompileContext({job_.module, plan, job_.options}, channel);
      }));
  return OkStatus();
}

Status Queue::TakeNext() {
  Slot& slot = slots_[taken_];
  HX_RETURN_IF_ERROR(take_(job_.plans[taken_], slot.binary()));
  slot = {};
  ++taken_;
  return OkStatus();
}

void Queue::WaitForNews() {
  std::vector<pollfd> fds;
  std::vector<size_t> indices;
  for (size_t i = taken_; i < started_; ++i) {
    if (!slots_[i].child) continue;
    fds.push_back(
        {.fd = slots_[i].child->fd(), .events = POLLIN, .revents = 0});
    indices.push_back(i);
  }
  while (::poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) {
  }
  for (size_t i = 0; i < fds.size(); ++i) {
    if (fds[i].revents != 0) TakeNewsOf(indices[i]);
  }
}

void Queue::TakeNewsOf(size_t index) {
  Slot& slot = slots_[index];
  if (slot.child->Read()) return;
  auto made = (*std::move(slot.child)).Finish();
  slot.child.reset();
  if (!made.ok()) {
    slot.failure = std::move(made).error().With(job_.plans[index].name);
    failed_ = true;
    return;
  }
  slot.made = *std::move(made);
  NoteOf(index);
  cache_.Store(slot.key, slot.binary());
}

void Queue::NoteOf(size_t index) const {
  const Slot& slot = slots_[index];
  job_.progress.Note(fmt::format(
      "{}: {} in {:.1f} CPU-seconds and {} of memory, {} expected",
      job_.plans[index].name, MemorySizeText(slot.binary().size()),
      slot.made->cpu_seconds, MemorySizeText(slot.made->peak_rss_bytes),
      MemorySizeText(slot.peak)));
}

void Queue::ShowProgress() const {
  int64_t graphs = 0;
  for (size_t i = 0; i < started_; ++i) {
    const Slot& slot = slots_[i];
    graphs +=
        slot.child ? slot.child->steps() : std::ssize(job_.plans[i].graphs);
  }
  job_.progress.Update(graphs);
}

}  // namespace

Status MakeContexts(const QueueJob& job, const TakeContext& take) {
  return Queue(job, take).Run();
}

}  // namespace hexllm::htp
