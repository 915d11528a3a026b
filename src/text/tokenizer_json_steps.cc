#include "text/tokenizer_json_steps.h"

#include <fmt/format.h>

#include "base/quote.h"
#include "text/utf8.h"

namespace hexllm {
namespace {

Error Unsupported(std::string_view component, std::string_view type) {
  return Error{ErrorCode::kUnsupported,
               fmt::format("{} {} is not supported", component, Quoted(type))};
}

// A member that must be there, of any type.
Result<const Json*> Require(const Json& json, std::string_view key) {
  const Json* member = FindMember(json, key);
  if (member == nullptr)
    return Error{ErrorCode::kBadInput, fmt::format("'{}' is missing", key)};
  return member;
}

// The list under `key` of a sequence, each element given to `read`.
template <typename Read>
Status ReadSequence(const Json& json, std::string_view key, TokenizerData& data,
                    Read read) {
  HX_ASSIGN_OR_RETURN(const Json* list, Require(json, key));
  if (!list->is_array()) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("'{}': expected a list, found {}", key,
                             JsonTypeName(*list))};
  }
  for (const Json& element : *list) HX_RETURN_IF_ERROR(read(element, data));
  return OkStatus();
}

// {"String": text} or {"Regex": text}.
Result<TextPattern> ReadPattern(const Json& json) {
  HX_ASSIGN_OR_RETURN(const Json* pattern, Require(json, "pattern"));
  if (FindMember(*pattern, "String") != nullptr) {
    HX_ASSIGN_OR_RETURN(std::string text, GetString(*pattern, "String"));
    return TextPattern{PatternKind::kString, std::move(text)};
  }
  if (FindMember(*pattern, "Regex") != nullptr) {
    HX_ASSIGN_OR_RETURN(std::string text, GetString(*pattern, "Regex"));
    return TextPattern{PatternKind::kRegex, std::move(text)};
  }
  return Error{ErrorCode::kBadInput,
               "'pattern': expected {\"String\": ...} or {\"Regex\": ...}"};
}

Result<SplitBehavior> ReadBehavior(const Json& json,
                                   std::string_view fallback) {
  HX_ASSIGN_OR_RETURN(const std::string name,
                      GetStringOr(json, "behavior", fallback));
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return Error{
      ErrorCode::kBadInput,
      fmt::format("'behavior': expected Removed, Isolated, MergedWithPrevious, "
                  "MergedWithNext or Contiguous, found {}",
                  Quoted(name))};
}

// A member that holds exactly one character.
Result<std::string> ReadChar(const Json& json, std::string_view key) {
  HX_ASSIGN_OR_RETURN(std::string text, GetString(json, key));
  if (text.empty() || DecodeUtf8(text, 0).bytes != text.size()) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("'{}': expected one character, found {}", key,
                             Quoted(text))};
  }
  return text;
}

PreTokenizerStep SplitStep(PatternKind kind, SplitBehavior behavior) {
  PreTokenizerStep step;
  step.pattern.kind = kind;
  step.behavior = behavior;
  return step;
}

PreTokenizerStep RegexStep(std::string_view regex, SplitBehavior behavior) {
  PreTokenizerStep step = SplitStep(PatternKind::kRegex, behavior);
  step.pattern.text = regex;
  return step;
}

PreTokenizerStep PlainStep(PreTokenizerKind kind) {
  PreTokenizerStep step;
  step.kind = kind;
  return step;
}

Status ReadByteLevel(const Json& json, TokenizerData& data) {
  HX_ASSIGN_OR_RETURN(const bool prefix,
                      GetBoolOr(json, "add_prefix_space", true));
  HX_ASSIGN_OR_RETURN(const bool use_regex, GetBoolOr(json, "use_regex", true));
  if (prefix)
    data.pre_tokenizer.push_back(PlainStep(PreTokenizerKind::kPrefixSpace));
  if (use_regex)
    data.pre_tokenizer.push_back(
        RegexStep(kGpt2Pattern, SplitBehavior::kIsolated));
  data.pre_tokenizer.push_back(PlainStep(PreTokenizerKind::kByteMap));
  return OkStatus();
}

Status ReadSplit(const Json& json, TokenizerData& data) {
  PreTokenizerStep step;
  HX_ASSIGN_OR_RETURN(step.pattern, ReadPattern(json));
  HX_ASSIGN_OR_RETURN(step.behavior, ReadBehavior(json, ""));
  HX_ASSIGN_OR_RETURN(step.invert, GetBoolOr(json, "invert", false));
  data.pre_tokenizer.push_back(std::move(step));
  return OkStatus();
}

Result<PrependScheme> ReadPrependScheme(const Json& json) {
  // Files before tokenizers 0.15 say add_prefix_space.
  HX_ASSIGN_OR_RETURN(const bool legacy,
                      GetBoolOr(json, "add_prefix_space", true));
  HX_ASSIGN_OR_RETURN(
      const std::string name,
      GetStringOr(json, "prepend_scheme", legacy ? "always" : "never"));
  if (name == "always") return PrependScheme::kAlways;
  if (name == "first") return PrependScheme::kFirst;
  if (name == "never") return PrependScheme::kNever;
  return Error{
      ErrorCode::kBadInput,
      fmt::format("'prepend_scheme': expected always, first or never, found {}",
                  Quoted(name))};
}

Status ReadMetaspace(const Json& json, TokenizerData& data) {
  PreTokenizerStep step = PlainStep(PreTokenizerKind::kMetaspace);
  HX_ASSIGN_OR_RETURN(step.content, ReadChar(json, "replacement"));
  HX_ASSIGN_OR_RETURN(step.prepend, ReadPrependScheme(json));
  HX_ASSIGN_OR_RETURN(step.split, GetBoolOr(json, "split", true));
  data.pre_tokenizer.push_back(std::move(step));
  return OkStatus();
}

// Words are runs of word characters, or of what is neither word nor space, in
// the sense of Rust's regex crate.
void AppendWhitespace(TokenizerData& data) {
  PreTokenizerStep step =
      RegexStep(R"([\w\x{200C}\x{200D}]+|[^\w\x{200C}\x{200D}\s]+)",
                SplitBehavior::kRemoved);
  step.invert = true;
  data.pre_tokenizer.push_back(std::move(step));
}

// The ids that a template puts before and after the text.
struct Surround {
  std::vector<int32_t> prefix;
  std::vector<int32_t> suffix;
};

Result<int32_t> ToId(const Json& json) {
  const bool is_id =
      json.is_number_integer() && json >= 0 && json < kMaxVocabSize;
  if (!is_id)
    return Error{ErrorCode::kBadInput,
                 fmt::format("a template's id: expected 0..{}, found {}",
                             kMaxVocabSize - 1, Quoted(DumpJson(json)))};
  return json.get<int32_t>();
}

Status AppendTemplateToken(const Json& json, const Json& piece,
                           std::vector<int32_t>& out) {
  HX_ASSIGN_OR_RETURN(const std::string name, GetString(piece, "id"));
  HX_ASSIGN_OR_RETURN(const Json* tokens, Require(json, "special_tokens"));
  const Json* token = FindMember(*tokens, name);
  const Json* ids = token == nullptr ? nullptr : FindMember(*token, "ids");
  if (ids == nullptr || !ids->is_array()) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format(
            "'single' uses {}, but 'special_tokens' gives no ids for it",
            Quoted(name))};
  }
  for (const Json& id : *ids) {
    HX_ASSIGN_OR_RETURN(const int32_t value, ToId(id));
    out.push_back(value);
  }
  return OkStatus();
}

Status ReadTemplate(const Json& json, Surround& around) {
  HX_ASSIGN_OR_RETURN(const Json* single, Require(json, "single"));
  if (!single->is_array())
    return Error{ErrorCode::kUnsupported,
                 "a template 'single' that is not a list is not supported"};
  int texts = 0;
  for (const Json& piece : *single) {
    if (FindMember(piece, "Sequence") != nullptr) {
      ++texts;
      continue;
    }
    HX_ASSIGN_OR_RETURN(const Json* special, Require(piece, "SpecialToken"));
    HX_RETURN_IF_ERROR(AppendTemplateToken(
        json, *special, texts == 0 ? around.prefix : around.suffix));
  }
  if (texts != 1)
    return Error{
        ErrorCode::kUnsupported,
        fmt::format("a template with {} texts in 'single' is not supported",
                    texts)};
  return OkStatus();
}

// "cls" and "sep" of BERT's and RoBERTa's processors: [token, id].
Status ReadClsSep(const Json& json, Surround& around) {
  for (const std::string_view key : {"cls", "sep"}) {
    HX_ASSIGN_OR_RETURN(const Json* pair, Require(json, key));
    if (!pair->is_array() || pair->size() != 2) {
      return Error{ErrorCode::kBadInput,
                   fmt::format("'{}': expected [token, id], found {}", key,
                               JsonTypeName(*pair))};
    }
    HX_ASSIGN_OR_RETURN(const int32_t id, ToId((*pair)[1]));
    (key == "cls" ? around.prefix : around.suffix).push_back(id);
  }
  return OkStatus();
}

Result<int32_t> ReadCount(const Json& json, std::string_view key) {
  HX_ASSIGN_OR_RETURN(const int64_t count, GetInt(json, key));
  if (count < 0 || count > 1024)
    return Error{ErrorCode::kBadInput,
                 fmt::format("'{}': expected 0..1024, found {}", key, count)};
  return static_cast<int32_t>(count);
}

struct NamedNormalizer {
  std::string_view type;
  NormalizerKind kind;
};
// Normalizers without members.
constexpr NamedNormalizer kPlainNormalizers[] = {
    {"NFC", NormalizerKind::kNfc},
    {"NFD", NormalizerKind::kNfd},
    {"NFKC", NormalizerKind::kNfkc},
    {"NFKD", NormalizerKind::kNfkd},
    {"Lowercase", NormalizerKind::kLowercase},
    {"StripAccents", NormalizerKind::kStripAccents},
    {"Nmt", NormalizerKind::kNmt},
    {"ByteLevel", NormalizerKind::kByteMap},
};

}  // namespace

Status ReadNormalizer(const Json& json, TokenizerData& data) {
  HX_ASSIGN_OR_RETURN(const std::string type, GetString(json, "type"));
  if (type == "Sequence")
    return ReadSequence(json, "normalizers", data, ReadNormalizer);
  NormalizerStep step;
  for (const NamedNormalizer& row : kPlainNormalizers) {
    if (row.type != type) continue;
    step.kind = row.kind;
    data.normalizer.push_back(std::move(step));
    return OkStatus();
  }
  if (type == "Strip") {
    step.kind = NormalizerKind::kStrip;
    HX_ASSIGN_OR_RETURN(step.left, GetBoolOr(json, "strip_left", true));
    HX_ASSIGN_OR_RETURN(step.right, GetBoolOr(json, "strip_right", true));
  } else if (type == "Replace") {
    step.kind = NormalizerKind::kReplace;
    HX_ASSIGN_OR_RETURN(step.pattern, ReadPattern(json));
    HX_ASSIGN_OR_RETURN(step.content, GetString(json, "content"));
  } else if (type == "Prepend") {
    step.kind = NormalizerKind::kPrepend;
    HX_ASSIGN_OR_RETURN(step.content, GetString(json, "prepend"));
  } else {
    return Unsupported("normalizer", type);
  }
  data.normalizer.push_back(std::move(step));
  return OkStatus();
}

Status ReadPreTokenizer(const Json& json, TokenizerData& data) {
  HX_ASSIGN_OR_RETURN(const std::string type, GetString(json, "type"));
  if (type == "Sequence")
    return ReadSequence(json, "pretokenizers", data, ReadPreTokenizer);
  if (type == "ByteLevel") return ReadByteLevel(json, data);
  if (type == "Split") return ReadSplit(json, data);
  if (type == "Metaspace") return ReadMetaspace(json, data);
  if (type == "Digits") {
    HX_ASSIGN_OR_RETURN(const bool individual,
                        GetBoolOr(json, "individual_digits", false));
    const auto behavior =
        individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous;
    data.pre_tokenizer.push_back(SplitStep(PatternKind::kNumeric, behavior));
  } else if (type == "Punctuation") {
    HX_ASSIGN_OR_RETURN(const SplitBehavior behavior,
                        ReadBehavior(json, "Isolated"));
    data.pre_tokenizer.push_back(
        SplitStep(PatternKind::kPunctuation, behavior));
  } else if (type == "Whitespace") {
    AppendWhitespace(data);
  } else if (type == "WhitespaceSplit") {
    data.pre_tokenizer.push_back(
        SplitStep(PatternKind::kWhiteSpace, SplitBehavior::kRemoved));
  } else if (type == "CharDelimiterSplit") {
    PreTokenizerStep step =
        SplitStep(PatternKind::kString, SplitBehavior::kRemoved);
    HX_ASSIGN_OR_RETURN(step.pattern.text, ReadChar(json, "delimiter"));
    data.pre_tokenizer.push_back(std::move(step));
  } else {
    return Unsupported("pre_tokenizer", type);
  }
  return OkStatus();
}

Status ReadPostProcessor(const Json& json, TokenizerData& data) {
  HX_ASSIGN_OR_RETURN(const std::string type, GetString(json, "type"));
  if (type == "Sequence")
    return ReadSequence(json, "processors", data, ReadPostProcessor);
  if (type == "ByteLevel") return OkStatus();  // changes offsets alone
  Surround around;
  if (type == "TemplateProcessing") {
    HX_RETURN_IF_ERROR(ReadTemplate(json, around));
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    HX_RETURN_IF_ERROR(ReadClsSep(json, around));
  } else {
    return Unsupported("post_processor", type);
  }
  data.prefix_ids.insert(data.prefix_ids.begin(), around.prefix.begin(),
                         around.prefix.end());
  data.suffix_ids.insert(data.suffix_ids.end(), around.suffix.begin(),
                         around.suffix.end());
  return OkStatus();
}

Status ReadDecoder(const Json& json, TokenizerData& data) {
  HX_ASSIGN_OR_RETURN(const std::string type, GetString(json, "type"));
  if (type == "Sequence")
    return ReadSequence(json, "decoders", data, ReadDecoder);
  DecoderStep step;
  if (type == "ByteLevel") {
    step.kind = DecoderKind::kByteMap;
  } else if (type == "ByteFallback") {
    step.kind = DecoderKind::kByteFallback;
  } else if (type == "Fuse") {
    step.kind = DecoderKind::kFuse;
  } else if (type == "Replace") {
    step.kind = DecoderKind::kReplace;
    HX_ASSIGN_OR_RETURN(step.pattern, ReadPattern(json));
    HX_ASSIGN_OR_RETURN(step.content, GetString(json, "content"));
  } else if (type == "Strip") {
    step.kind = DecoderKind::kStrip;
    HX_ASSIGN_OR_RETURN(step.content, ReadChar(json, "content"));
    HX_ASSIGN_OR_RETURN(step.left, ReadCount(json, "start"));
    HX_ASSIGN_OR_RETURN(step.right, ReadCount(json, "stop"));
  } else if (type == "Metaspace") {
    step.kind = DecoderKind::kMetaspace;
    HX_ASSIGN_OR_RETURN(step.content, ReadChar(json, "replacement"));
    HX_ASSIGN_OR_RETURN(const PrependScheme scheme, ReadPrependScheme(json));
    step.drop_first = scheme != PrependScheme::kNever;
  } else {
    return Unsupported("decoder", type);
  }
  data.decoder.push_back(std::move(step));
  return OkStatus();
}

}  // namespace hexllm
