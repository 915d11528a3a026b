// Reads one line of IR text from left to right. Used by ir/text_parse.cc alone.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace hexllm::ir {

// A cursor over one line. Blanks before a token are skipped; a failed read
// leaves an error "expected X, found 'rest of the line'".
class LineLexer {
 public:
  explicit LineLexer(std::string_view line) : rest_(line) {}

  // Consumes `token` when it comes next.
  bool Take(std::string_view token);
  // True when `token` comes next; does not consume.
  bool Sees(std::string_view token);
  Status Expect(std::string_view token);
  // The end of the line, or a // comment.
  Status ExpectEnd();
  bool AtEnd();

  // Letters, digits and _.
  Result<std::string_view> Word();
  // "text" with \\, \" and \xNN.
  Result<std::string> QuotedString();
  // A decimal number of the type, within its range.
  template <typename T>
  Result<T> Number() {
    SkipBlanks();
    T value{};
    const auto [stop, error] =
        std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) return Unexpected("a number");
    rest_.remove_prefix(static_cast<size_t>(stop - rest_.data()));
    return value;
  }
  // "[1,2,3]".
  template <typename T>
  Result<std::vector<T>> NumberList() {
    HX_RETURN_IF_ERROR(Expect("["));
    std::vector<T> list;
    if (Take("]")) return list;
    do {
      HX_ASSIGN_OR_RETURN(const T value, Number<T>());
      list.push_back(value);
    } while (Take(","));
    HX_RETURN_IF_ERROR(Expect("]"));
    return list;
  }

  Error Unexpected(std::string_view wanted) const;

 private:
  void SkipBlanks();
  // The character behind a backslash.
  Result<char> Escape();

  std::string_view rest_;
};

}  // namespace hexllm::ir
