// What users get for damaged files and impossible requests: one line that names
// file, tensor, expected and found; the right exit status; no output file, not
// even a partial one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "tests/cli/expect_error.h"
#include "tests/support/golden_tensors.h"
#include "tests/support/pytorch_builder.h"
#include "tests/support/tiny_llama.h"

namespace hexllm::testing {
namespace {

constexpr int kUsage = 2;
constexpr int kBadInput = 3;
constexpr int kUnsupported = 4;
constexpr int kEnvironment = 5;

class BadInput : public ::testing::Test {
 protected:
  // Compiles `model` and expects that nothing appears in the output folder.
  void ExpectCompileError(const std::string& model, int status,
                          const std::vector<std::string>& parts) const {
    const TempDir out;
    ExpectError(RunHexllm({"compile", model, "-q", "-o", out.File("m.hxl")}),
                status, parts);
    EXPECT_EQ(out.CountFiles(), 0u);
  }

  // The same for the tiny model as a folder.
  void ExpectFolderError(const TinyLlama& model, int status,
                         const std::vector<std::string>& parts) const {
    const TempDir dir;
    model.WriteFolder(dir);
    ExpectCompileError(dir.path(), status, parts);
  }

  // A folder whose safetensors file is `bytes`.
  void ExpectWeightsError(const std::string& bytes,
                          const std::vector<std::string>& parts) const {
    const TempDir dir;
    TinyLlama().WriteFolder(dir);
    dir.Write("model.safetensors", bytes);
    ExpectCompileError(dir.path(), kBadInput, parts);
  }
};

SafetensorsBuilder TwoTensors() {
  SafetensorsBuilder builder;
  builder.Add("a", "F32", {2, 2}, std::string(16, '\0'))
      .Add("b", "F32", {2}, std::string(8, '\0'));
  return builder;
}

TEST_F(BadInput, TruncatedSafetensors) {
  const std::string whole = TwoTensors().Build();
  ExpectWeightsError(whole.substr(0, whole.size() - 3),
                     {"model.safetensors", "expected", "found"});
}

TEST_F(BadInput, TruncatedGguf) {
  const TempDir dir;
  const std::string whole = TinyLlama().BuildGguf();
  for (const size_t kept :
       {whole.size() - 5, whole.size() / 2, size_t{40}, size_t{9}}) {
    ExpectCompileError(dir.Write("m.gguf", whole.substr(0, kept)), kBadInput,
                       {"m.gguf"});
  }
}

TEST_F(BadInput, HeaderLengthBeyondTheFile) {
  std::string bytes = TwoTensors().Build();
  bytes[3] = '\x7f';
  ExpectWeightsError(bytes,
                     {"model.safetensors", "header", "expected", "found"});
}

TEST_F(BadInput, PicklesThatWantToRunSomething) {
  const TempDir dir;
  const std::string marker = dir.File("executed");
  const std::string path =
      dir.Write("consolidated.00.pth",
                PytorchFrom(pickle::kStart + pickle::Global("os", "system") +
                                pickle::Tuple(pickle::Text("touch " + marker)) +
                                pickle::kReduce + pickle::kStop,
                            {}));
  ExpectCompileError(path, kUnsupported,
                     {path, "data.pkl", "'os.system'", "nothing was executed"});
  EXPECT_FALSE(std::filesystem::exists(marker));
}

TEST_F(BadInput, ArchivesThatExpandOrEndEarly) {
  const TempDir dir;
  const std::string bomb = ZipBuilder()
                               .Add("a/data.pkl", std::string(64, 'x'),
                                    {.method = 8, .bytes = 0xFFFFFFF0})
                               .Build();
  ExpectCompileError(dir.Write("bomb.pth", bomb), kUnsupported,
                     {"bomb.pth", "'a/data.pkl'", "compressed", "4294967280"});
  const std::string whole =
      PytorchBuilder().Add("norm.weight", {2}, "12345678").Build();
  ExpectCompileError(dir.Write("cut.pth", whole.substr(0, whole.size() - 9)),
                     kBadInput, {"cut.pth", "truncated file?"});
  ExpectCompileError(
      dir.Write("member.pth",
                ZipBuilder()
                    .Add("a/data.pkl", "x", {.packed_bytes = 999, .bytes = 999})
                    .Build()),
      kBadInput, {"member.pth", "'a/data.pkl'", "truncated member"});
}

TEST_F(BadInput, ShardsThatAreMissing) {
  const TempDir dir;
  for (const char* name : {"consolidated.00.pth", "consolidated.02.pth"}) {
    dir.Write(name,
              PytorchBuilder().Add("norm.weight", {2}, "12345678").Build());
  }
  ExpectCompileError(dir.path(), kBadInput, {"consolidated.01.pth"});
}

TEST_F(BadInput, TokenizerFilesOfAnotherKind) {
  const TempDir dir;
  const auto tokenize = [&](std::string_view text) {
    return RunHexllm(
        {"tokenize", "--tokenizer", dir.Write("t.model", text), "hello"});
  };
  ExpectError(tokenize("AA== 0\nAQ== 7\n"), kBadInput,
              {"t.model", "line 2", "rank 1"});
  ExpectError(tokenize("what is this"), kBadInput, {"t.model", "llama2.c"});
}

TEST_F(BadInput, OverlappingOffsets) {
  SafetensorsBuilder builder = TwoTensors();
  builder.header()["b"]["data_offsets"] = {8, 16};
  ExpectWeightsError(builder.Build(),
                     {"model.safetensors", "'b'", "expected", "found"});
}

TEST_F(BadInput, ZeroDimension) {
  SafetensorsBuilder builder = TwoTensors();
  builder.Add("z", "F32", {0, 4}, "");
  ExpectWeightsError(builder.Build(),
                     {"model.safetensors", "'z'", "expected", "found"});
}

TEST_F(BadInput, DimensionProductOverflow) {
  SafetensorsBuilder builder = TwoTensors();
  builder.header()["b"]["shape"] = {int64_t{1} << 40, int64_t{1} << 40};
  ExpectWeightsError(builder.Build(),
                     {"model.safetensors", "'b'", "expected", "found"});
}

TEST_F(BadInput, WrongTypedGgufKey) {
  const TempDir dir;
  GgufBuilder builder;
  builder.Add<std::string>("general.architecture", "llama")
      .Add<std::string>("llama.embedding_length", "sixteen");
  ExpectCompileError(
      dir.Write("m.gguf", builder.Build()), kBadInput,
      {"m.gguf", "llama.embedding_length", "expected", "found string"});
}

TEST_F(BadInput, MissingTensor) {
  TinyLlama model;
  model.tensors.erase("model.layers.1.self_attn.o_proj.weight");
  ExpectFolderError(model, kBadInput,
                    {"'model.layers.1.self_attn.o_proj.weight'",
                     "expected shape [16,16]", "found no such tensor"});
}

TEST_F(BadInput, ExtraTensor) {
  TinyLlama model;
  model.Add("model.layers.0.self_attn.q_norm.weight", {4});
  ExpectFolderError(
      model, kBadInput,
      {"'model.layers.0.self_attn.q_norm.weight'", "expected", "found"});
}

TEST_F(BadInput, HeadThatContradictsTheConfiguration) {
  TinyLlama tied;
  tied.Add("lm_head.weight", {32, 16});
  ExpectFolderError(
      tied, kBadInput,
      {"'lm_head.weight'", "tie_word_embeddings", "expected", "found"});
  TinyLlama untied;
  untied.config["tie_word_embeddings"] = false;
  ExpectFolderError(
      untied, kBadInput,
      {"'lm_head.weight'", "expected shape [32,16]", "found no such tensor"});
}

// A model with the tokenizer (512 tokens) of a fixture and `vocab` rows.
TinyLlama WithTokenizer(const TempDir& dir, int64_t vocab) {
  TinyLlama model;
  model.config["vocab_size"] = vocab;
  model.Add("model.embed_tokens.weight", {vocab, 16});
  model.WriteFolder(dir);
  std::filesystem::copy(DataPath("models/smollm2_135m/tokenizer.json"),
                        dir.path());
  return model;
}

TEST_F(BadInput, VocabularyThatDoesNotFitTheTokenizer) {
  for (const int64_t vocab : {int64_t{32}, int64_t{600}}) {
    const TempDir dir;
    WithTokenizer(dir, vocab);
    ExpectCompileError(
        dir.path(), kBadInput,
        {"tokenizer", "expected " + std::to_string(vocab), "found 5"});
  }
  for (const int64_t vocab : {int64_t{576}, int64_t{4096}}) {
    const TempDir padded;
    WithTokenizer(padded, vocab);
    const TempDir out;
    const Outcome done =
        RunHexllm({"compile", padded.path(), "-q", "-o", out.File("m.hxl")});
    EXPECT_EQ(done.status, 0) << done.err;
  }
}

TEST_F(BadInput, UnknownArchitecture) {
  TinyLlama model;
  model.config["architectures"] = {"MambaForCausalLM"};
  ExpectFolderError(
      model, kUnsupported,
      {"'architectures'", "LlamaForCausalLM", "'MambaForCausalLM'"});
}

TEST_F(BadInput, UnwritableOutput) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  ExpectError(RunHexllm({"compile", dir.path(), "-q", "-o",
                         dir.File("no/such/folder/m.hxl")}),
              kEnvironment, {"no/such/folder/m.hxl"});
  const TempDir folder;
  ExpectError(RunHexllm({"compile", dir.path(), "-q", "-o", folder.path()}),
              kEnvironment, {folder.path()});
}

// A mistyped -o must not cost anybody a model.
TEST_F(BadInput, OutputThatIsAnInput) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  const std::string gguf = dir.Write("m.gguf", TinyLlama().BuildGguf());
  const std::string before = ReadWholeFile(gguf);
  ExpectError(RunHexllm({"compile", gguf, "-q", "-o", gguf}), kUsage,
              {"m.gguf"});
  EXPECT_EQ(ReadWholeFile(gguf), before);
  ExpectError(RunHexllm({"compile", dir.path(), "-q", "-o",
                         dir.File("model.safetensors")}),
              kUsage, {"model.safetensors"});
  ExpectError(RunHexllm({"logits", gguf, "--tokens", "1", "-o", gguf}), kUsage,
              {"m.gguf"});
  const std::string ids = dir.Write("ids.safetensors", TwoTensors().Build());
  ExpectError(RunHexllm({"logits", gguf, "--tokens", ids + ":a", "-o", ids}),
              kUsage, {"ids.safetensors"});
  ExpectError(RunHexllm({"run", gguf, "-q", "--tokens", "1", "--ids",
                         "--stats-json", gguf}),
              kUsage, {"m.gguf"});
}

TEST_F(BadInput, PipesInThePlaceOfFiles) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  const TempDir other;
  const std::string pipe = other.File("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string task = dir.Write("t.jsonl", "");
  const std::vector<std::vector<std::string>> kCommands = {
      {"inspect", pipe},
      {"run", dir.path(), "-q", "--tokens", "1", "--ids", "--load-session",
       pipe},
      {"eval", dir.path(), "-q", "--tasks", task, "--resume", pipe}};
  for (const auto& args : kCommands)
    ExpectError(RunHexllm(args), kEnvironment, {"expected a regular file"});
}

TEST_F(BadInput, WeightsThatAreNoNumbers) {
  const TempDir dir;
  TinyLlama model;
  model.tensors["model.norm.weight"].data.replace(0, 4, "\xff\xff\xff\xff");
  model.WriteFolder(dir);
  ExpectError(
      RunHexllm({"logits", dir.path(), "--tokens", "1,2", "-o", dir.File("l")}),
      kBadInput, {"position 0 is", "weights"});
  EXPECT_FALSE(std::filesystem::exists(dir.File("l")));
}

TEST_F(BadInput, NumbersThatBreakFloatArithmetic) {
  const std::vector<std::pair<std::string, Json>> kSettings = {
      {"rms_norm_eps", 1e300},
      {"rope_theta", 1e300},
      {"rope_theta", 1e-300},
      {"rope_scaling", {{"type", "linear"}, {"factor", 1e-320}}},
      {"rope_scaling", {{"factor", 8}}},
      {"rope_scaling", Json::array()}};
  for (const auto& [key, value] : kSettings) {
    TinyLlama model;
    model.config[key] = value;
    ExpectFolderError(model, kBadInput, {"config.json", "expected", "found"});
  }
  TinyLlama quantized;
  quantized.config["quantization_config"] = {{"bits", 4}};
  ExpectFolderError(quantized, kUnsupported, {"quantization_config"});
}

TEST_F(BadInput, PromptLongerThanTheLongestSequence) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  ExpectError(RunHexllm({"run", dir.path(), "-q", "--tokens", "1,2,3", "--ids",
                         "--max-seq-len", "2"}),
              kUsage, {"2", "3"});
}

// Nothing to read errors with is no reason for another one.
TEST_F(BadInput, ClosedStandardError) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  EXPECT_EQ(
      RunHexllm({"compile", dir.path(), "-o", dir.File("m.hxl")}, "", " 2>&-")
          .status,
      0);
  EXPECT_EQ(RunHexllm({"run", "/nonexistent", "-p", "x"}, "", " 2>&-").status,
            kEnvironment);
}

TEST_F(BadInput, IdsAndVariablesThatDoNotExist) {
  const std::string model = DataPath("models/smollm2_135m");
  ExpectError(RunHexllm({"detokenize", "--tokenizer", model, "99999"}), kUsage,
              {"512", "99999"});
  const TempDir dir;
  const std::string chat =
      dir.Write("chat.json", R"([{"role":"user","content":"Hi"}])");
  ExpectError(RunHexllm({"template", "--model", model, "--messages", chat,
                         "--var", "messages=[]"}),
              kUsage, {"messages"});
}

TEST_F(BadInput, FullDisk) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  const TempDir out;
  // A file size limit acts as a disk does that fills up.
  ExpectError(RunHexllm({"compile", dir.path(), "-q", "-o", out.File("m.hxl")},
                        "ulimit -f 8; "),
              kEnvironment, {"m.hxl", "nothing was written"});
  EXPECT_EQ(out.CountFiles(), 0u);
}

TEST_F(BadInput, PromptLongerThanTheContext) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  std::string ids = "1";
  for (int i = 0; i < 40; ++i) ids += ",2";
  ExpectError(RunHexllm({"run", dir.path(), "-q", "--max-context-len", "32",
                         "--tokens", ids, "--ids"}),
              kUsage, {"41", "32"});
}

TEST_F(BadInput, TokenOutsideTheVocabulary) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  ExpectError(RunHexllm({"run", dir.path(), "-q", "--tokens", "1,32", "--ids"}),
              kUsage, {"32"});
  ExpectError(RunHexllm({"run", dir.path(), "-q", "--tokens", "1,x", "--ids"}),
              kUsage, {"1,x"});
}

TEST_F(BadInput, TextWithoutATokenizer) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  ExpectError(RunHexllm({"run", dir.path(), "-q", "-p", "Hello"}), kUnsupported,
              {"tokenizer"});
}

TEST_F(BadInput, DamagedArtifact) {
  const TempDir dir;
  TinyLlama().WriteFolder(dir);
  const std::string path = dir.File("m.hxl");
  ASSERT_EQ(RunHexllm({"compile", dir.path(), "-q", "-o", path}).status, 0);
  const std::string whole = ReadWholeFile(path);
  const std::string cut =
      dir.Write("cut.hxl", whole.substr(0, whole.size() - 100));
  ExpectError(RunHexllm({"run", cut, "-q", "--tokens", "1", "--ids"}),
              kBadInput, {"cut.hxl", "expected", "found"});
  std::string altered = whole;
  altered[4096] ^= 1;
  const std::string changed = dir.Write("changed.hxl", altered);
  ExpectError(RunHexllm({"inspect", changed, "--verify"}), kBadInput,
              {"changed.hxl", "segment"});
}

TEST_F(BadInput, MistypedCommandLine) {
  ExpectError(RunHexllm({"run"}), kUsage, {});
  ExpectError(RunHexllm({"frobnicate"}), kUsage, {});
  ExpectError(
      RunHexllm({"compile", "x", "-o", "y", "--prefill-ar-len", "many"}),
      kUsage, {"many"});
  ExpectError(RunHexllm({"compile", "x", "-o", "y", "--model-mode", "fast"}),
              kUsage, {"fast"});
  ExpectError(RunHexllm({"compile", "/nonexistent", "-q", "-o", "y"}),
              kEnvironment, {"/nonexistent"});
}

}  // namespace
}  // namespace hexllm::testing
