// Compiles a checkpoint in memory and runs it: what the end-to-end tests share.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "backend/engines.h"
#include "compile/compiler.h"
#include "runtime/session.h"

namespace hexllm::testing {

// A session together with what it needs to live.
struct LoadedModel {
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Session> session;
};

// Compiles `path` and opens a session; fails the test and returns an empty
// model on an error.
inline LoadedModel LoadModel(const std::string& path,
                             const CompileOptions& options, int threads = 2,
                             const SessionOptions& session_options = {}) {
  NullProgress progress;
  auto artifact = CompileToMemory(path, options, progress);
  if (!artifact.ok()) {
    ADD_FAILURE() << artifact.error().message;
    return {};
  }
  auto engine = CreateEngine(
      (*artifact)->manifest().graphs[0].backend,
      {.threads = threads, .qnn_lib_dir = options.target.qnn_lib_dir});
  if (!engine.ok()) {
    ADD_FAILURE() << engine.error().message;
    return {};
  }
  LoadedModel model{std::move(*engine), nullptr};
  auto session =
      Session::Create({*artifact, model.engine.get(), session_options});
  if (!session.ok()) {
    ADD_FAILURE() << session.error().message;
    return {};
  }
  model.session = std::move(*session);
  return model;
}

// Graphs with logits for every row: step size `step` (1 = only the kv graph) in
// a context of `context`.
inline CompileOptions AllLogits(int64_t step, int64_t context) {
  CompileOptions options;
  options.prefill_ar_len = step;
  options.max_context_len = context;
  options.prefill_logits = LogitsRows::kAll;
  return options;
}

// Logits of every position, row after row: [T,V].
inline std::vector<float> AllLogitsOf(Session& session,
                                      const std::vector<int32_t>& ids) {
  std::vector<float> out;
  const Status status =
      session.Logits(ids, [&](uint32_t, std::span<const float> row) {
        out.insert(out.end(), row.begin(), row.end());
        return OkStatus();
      });
  if (!status.ok()) ADD_FAILURE() << status.error().message;
  return out;
}

// What the session generates from where it stands; end tokens do not stop it.
inline std::vector<int32_t> Generated(Session& session,
                                      GenerateOptions options) {
  options.ignore_end_ids = true;
  std::vector<int32_t> out;
  const auto result =
      session.Generate(options, [&](int32_t id) -> Result<TokenAction> {
        out.push_back(id);
        return TokenAction::kContinue;
      });
  if (!result.ok()) ADD_FAILURE() << result.error().message;
  return out;
}

// `count` greedy tokens from where the session stands.
inline std::vector<int32_t> GreedyTokens(Session& session, uint32_t count) {
  GenerateOptions options;
  options.sampler.temperature = 0;
  options.max_new_tokens = count;
  return Generated(session, options);
}

// `count` greedy tokens after `prompt`.
inline std::vector<int32_t> GreedyTokens(Session& session,
                                         const std::vector<int32_t>& prompt,
                                         uint32_t count) {
  session.Reset();
  const Status prefilled = session.Prefill(prompt);
  if (!prefilled.ok()) {
    ADD_FAILURE() << prefilled.error().message;
    return {};
  }
  return GreedyTokens(session, count);
}

}  // namespace hexllm::testing
