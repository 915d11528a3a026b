// The interface of ChatTemplate: what messages and options become, which errors
// it gives, and that hostile templates end. What templates compute is tested
// against jinja2 in jinja/golden_test.cc.
#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace hexllm {
namespace {

using ::testing::HasSubstr;

Json OneMessage() { return Json::parse(R"([{"role":"user","content":"Hi"}])"); }

Result<std::string> Render(std::string source, const Json& messages,
                           const ChatRenderOptions& options = {}) {
  HX_ASSIGN_OR_RETURN(const ChatTemplate chat,
                      ChatTemplate::Parse(std::move(source), {}));
  return chat.Render(messages, options);
}

std::string RenderText(std::string source, const Json& messages,
                       const ChatRenderOptions& options = {}) {
  const auto text = Render(std::move(source), messages, options);
  return text.ok() ? *text : "error: " + text.error().message;
}

void ExpectError(std::string source, ErrorCode code, std::string_view part,
                 const ChatRenderOptions& options = {}) {
  SCOPED_TRACE(source.substr(0, 200));
  const auto text = Render(std::move(source), OneMessage(), options);
  ASSERT_FALSE(text.ok()) << *text;
  EXPECT_EQ(text.error().code, code) << text.error().message;
  EXPECT_THAT(text.error().message, HasSubstr(std::string(part)));
}

TEST(ChatTemplate, MessagesLoseNullMembers) {
  const Json messages = Json::parse(
      R"([{"role":"a","content":null,"tool_calls":null,"x":[null]}])");
  EXPECT_EQ(RenderText("{{ messages }}", messages),
            "[{'role': 'a', 'x': [None]}]");
}

TEST(ChatTemplate, ReasoningGetsItsStandardNames) {
  const Json messages =
      Json::parse(R"([{"role":"a","reasoning":"r"},{"role":"b"}])");
  EXPECT_EQ(RenderText("{{ messages }}", messages),
            "[{'thinking': 'r', 'role': 'a', 'reasoning': 'r', "
            "'reasoning_content': 'r'}, {'role': 'b'}]");
}

TEST(ChatTemplate, ContentPartsPassThrough) {
  const Json messages = Json::parse(
      R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"image"}]}])");
  EXPECT_EQ(RenderText("{% for p in messages[0].content %}{{ p.type }}"
                       "{{ p.text }};{% endfor %}",
                       messages),
            "texta;image;");
}

TEST(ChatTemplate, OptionsAreVariables) {
  const Json tools = Json::parse(R"([{"name":"f"}])");
  const Json variables = Json::parse(R"({"enable_thinking":false,"n":2.0})");
  ChatRenderOptions options;
  options.add_generation_prompt = true;
  options.tools = &tools;
  options.variables = &variables;
  EXPECT_EQ(RenderText("{{ add_generation_prompt }} {{ tools }} {{ documents }}"
                       " {{ enable_thinking }} {{ n }} {{ bos_token }}.",
                       OneMessage(), options),
            "True [{'name': 'f'}] None False 2.0 .");
}

TEST(ChatTemplate, VariablesWinOverTokens) {
  ChatTokens tokens;
  tokens.bos_token = "<s>";
  tokens.eos_token = "</s>";
  const auto chat = ChatTemplate::Parse(
      "{{ bos_token }}{{ eos_token }}{{ pad_token is defined }}", tokens);
  ASSERT_TRUE(chat.ok());
  EXPECT_EQ(*chat->Render(OneMessage(), {}), "<s></s>False");
  const Json variables = Json::parse(R"({"eos_token":"E"})");
  ChatRenderOptions options;
  options.variables = &variables;
  EXPECT_EQ(*chat->Render(OneMessage(), options), "<s>EFalse");
}

TEST(ChatTemplate, ClockIsTheCallers) {
  const char* source =
      "{% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}"
      "{% else %}no clock{% endif %}";
  EXPECT_EQ(RenderText(source, OneMessage()), "no clock");
  ChatRenderOptions options;
  options.now = std::tm{};
  options.now->tm_year = 126;
  options.now->tm_mon = 1;
  options.now->tm_mday = 3;
  EXPECT_EQ(RenderText(source, OneMessage(), options), "03 Feb 2026");
}

TEST(ChatTemplate, RejectsMessagesOfTheWrongShape) {
  const auto error = [](const char* messages) {
    return RenderText("x", Json::parse(messages));
  };
  EXPECT_THAT(error("[]"), HasSubstr("found an empty list"));
  EXPECT_THAT(error("{}"), HasSubstr("found an object"));
  EXPECT_THAT(error(R"([{"role":"a"}, "b"])"),
              HasSubstr("chat message 1: expected an object, found a string"));
  EXPECT_THAT(error(R"([{"n":18446744073709551615}])"),
              HasSubstr("chat message 0: the number 18446744073709551615"));
  const Json bad_text = {{{"content", "\xFF"}}};
  EXPECT_THAT(RenderText("x", bad_text), HasSubstr("not valid UTF-8"));
  Json deep = "x";
  for (int i = 0; i < 1000; ++i) deep = Json::array({deep});
  EXPECT_THAT(RenderText("x", Json::array({Json{{"content", deep}}})),
              HasSubstr("nesting deeper than 64 levels"));
  const Json tools = "f";
  ChatRenderOptions options;
  options.tools = &tools;
  EXPECT_THAT(RenderText("x", OneMessage(), options),
              HasSubstr("chat tools: expected a list, found a string"));
}

TEST(ChatTemplate, TheTemplatesOwnErrorIsExact) {
  const auto text =
      Render("{{ raise_exception('Conversation roles must alternate!') }}",
             OneMessage());
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(text.error().message, "Conversation roles must alternate!");
}

TEST(ChatTemplate, ErrorsNameTheLine) {
  ExpectError("a\n\n{{ 1 / 0 }}", ErrorCode::kBadInput,
              "chat template line 3: float division by zero");
  ExpectError("a\n{{ x.y }}", ErrorCode::kBadInput,
              "chat template line 2: 'x' is undefined");
  ExpectError("{% if true %}\n{{ foo(\n  ] }}", ErrorCode::kBadInput,
              "chat template line 3: unexpected ']', expected ')'");
  ExpectError(
      "{%- for m in messages -%}\n  {{- m.content.nope.x -}}\n{% endfor %}",
      ErrorCode::kBadInput,
      "chat template line 2: 'str object' has no attribute 'nope'");
  ExpectError("\xFF", ErrorCode::kBadInput, "not valid UTF-8");
}

TEST(ChatTemplate, UnsupportedConstructsAreNamed) {
  const auto expect = [](const char* source, const char* part) {
    ExpectError(source, ErrorCode::kUnsupported, part);
  };
  expect("\n{% include 'x' %}", "chat template line 2: the tag 'include'");
  expect("{% block a %}{% endblock %}", "the tag 'block'");
  expect("{{ 'a' | urlize }}", "the filter 'urlize'");
  expect("{{ ['a'] | map('pprint') | list }}", "the filter 'pprint'");
  expect("{{ lipsum() }}", "lipsum()");
  expect("{{ '\\N{BULLET}' }}", "\\N{...}");
  expect("{{ 9223372036854775808 }}", "64 bits");
  expect("{{ 9223372036854775807 + 1 }}", "64 bits");
  expect("{{ (-9223372036854775807 - 1) // -1 }}", "64 bits");
  expect("{{ -(-9223372036854775807 - 1) }}", "64 bits");
  expect("{{ 10 ** 30 }}", "64 bits");
  expect("{{ '99999999999999999999' | int }}", "64 bits");
  expect("{{ 1e30 | int }}", "64 bits");
  expect("{{ range }}", "printing a builtin_function_or_method");
  expect("{{ [1] | map('string') }}", "printing a generator");
  expect("{{ {(1, 2): 3} }}", "a dict key of type 'tuple'");
  expect("{{ x\u00e9 }}", "non-ASCII");
}

TEST(ChatTemplate, HostileTemplatesEnd) {
  ChatRenderOptions options;  // below the defaults to keep the test short
  options.limits.max_steps = 5'000'000;
  options.limits.max_bytes = 32 << 20;
  options.limits.max_output_bytes = 1 << 20;
  const auto expect = [&](const char* source, const char* part) {
    ExpectError(source, ErrorCode::kBadInput, part, options);
  };
  expect(
      "{% for a in range(99999) %}{% for b in range(99999) %}"
      "{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}",
      "steps");
  expect(
      "{% set ns = namespace(x='ab') %}{% for i in range(99) %}"
      "{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
      "bytes");
  expect("{{ 'ab' * 9223372036854775807 }}", "memory");
  expect("{{ [1, 2] * 9223372036854775807 }}", "too large");
  expect("{{ [1, 2] * 1000000000 }}", "memory");
  expect("{{ 'a' | center(99999999999) }}", "memory");
  expect("{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}",
         "nested deeper");
  expect("{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
         "nested deeper");
  expect(
      "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}"
      "{% set ns.x = [ns.x] %}{% endfor %}",
      "a value is nested deeper");
  expect(
      "{% set ns = namespace(x=[1]) %}{% for i in range(9999) %}"
      "{% set ns.x = ns.x | map('string') %}{% endfor %}",
      "a value is nested deeper");
  expect(
      "{% set ns = namespace(x=1) %}{% for i in range(9999) %}"
      "{% set ns.x = {'get': ns.x}.items %}{% endfor %}",
      "a value is nested deeper");
  expect("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}",
         "nested deeper");
  expect(
      "{% set ns = namespace(x=[1]) %}{% set ns.y = [1] %}"
      "{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}"
      "{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
      "steps");
  expect(
      "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}"
      "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | tojson }}",
      "longer than");
  expect("{% for i in range(9999) %}{{ 'a' * 1000000 }}{% endfor %}",
         "longer than");
  expect("{% for i in range(9999) %}{% set x = 'a' * 1000000 %}{% endfor %}",
         "memory");
  expect(
      "{% set x = 'a' * 100000 %}{% for i in range(9999) %}{{ 'b' in x }}"
      "{% endfor %}",
      "steps");
}

TEST(ChatTemplate, DeepSyntaxIsRefused) {
  const auto repeated = [](const std::string& text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  };
  const int kTimes = 100'000;
  const std::string deep[] = {
      "{{ " + repeated("(", kTimes) + "1" + repeated(")", kTimes) + " }}",
      "{{ " + repeated("[", kTimes) + repeated("]", kTimes) + " }}",
      "{{ " + repeated("-", kTimes) + "1 }}",
      "{{ " + repeated("not ", kTimes) + "1 }}",
      "{{ 1" + repeated(" + 1", kTimes) + " }}",
      "{{ 1" + repeated(" if 1 else 1", kTimes) + " }}",
      "{{ x" + repeated(".x", kTimes) + " }}",
      "{{ x" + repeated("|list", kTimes) + " }}",
      repeated("{% if 1 %}", kTimes) + repeated("{% endif %}", kTimes),
      "{% set " + repeated("(", kTimes) + "a" + repeated(")", kTimes) +
          " = 1 %}",
  };
  for (const std::string& source : deep) {
    ExpectError(source, ErrorCode::kBadInput, "nested deeper than");
  }
}

TEST(ChatTemplate, LimitsAreTheCallers) {
  ChatRenderOptions options;
  options.limits.max_output_bytes = 3;
  EXPECT_EQ(RenderText("abc", OneMessage(), options), "abc");
  ExpectError("abcd", ErrorCode::kBadInput, "longer than 3 bytes", options);
}

TEST(ChatTemplate, ThreadsShareOneTemplate) {
  const auto chat = ChatTemplate::Parse(
      "{% macro m(x) %}[{{ x }}]{% endmacro %}{% for i in range(200) %}"
      "{{ m(messages[0].content ~ i) }}{% endfor %}",
      {});
  ASSERT_TRUE(chat.ok());
  const Json messages = OneMessage();
  const std::string expected = *chat->Render(messages, {});
  std::vector<std::string> found(4);
  std::vector<std::thread> threads;
  for (std::string& text : found) {
    threads.emplace_back([&] { text = *chat->Render(messages, {}); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : found) EXPECT_EQ(text, expected);
}

}  // namespace
}  // namespace hexllm
