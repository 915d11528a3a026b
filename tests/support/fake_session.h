// A session on a fake engine, and the calls that most tests of the runtime
// make.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/session.h"
#include "tests/support/fake_engine.h"

namespace hexllm::testing {

using Ids = std::vector<int32_t>;

inline GenerateOptions Greedy(
    std::optional<uint32_t> max_new_tokens = std::nullopt) {
  GenerateOptions options;
  options.sampler.temperature = 0;
  options.max_new_tokens = max_new_tokens;
  return options;
}

inline Ids Prompt(size_t tokens, uint32_t vocab = 37) {
  Ids ids;
  for (size_t i = 0; i < tokens; ++i)
    ids.push_back(static_cast<int32_t>((i * i * 5 + i + 3) % vocab));
  return ids;
}

// A fake engine with a session on it.
struct FakeSession {
  explicit FakeSession(FakeOptions options, SessionOptions session_options = {})
      : FakeSession(MakeFakeArtifact(std::move(options)), session_options) {}
  explicit FakeSession(std::shared_ptr<const artifact::Artifact> artifact,
                       SessionOptions session_options = {}) {
    auto made = Session::Create({.artifact = std::move(artifact),
                                 .engine = &engine,
                                 .options = session_options});
    if (!made.ok()) ADD_FAILURE() << made.error().message;
    session = std::move(made).value();
  }

  // Generates and returns the tokens; the result goes to `last`.
  Ids Generate(const GenerateOptions& options) {
    Ids ids;
    auto result = session->Generate(options, [&](int32_t id) {
      ids.push_back(id);
      return Result<TokenAction>(TokenAction::kContinue);
    });
    if (!result.ok()) {
      ADD_FAILURE() << result.error().message;
      return ids;
    }
    last = *result;
    return ids;
  }
  Ids Answer(std::span<const int32_t> prompt, const GenerateOptions& options) {
    const Status status = session->Prefill(prompt);
    if (!status.ok()) ADD_FAILURE() << status.error().message;
    return Generate(options);
  }

  FakeEngine engine;
  std::unique_ptr<Session> session;
  GenerateResult last;
};

inline std::vector<std::vector<float>> AllLogits(Session& session,
                                                 std::span<const int32_t> ids) {
  std::vector<std::vector<float>> rows;
  const Status status =
      session.Logits(ids, [&](uint32_t position, std::span<const float> row) {
        EXPECT_EQ(position, rows.size());
        rows.emplace_back(row.begin(), row.end());
        return OkStatus();
      });
  if (!status.ok()) ADD_FAILURE() << status.error().message;
  return rows;
}

}  // namespace hexllm::testing
