#include "quant/recipe_glob.h"

#include <fmt/format.h>

#include "base/quote.h"

namespace hexllm::quant {
namespace {

constexpr size_t kNone = std::string_view::npos;

// The set that begins at glob[at] == '['.
struct Set {
  bool negated = false;
  std::string_view members;  // "a-c5"
  size_t end = kNone;        // behind the ']'; kNone: there is none
};

Set SetAt(std::string_view glob, size_t at) {
  Set set;
  size_t begin = at + 1;
  if (begin < glob.size() && glob[begin] == '!') {
    set.negated = true;
    ++begin;
  }
  const size_t close = glob.find(']', begin);
  if (close == kNone) return set;
  set.members = glob.substr(begin, close - begin);
  set.end = close + 1;
  return set;
}

// A range "a-c" at members[at]; a '-' at either end is itself.
bool IsRange(std::string_view members, size_t at) {
  return at + 2 < members.size() && members[at + 1] == '-';
}

bool Holds(const Set& set, char c) {
  bool found = false;
  for (size_t i = 0; i < set.members.size(); ++i) {
    const char low = set.members[i];
    if (IsRange(set.members, i)) i += 2;
    found = found || (low <= c && c <= set.members[i]);
  }
  return found != set.negated;
}

// Matches one character against the item at glob[at], no '*'. Where the next
// item begins, or kNone.
size_t MatchOne(std::string_view glob, size_t at, char c) {
  if (glob[at] == '?') return at + 1;
  if (glob[at] != '[') return glob[at] == c ? at + 1 : kNone;
  const Set set = SetAt(glob, at);
  return Holds(set, c) ? set.end : kNone;
}

std::string_view SetProblem(const Set& set) {
  if (set.end == kNone) return "a '[' without its ']'";
  if (set.members.empty()) return "an empty set []";
  for (size_t i = 0; i < set.members.size(); ++i) {
    if (!IsRange(set.members, i)) continue;
    if (set.members[i] > set.members[i + 2])
      return "a range that runs backwards";
    i += 2;
  }
  return {};
}

}  // namespace

Status CheckGlob(std::string_view glob) {
  if (glob.empty() || glob.size() > kMaxGlobBytes) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("expected a pattern of 1 to {} bytes, found {}",
                             kMaxGlobBytes, glob.size())};
  }
  for (size_t at = 0; at < glob.size();) {
    if (glob[at] != '[') {
      ++at;
      continue;
    }
    const Set set = SetAt(glob, at);
    if (const auto problem = SetProblem(set); !problem.empty()) {
      return Error{ErrorCode::kBadInput,
                   fmt::format("expected a pattern such as "
                               "'model.layers.[0-3].*', found {} in {}",
                               problem, Quoted(glob))};
    }
    at = set.end;
  }
  return OkStatus();
}

bool GlobMatches(std::string_view glob, std::string_view name) {
  size_t g = 0;
  size_t n = 0;
  // The last '*' and where the name's rest behind its run begins. An earlier
  // '*' needs no second try: the last one can take up whatever it would.
  size_t star = kNone;
  size_t resume = 0;
  while (n < name.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      resume = n;
      continue;
    }
    const size_t next = g < glob.size() ? MatchOne(glob, g, name[n]) : kNone;
    if (next != kNone) {
      g = next;
      ++n;
      continue;
    }
    if (star == kNone) return false;
    g = star + 1;
    n = ++resume;
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

}  // namespace hexllm::quant
