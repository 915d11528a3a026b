// Tokenizer files other than tokenizer.json against the tools that they are
// for: tiktoken 0.14, sentencepiece 0.2.3, and the algorithm of llama2.c.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "text/tokenizer_testing.h"

namespace hexllm {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

std::string Data(const std::string& name) {
  const auto text = ReadTestFile(std::string(HEXLLM_SOURCE_DIR) +
                                 "/tests/data/tokenizers/" + name);
  EXPECT_TRUE(text.has_value()) << name;
  return text.value_or("");
}

std::vector<Json> Lines(const std::string& name) {
  std::vector<Json> lines;
  std::istringstream in(Data(name));
  for (std::string line; std::getline(in, line);)
    lines.push_back(ParseJson(line).value());
  return lines;
}

// Through the blob, as an artifact keeps it.
Tokenizer Load(const std::string& name) {
  auto data = ParseTokenizerFile(AsBytes(Data(name)));
  EXPECT_TRUE(data.ok()) << MessageOf(data);
  auto read = ParseTokenizerBlob(AsBytes(SerializeTokenizer(*data)));
  EXPECT_TRUE(read.ok()) << MessageOf(read);
  EXPECT_TRUE(*read == *data);
  auto tokenizer = Tokenizer::Create(std::move(*read));
  EXPECT_TRUE(tokenizer.ok()) << MessageOf(tokenizer);
  return std::move(tokenizer).value();
}

Ids Encode(const Tokenizer& tokenizer, const std::string& text,
           AddSpecial special) {
  const auto ids = tokenizer.Encode(text, special);
  EXPECT_TRUE(ids.ok()) << MessageOf(ids);
  return ids.ok() ? *ids : Ids();
}

// All that is emitted for ids one at a time.
std::string Streamed(const Tokenizer& tokenizer, const Ids& ids) {
  StreamDetokenizer stream(tokenizer, SpecialTokens::kKeep);
  std::string out;
  for (const int32_t id : ids) out += stream.Feed(id);
  return out + std::string(stream.Finish());
}

TEST(Tiktoken, AgreesWithTiktoken) {
  const Tokenizer tokenizer = Load("tiny_tiktoken/tokenizer.model");
  const auto lines = Lines("tiny_tiktoken/golden.jsonl");
  ASSERT_GT(lines.size(), 300u);
  const Json& meta = lines[0]["meta"];
  EXPECT_EQ(tokenizer.vocab_size(), meta["n_vocab"].get<int32_t>());
  for (const Json& token : meta["special_tokens"]) {
    const auto id = tokenizer.FindToken(token.get<std::string>());
    ASSERT_TRUE(id.has_value()) << token;
    EXPECT_TRUE(tokenizer.IsSpecial(*id));
  }
  for (size_t i = 1; i < lines.size(); ++i) {
    const Json& line = lines[i];
    SCOPED_TRACE(line.dump().substr(0, 300));
    const std::string text = line["text"];
    const Ids expected = line.contains("ids_special")
                             ? line["ids_special"].get<Ids>()
                             : line["ids"].get<Ids>();
    EXPECT_EQ(Encode(tokenizer, text, AddSpecial::kNo), expected);
    EXPECT_EQ(tokenizer.Decode(expected, SpecialTokens::kKeep), text);
    Ids with_bos = {meta["bos"].get<int32_t>()};
    with_bos.insert(with_bos.end(), expected.begin(), expected.end());
    EXPECT_EQ(Encode(tokenizer, text, AddSpecial::kYes), with_bos);
  }
}

TEST(SentencePiece, AgreesWithSentencePiece) {
  const Tokenizer tokenizer = Load("tiny_llama2c/tokenizer.model");
  const auto lines = Lines("tiny_llama2c/golden.jsonl");
  ASSERT_GT(lines.size(), 300u);
  EXPECT_EQ(tokenizer.vocab_size(), lines[0]["meta"]["vocab"].get<int32_t>());
  for (size_t i = 1; i < lines.size(); ++i) {
    const Json& line = lines[i];
    SCOPED_TRACE(line.dump().substr(0, 300));
    const Ids expected = line["ids_sp"];
    EXPECT_EQ(Encode(tokenizer, line["text"], AddSpecial::kNo), expected);
    EXPECT_EQ(tokenizer.Decode(expected, SpecialTokens::kKeep),
              line["decode_sp"].get<std::string>());
    EXPECT_EQ(Streamed(tokenizer, expected),
              line["decode_sp"].get<std::string>());
  }
}

TEST(Llama2c, AgreesWithRunC) {
  for (const char* file : {"tokenizer.bin", "tokenizer_et.bin"}) {
    const Tokenizer tokenizer = Load(std::string("tiny_llama2c/") + file);
    for (const Json& line : Lines("tiny_llama2c/golden.jsonl")) {
      if (!line.contains("text")) continue;
      SCOPED_TRACE(line.dump().substr(0, 300));
      const Ids ids = line["ids_llama2c"];
      EXPECT_EQ(Encode(tokenizer, line["text"], AddSpecial::kYes), ids);
      EXPECT_EQ(tokenizer.Decode(ids, SpecialTokens::kSkip),
                line["text"].get<std::string>());
    }
    EXPECT_TRUE(tokenizer.IsSpecial(1));
    EXPECT_TRUE(tokenizer.IsSpecial(2));
    EXPECT_FALSE(tokenizer.IsSpecial(3));
  }
}

// --- Damage.

std::string TiktokenError(std::string_view text) {
  return MessageOf(ParseTiktoken(text));
}

// A tiktoken file of all bytes but `without`.
std::string TiktokenBytes(int without) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (int byte = 0, rank = 0; byte < 256; ++byte) {
    if (byte == without) continue;
    text += kDigits[static_cast<size_t>(byte >> 2)];
    text += kDigits[static_cast<size_t>(byte & 3) << 4];
    text += "== " + std::to_string(rank++) + "\n";
  }
  return text;
}

TEST(Tiktoken, NeedsAllBytesAndShortTokens) {
  EXPECT_EQ(TiktokenError(TiktokenBytes(-1)), "no error");
  EXPECT_THAT(TiktokenError(TiktokenBytes(0x61)),
              HasSubstr("found none for 0x61"));
  const std::string of_4098(5464, 'Q');
  EXPECT_THAT(TiktokenError(TiktokenBytes(-1) + of_4098 + " 256\n"),
              HasSubstr("token 256: expected at most 4096 bytes"));
}

TEST(Llama2c, NeedsItsBytePieces) {
  const std::string file = Data("tiny_llama2c/tokenizer.bin");
  std::string without = file;
  const size_t at = without.find("<0x41>");
  ASSERT_NE(at, std::string::npos);
  without[at] = '(';
  EXPECT_THAT(MessageOf(ParseLlama2c(AsBytes(without))),
              HasSubstr("found none for 0x41"));
  // Four empty tokens.
  EXPECT_THAT(MessageOf(ParseLlama2c(AsBytes(std::string(36, '\0')))),
              HasSubstr("found none for 0x00"));
}

TEST(Tiktoken, NamesTheDamagedLine) {
  EXPECT_THAT(TiktokenError("AA== 0\nA? 1\n"),
              AllOf(HasSubstr("line 2"), HasSubstr("rank 1")));
  EXPECT_THAT(TiktokenError("AA== 0\nAQ== 2\n"), HasSubstr("line 2"));
  EXPECT_THAT(TiktokenError("AA== 0\n\n"), HasSubstr("line 2"));
  EXPECT_THAT(TiktokenError("AA==\n"), HasSubstr("line 1"));
  EXPECT_THAT(TiktokenError(" 0\n"), HasSubstr("line 1"));
  EXPECT_THAT(TiktokenError("AA== 0x\n"), HasSubstr("line 1"));
  EXPECT_THAT(TiktokenError(""), HasSubstr("found none"));
}

TEST(Llama2c, EveryTruncationIsAnErrorOrAShorterVocabulary) {
  const std::string file = Data("tiny_llama2c/tokenizer.bin");
  const auto whole = ParseLlama2c(AsBytes(file));
  ASSERT_TRUE(whole.ok());
  for (size_t size = 0; size < file.size(); size += 13) {
    const auto data = ParseLlama2c(AsBytes(file.substr(0, size)));
    if (data.ok()) {
      EXPECT_LT(data->pieces.size(), whole->pieces.size());
    }
  }
  EXPECT_THAT(MessageOf(ParseLlama2c(AsBytes("abc"))), HasSubstr("llama2.c"));
}

TEST(SentencePiece, DamageIsAnErrorAndNothingElse) {
  const std::string file = Data("tiny_llama2c/tokenizer.model");
  for (size_t size = 0; size < file.size(); size += 29) {
    auto data = ParseSentencePiece(AsBytes(file.substr(0, size)));
    if (data.ok()) (void)Tokenizer::Create(std::move(*data)).ok();
  }
  for (size_t at = 0; at < file.size(); at += 23) {
    std::string changed = file;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    auto data = ParseSentencePiece(AsBytes(changed));
    if (!data.ok()) continue;
    const auto tokenizer = Tokenizer::Create(std::move(*data));
    if (tokenizer.ok())
      (void)tokenizer->Encode("Hello w\xC3\xB6rld 12", AddSpecial::kYes).ok();
  }
}

// A field of a protocol buffer.
std::string Field(char number, std::string_view bytes) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  for (size_t size = bytes.size();; size >>= 7) {
    out.push_back(static_cast<char>(size < 128 ? size : (size & 127) | 128));
    if (size < 128) break;
  }
  return out + std::string(bytes);
}

// A model of two pieces.
std::string TwoPieces() {
  return Field(1, Field(1, "<unk>") + "\x18\x02") + Field(1, Field(1, "a"));
}

// That with this table of replacements.
std::string WithCharsMap(std::string_view map) {
  return TwoPieces() + Field(3, Field(2, map));
}

TEST(SentencePiece, TheLibraryWritesNoLog) {
  // Its self-test has a sample that is not what it says.
  const std::string model =
      TwoPieces() + Field(4, Field(1, Field(1, "a") + Field(2, "a")));
  ::testing::internal::CaptureStderr();
  const auto tokenizer =
      Tokenizer::Create(ParseSentencePiece(AsBytes(model)).value());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(MessageOf(tokenizer), HasSubstr("Self-test"));
}

TEST(SentencePiece, ATableThatLeadsOutsideIsRefused) {
  // 256 units; all lead to themselves but one.
  std::string map("\x00\x04\x00\x00", 4);
  map += std::string(1024, '\0');
  map += std::string("x\0", 2);
  EXPECT_EQ(MessageOf(ParseSentencePiece(AsBytes(WithCharsMap(map)))),
            "no error");
  std::string outside = map;
  outside[4 + 40 + 2] = '\x04';  // an offset of 256 units
  EXPECT_THAT(MessageOf(ParseSentencePiece(AsBytes(WithCharsMap(outside)))),
              HasSubstr("damaged table"));
  std::string value = map;
  value[4 + 40 + 3] = '\x80';
  value[4 + 40] = '\x02';  // a replacement behind the last one
  EXPECT_THAT(MessageOf(ParseSentencePiece(AsBytes(WithCharsMap(value)))),
              HasSubstr("damaged table"));
  EXPECT_THAT(MessageOf(ParseSentencePiece(
                  AsBytes(WithCharsMap(map.substr(0, map.size() - 1))))),
              HasSubstr("damaged table"));
  // The walk begins at the first unit, which can be no value.
  std::string root = map;
  root[4 + 3] = '\x80';
  EXPECT_THAT(MessageOf(ParseSentencePiece(AsBytes(WithCharsMap(root)))),
              HasSubstr("damaged table"));
  // A node with a leaf (bit 8) leads to a value, not to any unit.
  std::string leaf = map;
  leaf[4 + 40 + 1] = '\x09';  // leaf, offset 2: unit 10 to unit 8
  EXPECT_THAT(MessageOf(ParseSentencePiece(AsBytes(WithCharsMap(leaf)))),
              HasSubstr("damaged table"));
  leaf[4 + 32 + 3] = '\x80';
  EXPECT_EQ(MessageOf(ParseSentencePiece(AsBytes(WithCharsMap(leaf)))),
            "no error");
}

TEST(TokenizerFile, FormatsAreToldApartByContent) {
  EXPECT_EQ(
      ParseTokenizerFile(AsBytes(Data("tiny_llama2c/tokenizer.model")))->model,
      TokenizerModel::kSentencePiece);
  EXPECT_EQ(ParseTokenizerFile(AsBytes(Data("tiny_llama2c/tokenizer.bin")))
                ->pieces[1],
            "\n<s>\n");
  EXPECT_THAT(MessageOf(ParseTokenizerFile(AsBytes("{\"model\":1}"))),
              ::testing::Not(HasSubstr("llama2.c")));
  EXPECT_THAT(MessageOf(ParseTokenizerFile(AsBytes("hello"))),
              HasSubstr("llama2.c"));
}

}  // namespace
}  // namespace hexllm
