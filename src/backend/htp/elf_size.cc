#include "backend/htp/elf_size.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace hexllm::htp {
namespace {

uint64_t EndOf(uint64_t offset, uint64_t bytes) {
  return CheckedAdd(offset, bytes).value_or(UINT64_MAX);
}

template <typename T>
T Copy(ByteSpan bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

// Where the last segment that is loaded ends; `table` is whole.
uint64_t EndOfSegments(ByteSpan table) {
  uint64_t end = 0;
  for (; !table.empty(); table = table.subspan(sizeof(Elf64_Phdr))) {
    const auto segment = Copy<Elf64_Phdr>(table);
    if (segment.p_type == PT_LOAD)
      end = std::max(end, EndOf(segment.p_offset, segment.p_filesz));
  }
  return end;
}

}  // namespace

uint64_t LeastElfBytes(ByteSpan file) {
  constexpr char kStart[] = {ELFMAG0, ELFMAG1,    ELFMAG2,
                             ELFMAG3, ELFCLASS64, ELFDATA2LSB};
  if (!AsText(file).starts_with(std::string_view(kStart, sizeof(kStart))))
    return 0;
  if (file.size() < sizeof(Elf64_Ehdr)) return sizeof(Elf64_Ehdr);
  const auto header = Copy<Elf64_Ehdr>(file);
  const uint64_t segments = uint64_t{header.e_phnum} * header.e_phentsize;
  const uint64_t sections = uint64_t{header.e_shnum} * header.e_shentsize;
  const uint64_t end =
      std::max({uint64_t{sizeof(header)}, EndOf(header.e_phoff, segments),
                EndOf(header.e_shoff, sections)});
  const auto table = Slice(file, header.e_phoff, segments);
  if (!table || header.e_phentsize != sizeof(Elf64_Phdr)) return end;
  return std::max(end, EndOfSegments(*table));
}

}  // namespace hexllm::htp
