// Flags that cannot be honoured are refused, with one line that names them:
// none is accepted and ignored.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/cli/expect_error.h"
#include "tests/support/tiny_llama.h"

namespace hexllm::testing {
namespace {

constexpr int kUsage = 2;
constexpr int kEnvironment = 5;

TEST(Flags, FlagsThatAnArtifactCannotHonour) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  const std::string path = dir.File("m.hxl");
  ASSERT_EQ(RunHexllm({"compile", dir.path(), "-q", "-o", path}).status, 0);
  const std::vector<std::vector<std::string>> kFlags = {
      {"--set", "rope_theta=5"},    {"--config", "x.json"},
      {"--decoder-model", "llama"}, {"--model-mode", "kv"},
      {"--prefill-ar-len", "7"},    {"--max-context-len", "9"}};
  for (const auto& flag : kFlags) {
    std::vector<std::string> args = {"run",      path, "-q",
                                     "--tokens", "1",  "--ids"};
    args.insert(args.end(), flag.begin(), flag.end());
    ExpectError(RunHexllm(args), kUsage, {flag[0], "artifact"});
  }
  ExpectError(RunHexllm({"compile", path, "-q", "-o", dir.File("n.hxl")}),
              kUsage, {"m.hxl", "artifact"});
  // --model gives the float graph; nothing is quantized anew.
  const std::vector<std::vector<std::string>> kCompile = {
      {"--recipe", "16a8w"}, {"--calib-tokens", "1"}, {"--calib-limit", "2"}};
  for (const auto& flag : kCompile) {
    std::vector<std::string> args = {
        "logits",   path, "--model", dir.path(),
        "--tokens", "1",  "-o",      dir.File("l.safetensors")};
    args.insert(args.end(), flag.begin(), flag.end());
    ExpectError(RunHexllm(args), kUsage, {flag[0], "artifact"});
  }
  ExpectError(RunHexllm({"logits", path, "--model", dir.path(), "--tokens", "1",
                         "-o", dir.File("l.safetensors")}),
              kUsage, {"--model: expected with a stage"});
}

TEST(Flags, NamesAreNotNumbers) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  const std::vector<std::string> run = {"run", dir.path(), "--tokens", "1"};
  const std::vector<std::string> compile = {"compile", dir.path(), "-o",
                                            dir.File("m.hxl")};
  const std::vector<std::pair<std::vector<std::string>, std::string>> kFlags = {
      {run, "--kv-updater"},
      {run, "--lookahead"},
      {compile, "--model-mode"},
      {compile, "--embedding"},
      {compile, "--prefill-logits"}};
  for (auto [args, flag] : kFlags) {
    for (const char* value : {"0", "7", "bogus"}) {
      std::vector<std::string> all = args;
      all.insert(all.end(), {flag, value});
      ExpectError(RunHexllm(all), kUsage, {flag, "expected one of", value});
    }
  }
}

// A shell variable that is not set must not mean a default.
TEST(Flags, EmptyValues) {
  const std::vector<std::vector<std::string>> kFlags = {
      {"compile", "x", "-o", "y", "--cache-dir"},
      {"compile", "x", "-o", "y", "--recipe"},
      {"compile", "x", "-o"},
      {"run", "x", "--system"},
      {"logits", "x", "--tokens", "1", "-o", "y", "--stage"},
      {"eval", "x", "--tasks", "wikitext", "--mode"},
      {"eval", "x", "--prompt"},
      {"eval", "merge", "x", "-o"},
      {"recipe", "validate", "fp32", "--model"}};
  for (std::vector<std::string> args : kFlags) {
    const std::string flag = args.back() == "-o" ? "--output" : args.back();
    args.emplace_back();
    ExpectError(RunHexllm(args), kUsage,
                {flag + ": expected a value, found an empty one"});
  }
  ExpectError(RunHexllm({"run", ""}), kUsage, {"model: expected a value"});
  for (const char* list : {"fp,", ",fp", "fp,,qdq"}) {
    const std::string error = "--stages: expected a value between commas";
    ExpectError(RunHexllm({"eval", "x", "--stages", list}), kUsage, {error});
    ExpectError(RunHexllm({"eval", "x", std::string("--stages=") + list}),
                kUsage, {error});
  }
  // What follows "=" is the value, not the next word.
  ExpectError(RunHexllm({"run", "m.hxl", "--save-session=", "-q"}), kUsage,
              {"--save-session: expected a value"});
}

TEST(Flags, NamesThatThereAreNot) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  const std::vector<std::pair<std::string, std::string>> kFlags = {
      {"--target", "gpu"}, {"--recipe", "16a9w"}, {"--decoder-model", "x"}};
  for (const auto& [flag, value] : kFlags) {
    ExpectError(RunHexllm({"compile", dir.path(), "-q", "-o", dir.File("m.hxl"),
                           flag, value}),
                kUsage, {"'" + value + "'"});
  }
  ExpectError(RunHexllm({"logits", dir.path(), "--set", "a=", "--tokens", "1",
                         "-o", dir.File("o")}),
              kUsage, {"--set 'a': expected a value"});
  ExpectError(
      RunHexllm({"run", dir.path(), "--max-new-tokens", "4294967296"}), kUsage,
      {"--max-new-tokens: expected a whole number from 0 to 4294967295"});
  ExpectError(
      RunHexllm({"eval", dir.path(), "--tasks", "wikitext", "--shard", "0/2"}),
      kUsage, {"error: --shard: expected i/n"});
}

TEST(Flags, FlagsOfTheHtpAlone) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  const std::string path = dir.File("m.hxl");
  const std::vector<std::string> compile = {"compile", dir.path(), "-q", "-o",
                                            path};
  ASSERT_EQ(RunHexllm(compile).status, 0);
  const std::vector<std::string> sink = {
      "compile", path, "-q", "-o", dir.File("s"), "--use-attention-sink",
      "2,4"};
  const std::vector<std::string> libraries = {"--qnn-lib-dir", dir.path()};
  const std::vector<
      std::pair<std::vector<std::string>, std::vector<std::string>>>
      kCommands = {
          {compile, libraries},
          {{"run", path, "-q", "--tokens", "1", "--ids"}, libraries},
          {{"logits", path, "--tokens", "1", "-o", dir.File("l")}, libraries},
          {sink, libraries},
          {sink, {"--soc", "SM8650"}},
          {sink, {"--simulator"}}};
  for (auto [args, flag] : kCommands) {
    args.insert(args.end(), flag.begin(), flag.end());
    ExpectError(RunHexllm(args), kUsage, {flag[0] + ": for graphs of the HTP"});
  }
}

TEST(Flags, CacheFolders) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  const auto compile = [&](const std::string& cache,
                           const std::string& recipe) {
    return RunHexllm({"compile", dir.path(), "-q", "-o", dir.File("m.hxl"),
                      "--cache-dir", cache, "--recipe", recipe});
  };
  ExpectError(compile(dir.File("new"), "fp32"), kUsage, {"--cache-dir"});
  EXPECT_FALSE(std::filesystem::exists(dir.File("new")));
  ExpectError(compile("/proc/self", "16a8w"), kEnvironment, {"cache"});
}

}  // namespace
}  // namespace hexllm::testing
