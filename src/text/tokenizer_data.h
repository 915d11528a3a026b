// TokenizerData: everything a tokenizer is, as plain data. It comes from a
// tokenizer.json, a SentencePiece or tiktoken tokenizer.model, llama2.c's
// tokenizer.bin, the metadata of a GGUF file or the compact blob of an
// artifact; text/tokenizer.h turns it into something that runs. The lists
// are in normal form: nested sequences are flat, and the many named steps of
// tokenizer.json are spelled with the few kinds below ("Digits" is a split on
// numeric characters). Not for chat templates.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "text/string_table.h"

namespace hexllm {

inline constexpr int32_t kNoToken = -1;
// Bounds on what is loaded. The largest published vocabulary has 262,145 tokens
// and 2 MB of text.
inline constexpr int32_t kMaxVocabSize = 1 << 22;
inline constexpr size_t kMaxVocabBytes = size_t{1} << 28;
inline constexpr size_t kMaxMerges = size_t{1} << 23;
inline constexpr size_t kMaxAddedTokenBytes = 1024;
// The longest text that is encoded, before and after normalization. Positions
// and counts of symbols fit in 31 bits.
inline constexpr size_t kMaxTextBytes = size_t{1} << 29;

// One merge of byte-pair encoding: the neighbours left, right become result.
// Its rank is its place in the list; the lowest rank is merged first. All three
// are ids of vocabulary pieces.
struct Merge {
  int32_t left;
  int32_t right;
  int32_t result;
  bool operator==(const Merge&) const = default;
};

// A token that is found in the text before anything else is done to it.
struct AddedToken {
  int32_t id = kNoToken;
  std::string content;  // UTF-8, not empty
  bool special =
      false;  // control token: left out when decoding with SpecialTokens::kSkip
  bool normalized =
      false;  // looked for in the normalized text, else in the text as given
  bool lstrip = false;  // takes the white space before it along
  bool rstrip = false;  // takes the white space after it along
  bool single_word =
      false;  // counts only where no word character stands beside it
  bool operator==(const AddedToken&) const = default;
};

enum class PatternKind : uint8_t {
  kString,       // `text` as it stands
  kRegex,        // `text` in Oniguruma's Ruby syntax, as tokenizer.json has it
  kNumeric,      // one character of category N
  kWhiteSpace,   // one character with White_Space
  kPunctuation,  // one character of category P or an ASCII symbol
};
struct TextPattern {
  PatternKind kind = PatternKind::kString;
  std::string text;
  bool operator==(const TextPattern&) const = default;
};

enum class NormalizerKind : uint8_t {
  kNfc,
  kNfd,
  kNfkc,
  kNfkd,
  kLowercase,
  kStrip,         // white space at the ends; uses left, right
  kStripAccents,  // drops characters of category M
  kReplace,       // each match of `pattern` by `content`
  kPrepend,       // `content` before a text that is not empty
  kNmt,           // the character clean-up of SentencePiece's nmt_nfkc
  kByteMap,       // each byte by its character of the byte-level alphabet
                  // (text/byte_level.h)
};
struct NormalizerStep {
  NormalizerKind kind = NormalizerKind::kNfc;
  TextPattern pattern;
  std::string content;
  bool left = false;
  bool right = false;
  bool operator==(const NormalizerStep&) const = default;
};

// What a split does with its matches. Example: "-" in "a--b":
enum class SplitBehavior : uint8_t {
  kRemoved,             // a | b
  kIsolated,            // a | - | - | b
  kMergedWithPrevious,  // a- | - | b
  kMergedWithNext,      // a | - | -b
  kContiguous,          // a | -- | b
};
enum class PrependScheme : uint8_t { kNever, kFirst, kAlways };

enum class PreTokenizerKind : uint8_t {
  kSplit,  // uses pattern, behavior, invert (true: the pattern describes what
           // lies between the matches)
  kPrefixSpace,  // a space before each word that does not begin with one
  kByteMap,      // each byte by its character of the byte-level alphabet
  kMetaspace,    // " " by `content`, prepended as `prepend` says; with `split`,
                 // words begin at each `content`
};
struct PreTokenizerStep {
  PreTokenizerKind kind = PreTokenizerKind::kSplit;
  TextPattern pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;
  std::string content;
  PrependScheme prepend = PrependScheme::kNever;
  bool split = false;
  bool operator==(const PreTokenizerStep&) const = default;
};

enum class DecoderKind : uint8_t {
  kByteMap,       // characters of the byte-level alphabet back to bytes
  kReplace,       // each match of `pattern` by `content`
  kByteFallback,  // runs of <0xAB> to the characters that they spell
  kFuse,          // joins the tokens
  kStrip,  // up to `left` / `right` times `content` (one character) at the ends
  kMetaspace,   // `content` to " "; with `drop_first`, to nothing in the first
                // token
  kBytePieces,  // as kByteFallback, but a run that is not UTF-8 as a whole
                // keeps its characters (SentencePiece's way)
};
struct DecoderStep {
  DecoderKind kind = DecoderKind::kFuse;
  TextPattern pattern;
  std::string content;
  int32_t left = 0;
  int32_t right = 0;
  bool drop_first = false;
  bool operator==(const DecoderStep&) const = default;
};

enum class TokenizerModel : uint8_t {
  kBpe,            // uses merges
  kUnigram,        // uses scores
  kSentencePiece,  // uses sentence_piece: the library does the rest
};

struct TokenizerData {
  TokenizerModel model = TokenizerModel::kBpe;
  // By id, spelled as published (byte-level pieces in their alphabet: "Ġthe").
  // Empty = no piece has this id.
  StringTable pieces;
  std::vector<Merge> merges;
  // Rank of each merge, where several share one: of those the leftmost pair is
  // merged first. Empty = its place in the list.
  std::vector<uint32_t> merge_ranks;
  // Log probability of each piece (kUnigram), else empty.
  std::vector<double> scores;
  // A serialized SentencePiece ModelProto (kSentencePiece), else empty.
  std::string sentence_piece;
  // Ids may lie inside or beyond `pieces`.
  std::vector<AddedToken> added_tokens;
  // Control tokens that no text spells: only their ids can say them.
  std::vector<int32_t> control_ids;
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pre_tokenizer;
  // Empty: tokens are joined by spaces, as Hugging Face tokenizers does without
  // a decoder.
  std::vector<DecoderStep> decoder;
  // What the post-processor puts before and after a text (BOS, EOS).
  std::vector<int32_t> prefix_ids;
  std::vector<int32_t> suffix_ids;
  int32_t unk_id = kNoToken;
  bool fuse_unk = false;       // neighbouring unknown characters become one unk
  bool byte_fallback = false;  // unknown characters become <0xAB> pieces where
                               // the vocabulary has them
  bool ignore_merges =
      false;  // a word that is a piece is that piece, whatever the merges say
  bool operator==(const TokenizerData&) const = default;
};

// Reads a Hugging Face tokenizer.json (tokenizers 0.23; older files too).
// kBadInput for a damaged or inconsistent file, kUnsupported naming the
// component that hexllm does not have.
Result<TokenizerData> ParseTokenizerJson(std::string_view json);

// Reads a SentencePiece model (a serialized ModelProto): BPE, Unigram, word or
// character. Control pieces are not looked for in the text, as in the library.
// kBadInput for damage, kUnsupported for models that treat white space as a
// suffix.
Result<TokenizerData> ParseSentencePiece(ByteSpan model);

// Reads a tiktoken file (a base64 token, a blank and its rank on each line) as
// Llama 3 uses it: with its pattern and its 256 special tokens. kBadInput
// naming the line.
Result<TokenizerData> ParseTiktoken(std::string_view text);

// Reads llama2.c's tokenizer.bin, in its own form or that of ExecuTorch (whose
// header holds vocabulary size, BOS and EOS too). Encodes as llama2.c does: the
// pair with the best score first, the leftmost among equals. kBadInput for
// damage.
Result<TokenizerData> ParseLlama2c(ByteSpan file);

// Reads any tokenizer file but GGUF; they are told apart by content.
Result<TokenizerData> ParseTokenizerFile(ByteSpan file);

// The tokenizer keys of a GGUF file (tokenizer.ggml.*), borrowed from the
// caller.
struct GgufTokenizer {
  std::string_view model;  // model: "gpt2" (byte-level BPE) or "llama"
                           // (SentencePiece)
  std::string_view pre;    // pre: "smollm", "llama-bpe", ...; "" = "default"
  std::span<const std::string_view> tokens;  // tokens
  std::span<const int32_t>
      token_types;  // token_type, as many as tokens; empty = all normal
  std::span<const std::string_view> merges;  // merges: "left right" ("gpt2")
  std::span<const float> scores;             // scores ("llama")
  std::optional<int64_t> bos_id;             // bos_token_id
  std::optional<int64_t> eos_id;             // eos_token_id
  std::optional<int64_t> unk_id;             // unknown_token_id
  std::optional<bool> add_bos;               // add_bos_token; absent: what the
                                // pre-tokenizer's family does, yes for "llama"
  std::optional<bool> add_eos;           // add_eos_token; absent: no
  std::optional<bool> add_space_prefix;  // add_space_prefix; absent: no, yes
                                         // for "llama"
};

// Builds a tokenizer from GGUF metadata. kBadInput for inconsistent keys;
// kUnsupported naming another `model` or a `pre` that is not in the table
// (text/gguf_pre_tokenizers.h).
Result<TokenizerData> TokenizerDataFromGguf(const GgufTokenizer& gguf);

// The compact form for artifacts (layout in text/tokenizer_blob.cc). Equal data
// gives equal bytes.
std::string SerializeTokenizer(const TokenizerData& data);
// Reads it back; kBadInput for bytes that SerializeTokenizer cannot have
// written. Does not keep `blob`.
Result<TokenizerData> ParseTokenizerBlob(ByteSpan blob);

}  // namespace hexllm
