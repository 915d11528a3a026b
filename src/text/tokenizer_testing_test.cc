// The helpers of tokenizer_testing.h. In a _test file, so that they are part of
// the test program alone.
#include "text/tokenizer_testing.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

namespace hexllm {
namespace {

const std::string kTreeFixtures =
    std::string(HEXLLM_SOURCE_DIR) + "/tests/data/tokenizers/";
const std::string kLargeFixtures =
    std::string(HEXLLM_SOURCE_DIR) + "/../shared/fixtures/tokenizers/";

std::optional<std::string> Expand(const std::string& path) {
  const std::string command = "zstd -dcq --long=27 '" + path + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"),
                                                   pclose);
  if (pipe == nullptr) return std::nullopt;
  std::string out;
  std::vector<char> buffer(1 << 16);
  for (size_t n = 1; n > 0;) {
    n = std::fread(buffer.data(), 1, buffer.size(), pipe.get());
    out.append(buffer.data(), n);
  }
  if (out.empty()) return std::nullopt;
  return out;
}

// The base's tokenizer.json with some of its members replaced.
std::optional<std::string> ApplyPatch(const std::string& patch_text) {
  const auto patch = nlohmann::json::parse(patch_text);
  const auto base =
      ReadTestFile(kLargeFixtures + patch["base"].get<std::string>() +
                   "/tokenizer.json.zst");
  if (!base) return std::nullopt;
  auto tree = nlohmann::json::parse(*base);
  tree.update(patch["replace"]);
  return tree.dump();
}

std::optional<std::string> ReadTokenizerJsonOf(const std::string& folder) {
  if (auto plain = ReadTestFile(folder + "/tokenizer.json")) return plain;
  if (auto packed = ReadTestFile(folder + "/tokenizer.json.zst")) return packed;
  const auto patch = ReadTestFile(folder + "/tokenizer.patch.json");
  return patch ? ApplyPatch(*patch) : std::nullopt;
}

}  // namespace

std::optional<std::string> ReadTestFile(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) return std::nullopt;
  if (path.ends_with(".zst")) return Expand(path);
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::optional<TokenizerFixture> LoadTokenizerFixture(const std::string& name) {
  for (const std::string& root : {kTreeFixtures, kLargeFixtures}) {
    auto json = ReadTokenizerJsonOf(root + name);
    auto golden = ReadTestFile(root + name + "/golden.jsonl");
    if (!golden) golden = ReadTestFile(root + name + "/golden.jsonl.zst");
    if (!json || !golden) continue;
    TokenizerFixture fixture{std::move(*json), {}};
    std::istringstream lines(*golden);
    for (std::string line; std::getline(lines, line);)
      fixture.golden.push_back(ParseJson(line).value());
    return fixture;
  }
  return std::nullopt;
}

Tokenizer MustCreate(std::string_view tokenizer_json) {
  auto data = ParseTokenizerJson(tokenizer_json);
  EXPECT_TRUE(data.ok()) << MessageOf(data);
  auto tokenizer = Tokenizer::Create(std::move(data).value());
  EXPECT_TRUE(tokenizer.ok()) << MessageOf(tokenizer);
  return std::move(tokenizer).value();
}

}  // namespace hexllm
