#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <optional>

#include "base/output_file.h"
#include "cli/command.h"
#include "cli/ids_argument.h"
#include "cli/model_argument.h"
#include "cli/output.h"
#include "cli/stage_argument.h"
#include "eval/certificate.h"
#include "runtime/conversation.h"
#include "runtime/session.h"
#include "runtime/session_file.h"

namespace hexllm::cli {
namespace {

struct SamplingFlags {
  std::optional<float> temperature;
  std::optional<int32_t> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<float> repetition_penalty;
  uint64_t seed = 0;
};

struct Flags {
  std::string model;
  std::vector<std::string> prompts;
  std::string system;
  bool raw = false;
  std::string ids;
  bool print_ids = false;
  bool ignore_eos = false;
  bool no_self_test = false;
  SamplingFlags sampling;
  KvUpdate kv_update = KvUpdate::kSmartMask;
  LookaheadMode lookahead = LookaheadMode::kAuto;
  std::optional<uint32_t> max_seq_len;
  std::optional<uint32_t> max_new_tokens;
  std::string stats_json;
  std::string save_session;
  std::string load_session;
  bool quiet = false;
  CompileOptions compile;
  QuantFlags quant;
  BackendOptions engine;
};

Status CheckFlags(const Flags& flags) {
  const auto usage = [](const char* message) {
    return Error{ErrorCode::kUsage, message};
  };
  const bool chats = flags.prompts.empty() && isatty(STDIN_FILENO) == 1;
  if (!chats && flags.prompts.empty() == flags.ids.empty())
    return usage("run: expected either -p PROMPT or --tokens IDS");
  if (flags.print_ids != !flags.ids.empty())
    return usage("run: --tokens IDS and --ids go together");
  if (!flags.ids.empty() && (!flags.system.empty() || flags.raw))
    return usage("run: --system and --raw go with -p, not with --tokens");
  if (flags.raw && !flags.system.empty())
    return usage(
        "run: --raw uses no chat template, so --system has no place in it");
  return OkStatus();
}

GenerateOptions OptionsFor(const Flags& flags, const Session& session) {
  GenerateOptions options = session.DefaultGenerateOptions();
  const SamplingFlags& sampling = flags.sampling;
  options.sampler.temperature =
      sampling.temperature.value_or(options.sampler.temperature);
  options.sampler.top_k = sampling.top_k.value_or(options.sampler.top_k);
  options.sampler.top_p = sampling.top_p.value_or(options.sampler.top_p);
  options.sampler.min_p = sampling.min_p.value_or(options.sampler.min_p);
  options.sampler.repetition_penalty =
      sampling.repetition_penalty.value_or(options.sampler.repetition_penalty);
  options.sampler.seed = sampling.seed;
  options.max_seq_len = flags.max_seq_len;
  options.max_new_tokens = flags.max_new_tokens;
  options.ignore_end_ids = flags.ignore_eos;
  return options;
}

Status Named(Status status, const std::string& path) {
  if (status.ok()) return status;
  return std::move(status).error().With(path);
}

Status RunIds(const Flags& flags, Session& session,
              const GenerateOptions& options, OutputFile* save) {
  HX_ASSIGN_OR_RETURN(const std::vector<int32_t> prompt, ParseIds(flags.ids));
  if (!flags.load_session.empty()) {
    HX_ASSIGN_OR_RETURN(const SessionFile from,
                        OpenSession(flags.load_session));
    HX_RETURN_IF_ERROR(Named(session.Restore(from.saved), flags.load_session));
  }
  HX_RETURN_IF_ERROR(session.Prefill(prompt));
  std::vector<int32_t> made;
  const auto collect = [&](int32_t id) -> Result<TokenAction> {
    made.push_back(id);
    return TokenAction::kContinue;
  };
  HX_ASSIGN_OR_RETURN(const GenerateResult result,
                      session.Generate(options, collect));
  static_cast<void>(result);
  if (save != nullptr) HX_RETURN_IF_ERROR(session.Save(*save));
  return Print(IdsToJson(made) + "\n");
}

struct Turns {
  size_t done = 0;
  Status end;
};

// One prompt and its answer. An answer that cannot be printed ends there, and
// is a turn.
Status RunTurn(const Flags& flags, const Session& session,
               Conversation& conversation, const std::string& prompt,
               Turns& turns) {
  const GenerateOptions options = OptionsFor(flags, session);
  Status printed;
  const auto stream = [&](std::string_view text) -> Result<TokenAction> {
    printed = PrintNow(text);
    return printed.ok() ? TokenAction::kContinue : TokenAction::kStop;
  };
  HX_ASSIGN_OR_RETURN(const GenerateResult result,
                      flags.raw ? conversation.Complete(prompt, options, stream)
                                : conversation.Chat(prompt, options, stream));
  ++turns.done;
  HX_RETURN_IF_ERROR(printed);
  HX_RETURN_IF_ERROR(PrintNow("\n"));
  if (!flags.quiet)
    PrintNote(fmt::format("[{}; {}]\n", FinishReasonName(result.reason),
                          StatisticsToText(session.statistics())));
  return OkStatus();
}

// The next line that is not empty; false at the end of the input.
bool ReadPrompt(std::string& line) {
  do {
    PrintNote("> ");
    if (!std::getline(std::cin, line)) {
      PrintNote("\n");
      return false;
    }
  } while (line.empty());
  return true;
}

// The turns of the command line, up to the first that fails.
Turns RunPrompts(const Flags& flags, const Session& session,
                 Conversation& conversation) {
  Turns turns;
  for (const std::string& prompt : flags.prompts) {
    turns.end = RunTurn(flags, session, conversation, prompt, turns);
    if (!turns.end.ok()) break;
  }
  return turns;
}

// The turns that somebody types. One that cannot be, such as a line longer than
// the context, does not end the chat.
Turns RunLines(const Flags& flags, const Session& session,
               Conversation& conversation) {
  Turns turns;
  std::string line;
  while (turns.end.ok() && ReadPrompt(line)) {
    Status turn = RunTurn(flags, session, conversation, line, turns);
    if (turn.ok()) continue;
    if (turn.error().code == ErrorCode::kUsage) {
      PrintError(turn.error().message);
    } else {
      turns.end = std::move(turn);
    }
  }
  return turns;
}

Status RunText(const Flags& flags, Session& session, OutputFile* save) {
  HX_ASSIGN_OR_RETURN(const auto conversation, Conversation::Create(session));
  if (!flags.load_session.empty()) {
    HX_ASSIGN_OR_RETURN(const SessionFile from,
                        OpenSession(flags.load_session));
    const auto form =
        flags.raw ? Conversation::Form::kPlainText : Conversation::Form::kChat;
    HX_RETURN_IF_ERROR(
        Named(conversation->Restore(from.saved, form), flags.load_session));
  }
  if (!flags.system.empty())
    HX_RETURN_IF_ERROR(conversation->SetSystem(flags.system));
  const Turns turns = flags.prompts.empty()
                          ? RunLines(flags, session, *conversation)
                          : RunPrompts(flags, session, *conversation);
  // What was said before an error is not lost with it.
  if (save != nullptr && (turns.end.ok() || turns.done > 0))
    HX_RETURN_IF_ERROR(conversation->Save(*save));
  return turns.end;
}

bool HasAnswered(const Statistics& statistics) {
  return std::ranges::any_of(statistics.turns, [](const TurnStatistics& turn) {
    return turn.new_tokens > 0;
  });
}

Status Run(const Flags& flags) {
  HX_RETURN_IF_ERROR(CheckFlags(flags));
  std::vector<std::string> inputs = FilesOf(flags.quant, flags.compile.source);
  inputs.push_back(IdsFile(flags.ids));
  // A session may be saved to the file that it was loaded from.
  HX_ASSIGN_OR_RETURN(auto save_file,
                      OptionalOutput(flags.save_session, flags.model, inputs));
  inputs.push_back(flags.load_session);
  HX_ASSIGN_OR_RETURN(auto stats_file,
                      OptionalOutput(flags.stats_json, flags.model, inputs));
  HX_RETURN_IF_ERROR(CheckOutputsDiffer(flags.stats_json, flags.save_session,
                                        "--save-session"));
  HX_RETURN_IF_ERROR(CheckSelfTestFlag(flags.model, flags.no_self_test));
  if (!IsArtifact(flags.model)) HX_RETURN_IF_ERROR(CheckCpuFlags(flags.engine));
  StderrProgress progress(flags.quiet ? StderrProgress::Verbosity::kQuiet
                                      : StderrProgress::Verbosity::kNormal);
  CompileOptions compile = flags.compile;
  SetEngine(flags.engine, compile);
  HX_RETURN_IF_ERROR(ApplyQuantFlags(flags.quant, compile));
  HX_ASSIGN_OR_RETURN(auto artifact,
                      OpenStage({flags.model, "", compile}, "", progress));
  progress.Finish();
  HX_RETURN_IF_ERROR(CheckQnnLibDir(flags.engine, BackendOf(*artifact)));
  HX_ASSIGN_OR_RETURN(const auto engine,
                      CreateEngineFor(*artifact, flags.engine));
  HX_ASSIGN_OR_RETURN(const auto session,
                      Session::Create({artifact,
                                       engine.get(),
                                       {.kv_update = flags.kv_update,
                                        .lookahead = flags.lookahead}}));
  if (!flags.no_self_test) HX_RETURN_IF_ERROR(SelfTest(*session));
  const GenerateOptions options = OptionsFor(flags, *session);
  HX_RETURN_IF_ERROR(ValidateSamplerOptions(options.sampler));
  OutputFile* save = save_file ? &*save_file : nullptr;
  Status ran = flags.ids.empty() ? RunText(flags, *session, save)
                                 : RunIds(flags, *session, options, save);
  // Nor is what was measured.
  if (stats_file && (ran.ok() || HasAnswered(session->statistics()))) {
    HX_RETURN_IF_ERROR(stats_file->Write(
        AsBytes(DumpJson(StatisticsToJson(session->statistics())) + "\n")));
    HX_RETURN_IF_ERROR(stats_file->Commit());
  }
  return ran;
}

void AddSamplingFlags(CLI::App& app, SamplingFlags& flags) {
  app.add_option(
         "--temperature", flags.temperature,
         "0 = always the likeliest token; default: the checkpoint's, else 0.8")
      ->type_name("X");
  app.add_option("--top-k", flags.top_k, "Draw from the K likeliest; 0 = all")
      ->check(WholeNumber(0, INT32_MAX))
      ->type_name("K");
  app.add_option("--top-p", flags.top_p,
                 "Draw from the likeliest tokens of this mass")
      ->type_name("P");
  app.add_option(
         "--min-p", flags.min_p,
         "Drop tokens below this share of the likeliest one's probability")
      ->type_name("P");
  app.add_option("--repetition-penalty", flags.repetition_penalty,
                 "Above 1: make tokens that were there less likely")
      ->type_name("X");
  app.add_option("--seed", flags.seed, "Same seed, same answer")
      ->check(WholeNumber(0, UINT64_MAX))
      ->type_name("S");
}

void AddDecodeFlags(CLI::App& app, Flags& flags) {
  const std::map<std::string, LookaheadMode> modes = {
      {"off", LookaheadMode::kOff},
      {"on", LookaheadMode::kOn},
      {"auto", LookaheadMode::kAuto}};
  app.add_option("--lookahead", flags.lookahead,
                 "Lookahead decoding: wherever there is room, never, or where "
                 "it pays; the text is the same")
      ->transform(OneOf(modes))
      ->type_name("auto|on|off")
      ->default_str("auto");
  const std::map<std::string, KvUpdate> updates = {
      {"smart-mask", KvUpdate::kSmartMask},
      {"shift-pointer", KvUpdate::kShiftPointer}};
  app.add_option("--kv-updater", flags.kv_update,
                 "How new columns get into the KV cache; the text is the same")
      ->transform(OneOf(updates))
      ->type_name("smart-mask|shift-pointer")
      ->default_str("smart-mask");
  app.add_option("--max-seq-len", flags.max_seq_len,
                 "Longest prompt and answer together; default: the context")
      ->check(WholeNumber(0, UINT32_MAX))
      ->type_name("N");
  app.add_option("--max-new-tokens", flags.max_new_tokens, "Longest answer")
      ->check(WholeNumber(0, UINT32_MAX))
      ->type_name("N");
}

}  // namespace

Body AddRun(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("model", flags->model,
                 "An artifact, or a model as for compile")
      ->required()
      ->type_name("MODEL|FILE.hxl");
  app.add_option("-p,--prompt", flags->prompts,
                 "What to say; again for the next turn. Without it, on a "
                 "terminal: a line for each turn")
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->take_all();
  app.add_option("--system", flags->system, "The system message")
      ->type_name("TEXT");
  app.add_flag("--raw", flags->raw,
               "Continue the prompts as they stand: no chat template");
  app.add_option("--tokens", flags->ids,
                 "Prompt as token ids: 1,2,3 or FILE.safetensors:TENSOR")
      ->type_name("IDS");
  app.add_flag("--ids", flags->print_ids, "Print the new ids as a JSON array");
  app.add_flag("--ignore-eos", flags->ignore_eos,
               "End tokens do not end the answer");
  AddSamplingFlags(app, flags->sampling);
  AddDecodeFlags(app, *flags);
  app.add_option("--save-session", flags->save_session,
                 "At the end: write the conversation and its KV cache here")
      ->type_name("FILE");
  app.add_option(
         "--load-session", flags->load_session,
         "Go on with what --save-session wrote; -p \"\" with --raw goes "
         "on with the answer")
      ->type_name("FILE");
  app.add_flag("--no-self-test", flags->no_self_test,
               "Do not check the golden logits of a certified artifact first");
  app.add_option("--stats-json", flags->stats_json,
                 "Write times and rates here")
      ->type_name("FILE");
  app.add_flag("-q,--quiet", flags->quiet, "No progress and no statistics");
  AddEngineFlags(app, flags->engine);
  AddDeviceFlags(app, flags->engine);
  AddSourceFlags(app, flags->compile.source);
  AddRecipeFlags(app, flags->quant);
  AddDataDirFlag(app, flags->quant.calibration.data_dir);
  AddModelModeFlags(app, flags->compile);
  app.add_option("--prefill-ar-len", flags->compile.prefill_ar_len,
                 "For a model: tokens of a prompt block")
      ->type_name("N");
  app.add_option("--max-context-len", flags->compile.max_context_len,
                 "For a model: the context")
      ->type_name("N");
  return [flags, &app]() -> Status {
    HX_RETURN_IF_ERROR(RefuseModelFlags(app, flags->model));
    return Run(*flags);
  };
}

}  // namespace hexllm::cli
