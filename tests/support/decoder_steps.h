// Feeds tokens to a decoder graph step by step, as a session would, with the
// plainest possible KV cache: all keys and values kept by position. For tests
// that compare step sizes; the real thing is runtime/.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/run_graph.h"
#include "tests/support/tiny_decoder.h"

namespace hexllm::testing {

// Runs graphs of a TinyDecoder.
class DecoderSteps {
 public:
  // `graph` must outlive the object.
  explicit DecoderSteps(BoundGraph& graph)
      : graph_(graph),
        tokens_(graph.graph().entry().step_tokens),
        past_(graph.graph().entry().context_tokens - tokens_),
        keys_(kTinyLayers),
        values_(kTinyLayers) {}

  // Logits of all tokens, [n,V]. A last step that is not full has padding rows
  // in front, filled with NaN where they are floats.
  std::vector<float> Run(const std::vector<int32_t>& tokens) {
    std::vector<float> logits;
    for (size_t at = 0; at < tokens.size(); at += tokens_) {
      const size_t count = std::min<size_t>(tokens_, tokens.size() - at);
      RunStep({tokens.data() + at, count}, at, logits);
    }
    return logits;
  }

 private:
  // One position of one layer: [G,D].
  using Column = std::vector<float>;
  static constexpr size_t kHeads = kTinyKvHeads;
  static constexpr size_t kDim = kTinyHeadDim;

  void RunStep(std::span<const int32_t> tokens, size_t position,
               std::vector<float>& logits) {
    const size_t padding = tokens_ - tokens.size();
    std::fill_n(graph_.Tokens().data(), padding, -1);
    std::copy(tokens.begin(), tokens.end(), graph_.Tokens().data() + padding);
    FillRope(position, padding);
    FillMask(position, padding);
    for (size_t layer = 0; layer < kTinyLayers; ++layer) FillPast(layer);
    const Status status =
        graph_.graph().Execute({.begin = static_cast<uint32_t>(padding)});
    ASSERT_TRUE(status.ok()) << status.error().message;
    for (size_t layer = 0; layer < kTinyLayers; ++layer) {
      KeepNew(layer, padding);
    }
    const auto out = graph_.Output({.kind = RoleKind::kLogits});
    const auto rows = out.subspan(kTinyVocab * padding);
    logits.insert(logits.end(), rows.begin(), rows.end());
  }

  void FillRope(size_t position, size_t padding) {
    const auto cos = graph_.Input({.kind = RoleKind::kRopeCos});
    const auto sin = graph_.Input({.kind = RoleKind::kRopeSin});
    for (size_t i = 0; i < cos.size(); ++i) {
      const size_t row = i / (kDim / 2);
      const auto angle = static_cast<float>(position + row - padding) /
                         static_cast<float>(1 + 10 * (i % (kDim / 2)));
      cos[i] = row < padding ? NAN : std::cos(angle);
      sin[i] = row < padding ? NAN : std::sin(angle);
    }
  }

  void FillMask(size_t position, size_t padding) {
    const auto mask = graph_.Input({.kind = RoleKind::kMask});
    for (size_t i = 0; i < mask.size(); ++i) {
      const size_t row = i / (past_ + tokens_);
      const size_t column = i % (past_ + tokens_);
      const bool visible =
          column < past_ ? column < position
                         : column - past_ >= padding && column - past_ <= row;
      mask[i] = visible ? 0.0f : -std::numeric_limits<float>::infinity();
    }
  }

  // Columns that hold no token are NaN: hidden ones must not matter.
  void FillPast(size_t layer) {
    const auto index = static_cast<int32_t>(layer);
    const auto k = graph_.Input({.kind = RoleKind::kKIn, .index = index});
    const auto v = graph_.Input({.kind = RoleKind::kVIn, .index = index});
    for (size_t at = 0; at < kHeads * kDim; ++at) {
      for (size_t p = 0; p < past_; ++p) {
        const bool known = p < keys_[layer].size();
        const size_t v_at = (at / kDim * past_ + p) * kDim + at % kDim;
        k[at * past_ + p] = known ? keys_[layer][p][at] : NAN;
        v[v_at] = known ? values_[layer][p][at] : NAN;
      }
    }
  }

  void KeepNew(size_t layer, size_t padding) {
    const auto index = static_cast<int32_t>(layer);
    const auto k = graph_.Output({.kind = RoleKind::kKOut, .index = index});
    const auto v = graph_.Output({.kind = RoleKind::kVOut, .index = index});
    for (size_t t = padding; t < tokens_; ++t) {
      Column key(kHeads * kDim);
      Column value(kHeads * kDim);
      for (size_t at = 0; at < key.size(); ++at) {
        key[at] = k[at * tokens_ + t];
        value[at] = v[(at / kDim * tokens_ + t) * kDim + at % kDim];
      }
      keys_[layer].push_back(std::move(key));
      values_[layer].push_back(std::move(value));
    }
  }

  BoundGraph& graph_;
  size_t tokens_;
  size_t past_;
  std::vector<std::vector<Column>> keys_;  // by layer, position
  std::vector<std::vector<Column>> values_;
};

}  // namespace hexllm::testing
