#include "runtime/sequence.h"

#include <algorithm>

#include "base/check.h"

namespace hexllm {
namespace {

void Rewind(Sequence& sequence, uint32_t tokens) {
  sequence.kv.Rewind(tokens);
  if (sequence.sink) sequence.sink->Rewind(tokens);
  sequence.logits = {};
}

}  // namespace

bool NeedsRoom(const Sequence& sequence, uint32_t tokens) {
  const KvManager& kv = sequence.kv;
  return sequence.sink && kv.tokens() + tokens > kv.capacity();
}

Status MakeRoom(Sequence& sequence, uint32_t tokens) {
  while (NeedsRoom(sequence, tokens)) {
    const auto first = sequence.ids.begin() + sequence.sink->sink_tokens();
    const auto end = first + sequence.sink->evict_tokens();
    HX_RETURN_IF_ERROR(sequence.sink->Evict());
    sequence.evicted.insert(sequence.evicted.end(), first, end);
    sequence.ids.erase(first, end);
  }
  return OkStatus();
}

size_t CommonTokens(const Sequence& sequence, std::span<const int32_t> ids) {
  const auto run = std::span(sequence.ids).first(sequence.kv.tokens());
  const size_t sink =
      sequence.evicted.empty() ? run.size() : sequence.sink->sink_tokens();
  size_t common = 0;
  for (const std::span<const int32_t> part :
       {run.first(sink), std::span<const int32_t>(sequence.evicted),
        run.subspan(sink)}) {
    const auto rest = ids.subspan(common);
    const auto differ = std::ranges::mismatch(part, rest).in1;
    common += static_cast<size_t>(differ - part.begin());
    if (differ != part.end()) break;
  }
  return common;
}

void TruncateSequence(Sequence& sequence, uint32_t tokens) {
  Rewind(sequence, tokens);
  sequence.ids.resize(tokens);
  if (sequence.sink && tokens <= sequence.sink->sink_tokens())
    sequence.evicted.clear();
}

void UnrunLastToken(Sequence& sequence) {
  HX_CHECK(sequence.kv.tokens() > 0);
  Rewind(sequence, sequence.kv.tokens() - 1);
}

void ResetSequence(Sequence& sequence) {
  Rewind(sequence, 0);
  sequence.kv.Reset();
  sequence.ids.clear();
  sequence.evicted.clear();
}

}  // namespace hexllm
