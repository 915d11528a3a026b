#include "runtime/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "runtime/decoder_runner.h"
#include "runtime/session_state.h"
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
  std::unique_ptr<DecoderRunner> wide;       // null without lookahead
  DecoderRunner* block = nullptr;
};

// At one address from the start: the runners bind to the sequence's cache.
Result<std::unique_ptr<Decoder>> MakeDecoder(const SessionConfig& config) {
  const auto& manifest = config.artifact->manifest();
  const std::vector<StepGraph> steps = FindStepGraphs(manifest);
  const SessionOptions& options = config.options;
  HX_CHECK(!options.prompt_in_lookahead_graph || !options.prompt_step_tokens);
  HX_ASSIGN_OR_RETURN(
      const StepChoice choice,
      ChooseSteps(steps, {.block_tokens = options.prompt_step_tokens,
                          .lookahead_blocks = options.prompt_in_lookahead_graph,
                          .lookahead = options.lookahead}));
  HX_ASSIGN_OR_RETURN(KvGeometry geometry,
                      FindKvGeometry(manifest, {choice.block, choice.single}));
  std::vector<StepGraph> used = {choice.single};
  if (choice.block.shards != choice.single.shards) used.push_back(choice.block);
  if (choice.lookahead) used.push_back(*choice.lookahead);
  HX_RETURN_IF_ERROR(
      config.engine->Reserve(FindBufferBytes(manifest, used, geometry)));
  HX_ASSIGN_OR_RETURN(KvManager kv,
                      KvManager::Create(*config.engine, std::move(geometry),
                                        config.options.kv_update));
  auto decoder = std::make_unique<Decoder>(std::move(kv));
  HX_ASSIGN_OR_RETURN(decoder->sequence.sink,
                      AttentionSink::Create({config.artifact, config.engine,
                                             &decoder->sequence.kv}));
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
  if (choice.lookahead) {
    HX_ASSIGN_OR_RETURN(decoder->wide,
                        DecoderRunner::Create(runner, *choice.lookahead));
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
        prompt({.sequence = &sequence,
                .block = decoder->block,
                .single = decoder->single.get(),
                .wide = decoder->wide.get()}),
        steps(
            {.sequence = &sequence,
             .single = decoder->single.get(),
             .wide = decoder->wide.get(),
             .shape = manifest().lookahead.value_or(artifact::LookaheadShape{}),
             .mode = decoder->wide ? config.options.lookahead
                                   : LookaheadMode::kOff}),
        generator(&sequence, &steps, &sampler, manifest().generation.end_ids) {}

  const artifact::Manifest& manifest() const { return artifact->manifest(); }

  // kUsage unless `ids` can follow (or be) a sequence that then has `total`
  // tokens, of which a step can hold `most`.
  Status CheckIds(std::span<const int32_t> ids, size_t total,
                  uint32_t most) const;
  // What a turn says about the cache when it begins.
  TurnStatistics Reuse(uint32_t reused, ReuseEnd end) const;
  // Runs `ids` as the prompt of `turn`.
  Status RunPrompt(std::span<const int32_t> ids, const TurnStatistics& turn);
  TurnStatistics& Turn();
  uint32_t Evictions() const {
    return sequence.sink ? sequence.sink->evictions() : 0;
  }
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
  DecodeSteps steps;
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

TurnStatistics Session::Impl::Reuse(uint32_t reused, ReuseEnd end) const {
  return {
      .cached_tokens = sequence.kv.tokens(),
      .reused_tokens = reused,
      .reuse_end = sequence.kv.tokens() == 0 ? ReuseEnd::kNothingCached : end};
}

Status Session::Impl::RunPrompt(std::span<const int32_t> ids,
                                const TurnStatistics& turn) {
  HX_ASSIGN_OR_RETURN(const BusyEngine busy, BusyEngine::Begin(engine));
  turn_start = Clock::now();
  statistics.turns.push_back(turn);
  const uint32_t before = RunTokens(sequence);
  const uint32_t evictions = Evictions();
  auto status = prompt.Run(ids);
  if (!status.ok()) return Fail(std::move(status).error());
  Turn().prompt_tokens = RunTokens(sequence) - before;
  Turn().evictions += Evictions() - evictions;
  Turn().prompt_seconds = SecondsSince(turn_start);
  return OkStatus();
}

// A restored session may go on without a prompt.
TurnStatistics& Session::Impl::Turn() {
  if (statistics.turns.empty()) {
    turn_start = Clock::now();
    statistics.turns.push_back(
        Reuse(sequence.kv.tokens(), ReuseEnd::kAllReused));
  }
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
  return impl_->RunPrompt(
      ids, impl_->Reuse(sequence.kv.tokens(), ReuseEnd::kAllReused));
}

Result<uint32_t> Session::ReplacePrompt(std::span<const int32_t> ids) {
  Sequence& sequence = impl_->sequence;
  HX_RETURN_IF_ERROR(
      impl_->CheckIds(ids, ids.size(), impl_->prompt.MaxTokens(0)));
  const size_t common = CommonTokens(sequence, ids);
  const uint32_t run = RunTokens(sequence);
  ReuseEnd end = common == ids.size() ? ReuseEnd::kPromptEnds
                 : common < run       ? ReuseEnd::kTextDiffers
                                      : ReuseEnd::kAllReused;
  // At least one token is run, from a place where a step has room.
  const size_t most =
      std::min(ids.size() - 1, size_t{impl_->decoder->single->past_columns()} +
                                   sequence.evicted.size());
  auto kept = static_cast<uint32_t>(std::min(common, most));
  if (!sequence.evicted.empty() && kept > sequence.sink->sink_tokens()) {
    const auto gone = static_cast<uint32_t>(sequence.evicted.size());
    if (kept >= sequence.sink->sink_tokens() + gone) {
      kept -= gone;
    } else {  // it differs within what is gone
      end = ReuseEnd::kEvicted;
      kept = sequence.sink->sink_tokens();
    }
  }
  if (!impl_->prompt.SharesRope(static_cast<uint32_t>(ids.size()))) {
    end = ReuseEnd::kRopeDiffers;
    kept = 0;
  }
  const TurnStatistics turn = impl_->Reuse(kept, end);
  TruncateSequence(sequence, kept);
  HX_RETURN_IF_ERROR(impl_->RunPrompt(ids.subspan(TextTokens(sequence)), turn));
  return kept;
}

Result<GenerateResult> Session::Generate(const GenerateOptions& options,
                                         const TokenCallback& on_token) {
  Impl& impl = *impl_;
  HX_RETURN_IF_ERROR(
      CheckOptions(options, TextTokens(impl.sequence),
                   impl.sequence.sink ? UINT32_MAX : context_tokens()));
  if (impl.sequence.ids.empty())
    return Error{ErrorCode::kUsage, "nothing to continue: run a prompt first"};
  HX_ASSIGN_OR_RETURN(const BusyEngine busy, BusyEngine::Begin(impl.engine));
  // A restored sequence comes without logits: its last token gives them.
  if (impl.sequence.logits.empty() && ids().size() == impl.sequence.kv.tokens())
    UnrunLastToken(impl.sequence);
  bool callback_failed = false;
  impl.Turn();
  Clock::time_point mark = Clock::now();
  double cpu_mark = CpuSeconds();
  // Decoding time is without the time that the callback takes.
  const TokenCallback timed = [&](int32_t id) -> Result<TokenAction> {
    TurnStatistics& turn = impl.Turn();
    if (turn.new_tokens++ == 0) {
      turn.first_token_seconds = SecondsSince(impl.turn_start);
    } else {
      turn.decode_seconds += SecondsSince(mark);
      turn.decode_cpu_seconds += CpuSeconds() - cpu_mark;
    }
    Result<TokenAction> action = on_token(id);
    callback_failed = !action.ok();
    mark = Clock::now();
    cpu_mark = CpuSeconds();
    return action;
  };
  const DecodeCounts before = impl.steps.counts();
  const uint32_t evictions = impl.Evictions();
  auto result = impl.generator.Generate(options, timed);
  impl.Turn().steps += impl.steps.counts() - before;
  impl.Turn().evictions += impl.Evictions() - evictions;
  impl.Turn().rss_bytes = RssBytes();
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

void Session::Reset() {
  ResetSequence(impl_->sequence);
  impl_->steps.Clear();
}

Status Session::Save(OutputFile& file, const Json& conversation) {
  return SaveSequence(artifact(), impl_->sequence,
                      {.file = file,
                       .prompt_tokens = impl_->prompt.prompt_tokens(),
                       .conversation = conversation});
}

Status Session::Restore(const SavedSession& saved) {
  Sequence& sequence = impl_->sequence;
  HX_RETURN_IF_ERROR(CheckFits(saved, impl_->manifest(), sequence));
  const size_t pending = saved.head.ids.size() - saved.head.cached_tokens;
  const uint32_t most = impl_->decoder->single->step_tokens();
  if (pending > most) {
    return Error{ErrorCode::kBadInput,
                 fmt::format("{} tokens that were not run; expected at most {}",
                             pending, most)};
  }
  impl_->prompt.ChooseRope(saved.head.prompt_tokens);
  RestoreSequence(saved, impl_->manifest(), sequence);
  return OkStatus();
}

Statistics Session::statistics() const {
  Statistics statistics = impl_->statistics;
  statistics.rss_bytes = RssBytes();
  statistics.peak_rss_bytes = PeakRssBytes();
  return statistics;
}

}  // namespace hexllm
