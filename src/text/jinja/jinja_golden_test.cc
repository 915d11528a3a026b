// Chat templates against the text that jinja2 and transformers make of them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/golden.h"
#include "text/chat_template.h"

namespace hexllm {
namespace {

std::filesystem::path Source() { return HEXLLM_SOURCE_DIR; }

std::string ReadText(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << "no file " << path;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Json ReadJson(const std::string& text) {
  auto json = ParseJson(text);
  EXPECT_TRUE(json.ok()) << (json.ok() ? "" : json.error().message);
  return json.ok() ? std::move(json).value() : Json::array();
}

// The moment at which scripts/dev/make-jinja-goldens renders.
std::tm GoldenTime() {
  std::tm time{};
  time.tm_year = 124;
  time.tm_mon = 6;
  time.tm_mday = 4;
  time.tm_hour = 15;
  time.tm_min = 8;
  time.tm_sec = 9;
  time.tm_wday = 4;
  time.tm_yday = 185;
  return time;
}

Result<std::string> RenderCase(const Json& golden) {
  HX_ASSIGN_OR_RETURN(
      const ChatTemplate chat,
      ChatTemplate::Parse(golden["template"].get<std::string>(), {}));
  Json messages = {{{"role", "user"}, {"content", "Hi"}}};
  Json variables = golden.value("variables", Json::object());
  if (variables.contains("messages")) messages = variables["messages"];
  const Json tools = variables.value("tools", Json());
  variables.erase("messages");
  variables.erase("tools");
  ChatRenderOptions options;
  options.tools = &tools;
  options.variables = &variables;
  options.now = GoldenTime();
  return chat.Render(messages, options);
}

TEST(JinjaGolden, EveryConstructRendersAsInJinja2) {
  auto& goldens = testing::Goldens::Get();
  const Json cases = ReadJson(goldens.Read("jinja", "cases.json"));
  EXPECT_GT(cases.size(), 300U);
  for (const Json& golden : cases) {
    SCOPED_TRACE(golden["name"].get<std::string>() + ": " +
                 golden["template"].get<std::string>());
    const auto text = RenderCase(golden);
    if (golden.contains("fails")) {
      ASSERT_FALSE(text.ok()) << *text;
      EXPECT_EQ(text.error().code, ErrorCode::kBadInput);
      continue;
    }
    ASSERT_TRUE(text.ok()) << text.error().message;
    EXPECT_EQ(*text, golden["rendered"].get<std::string>());
  }
  goldens.ExpectAllRead("jinja");
}

std::optional<std::string> OptionalText(const Json& json, const char* key) {
  const Json* member = FindMember(json, key);
  if (member == nullptr) return std::nullopt;
  return member->get<std::string>();
}

// Checks golden_hf.json of a folder with the templates beside it.
void CheckModels(const std::filesystem::path& folder, size_t expected_cases) {
  const Json cases = ReadJson(ReadText(folder / "golden_hf.json"));
  EXPECT_EQ(cases.size(), expected_cases);
  for (const Json& golden : cases) {
    const std::string model = golden["model"];
    SCOPED_TRACE(model + " " + golden["case"].get<std::string>());
    ChatTokens tokens;
    tokens.bos_token = OptionalText(golden, "bos_token");
    tokens.eos_token = OptionalText(golden, "eos_token");
    const auto chat =
        ChatTemplate::Parse(ReadText(folder / (model + ".jinja")), tokens);
    ASSERT_TRUE(chat.ok()) << chat.error().message;
    const Json& variables = golden["options"];
    ChatRenderOptions options;
    options.add_generation_prompt = variables["add_generation_prompt"];
    options.variables = &variables;
    const auto text = chat->Render(golden["messages"], options);
    ASSERT_TRUE(text.ok()) << text.error().message;
    EXPECT_EQ(*text, golden["rendered"].get<std::string>());
  }
}

TEST(JinjaGolden, ModelsRenderAsInTransformers) {
  CheckModels(Source() / "tests/data/chat", 49);
}

TEST(JinjaGolden, MoreModelsRenderAsInTransformers) {
  const auto folder = Source() / "../shared/fixtures/chat";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "the full set of chat fixtures is not beside this tree";
  }
  CheckModels(folder, 77);
}

}  // namespace
}  // namespace hexllm
