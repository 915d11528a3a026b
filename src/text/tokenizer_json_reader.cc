#include "text/tokenizer_json_reader.h"

#include <fmt/format.h>

#include <utility>

#include "text/tokenizer_data.h"

namespace hexllm {
namespace {

// The receiver of nlohmann-json's event parser. The names and signatures are
// that library's. A handler returns false to stop; error_ then holds the
// reason.
class Handler {
 public:
  // NOLINTBEGIN(readability-identifier-naming): names given by the library
  bool null() { return Scalar(nullptr); }
  bool boolean(bool value) { return Scalar(value); }
  bool number_integer(int64_t value) { return Integer(value); }
  bool number_unsigned(uint64_t value) {
    if (value > static_cast<uint64_t>(INT64_MAX))
      return Fail("a number is too large");
    return Integer(static_cast<int64_t>(value));
  }
  bool number_float(double value, const std::string& /*spelling*/) {
    return Scalar(value);
  }
  bool string(std::string& value);
  bool binary(Json::binary_t& /*value*/) { return Fail("binary data"); }
  bool start_object(size_t /*elements*/) { return Open(Json::object()); }
  bool key(std::string& name);
  bool end_object() { return Close(); }
  bool start_array(size_t /*elements*/) { return Open(Json::array()); }
  bool end_array() { return Close(); }
  bool parse_error(size_t position, const std::string& /*last_token*/,
                   const nlohmann::detail::exception& /*error*/) {
    return Fail(fmt::format("malformed JSON near byte {}", position));
  }
  // NOLINTEND(readability-identifier-naming)

  Result<RawTokenizerJson> Take() && {
    if (!error_.empty()) return Error{ErrorCode::kBadInput, std::move(error_)};
    return std::move(raw_);
  }

 private:
  // Where the parser is.
  enum class Region {
    kTree,
    kVocab,      // in model.vocab, an object
    kSkipped,    // in model.vocab, a list
    kMerges,     // in model.merges
    kMergePair,  // in a merge that is a list
  };
  struct Level {
    Json value;
    std::string key;  // of the member being read
  };

  bool Fail(std::string reason) {
    if (error_.empty()) error_ = std::move(reason);
    return false;
  }
  bool Open(Json container);
  bool Close();
  bool Scalar(Json value);
  bool Integer(int64_t value);
  bool Attach(Json value);
  bool AddMergeLine(std::string_view line);
  bool AddHalf(std::string_view half);
  // True when the next value is the member `name` of the member "model" of the
  // file.
  bool AtModelMember(std::string_view name) const {
    return levels_.size() == 2 && levels_[0].key == "model" &&
           levels_[1].key == name;
  }

  RawTokenizerJson raw_;
  std::string error_;
  std::vector<Level> levels_;
  Region region_ = Region::kTree;
  size_t depth_ = 0;         // nesting, also outside the tree
  size_t region_depth_ = 0;  // depth_ where the region began
  size_t pair_halves_ = 0;
};

bool Handler::Open(Json container) {
  if (++depth_ > static_cast<size_t>(kMaxJsonDepth))
    return Fail(fmt::format("nesting deeper than {} levels", kMaxJsonDepth));
  const bool is_object = container.is_object();
  switch (region_) {
    case Region::kSkipped:
      return true;
    case Region::kVocab:
      return Fail(
          "model.vocab: expected ids that are numbers, found a list or object");
    case Region::kMergePair:
      return Fail("model.merges: expected two strings, found a list or object");
    case Region::kMerges:
      if (is_object)
        return Fail(
            "model.merges: expected strings or lists of two strings, found an "
            "object");
      region_ = Region::kMergePair;
      pair_halves_ = 0;
      return true;
    case Region::kTree:
      break;
  }
  if (AtModelMember("vocab")) {
    region_ = is_object ? Region::kVocab : Region::kSkipped;
    raw_.vocab_is_list = !is_object;
    region_depth_ = depth_;
    return true;
  }
  if (AtModelMember("merges")) {
    if (is_object)
      return Fail("model.merges: expected a list, found an object");
    region_ = Region::kMerges;
    region_depth_ = depth_;
    return true;
  }
  levels_.push_back({std::move(container), {}});
  return true;
}

bool Handler::Close() {
  const size_t depth = depth_--;
  if (region_ == Region::kMergePair) {
    region_ = Region::kMerges;
    return pair_halves_ == 2 ||
           Fail(fmt::format("merge {}: expected 2 strings, found {}",
                            raw_.merge_halves.size() / 2, pair_halves_));
  }
  if (region_ != Region::kTree) {
    // An empty member takes the place of the table, so that a second one is
    // seen as a duplicate.
    if (depth != region_depth_) return true;
    region_ = Region::kTree;
    return Attach(nullptr);
  }
  Json done = std::move(levels_.back().value);
  levels_.pop_back();
  return Attach(std::move(done));
}

bool Handler::Attach(Json value) {
  if (levels_.empty()) {
    raw_.tree = std::move(value);
    return true;
  }
  Level& level = levels_.back();
  if (level.value.is_array()) {
    level.value.push_back(std::move(value));
    return true;
  }
  if (level.value.size() >= kMaxTokenizerJsonMembers) {
    return Fail(fmt::format("an object has more than {} members",
                            kMaxTokenizerJsonMembers));
  }
  if (level.value.contains(level.key))
    return Fail(
        fmt::format("key '{}' is given twice in one object", level.key));
  level.value[level.key] = std::move(value);
  return true;
}

bool Handler::key(std::string& name) {
  if (region_ == Region::kSkipped) return true;
  if (region_ == Region::kTree) {
    levels_.back().key = std::move(name);
    return true;
  }
  if (raw_.spellings.total_bytes() + name.size() > kMaxVocabBytes) {
    return Fail(
        fmt::format("model.vocab is longer than {} bytes", kMaxVocabBytes));
  }
  raw_.spellings.Add(name);
  return true;
}

bool Handler::Scalar(Json value) {
  switch (region_) {
    case Region::kTree:
      return Attach(std::move(value));
    case Region::kSkipped:
      return true;
    case Region::kVocab:
      return Fail(fmt::format("model.vocab: expected whole numbers, found {}",
                              JsonTypeName(value)));
    case Region::kMerges:
    case Region::kMergePair:
      return Fail(fmt::format("model.merges: expected strings, found {}",
                              JsonTypeName(value)));
  }
  return false;
}

bool Handler::Integer(int64_t value) {
  if (region_ != Region::kVocab) return Scalar(value);
  raw_.ids.push_back(value);
  return true;
}

bool Handler::string(std::string& value) {
  if (region_ == Region::kMerges) return AddMergeLine(value);
  if (region_ == Region::kMergePair) return AddHalf(value);
  return Scalar(std::move(value));
}

// "left right"; files before tokenizers 0.20 have merges in this form.
bool Handler::AddMergeLine(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos ||
      line.find(' ', space + 1) != std::string_view::npos) {
    return Fail(fmt::format(
        "merge {}: expected two strings separated by a space, found '{}'",
        raw_.merge_halves.size() / 2, line));
  }
  return AddHalf(line.substr(0, space)) && AddHalf(line.substr(space + 1));
}

bool Handler::AddHalf(std::string_view half) {
  ++pair_halves_;
  if (raw_.merge_halves.total_bytes() + half.size() > kMaxVocabBytes) {
    return Fail(
        fmt::format("model.merges is longer than {} bytes", kMaxVocabBytes));
  }
  raw_.merge_halves.Add(half);
  return true;
}

}  // namespace

Result<RawTokenizerJson> ReadTokenizerJson(std::string_view json) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (json.starts_with(kByteOrderMark))
    json.remove_prefix(kByteOrderMark.size());
  Handler handler;
  Json::sax_parse(json.begin(), json.end(), &handler);
  return std::move(handler).Take();
}

}  // namespace hexllm
