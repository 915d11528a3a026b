#include "base/digest.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>

#include "base/check.h"

namespace hexllm {
namespace {

Digest FromXxh(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  Digest digest;
  static_assert(sizeof(canonical.digest) == sizeof(digest.bytes));
  std::memcpy(digest.bytes.data(), canonical.digest, sizeof(canonical.digest));
  return digest;
}

}  // namespace

std::string DigestToHex(const Digest& digest) {
  std::string text;
  for (const std::byte byte : digest.bytes)
    text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

struct Hasher::State {
  State() { HX_CHECK(xxh != nullptr); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { XXH3_freeState(xxh); }

  XXH3_state_t* xxh = XXH3_createState();
};

Hasher::Hasher() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(state_->xxh);
}

Hasher::Hasher(Hasher&&) noexcept = default;
Hasher::~Hasher() = default;

void Hasher::Add(ByteSpan field) {
  const uint64_t size = field.size();
  XXH3_128bits_update(state_->xxh, &size, sizeof(size));
  XXH3_128bits_update(state_->xxh, field.data(), field.size());
}

Digest Hasher::Finish() const {
  return FromXxh(XXH3_128bits_digest(state_->xxh));
}

Digest DigestOf(ByteSpan bytes) {
  return FromXxh(XXH3_128bits(bytes.data(), bytes.size()));
}

}  // namespace hexllm
