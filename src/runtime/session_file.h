// A session on disk: token ids, keys and values of the tokens that were run,
// and the chat that they are of (`run --save-session`, `--load-session`). Used
// by Session and Conversation. The layout is in docs/formats.md: a safetensors
// file, so that other tools can look into it. It does not know caches: see
// runtime/session.h for what can be resumed where.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "artifact/manifest.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "base/status.h"

namespace hexllm {

// Which model keys and values are of. Recipe, target and graphs may differ.
struct ModelIdentity {
  uint64_t id = 0;  // Manifest::model_id
  std::string name;
  std::string architecture;
  uint32_t vocab_size = 0;
  uint32_t layers = 0;
};
ModelIdentity IdentityOf(const artifact::Manifest& manifest);

// Everything but the numbers.
struct SessionHead {
  ModelIdentity model;
  std::string producer;  // "hexllm 0.1.0", for people
  std::string recipe;    // for people
  // Of the first prompt, which chose the RoPE rows (longrope).
  uint32_t prompt_tokens = 0;
  // The tokens run, then those that were drawn and not yet run.
  std::vector<int32_t> ids;
  uint32_t cached_tokens = 0;  // N <= ids.size(): those with keys and values
  // [L]: k_in [G,D,N] and v_in [G,N,D] as the cache had them.
  std::vector<artifact::IoSpec> k, v;
  // With an attention sink of S tokens that has dropped some: these, in order.
  uint32_t sink_tokens = 0;
  std::vector<int32_t> evicted;
  // [N'] Where the first N' columns of the cache stood when their keys were
  // made; empty when all stand there still.
  std::vector<int32_t> positions;
  // [L] k_in [G,D,N'] as they were made; nothing for layers whose keys are not
  // rotated, and without positions.
  std::vector<std::optional<artifact::IoSpec>> stored;
  // What runtime/conversation.h adds; null without one.
  Json conversation;
};

// A session read from a file, whose bytes it borrows.
struct SavedSession {
  SessionHead head;
  // [L], exactly the specs' sizes; `stored` is empty where the head has none.
  std::vector<ByteSpan> k, v, stored;
};

// What a tensor of the file holds of a layer.
enum class KvPart : uint8_t { kKeys, kValues, kStoredKeys };

// Fills `out` with the bytes of head.k[layer], head.v[layer] or
// head.stored[layer].
using FillKv =
    std::function<void(KvPart part, size_t layer, std::span<std::byte> out)>;

// Fills `file` and commits it. Holds one tensor at a time. kEnvironment when
// the disk refuses.
Status WriteSession(OutputFile& file, const SessionHead& head,
                    const FillKv& fill);

// Reads what WriteSession wrote. The file is hostile: kBadInput for damage and
// for any field out of its range, kUnsupported for another version. Afterwards
// sizes fit each other and ids are not negative; whether they fit a model is
// for the caller to check. Messages do not name the file.
Result<SavedSession> ParseSession(ByteSpan file);

// A session with the file that it borrows from.
struct SessionFile {
  MappedFile file;
  SavedSession saved;
};
// Maps and parses `path`; messages name it. kEnvironment when it cannot be
// opened, else as ParseSession.
Result<SessionFile> OpenSession(const std::string& path);

// ParseSession without the checksum, which would stop a fuzzer.
Result<SavedSession> ParseUnverifiedSession(ByteSpan file);

}  // namespace hexllm
