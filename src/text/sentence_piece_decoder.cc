#include "text/sentence_piece_decoder.h"

namespace hexllm {

void AppendSentencePieceDecoder(std::string_view space, DummyPrefix prefix,
                                TokenizerData& data) {
  if (space != " ") {
    DecoderStep& replace = data.decoder.emplace_back();
    replace.kind = DecoderKind::kReplace;
    replace.pattern = {PatternKind::kString, std::string(space)};
    replace.content = " ";
  }
  data.decoder.emplace_back().kind = DecoderKind::kBytePieces;
  data.decoder.emplace_back().kind = DecoderKind::kFuse;
  if (prefix == DummyPrefix::kAbsent) return;
  DecoderStep& strip = data.decoder.emplace_back();
  strip.kind = DecoderKind::kStrip;
  strip.content = " ";
  strip.left = 1;
}

}  // namespace hexllm
