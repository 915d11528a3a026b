#include "base/graph_role.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>

#include "base/check.h"

namespace hexllm {
namespace {

constexpr std::string_view kGraphKinds[] = {"prefill", "kv", "lookahead",
                                            "evictor"};

enum class Direction { kIn, kOut };
enum class Indexing { kSingle, kIndexed, kNamed };

struct RoleRow {
  RoleKind kind;
  std::string_view name;
  Direction direction;
  Indexing indexing;
};

constexpr RoleRow kRoles[] = {
    {RoleKind::kToken, "token", Direction::kIn, Indexing::kSingle},
    {RoleKind::kEmbedding, "embedding", Direction::kIn, Indexing::kSingle},
    {RoleKind::kRopeCos, "rope_cos", Direction::kIn, Indexing::kIndexed},
    {RoleKind::kRopeSin, "rope_sin", Direction::kIn, Indexing::kIndexed},
    {RoleKind::kMask, "mask", Direction::kIn, Indexing::kIndexed},
    {RoleKind::kKIn, "k_in", Direction::kIn, Indexing::kIndexed},
    {RoleKind::kVIn, "v_in", Direction::kIn, Indexing::kIndexed},
    {RoleKind::kLogits, "logits", Direction::kOut, Indexing::kSingle},
    {RoleKind::kKOut, "k_out", Direction::kOut, Indexing::kIndexed},
    {RoleKind::kVOut, "v_out", Direction::kOut, Indexing::kIndexed},
    {RoleKind::kHiddenIn, "hidden_in", Direction::kIn, Indexing::kSingle},
    {RoleKind::kHiddenOut, "hidden_out", Direction::kOut, Indexing::kSingle},
    {RoleKind::kTap, "tap", Direction::kOut, Indexing::kNamed},
};

const RoleRow& RowOf(RoleKind kind) {
  HX_CHECK(static_cast<size_t>(kind) < std::size(kRoles));
  const RoleRow& row = kRoles[static_cast<size_t>(kind)];
  HX_CHECK(row.kind == kind);
  return row;
}

std::optional<Role> ParseBracketed(const RoleRow& row,
                                   std::string_view inside) {
  Role role{.kind = row.kind};
  if (row.indexing == Indexing::kNamed) {
    role.name = inside;
    return role;
  }
  const char* end = inside.data() + inside.size();
  const auto [stop, error] = std::from_chars(inside.data(), end, role.index);
  if (error != std::errc() || stop != end || role.index < 0)
    return std::nullopt;
  return role;
}

}  // namespace

bool IsInputRole(RoleKind kind) {
  return RowOf(kind).direction == Direction::kIn;
}
bool IsIndexedRole(RoleKind kind) {
  return RowOf(kind).indexing == Indexing::kIndexed;
}

std::string RoleToString(const Role& role) {
  const RoleRow& row = RowOf(role.kind);
  switch (row.indexing) {
    case Indexing::kSingle:
      return std::string(row.name);
    case Indexing::kIndexed:
      return fmt::format("{}[{}]", row.name, role.index);
    case Indexing::kNamed:
      return fmt::format("{}[{}]", row.name, role.name);
  }
  return {};
}

std::optional<Role> ParseRole(std::string_view text) {
  const size_t open = text.find('[');
  const std::string_view head = text.substr(0, open);
  for (const RoleRow& row : kRoles) {
    if (row.name != head) continue;
    const bool bracketed = open != std::string_view::npos;
    if (bracketed != (row.indexing != Indexing::kSingle)) return std::nullopt;
    if (!bracketed) return Role{.kind = row.kind};
    if (text.back() != ']') return std::nullopt;
    return ParseBracketed(row, text.substr(open + 1, text.size() - open - 2));
  }
  return std::nullopt;
}

std::string_view GraphKindName(GraphKind kind) {
  HX_CHECK(static_cast<size_t>(kind) < std::size(kGraphKinds));
  return kGraphKinds[static_cast<size_t>(kind)];
}

std::optional<GraphKind> ParseGraphKind(std::string_view text) {
  for (size_t i = 0; i < std::size(kGraphKinds); ++i) {
    if (kGraphKinds[i] == text) return static_cast<GraphKind>(i);
  }
  return std::nullopt;
}

std::optional<GraphKind> GraphKindFromNumber(uint64_t number) {
  if (number >= std::size(kGraphKinds)) return std::nullopt;
  return static_cast<GraphKind>(number);
}

std::optional<RoleKind> RoleKindFromNumber(uint64_t number) {
  if (number >= std::size(kRoles)) return std::nullopt;
  return static_cast<RoleKind>(number);
}

}  // namespace hexllm
