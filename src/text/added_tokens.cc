#include "text/added_tokens.h"

#include <algorithm>

#include "text/unicode.h"
#include "text/utf8.h"

namespace hexllm {
namespace {

// The character that ends at byte `end` (> 0) of valid UTF-8.
Utf8Char CharBefore(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return DecodeUtf8(text, at);
}

bool StandsAlone(std::string_view text, size_t begin, size_t end) {
  const bool word_before =
      begin > 0 && IsWordChar(CharBefore(text, begin).code_point);
  const bool word_after =
      end < text.size() && IsWordChar(DecodeUtf8(text, end).code_point);
  return !word_before && !word_after;
}

// Moves `begin` over the white space before it, down to `limit` at most.
size_t SkipSpaceBackward(std::string_view text, size_t begin, size_t limit) {
  while (begin > limit) {
    const Utf8Char c = CharBefore(text, begin);
    if (!IsWhiteSpace(c.code_point)) break;
    begin -= c.bytes;
  }
  return std::max(begin, limit);
}

size_t SkipSpaceForward(std::string_view text, size_t end) {
  while (end < text.size()) {
    const Utf8Char c = DecodeUtf8(text, end);
    if (!IsWhiteSpace(c.code_point)) break;
    end += c.bytes;
  }
  return end;
}

}  // namespace

void StringTrie::Add(std::string_view key, int32_t value) {
  uint32_t node = 0;
  for (const char c : key) {
    const auto byte = static_cast<uint8_t>(c);
    const auto& edges = nodes_[node].edges;
    const auto edge =
        std::find_if(edges.begin(), edges.end(),
                     [&](const Edge& e) { return e.byte == byte; });
    if (edge != edges.end()) {
      node = edge->target;
      continue;
    }
    const auto target = static_cast<uint32_t>(nodes_.size());
    nodes_[node].edges.push_back({byte, target});
    nodes_.emplace_back();
    node = target;
  }
  nodes_[node].value = value;
}

void StringTrie::Seal() {
  for (Node& node : nodes_) {
    std::sort(node.edges.begin(), node.edges.end(),
              [](const Edge& a, const Edge& b) { return a.byte < b.byte; });
  }
  for (const Edge& edge : nodes_[0].edges) begins_[edge.byte] = true;
}

StringTrie::Found StringTrie::Longest(std::string_view text, size_t at) const {
  Found found;
  uint32_t node = 0;
  for (size_t i = at; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const auto& edges = nodes_[node].edges;
    const auto edge =
        std::lower_bound(edges.begin(), edges.end(), byte,
                         [](const Edge& e, uint8_t b) { return e.byte < b; });
    if (edge == edges.end() || edge->byte != byte) break;
    node = edge->target;
    if (nodes_[node].value >= 0) found = {i + 1 - at, nodes_[node].value};
  }
  return found;
}

size_t StringTrie::NextCandidate(std::string_view text, size_t at) const {
  while (at < text.size() && !begins_[static_cast<uint8_t>(text[at])]) ++at;
  return at;
}

Result<AddedTokens> AddedTokens::Create(std::span<const AddedToken> tokens,
                                        const Normalizer& normalizer) {
  AddedTokens added;
  added.tokens_.assign(tokens.begin(), tokens.end());
  RegexScratch scratch;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const AddedToken& token = tokens[i];
    const auto value = static_cast<int32_t>(i);
    if (!token.normalized) {
      added.given_.Add(token.content, value);
    } else if (normalizer.IsIdentity()) {
      added.normalized_.Add(token.content, value);
    } else {
      HX_ASSIGN_OR_RETURN(const std::string content,
                          normalizer.Apply(token.content, scratch));
      added.normalized_.Add(content, value);
    }
  }
  added.given_.Seal();
  added.normalized_.Seal();
  return added;
}

void AddedTokens::Cut(AddedTokenStage stage, std::string_view text,
                      std::vector<Part>& parts) const {
  parts.clear();
  const StringTrie& trie = Trie(stage);
  size_t done = 0;
  for (size_t at = trie.NextCandidate(text, 0); at < text.size();
       at = trie.NextCandidate(text, at)) {
    const StringTrie::Found found = trie.Longest(text, at);
    if (found.bytes == 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(found.value)];
    size_t begin = at;
    size_t end = at + found.bytes;
    at = end;
    if (token.single_word && !StandsAlone(text, begin, end)) continue;
    if (token.lstrip)
      begin = SkipSpaceBackward(text, begin, std::min(done, begin));
    if (token.rstrip) end = SkipSpaceForward(text, end);
    if (begin > done) parts.push_back({done, begin, kNoToken});
    parts.push_back({begin, end, token.id});
    done = end;
  }
  if (done < text.size()) parts.push_back({done, text.size(), kNoToken});
}

}  // namespace hexllm
