#include "text/sentence_piece.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <exception>
#include <string>

#include "base/quote.h"

// Exported by the library, but declared in a header that it does not install
// (src/common.h).
namespace sentencepiece::logging {
void SetMinLogLevel(int level);
}  // namespace sentencepiece::logging

namespace hexllm {
namespace {

// The library writes to standard error; what counts comes as a status too.
void SilenceLog() {
  constexpr int kFatal = 3;
  [[maybe_unused]] static const bool done = [] {
    sentencepiece::logging::SetMinLogLevel(kFatal);
    return true;
  }();
}

Error Failed(std::string_view what) {
  return Error{ErrorCode::kBadInput,
               fmt::format("SentencePiece: {}", Printable(what))};
}

// Calls into the library. What it throws becomes an error.
template <typename F>
Status Guarded(F&& call) {
  try {
    const sentencepiece::util::Status status = call();
    return status.ok() ? OkStatus() : Failed(status.error_message());
  } catch (const std::exception& error) {
    return Failed(error.what());
  } catch (...) {
    return Failed("unknown failure");
  }
}

}  // namespace

struct SentencePieceModel::Impl {
  sentencepiece::SentencePieceProcessor processor;
  StringTable pieces;
  PieceIndex index;
};

SentencePieceModel::SentencePieceModel(std::unique_ptr<const Impl> impl)
    : impl_(std::move(impl)) {}
SentencePieceModel::SentencePieceModel(SentencePieceModel&&) noexcept = default;
SentencePieceModel& SentencePieceModel::operator=(
    SentencePieceModel&&) noexcept = default;
SentencePieceModel::~SentencePieceModel() = default;

Result<SentencePieceModel> SentencePieceModel::Create(TokenizerData& data) {
  // Also from an artifact: the library trusts what it is given.
  HX_RETURN_IF_ERROR(ParseSentencePiece(AsBytes(data.sentence_piece)).status());
  SilenceLog();
  auto impl = std::make_unique<Impl>();
  HX_RETURN_IF_ERROR(Guarded([&] {
    return impl->processor.LoadFromSerializedProto(data.sentence_piece);
  }));
  impl->pieces = std::move(data.pieces);
  if (static_cast<size_t>(impl->processor.GetPieceSize()) !=
      impl->pieces.size())
    return Failed(fmt::format("expected {} pieces, found {}",
                              impl->pieces.size(),
                              impl->processor.GetPieceSize()));
  impl->index.Build(impl->pieces);
  return SentencePieceModel(std::move(impl));
}

Status SentencePieceModel::Encode(std::string_view text,
                                  std::vector<int32_t>& out) const {
  std::vector<int> ids;
  HX_RETURN_IF_ERROR(Guarded([&] {
    return impl_->processor.Encode({text.data(), text.size()}, &ids);
  }));
  out.insert(out.end(), ids.begin(), ids.end());
  return OkStatus();
}

int32_t SentencePieceModel::Find(std::string_view spelling) const {
  return impl_->index.Find(impl_->pieces, spelling);
}

}  // namespace hexllm
