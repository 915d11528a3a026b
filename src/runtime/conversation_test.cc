#include "runtime/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "runtime/session_file.h"
#include "tests/support/fake_session.h"
#include "tests/support/temp_dir.h"
#include "text/tokenizer_data.h"

namespace hexllm {
namespace {

using testing::FakeArtifactBuilder;
using testing::FakeOptions;
using testing::FakeReference;
using testing::FakeSession;
using testing::Greedy;
using ::testing::HasSubstr;
using testing::Ids;

// One token a character; ids 34 to 36 are special.
constexpr std::string_view kCharacters = "abcdefghijklmnopqrstuvwxyz \n.ABCDE";
constexpr int32_t kImStart = 34;
constexpr int32_t kImEnd = 35;
constexpr int32_t kBos = 36;

constexpr std::string_view kTemplate =
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}"
    "<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant"
    "\n{% endif %}";

std::string TokenizerJson() {
  Json vocab = Json::object();
  for (size_t i = 0; i < kCharacters.size(); ++i)
    vocab[std::string(1, kCharacters[i])] = i;
  vocab["<|im_start|>"] = kImStart;
  vocab["<|im_end|>"] = kImEnd;
  vocab["<s>"] = kBos;
  Json added = Json::array();
  for (const auto& [id, text] :
       {std::pair(kImStart, "<|im_start|>"), std::pair(kImEnd, "<|im_end|>"),
        std::pair(kBos, "<s>")}) {
    added.push_back({{"id", id},
                     {"content", text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const Json post = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
        {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
      {"pair", Json::array()},
      {"special_tokens",
       {{"<s>",
         {{"id", "<s>"}, {"ids", {kBos}}, {"tokens", Json::array({"<s>"})}}}}}};
  const Json json = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", added},
                     {"normalizer", nullptr},
                     {"pre_tokenizer", nullptr},
                     {"post_processor", post},
                     {"decoder", {{"type", "Fuse"}}},
                     {"model",
                      {{"type", "BPE"},
                       {"dropout", nullptr},
                       {"unk_token", nullptr},
                       {"continuing_subword_prefix", nullptr},
                       {"end_of_word_suffix", nullptr},
                       {"fuse_unk", false},
                       {"byte_fallback", false},
                       {"vocab", vocab},
                       {"merges", Json::array()}}}};
  return DumpJson(json);
}

FakeOptions Options(uint32_t context = 256) {
  FakeOptions options;
  options.context = context;
  options.generation.end_ids = {kImEnd};
  return options;
}

enum class Parts { kIdsOnly, kTokenizer, kTokenizerAndTemplate };

std::shared_ptr<const artifact::Artifact> MakeArtifact(FakeOptions options,
                                                       Parts parts) {
  FakeArtifactBuilder builder(std::move(options));
  if (parts != Parts::kIdsOnly) {
    const auto data = ParseTokenizerJson(TokenizerJson());
    if (!data.ok()) ADD_FAILURE() << data.error().message;
    builder.manifest().tokenizer_segment =
        builder.Add({"tokenizer", artifact::SegmentKind::kTokenizer},
                    AsBytes(SerializeTokenizer(data.value())));
  }
  if (parts == Parts::kTokenizerAndTemplate) {
    builder.manifest().chat_template_segment = builder.Add(
        {"template", artifact::SegmentKind::kChatTemplate}, AsBytes(kTemplate));
  }
  return builder.Build();
}

Ids Encode(std::string_view text) {
  Ids ids;
  for (const char c : text)
    ids.push_back(static_cast<int32_t>(kCharacters.find(c)));
  return ids;
}

// What the template and the tokenizer make of a message.
void AddMessage(Ids& ids, std::string_view role, std::string_view content) {
  ids.push_back(kImStart);
  for (const int32_t id : Encode(std::string(role) + "\n")) ids.push_back(id);
  for (const int32_t id : Encode(content)) ids.push_back(id);
  ids.push_back(kImEnd);
}

// The greedy answer to a rendering, as text.
std::string Answer(const FakeOptions& options, const Ids& messages,
                   size_t most) {
  Ids prompt = messages;
  prompt.push_back(kImStart);
  for (const int32_t id : Encode("assistant\n")) prompt.push_back(id);
  std::string text;
  for (const int32_t id : FakeReference::Greedy(options, prompt, most)) {
    if (id == kImEnd) break;
    if (id < kImStart) text += kCharacters[static_cast<size_t>(id)];
  }
  return text;
}

// A conversation on a fake session; collects the streamed text.
struct Fixture {
  explicit Fixture(FakeOptions options,
                   Parts parts = Parts::kTokenizerAndTemplate)
      : fake(MakeArtifact(std::move(options), parts)) {
    auto made = Conversation::Create(*fake.session);
    if (!made.ok()) ADD_FAILURE() << made.error().message;
    conversation = std::move(made).value();
  }
  TextCallback Collect() {
    streamed.clear();
    return [this](std::string_view text) -> Result<TokenAction> {
      EXPECT_FALSE(text.empty());
      streamed += text;
      return TokenAction::kContinue;
    };
  }

  FakeSession fake;
  std::unique_ptr<Conversation> conversation;
  std::string streamed;
};

TEST(Conversation, ChatsInTurnsAndReusesTheCache) {
  const FakeOptions options = Options();
  Fixture f(options);
  ASSERT_TRUE(f.conversation->SetSystem("be nice").ok());
  Ids messages;
  AddMessage(messages, "system", "be nice");
  for (const std::string text : {"hello there", "what", "and then."}) {
    const auto result = f.conversation->Chat(text, Greedy(12), f.Collect());
    ASSERT_TRUE(result.ok()) << result.error().message;
    AddMessage(messages, "user", text);
    const std::string expected = Answer(options, messages, 12);
    EXPECT_EQ(f.streamed, expected);
    AddMessage(messages, "assistant", expected);
  }
  const auto turns = f.fake.session->statistics().turns;
  ASSERT_EQ(turns.size(), 3U);
  EXPECT_EQ(turns[0].reused_tokens, 0U);
  EXPECT_GE(turns[1].reused_tokens, turns[0].prompt_tokens);
  EXPECT_GE(turns[2].reused_tokens,
            turns[1].reused_tokens + turns[1].prompt_tokens);
}

TEST(Conversation, APromptThatIsTooLongLeavesEverythingAsItWas) {
  const FakeOptions options = Options(64);
  Fixture f(options);
  const auto failed =
      f.conversation->Chat(std::string(70, 'a'), Greedy(4), f.Collect());
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::kUsage);
  EXPECT_THAT(failed.error().message, HasSubstr("needs 88 tokens"));
  EXPECT_THAT(failed.error().message, HasSubstr("64"));
  ASSERT_TRUE(f.conversation->Chat("hi", Greedy(4), f.Collect()).ok());
  Ids messages;
  AddMessage(messages, "user", "hi");
  EXPECT_EQ(f.streamed, Answer(options, messages, 4));
}

TEST(Conversation, AFailedCallbackTakesTheTurnBack) {
  const FakeOptions options = Options();
  Fixture f(options);
  const auto failed = f.conversation->Chat(
      "one", Greedy(9), [](std::string_view) -> Result<TokenAction> {
        return Error{ErrorCode::kEnvironment, "pipe closed"};
      });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().message, "pipe closed");
  ASSERT_TRUE(f.conversation->Chat("two", Greedy(9), f.Collect()).ok());
  Ids messages;
  AddMessage(messages, "user", "two");
  EXPECT_EQ(f.streamed, Answer(options, messages, 9));
}

TEST(Conversation, StopsWhenToldTo) {
  Fixture f(Options());
  int calls = 0;
  const auto result = f.conversation->Chat(
      "one", Greedy(50), [&](std::string_view) -> Result<TokenAction> {
        return ++calls == 3 ? TokenAction::kStop : TokenAction::kContinue;
      });
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->reason, FinishReason::kStopped);
  EXPECT_EQ(calls, 3);
}

TEST(Conversation, SystemComesFirstAndOnce) {
  Fixture f(Options());
  ASSERT_TRUE(f.conversation->SetSystem("a").ok());
  const Status again = f.conversation->SetSystem("b");
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::kUsage);
}

TEST(Conversation, CompleteContinuesPlainText) {
  const FakeOptions options = Options();
  Fixture f(options, Parts::kTokenizer);
  ASSERT_TRUE(f.conversation->Complete("abc", Greedy(3), f.Collect()).ok());
  Ids expected = {kBos, 0, 1, 2};
  for (const int32_t id : FakeReference::Greedy(options, expected, 3))
    expected.push_back(id);
  ASSERT_EQ(Ids(f.fake.session->ids().begin(), f.fake.session->ids().end()),
            expected);
  // No second BOS in the middle of the sequence.
  ASSERT_TRUE(f.conversation->Complete("d", Greedy(0), f.Collect()).ok());
  expected.push_back(3);
  // No text: goes on.
  ASSERT_TRUE(f.conversation->Complete("", Greedy(1), f.Collect()).ok());
  expected.push_back(FakeReference::Greedy(options, expected, 1)[0]);
  EXPECT_EQ(Ids(f.fake.session->ids().begin(), f.fake.session->ids().end()),
            expected);
}

// Two turns, saved after the first: the second is as it would have been.
TEST(Conversation, GoesOnWithASavedSession) {
  const FakeOptions options = Options();
  const testing::TempDir dir;
  Fixture first(options);
  ASSERT_TRUE(first.conversation->SetSystem("be nice").ok());
  ASSERT_TRUE(
      first.conversation->Chat("hello", Greedy(12), first.Collect()).ok());
  auto file = OutputFile::Create(dir.File("s"));
  ASSERT_TRUE(first.conversation->Save(*file).ok());
  ASSERT_TRUE(
      first.conversation->Chat("what", Greedy(12), first.Collect()).ok());
  Fixture second(options);
  const auto saved = OpenSession(dir.File("s"));
  ASSERT_TRUE(saved.ok()) << saved.error().message;
  using Form = Conversation::Form;
  EXPECT_EQ(
      second.conversation->Restore(saved->saved, Form::kPlainText).error().code,
      ErrorCode::kUsage);
  ASSERT_TRUE(second.conversation->Restore(saved->saved, Form::kChat).ok());
  EXPECT_FALSE(second.conversation->SetSystem("again").ok());
  ASSERT_TRUE(
      second.conversation->Chat("what", Greedy(12), second.Collect()).ok());
  EXPECT_EQ(second.streamed, first.streamed);
  const TurnStatistics turn = second.fake.session->statistics().turns[0];
  EXPECT_GT(turn.reused_tokens, 0U);
  EXPECT_EQ(turn.reused_tokens,
            first.fake.session->statistics().turns[1].reused_tokens);
}

TEST(Conversation, SaysWhatTheArtifactLacks) {
  FakeSession bare(MakeArtifact(Options(), Parts::kIdsOnly));
  const auto none = Conversation::Create(*bare.session);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(none.error().message, HasSubstr("without a tokenizer"));
  Fixture f(Options(), Parts::kTokenizer);
  const auto chat = f.conversation->Chat("hi", Greedy(1), f.Collect());
  ASSERT_FALSE(chat.ok());
  EXPECT_EQ(chat.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(chat.error().message, HasSubstr("without a chat template"));
}

}  // namespace
}  // namespace hexllm
