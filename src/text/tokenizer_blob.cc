// The compact form of a tokenizer in an artifact. All numbers little-endian:
//   "HXTK", u32 version
//   vocabulary: varint count, a varint length for each piece, then all bytes
//   merges: varint count, then three varints each: left, right, and how far the
//     result is from the id after the last merge's (0 at first): 2d, or
//     -2d - 1 where d is negative
//   added tokens, normalizer, pre-tokenizer, decoder: varint count, then the
//     fields of each in the order of the Fields functions below; a flag or enum
//     is a byte, a number a varint, a string a varint length and its bytes
//   prefix ids, suffix ids: varint count, then varints
//   varint of unk_id + 1; then fuse_unk, byte_fallback, ignore_merges, model
//   control ids, merge ranks: varint count, then varints
//   scores: varint count, then f64 each; sentence_piece: a string
// A varint is LEB128 of at most 32 bits.
#include <fmt/format.h>

#include <type_traits>

#include "base/bytes.h"
#include "text/tokenizer_data.h"

namespace hexllm {
namespace {

constexpr std::string_view kMagic = "HXTK";
constexpr uint32_t kVersion = 3;
constexpr size_t kLeastMergeBytes = 3;
static_assert(kMaxVocabSize <= (1 << 24), "distances of ids fit a varint");

// Writes fields. Reader has the same members, so that one Fields function
// serves both.
class Writer {
 public:
  void Number(uint32_t value) {
    while (value >= 0x80) {
      out_.push_back(static_cast<char>(value | 0x80));
      value >>= 7;
    }
    out_.push_back(static_cast<char>(value));
  }
  void Flag(bool value) { out_.push_back(static_cast<char>(value)); }
  void Id(int32_t id) { Number(static_cast<uint32_t>(id + 1)); }
  void Count(int32_t count) { Number(static_cast<uint32_t>(count)); }
  void Text(std::string_view text) {
    Number(static_cast<uint32_t>(text.size()));
    out_.append(text);
  }
  template <typename E>
  void Enum(E value, E /*last*/) {
    out_.push_back(static_cast<char>(value));
  }
  template <typename T, typename Each>
  void List(const std::vector<T>& list, Each each) {
    Number(static_cast<uint32_t>(list.size()));
    for (const T& element : list) each(*this, element);
  }
  void Pieces(const StringTable& pieces) {
    Number(static_cast<uint32_t>(pieces.size()));
    for (size_t i = 0; i < pieces.size(); ++i)
      Number(static_cast<uint32_t>(pieces[i].size()));
    for (size_t i = 0; i < pieces.size(); ++i) out_.append(pieces[i]);
  }
  void Merges(const std::vector<Merge>& merges) {
    Number(static_cast<uint32_t>(merges.size()));
    int32_t next = 0;
    for (const Merge& merge : merges) {
      Number(static_cast<uint32_t>(merge.left));
      Number(static_cast<uint32_t>(merge.right));
      const int32_t distance = merge.result - next;
      Number(static_cast<uint32_t>(distance < 0 ? -2 * distance - 1
                                                : 2 * distance));
      next = merge.result + 1;
    }
  }
  void Scores(const std::vector<double>& scores) {
    Number(static_cast<uint32_t>(scores.size()));
    out_.append(AsText(std::as_bytes(std::span(scores))));
  }
  void Header() {
    out_.append(kMagic);
    for (int shift = 0; shift < 32; shift += 8)
      out_.push_back(static_cast<char>(kVersion >> shift));
  }
  std::string Take() && { return std::move(out_); }

 private:
  std::string out_;
};

// Reads fields. After the first error it reads nothing more and leaves fields
// as they are.
class Reader {
 public:
  explicit Reader(ByteSpan blob) : in_(blob) {}

  void Number(uint32_t& value) {
    uint64_t result = 0;
    for (int shift = 0; shift < 35 && ok(); shift += 7) {
      const auto byte = Byte();
      result |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) != 0) continue;
      if (result > UINT32_MAX) break;
      value = static_cast<uint32_t>(result);
      return;
    }
    Fail("a number is longer than 32 bits");
  }
  void Flag(bool& value) {
    const uint8_t byte = Byte();
    if (byte > 1) Fail("a flag is neither 0 nor 1");
    value = byte == 1;
  }
  void Id(int32_t& id) {
    uint32_t value = 0;
    Number(value);
    if (value > static_cast<uint32_t>(kMaxVocabSize))
      return Fail("an id is too large");
    id = static_cast<int32_t>(value) - 1;
  }
  void Count(int32_t& count) {
    uint32_t value = 0;
    Number(value);
    if (value > INT32_MAX) return Fail("a count is too large");
    count = static_cast<int32_t>(value);
  }
  void Text(std::string& text) {
    uint32_t size = 0;
    Number(size);
    text = AsText(Bytes(size));
  }
  template <typename E>
  void Enum(E& value, E last) {
    const uint8_t byte = Byte();
    if (byte > static_cast<uint8_t>(last)) return Fail("a kind is unknown");
    value = static_cast<E>(byte);
  }
  template <typename T, typename Each>
  void List(std::vector<T>& list, Each each) {
    uint32_t count = 0;
    Number(count);
    if (!Fits(count, 1)) return;
    for (uint32_t i = 0; i < count && ok(); ++i)
      each(*this, list.emplace_back());
  }
  void Pieces(StringTable& pieces);
  void Merges(std::vector<Merge>& merges);
  void Scores(std::vector<double>& scores);
  void Header();
  // kBadInput unless all went well and nothing is left.
  Status Finish();

 private:
  bool ok() const { return status_.ok(); }
  void Fail(std::string_view what) {
    if (ok())
      status_ = Error{
          ErrorCode::kBadInput,
          fmt::format("tokenizer blob: {} (near byte {})", what, in_.offset())};
  }
  ByteSpan Bytes(uint64_t size) {
    if (!ok()) return {};
    auto bytes = in_.ReadBytes(size);
    if (bytes.ok()) return *bytes;
    Fail("it ends early");
    return {};
  }
  uint8_t Byte() {
    const ByteSpan bytes = Bytes(1);
    return bytes.empty() ? uint8_t{0} : static_cast<uint8_t>(bytes[0]);
  }
  // True when `count` elements of at least `bytes_each` bytes can follow.
  bool Fits(uint64_t count, uint64_t bytes_each) {
    const auto total = CheckedMul(count, bytes_each);
    if (!total || *total > in_.remaining()) Fail("it ends early");
    return ok();
  }

  ByteReader in_;
  Status status_;
};

void Reader::Pieces(StringTable& pieces) {
  uint32_t count = 0;
  Number(count);
  if (count > static_cast<uint32_t>(kMaxVocabSize))
    Fail("the vocabulary is too large");
  if (!Fits(count, 1)) return;
  std::vector<uint32_t> sizes(count);
  uint64_t total = 0;
  for (uint32_t& size : sizes) {
    Number(size);
    total += size;
  }
  if (total > kMaxVocabBytes) Fail("the vocabulary is too large");
  const std::string_view bytes = AsText(Bytes(total));
  if (!ok()) return;
  pieces.Reserve(count, bytes.size());
  size_t at = 0;
  for (const uint32_t size : sizes) {
    pieces.Add(bytes.substr(at, size));
    at += size;
  }
}

void Reader::Merges(std::vector<Merge>& merges) {
  uint32_t count = 0;
  Number(count);
  if (count > kMaxMerges) Fail("there are too many merges");
  if (!Fits(count, kLeastMergeBytes)) return;
  merges.reserve(count);
  int64_t next = 0;
  for (uint32_t i = 0; i < count && ok(); ++i) {
    uint32_t left = 0;
    uint32_t right = 0;
    uint32_t code = 0;
    Number(left);
    Number(right);
    Number(code);
    const int64_t half = code / 2;
    const int64_t result = next + (code % 2 == 0 ? half : -half - 1);
    constexpr auto kEnd = static_cast<int64_t>(kMaxVocabSize);
    if (left >= kEnd || right >= kEnd || result < 0 || result >= kEnd)
      return Fail("an id is too large");
    merges.push_back({static_cast<int32_t>(left), static_cast<int32_t>(right),
                      static_cast<int32_t>(result)});
    next = result + 1;
  }
}

void Reader::Scores(std::vector<double>& scores) {
  uint32_t count = 0;
  Number(count);
  if (!Fits(count, sizeof(double))) return;
  const ByteSpan bytes = Bytes(count * sizeof(double));
  scores.resize(count);
  if (count > 0) std::memcpy(scores.data(), bytes.data(), bytes.size());
}

void Reader::Header() {
  if (AsText(Bytes(kMagic.size())) != kMagic)
    return Fail("it does not begin with HXTK");
  uint32_t version = 0;
  for (int shift = 0; shift < 32; shift += 8)
    version |= static_cast<uint32_t>(Byte()) << shift;
  if (version == kVersion) return;
  Fail(fmt::format("version {}, expected {}: compile the model again", version,
                   kVersion));
}

Status Reader::Finish() {
  if (in_.remaining() != 0) Fail("bytes are left over");
  return std::move(status_);
}

// One Fields function for each struct; `Io` is Writer or Reader.
template <typename Io, typename T>
void Fields(Io& io, T& x) {
  using S = std::remove_const_t<T>;
  if constexpr (std::is_same_v<S, TextPattern>) {
    io.Enum(x.kind, PatternKind::kPunctuation);
    io.Text(x.text);
  } else if constexpr (std::is_same_v<S, AddedToken>) {
    io.Id(x.id);
    io.Text(x.content);
    io.Flag(x.special);
    io.Flag(x.normalized);
    io.Flag(x.lstrip);
    io.Flag(x.rstrip);
    io.Flag(x.single_word);
  } else if constexpr (std::is_same_v<S, NormalizerStep>) {
    io.Enum(x.kind, NormalizerKind::kByteMap);
    Fields(io, x.pattern);
    io.Text(x.content);
    io.Flag(x.left);
    io.Flag(x.right);
  } else if constexpr (std::is_same_v<S, PreTokenizerStep>) {
    io.Enum(x.kind, PreTokenizerKind::kMetaspace);
    Fields(io, x.pattern);
    io.Enum(x.behavior, SplitBehavior::kContiguous);
    io.Flag(x.invert);
    io.Text(x.content);
    io.Enum(x.prepend, PrependScheme::kAlways);
    io.Flag(x.split);
  } else {
    static_assert(std::is_same_v<S, DecoderStep>);
    io.Enum(x.kind, DecoderKind::kBytePieces);
    Fields(io, x.pattern);
    io.Text(x.content);
    io.Count(x.left);
    io.Count(x.right);
    io.Flag(x.drop_first);
  }
}

template <typename Io, typename Data>
void TokenizerFields(Io& io, Data& data) {
  const auto fields = [](Io& each_io, auto& element) {
    Fields(each_io, element);
  };
  const auto id = [](Io& each_io, auto& element) { each_io.Id(element); };
  const auto number = [](Io& each_io, auto& element) {
    each_io.Number(element);
  };
  io.Header();
  io.Pieces(data.pieces);
  io.Merges(data.merges);
  io.List(data.added_tokens, fields);
  io.List(data.normalizer, fields);
  io.List(data.pre_tokenizer, fields);
  io.List(data.decoder, fields);
  io.List(data.prefix_ids, id);
  io.List(data.suffix_ids, id);
  io.Id(data.unk_id);
  io.Flag(data.fuse_unk);
  io.Flag(data.byte_fallback);
  io.Flag(data.ignore_merges);
  io.Enum(data.model, TokenizerModel::kSentencePiece);
  io.List(data.control_ids, id);
  io.List(data.merge_ranks, number);
  io.Scores(data.scores);
  io.Text(data.sentence_piece);
}

}  // namespace

std::string SerializeTokenizer(const TokenizerData& data) {
  Writer writer;
  TokenizerFields(writer, data);
  return std::move(writer).Take();
}

Result<TokenizerData> ParseTokenizerBlob(ByteSpan blob) {
  Reader reader(blob);
  TokenizerData data;
  TokenizerFields(reader, data);
  HX_RETURN_IF_ERROR(reader.Finish());
  return data;
}

}  // namespace hexllm
