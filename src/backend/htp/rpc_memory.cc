#include "backend/htp/rpc_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/quote.h"

namespace hexllm::htp {
namespace {

// Allocations are of whole pages.
constexpr size_t kPageBytes = 4096;

// At least one `to`, so that every buffer has a place.
size_t RoundUp(size_t bytes, size_t to) {
  return (std::max<size_t>(bytes, 1) + to - 1) / to * to;
}

Result<DynamicLibrary> LoadRpcLibrary(const std::string& folder) {
  std::error_code code;
  const auto own = std::filesystem::path(folder) / abi::kRpcLibrary;
  if (std::filesystem::exists(own, code))
    return DynamicLibrary::Load(folder, abi::kRpcLibrary);
  return DynamicLibrary::LoadFromSystem(abi::kRpcLibrary);
}

}  // namespace

RpcBlock::~RpcBlock() {
  if (!bytes_.empty()) free_(bytes_.data());
}

Result<std::unique_ptr<RpcMemory>> RpcMemory::Open(const std::string& folder) {
  std::unique_ptr<RpcMemory> memory(new RpcMemory);
  auto library = LoadRpcLibrary(folder);
  if (!library.ok()) {
    return std::move(library).error().With(
        "memory shared with the HTP (--shared-buffer off does without it and "
        "copies)");
  }
  memory->library_ =
      std::make_shared<const DynamicLibrary>(*std::move(library));
  HX_RETURN_IF_ERROR(memory->Resolve());
  return memory;
}

Status RpcMemory::Resolve() {
  const auto find = [this](const char* name) { return library_->Find(name); };
  alloc_ = reinterpret_cast<abi::RpcAlloc>(find("rpcmem_alloc"));
  alloc2_ = reinterpret_cast<abi::RpcAlloc2>(find("rpcmem_alloc2"));
  free_ = reinterpret_cast<abi::RpcFree>(find("rpcmem_free"));
  to_fd_ = reinterpret_cast<abi::RpcToFd>(find("rpcmem_to_fd"));
  if (alloc_ != nullptr && free_ != nullptr && to_fd_ != nullptr)
    return OkStatus();
  return Error{
      ErrorCode::kEnvironment,
      fmt::format("{}: it lacks rpcmem_alloc, rpcmem_free or rpcmem_to_fd; "
                  "use --shared-buffer off",
                  Printable(library_->path()))};
}

void* RpcMemory::AllocateRaw(size_t bytes) const {
  if (alloc2_ != nullptr)
    return alloc2_(abi::kRpcSystemHeap, abi::kRpcDefaultFlags, bytes);
  if (bytes > INT_MAX) return nullptr;
  return alloc_(abi::kRpcSystemHeap, abi::kRpcDefaultFlags,
                static_cast<int>(bytes));
}

Result<std::shared_ptr<const RpcBlock>> RpcMemory::NewBlock(size_t bytes) {
  if (bytes > SIZE_MAX / 2) {
    return Error{ErrorCode::kEnvironment,
                 fmt::format("no memory for {} bytes", bytes)};
  }
  bytes = RoundUp(bytes, kPageBytes);
  std::shared_ptr<RpcBlock> block(new RpcBlock);
  block->library_ = library_;
  block->free_ = free_;
  auto* memory = static_cast<std::byte*>(AllocateRaw(bytes));
  if (memory == nullptr) {
    const bool too_large = alloc2_ == nullptr && bytes > INT_MAX;
    return Error{
        ErrorCode::kEnvironment,
        fmt::format(
            "no {} bytes of memory shared with the HTP{}; use a "
            "smaller context, or --shared-buffer off",
            bytes,
            too_large ? " (this device's rpcmem_alloc gives 2 GiB)" : "")};
  }
  block->bytes_ = {memory, bytes};
  block->fd_ = to_fd_(memory);
  if (block->fd_ < 0) {
    return Error{ErrorCode::kEnvironment,
                 fmt::format("rpcmem_to_fd gave {} for memory shared with the "
                             "HTP; use --shared-buffer off",
                             block->fd_)};
  }
  std::memset(memory, 0, bytes);
  std::erase_if(blocks_, [](const auto& weak) { return weak.expired(); });
  blocks_.push_back(block);
  return std::shared_ptr<const RpcBlock>(std::move(block));
}

Status RpcMemory::Reserve(size_t bytes) {
  untouched_.reset();
  HX_ASSIGN_OR_RETURN(untouched_, NewBlock(bytes));
  reserved_ = untouched_;
  used_ = 0;
  return OkStatus();
}

Result<Buffer> RpcMemory::Allocate(size_t bytes) {
  const size_t room = RoundUp(bytes, kBufferAlignment);
  std::shared_ptr<const RpcBlock> block = reserved_.lock();
  size_t offset = used_;
  if (block != nullptr && room <= block->bytes().size() - used_) {
    used_ += room;
    untouched_.reset();
  } else {
    HX_ASSIGN_OR_RETURN(block, NewBlock(room));
    offset = 0;
  }
  std::byte* const data = block->bytes().data() + offset;
  return Buffer(data, bytes, [block](std::byte*, size_t) {});
}

std::optional<RpcPlace> RpcMemory::Find(
    std::span<const std::byte> memory) const {
  const std::less_equal<const std::byte*> not_after;
  for (const auto& weak : blocks_) {
    auto block = weak.lock();
    if (block == nullptr) continue;
    const auto all = block->bytes();
    if (not_after(all.data(), memory.data()) &&
        not_after(memory.data() + memory.size(), all.data() + all.size())) {
      const auto offset = static_cast<size_t>(memory.data() - all.data());
      return RpcPlace{.block = std::move(block), .offset = offset};
    }
  }
  return std::nullopt;
}

}  // namespace hexllm::htp
