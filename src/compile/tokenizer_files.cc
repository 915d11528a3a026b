#include "compile/tokenizer_files.h"

#include <filesystem>
#include <system_error>

#include "base/mapped_file.h"

namespace hexllm {

Result<TokenizerData> ReadTokenizerFile(const std::string& path) {
  HX_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  auto data = ParseTokenizerFile(file.bytes());
  if (!data.ok()) return std::move(data).error().With(path);
  return data;
}

Result<std::optional<TokenizerData>> FindTokenizer(const std::string& folder) {
  for (const char* name :
       {"tokenizer.json", "tokenizer.model", "tokenizer.bin"}) {
    const auto path = std::filesystem::path(folder) / name;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    HX_ASSIGN_OR_RETURN(TokenizerData data, ReadTokenizerFile(path.string()));
    return std::optional<TokenizerData>(std::move(data));
  }
  return std::optional<TokenizerData>();
}

}  // namespace hexllm
