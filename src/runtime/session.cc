#include "runtime/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "runtime/decoder_runner.h"
#include "runtime/step_graphs.h"

namespace hexllm {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// `length` is that of the sequence so far.
Status CheckOptions(const GenerateOptions& options, size_t length,
                    uint32_t context_tokens) {
  HX_RETURN_IF_ERROR(ValidateSamplerOptions(options.sampler));
  if (options.max_seq_len && *options.max_seq_len < length) {
    return Error{ErrorCode::kUsage,
                 fmt::format("the maximum sequence length is {}; the prompt "
                             "has {} tokens",
                             *options.max_seq_len, length)};
  }
  if (options.max_seq_len && *options.max_seq_len > context_tokens) {
    return Error{ErrorCode::kUsage,
                 fmt::format("the maximum sequence length is {}; the context "
                             "has {} tokens",
                             *options.max_seq_len, context_tokens)};
  }
  return OkStatus();
}

// Everything that steps work on, in order of construction.
struct Decoder {
  explicit Decoder(KvManager kv) : sequence(std::move(kv)) {}

  Sequence sequence;
  std::unique_ptr<DecoderRunner> single;
  std::unique_ptr<DecoderRunner> own_block;  // null when `single` does blocks
  DecoderRunner* block = nullptr;
};

// At one address from the start: the runners bind to the sequence's cache.
Result<std::unique_ptr<Decoder>> MakeDecoder(const SessionConfig& config) {
  const auto& manifest = config.artifact->manifest();
  const std::vector<StepGraph> steps = FindStepGraphs(manifest);
  HX_ASSIGN_OR_RETURN(const StepChoice choice,
                      ChooseSteps(steps, config.options.prompt_step_tokens));
  HX_ASSIGN_OR_RETURN(KvGeometry geometry,
                      FindKvGeometry(manifest, {choice.block, choice.single}));
  std::vector<StepGraph> used = {choice.single};
  if (choice.block.shards != choice.single.shards) used.push_back(choice.block);
  HX_RETURN_IF_ERROR(
      config.engine->Reserve(FindBufferBytes(manifest, used, geometry)));
  HX_ASSIGN_OR_RETURN(KvManager kv,
                      KvManager::Create(*config.engine, std::move(geometry)));
  auto decoder = std::make_unique<Decoder>(std::move(kv));
  decoder->sequence.ids.reserve(manifest.context_tokens);
  const RunnerConfig runner{config.artifact, config.engine,
                            &decoder->sequence.kv, config.options.on_tap};
  HX_ASSIGN_OR_RETURN(decoder->single,
                      DecoderRunner::Create(runner, choice.single));
  decoder->block = decoder->single.get();
  if (choice.block.shards != choice.single.shards) {
    HX_ASSIGN_OR_RETURN(decoder->own_block,
                        DecoderRunner::Create(runner, choice.block));
    decoder->block = decoder->own_block.get();
  }
  return decoder;
}

}  // namespace

struct Session::Impl {
  Impl(const SessionConfig& config, std::unique_ptr<Decoder> made)
      : artifact(config.artifact),
        engine(*config.engine),
        decoder(std::move(made)),
        sequence(decoder->sequence),
        sampler(manifest().vocab_size),
        prompt(&sequence, decoder->block, decoder->single.get()),
        generator(&sequence, decoder->single.get(), &sampler,
                  manifest().generation.end_ids) {}

  const artifact::Manifest& manifest() const { return artifact->manifest(); }

  // kUsage unless `ids` can follow (or be) a sequence that then has `total`
  // tokens, of which a step can hold `most`.
  Status CheckIds(std::span<const int32_t> ids, size_t total,
                  uint32_t most) const;
  Status RunPrompt(std::span<const int32_t> ids, uint32_t reused);
  TurnStatistics& Turn();
  // An error that leaves the cache in doubt.
  Error Fail(Error error) {
    ResetSequence(sequence);
    return error;
  }

  std::shared_ptr<const artifact::Artifact> artifact;
  Engine& engine;
  std::unique_ptr<Decoder> decoder;
  Sequence& sequence;
  Sampler sampler;
  PromptProcessor prompt;
  TokenGenerator generator;
  Statistics statistics;
  Clock::time_point turn_start = Clock::now();
};

Status Session::Impl::CheckIds(std::span<const int32_t> ids, size_t total,
                               uint32_t most) const {
  if (ids.empty()) return Error{ErrorCode::kUsage, "the prompt has no tokens"};
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && static_cast<uint32_t>(ids[i]) < manifest().vocab_size)
      continue;
    return Error{ErrorCode::kUsage,
                 fmt::format("token {} of the prompt is {}; the vocabulary has "
                             "{} ids from 0",
                             i, ids[i], manifest().vocab_size)};
  }
  if (total > most) {
    return Error{ErrorCode::kUsage,
                 fmt::format("the prompt needs {} tokens of context; there is "
                             "room for {}. Shorten it, or compile with a "
                             "larger --max-context-len",
                             total, most)};
  }
  return OkStatus();
}

Status Session::Impl::RunPrompt(std::span<const int32_t> ids, uint32_t reused) {
  HX_ASSIGN_OR_RETURN(const BusyEngine busy, BusyEngine::Begin(engine));
  turn_start = Clock::now();
  statistics.turns.push_back({.reused_tokens = reused});
  const uint32_t before = sequence.kv.tokens();
  auto status = prompt.Run(ids);
  if (!status.ok()) return Fail(std::move(status).error());
  Turn().prompt_tokens = sequence.kv.tokens() - before;
  Turn().prompt_seconds = SecondsSince(turn_start);
  return OkStatus();
}

TurnStatistics& Session::Impl::Turn() {
  HX_CHECK(!statistics.turns.empty());
  return statistics.turns.back();
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::Create(const SessionConfig& config) {
  HX_CHECK(config.artifact != nullptr && config.engine != nullptr);
  const auto start = Clock::now();
  auto decoder = MakeDecoder(config);
  if (!decoder.ok())
    return std::move(decoder).error().With(config.artifact->path());
  auto impl = std::make_unique<Impl>(config, std::move(decoder).value());
  impl->statistics.load_seconds = SecondsSince(start);
  return std::unique_ptr<Session>(new Session(std::move(impl)));
}

const artifact::Artifact& Session::artifact() const { return *impl_->artifact; }

uint32_t Session::context_tokens() const {
  return impl_->manifest().context_tokens;
}

GenerateOptions Session::DefaultGenerateOptions() const {
  const auto& defaults = impl_->manifest().generation;
  GenerateOptions options;
  SamplerOptions& sampler = options.sampler;
  sampler.temperature = defaults.temperature.value_or(sampler.temperature);
  sampler.top_k = defaults.top_k.value_or(sampler.top_k);
  sampler.top_p = defaults.top_p.value_or(sampler.top_p);
  sampler.min_p = defaults.min_p.value_or(sampler.min_p);
  sampler.repetition_penalty =
      defaults.repetition_penalty.value_or(sampler.repetition_penalty);
  return options;
}

std::span<const int32_t> Session::ids() const { return impl_->sequence.ids; }

Status Session::Prefill(std::span<const int32_t> ids) {
  const Sequence& sequence = impl_->sequence;
  HX_RETURN_IF_ERROR(
      impl_->CheckIds(ids, sequence.ids.size() + ids.size(),
                      impl_->prompt.MaxTokens(sequence.kv.tokens())));
  return impl_->RunPrompt(ids, 0);
}

Result<uint32_t> Session::ReplacePrompt(std::span<const int32_t> ids) {
  Sequence& sequence = impl_->sequence;
  HX_RETURN_IF_ERROR(
      impl_->CheckIds(ids, ids.size(), impl_->prompt.MaxTokens(0)));
  const auto run = std::span(sequence.ids).first(sequence.kv.tokens());
  const size_t common = static_cast<size_t>(
      std::mismatch(run.begin(), run.end(), ids.begin(), ids.end()).first -
      run.begin());
  // At least one token is run, from a place where a step has room.
  const size_t most =
      std::min(ids.size() - 1, size_t{impl_->decoder->single->past_columns()});
  const bool usable =
      impl_->prompt.SharesRope(static_cast<uint32_t>(ids.size()));
  const auto kept = usable ? static_cast<uint32_t>(std::min(common, most)) : 0U;
  TruncateSequence(sequence, kept);
  HX_RETURN_IF_ERROR(impl_->RunPrompt(ids.subspan(kept), kept));
  return kept;
}

Result<GenerateResult> Session::Generate(const GenerateOptions& options,
                                         const TokenCallback& on_token) {
  Impl& impl = *impl_;
  HX_RETURN_IF_ERROR(CheckOptions(options, ids().size(), context_tokens()));
  if (impl.sequence.ids.empty())
    return Error{ErrorCode::kUsage, "nothing to continue: run a prompt first"};
  HX_ASSIGN_OR_RETURN(const BusyEngine busy, BusyEngine::Begin(impl.engine));
  bool callback_failed = false;
  Clock::time_point mark = Clock::now();
  // Decoding time is without the time that the callback takes.
  const TokenCallback timed = [&](int32_t id) -> Result<TokenAction> {
    TurnStatistics& turn = impl.Turn();
    if (turn.new_tokens++ == 0) {
      turn.first_token_seconds = SecondsSince(impl.turn_start);
    } else {
      turn.decode_seconds += SecondsSince(mark);
    }
    Result<TokenAction> action = on_token(id);
    callback_failed = !action.ok();
    mark = Clock::now();
    return action;
  };
  auto result = impl.generator.Generate(options, timed);
  if (!result.ok() && !callback_failed)
    return impl.Fail(std::move(result).error());
  return result;
}

Status Session::Logits(std::span<const int32_t> ids, const LogitsSink& sink) {
  HX_RETURN_IF_ERROR(
      impl_->CheckIds(ids, ids.size(), impl_->prompt.MaxTokensWithLogits(0)));
  HX_ASSIGN_OR_RETURN(const BusyEngine busy, BusyEngine::Begin(impl_->engine));
  TruncateSequence(impl_->sequence, 0);
  const Status status = impl_->prompt.RunWithLogits(ids, sink);
  ResetSequence(impl_->sequence);
  return status;
}

void Session::Reset() { ResetSequence(impl_->sequence); }

Statistics Session::statistics() const {
  Statistics statistics = impl_->statistics;
  statistics.peak_rss_bytes = PeakRssBytes();
  return statistics;
}

}  // namespace hexllm
