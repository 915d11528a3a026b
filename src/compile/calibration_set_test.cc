#include "compile/calibration_set.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temp_dir.h"
#include "text/tokenizer.h"

namespace hexllm {
namespace {

using testing::TempDir;

constexpr int64_t kVocab = 512;

TextAssets WithTokenizer() {
  auto data = LoadTokenizer(std::string(HEXLLM_SOURCE_DIR) +
                            "/tests/data/tokenizers/tiny_bpe_qwen2");
  EXPECT_TRUE(data.ok()) << data.error().message;
  TextAssets text;
  text.tokenizer = std::move(*data);
  return text;
}

struct Warnings final : ProgressSink {
  void Begin(std::string_view, std::string_view, int64_t) override {}
  void Update(int64_t) override {}
  void Warn(std::string_view message) override { lines.emplace_back(message); }
  void Note(std::string_view) override {}
  std::vector<std::string> lines;
};

Result<TokenSequences> Make(const CalibrationOptions& options,
                            const TextAssets& text = {},
                            size_t max_tokens = 1000) {
  NullProgress progress;
  return MakeCalibrationSet(options, text, kVocab, max_tokens, progress);
}

std::string ErrorOf(const CalibrationOptions& options,
                    const TextAssets& text = {}) {
  const auto set = Make(options, text);
  return set.ok() ? "no error" : set.error().message;
}

TEST(CalibrationSet, IdsAreCutIntoPieces) {
  const auto set = Make({.ids = {{1, 2, 3, 4, 5}, {6}}}, {}, 2);
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(*set, (TokenSequences{{1, 2}, {3, 4}, {5}, {6}}));
}

TEST(CalibrationSet, LimitCountsEachSource) {
  const auto set = Make({.ids = {{1}, {2}, {3}}, .limit = 2});
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(*set, (TokenSequences{{1}, {2}}));
  EXPECT_EQ(ErrorOf({.ids = {{1}}, .limit = 0}),
            "calibration: the set is empty; give at least one prompt, chat or "
            "text that has tokens");
}

TEST(CalibrationSet, IdsOutsideTheVocabulary) {
  EXPECT_EQ(ErrorOf({.ids = {{1, 512}}}),
            "--calib-tokens: expected ids from 0 to 511, found 512");
  EXPECT_EQ(ErrorOf({.ids = {{-1}}}),
            "--calib-tokens: expected ids from 0 to 511, found -1");
}

TEST(CalibrationSet, SamplesTakeAllForms) {
  const TempDir dir;
  const std::string path = dir.Write("chats.json", R"([
    "plain text",
    [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}],
    {"messages": [{"role": "user", "content": "three"}]}])");
  TextAssets text = WithTokenizer();
  text.chat_template =
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";
  const auto set = Make({.samples_path = path}, text);
  ASSERT_TRUE(set.ok()) << set.error().message;
  ASSERT_EQ(set->size(), 3u);
  const auto tokenizer = Tokenizer::Create(TokenizerData(*text.tokenizer));
  EXPECT_EQ(tokenizer->Decode((*set)[0], SpecialTokens::kKeep), "plain text");
  EXPECT_EQ(tokenizer->Decode((*set)[1], SpecialTokens::kKeep),
            "[user]one[assistant]two");
  EXPECT_EQ(tokenizer->Decode((*set)[2], SpecialTokens::kKeep), "[user]three");
}

TEST(CalibrationSet, DefaultHasAChatWhereThereIsATemplate) {
  TextAssets text = WithTokenizer();
  constexpr size_t kMany = 1 << 20;  // tokens: the text in one piece
  ASSERT_EQ(Make({}, text, kMany)->size(), 1u);
  text.chat_template =
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";
  const auto set = Make({}, text, kMany);
  ASSERT_TRUE(set.ok()) << set.error().message;
  ASSERT_EQ(set->size(), 2u);
  const auto tokenizer = Tokenizer::Create(TokenizerData(*text.tokenizer));
  const std::string chat = tokenizer->Decode(set->back(), SpecialTokens::kKeep);
  EXPECT_TRUE(chat.starts_with("[user]Why does bread rise?[assistant]Yeast"));
  // The same bytes on any day.
  *text.chat_template += "{{ strftime_now('%Y') }}";
  EXPECT_TRUE(Make({}, text, kMany).ok());
}

TEST(CalibrationSet, PromptsWithoutATemplateAreText) {
  const TextAssets text = WithTokenizer();
  const auto set = Make({.prompts = {"hello"}}, text);
  ASSERT_TRUE(set.ok()) << set.error().message;
  const auto tokenizer = Tokenizer::Create(TokenizerData(*text.tokenizer));
  EXPECT_EQ(tokenizer->Decode(set->front(), SpecialTokens::kKeep), "hello");
}

TEST(CalibrationSet, BadSamples) {
  const TempDir dir;
  const TextAssets text = WithTokenizer();
  const auto with = [&](const char* json) {
    return CalibrationOptions{.samples_path = dir.Write("c.json", json)};
  };
  EXPECT_NE(ErrorOf(with("{}"), text).find("expected an array of chats, found"),
            std::string::npos);
  EXPECT_NE(ErrorOf(with("[1]"), text).find("chat 0: expected text"),
            std::string::npos);
  EXPECT_NE(ErrorOf(with(R"([{"messages": []}])"), text).find("chat 0"),
            std::string::npos);
  EXPECT_NE(ErrorOf(with("[]"), text).find("the set is empty"),
            std::string::npos);
  EXPECT_NE(ErrorOf(with(R"(["x"])")).find("no tokenizer"), std::string::npos);
}

TEST(CalibrationSet, WikitextComesFromTheEnd) {
  const TempDir dir;
  std::filesystem::create_directory(dir.File("wikitext-2"));
  dir.Write("wikitext-2/test.txt", "abcdefgh");
  const auto set =
      Make({.tasks = "wikitext", .data_dir = dir.path(), .limit = 1},
           WithTokenizer(), 2);
  ASSERT_TRUE(set.ok()) << set.error().message;
  ASSERT_EQ(set->size(), 1u);
  const auto tokenizer =
      Tokenizer::Create(TokenizerData(*WithTokenizer().tokenizer));
  const std::string tail =
      tokenizer->Decode(set->front(), SpecialTokens::kKeep);
  EXPECT_EQ(tail.back(), 'h');
}

TEST(CalibrationSet, TasksNeedTheirFolderAndName) {
  EXPECT_NE(ErrorOf({.tasks = "wikitext"}, WithTokenizer()).find("--data-dir"),
            std::string::npos);
  EXPECT_NE(ErrorOf({.tasks = "piqa"}).find("expected wikitext"),
            std::string::npos);
}

TEST(CalibrationSet, DefaultIsTextOrAWarning) {
  const auto text = Make({}, WithTokenizer());
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_GT(text->front().size(), 300u);
  Warnings warnings;
  const auto random = MakeCalibrationSet({}, {}, kVocab, 1000, warnings);
  ASSERT_TRUE(random.ok());
  EXPECT_EQ(random->front().size(), 256u);
  ASSERT_EQ(warnings.lines.size(), 1u);
  EXPECT_NE(warnings.lines[0].find("--calib-tokens"), std::string::npos);
}

}  // namespace
}  // namespace hexllm
