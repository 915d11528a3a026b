#include "text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <variant>

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/normalizer.h"
#include "text/piece_decoder.h"
#include "text/pre_tokenizer.h"
#include "text/sentence_piece.h"
#include "text/unigram.h"
#include "text/utf8.h"

namespace hexllm {
namespace {

// All buffers of one Encode call.
struct EncodeScratch {
  RegexScratch regex;
  PreTokenizerScratch pre_tokenizer;
  BpeScratch bpe;
  WordList words;
};

Status CheckAddedToken(const AddedToken& token) {
  const auto bad = [&](std::string_view what) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("added token {}: {}", token.id, what)};
  };
  if (token.id < 0 || token.id >= kMaxVocabSize)
    return bad(fmt::format("ids must lie in 0..{}", kMaxVocabSize - 1));
  if (token.content.empty()) return bad("its content is empty");
  if (token.content.size() > kMaxAddedTokenBytes)
    return bad(fmt::format("its content is longer than {} bytes",
                           kMaxAddedTokenBytes));
  if (!IsValidUtf8(token.content)) return bad("its content is not valid UTF-8");
  return OkStatus();
}

// The bounds on what is loaded, which keep every later sum in range.
Status CheckSizes(const TokenizerData& data) {
  size_t added_bytes = 0;
  for (const AddedToken& token : data.added_tokens) {
    HX_RETURN_IF_ERROR(CheckAddedToken(token));
    added_bytes += token.content.size();
  }
  if (data.pieces.size() <= static_cast<size_t>(kMaxVocabSize) &&
      data.pieces.total_bytes() <= kMaxVocabBytes &&
      added_bytes <= kMaxVocabBytes && data.merges.size() <= kMaxMerges) {
    return OkStatus();
  }
  return Error{ErrorCode::kUnsupported,
               fmt::format("a vocabulary of {} tokens ({} bytes), {} bytes of "
                           "added tokens and {} merges is too large",
                           data.pieces.size(), data.pieces.total_bytes(),
                           added_bytes, data.merges.size())};
}

// The ids that are given apart from the vocabulary.
Status CheckIds(const TokenizerData& data, size_t vocab_size) {
  for (const auto* ids :
       {&data.prefix_ids, &data.suffix_ids, &data.control_ids}) {
    for (const int32_t id : *ids) {
      if (id >= 0 && static_cast<size_t>(id) < vocab_size) continue;
      return Error{ErrorCode::kBadInput,
                   fmt::format("the post-processor or a control token has id "
                               "{}, but the vocabulary has {} tokens",
                               id, vocab_size)};
    }
  }
  return OkStatus();
}

Error TextTooLong(size_t bytes) {
  return Error{
      ErrorCode::kUsage,
      fmt::format("the text has {} bytes, at most {} can be encoded at once",
                  bytes, kMaxTextBytes)};
}

// What turns a word into ids.
class WordModel {
 public:
  static Result<WordModel> Create(TokenizerData& data, WordAlphabet alphabet) {
    if (data.model == TokenizerModel::kBpe) {
      HX_ASSIGN_OR_RETURN(BpeModel bpe, BpeModel::Create(data, alphabet));
      return WordModel(std::move(bpe));
    }
    if (alphabet != WordAlphabet::kText)
      return Error{ErrorCode::kUnsupported,
                   "a byte-level pre-tokenizer: expected a BPE, found another "
                   "model"};
    if (data.model == TokenizerModel::kUnigram) {
      HX_ASSIGN_OR_RETURN(UnigramModel unigram, UnigramModel::Create(data));
      return WordModel(std::move(unigram));
    }
    HX_ASSIGN_OR_RETURN(SentencePieceModel sentence_piece,
                        SentencePieceModel::Create(data));
    return WordModel(std::move(sentence_piece));
  }

  Status Encode(std::string_view word, BpeScratch& scratch,
                std::vector<int32_t>& out) const {
    if (const auto* bpe = std::get_if<BpeModel>(&model_)) {
      bpe->Encode(word, scratch, out);
    } else if (const auto* unigram = std::get_if<UnigramModel>(&model_)) {
      unigram->Encode(word, out);
    } else {
      return std::get<SentencePieceModel>(model_).Encode(word, out);
    }
    return OkStatus();
  }

  int32_t Find(std::string_view spelling) const {
    return std::visit([&](const auto& model) { return model.Find(spelling); },
                      model_);
  }

 private:
  using Model = std::variant<BpeModel, UnigramModel, SentencePieceModel>;
  explicit WordModel(Model model) : model_(std::move(model)) {}
  Model model_;
};

// The spelling of every id: the vocabulary, overlaid by the added tokens.
StringTable AllSpellings(const StringTable& pieces,
                         const std::vector<AddedToken>& added) {
  size_t count = pieces.size();
  std::unordered_map<size_t, std::string_view> overlay;
  for (const AddedToken& token : added) {
    const auto id = static_cast<size_t>(token.id);
    count = std::max(count, id + 1);
    overlay[id] = token.content;
  }
  StringTable all;
  all.Reserve(count, pieces.total_bytes() + 32 * added.size());
  for (size_t id = 0; id < count; ++id) {
    const auto token = overlay.find(id);
    if (token != overlay.end()) {
      all.Add(token->second);
    } else {
      all.Add(id < pieces.size() ? pieces[id] : std::string_view());
    }
  }
  return all;
}

}  // namespace

struct Tokenizer::Impl {
  Impl(Normalizer n, PreTokenizer p, AddedTokens a, WordModel m, PieceDecoder d)
      : normalizer(std::move(n)),
        pre_tokenizer(std::move(p)),
        added(std::move(a)),
        model(std::move(m)),
        decoder(std::move(d)) {}

  Status EncodePart(std::string_view text, bool at_start,
                    EncodeScratch& scratch, std::vector<int32_t>& out) const;
  Status EncodeWords(std::string_view text, bool at_start,
                     EncodeScratch& scratch, std::vector<int32_t>& out) const;

  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  AddedTokens added;
  WordModel model;
  PieceDecoder decoder;
  std::unordered_map<std::string, int32_t> added_ids;
  std::vector<bool> special;  // by id
  std::vector<int32_t> prefix_ids;
  std::vector<int32_t> suffix_ids;
};

Tokenizer::Tokenizer(std::unique_ptr<const Impl> impl)
    : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::Create(TokenizerData data) {
  HX_RETURN_IF_ERROR(CheckSizes(data));
  HX_ASSIGN_OR_RETURN(Normalizer normalizer,
                      Normalizer::Create(data.normalizer));
  HX_ASSIGN_OR_RETURN(PreTokenizer pre_tokenizer,
                      PreTokenizer::Create(data.pre_tokenizer));
  HX_ASSIGN_OR_RETURN(AddedTokens added,
                      AddedTokens::Create(data.added_tokens, normalizer));
  const StringTable spellings = AllSpellings(data.pieces, data.added_tokens);
  HX_ASSIGN_OR_RETURN(PieceDecoder decoder,
                      PieceDecoder::Create(data.decoder, spellings));
  HX_ASSIGN_OR_RETURN(WordModel model,
                      WordModel::Create(data, pre_tokenizer.alphabet()));
  auto impl = std::make_unique<Impl>(std::move(normalizer),
                                     std::move(pre_tokenizer), std::move(added),
                                     std::move(model), std::move(decoder));
  impl->special.resize(spellings.size());
  for (const AddedToken& token : data.added_tokens) {
    impl->added_ids[token.content] = token.id;
    if (token.special) impl->special[static_cast<size_t>(token.id)] = true;
  }
  HX_RETURN_IF_ERROR(CheckIds(data, spellings.size()));
  for (const int32_t id : data.control_ids)
    impl->special[static_cast<size_t>(id)] = true;
  impl->prefix_ids = std::move(data.prefix_ids);
  impl->suffix_ids = std::move(data.suffix_ids);
  return Tokenizer(std::move(impl));
}

Result<std::vector<int32_t>> Tokenizer::Encode(std::string_view text,
                                               AddSpecial add_special) const {
  if (text.size() > kMaxTextBytes) return TextTooLong(text.size());
  std::string repaired;
  if (!IsValidUtf8(text)) {
    AppendValidUtf8(text, repaired);
    text = repaired;
    if (text.size() > kMaxTextBytes) return TextTooLong(text.size());
  }
  std::vector<int32_t> out;
  out.reserve(text.size() / 4 + 8);
  if (add_special == AddSpecial::kYes)
    out.insert(out.end(), impl_->prefix_ids.begin(), impl_->prefix_ids.end());
  EncodeScratch scratch;
  std::vector<AddedTokens::Part> parts;
  impl_->added.Cut(AddedTokenStage::kGivenText, text, parts);
  for (const auto& part : parts) {
    if (part.id != kNoToken) {
      out.push_back(part.id);
      continue;
    }
    HX_RETURN_IF_ERROR(
        impl_->EncodePart(text.substr(part.begin, part.end - part.begin),
                          part.begin == 0, scratch, out));
  }
  if (add_special == AddSpecial::kYes)
    out.insert(out.end(), impl_->suffix_ids.begin(), impl_->suffix_ids.end());
  return out;
}

// Text between added tokens of the first stage: normalizes it and looks for
// those of the second.
Status Tokenizer::Impl::EncodePart(std::string_view text, bool at_start,
                                   EncodeScratch& scratch,
                                   std::vector<int32_t>& out) const {
  std::string normalized;
  if (!normalizer.IsIdentity()) {
    HX_ASSIGN_OR_RETURN(normalized, normalizer.Apply(text, scratch.regex));
    text = normalized;
  }
  if (!added.Any(AddedTokenStage::kNormalizedText))
    return EncodeWords(text, at_start, scratch, out);
  std::vector<AddedTokens::Part> parts;
  added.Cut(AddedTokenStage::kNormalizedText, text, parts);
  for (const auto& part : parts) {
    if (part.id != kNoToken) {
      out.push_back(part.id);
      continue;
    }
    HX_RETURN_IF_ERROR(
        EncodeWords(text.substr(part.begin, part.end - part.begin),
                    at_start && part.begin == 0, scratch, out));
  }
  return OkStatus();
}

// Text without added tokens.
Status Tokenizer::Impl::EncodeWords(std::string_view text, bool at_start,
                                    EncodeScratch& scratch,
                                    std::vector<int32_t>& out) const {
  scratch.words.text = text;
  scratch.words.at_start = at_start;
  HX_RETURN_IF_ERROR(
      pre_tokenizer.Cut(scratch.words, scratch.regex, scratch.pre_tokenizer));
  for (size_t i = 0; i < scratch.words.words.size(); ++i)
    HX_RETURN_IF_ERROR(model.Encode(scratch.words.Word(i), scratch.bpe, out));
  return OkStatus();
}

std::string Tokenizer::Decode(std::span<const int32_t> ids,
                              SpecialTokens special) const {
  const PieceDecoder& decoder = impl_->decoder;
  std::string joined;
  std::string run;  // bytes of neighbouring byte tokens
  const auto flush_run = [&] {
    decoder.AppendByteRun(run, joined);
    run.clear();
  };
  bool first = true;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocab_size() ||
        (special == SpecialTokens::kSkip && IsSpecial(id)))
      continue;
    const auto index = static_cast<size_t>(id);
    if (decoder.IsByteToken(index)) {
      run.append(decoder.Share(index));
      first = false;
      continue;
    }
    flush_run();
    if (!first && decoder.join() == PieceJoin::kTextSpaced)
      joined.push_back(' ');
    joined.append(first ? decoder.FirstShare(index) : decoder.Share(index));
    first = false;
  }
  flush_run();
  std::string_view text = joined;
  for (int32_t i = 0;
       i < decoder.strip_count() && text.starts_with(decoder.strip_char());
       ++i) {
    text.remove_prefix(decoder.strip_char().size());
  }
  std::string out;
  AppendValidUtf8(text, out);
  return out;
}

std::string_view Tokenizer::PieceBytes(int32_t id) const& {
  return id < 0 || id >= vocab_size()
             ? std::string_view()
             : impl_->decoder.Share(static_cast<size_t>(id));
}

int32_t Tokenizer::vocab_size() const {
  return static_cast<int32_t>(impl_->decoder.size());
}

std::optional<int32_t> Tokenizer::FindToken(std::string_view token) const {
  const auto added = impl_->added_ids.find(std::string(token));
  if (added != impl_->added_ids.end()) return added->second;
  const int32_t id = impl_->model.Find(token);
  return id == kNoToken ? std::nullopt : std::optional<int32_t>(id);
}

bool Tokenizer::IsSpecial(int32_t id) const {
  return id >= 0 && id < vocab_size() &&
         impl_->special[static_cast<size_t>(id)];
}

const PieceDecoder& Tokenizer::decoder() const& { return impl_->decoder; }

}  // namespace hexllm
