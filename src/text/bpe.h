// BpeModel: byte-pair encoding of one word. Used by Tokenizer on each word of
// the pre-tokenizer. Short words are merged by scanning, long ones with a
// queue, so that a hostile text costs O(n log n). Source: Sennrich et al. 2016
// (arXiv 1508.07909), with the rules of Hugging Face tokenizers for unknown
// characters.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/pre_tokenizer.h"
#include "text/string_table.h"
#include "text/tokenizer_data.h"

namespace hexllm {

// Byte strings to ids. The later of two equal strings counts.
class PieceIndex {
 public:
  // Indexes the strings of `pieces` that are not empty; `pieces` must stay as
  // it is while the index is used.
  void Build(const StringTable& pieces);
  // The id of `piece`, or kNoToken. `pieces` is the table that Build was given.
  int32_t Find(const StringTable& pieces, std::string_view piece) const;

 private:
  struct Slot {
    uint32_t tag = 0;       // of the piece's hash: spares most comparisons
    int32_t id = kNoToken;  // kNoToken = free
  };
  // Where `piece` is or would be.
  size_t Place(const StringTable& pieces, std::string_view piece,
               uint64_t hash) const;

  std::vector<Slot> slots_;  // the size is a power of two
};

// Pairs of ids to their merge.
class MergeIndex {
 public:
  static constexpr uint32_t kNoRank = UINT32_MAX;
  struct Entry {
    uint64_t pair = UINT64_MAX;  // free
    uint32_t rank = kNoRank;
    int32_t result = kNoToken;
  };

  // The later of two merges of the same pair counts. `ranks` as in
  // TokenizerData.
  void Build(const std::vector<Merge>& merges,
             const std::vector<uint32_t>& ranks);
  // The merge of two neighbours; rank kNoRank when there is none.
  const Entry& Find(int32_t left, int32_t right) const {
    const uint64_t pair = Pair(left, right);
    size_t slot = Hash(pair) & mask_;
    while (slots_[slot].pair != pair && slots_[slot].rank != kNoRank)
      slot = (slot + 1) & mask_;
    return slots_[slot];
  }

 private:
  static uint64_t Pair(int32_t left, int32_t right) {
    return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) |
           static_cast<uint32_t>(right);
  }
  static uint64_t Hash(uint64_t pair) {
    pair *= 0x9E3779B97F4A7C15u;
    return pair ^ (pair >> 32);
  }

  std::vector<Entry> slots_ = std::vector<Entry>(
      1);  // the size is a power of two, with at least one free slot
  size_t mask_ = 0;
};

// Reusable buffers of one thread.
struct BpeScratch {
  struct Symbol {
    int32_t id;
    int32_t previous;  // -1 = none
    int32_t next;      // -1 = none
  };
  std::vector<int32_t> ids;
  std::vector<Symbol> symbols;
  // A heap of possible merges, the least on top: rank in the upper half of the
  // number, index of the left symbol in the lower.
  std::vector<uint64_t> queue;
};

// Immutable and thread-safe.
class BpeModel {
 public:
  // Takes the vocabulary out of `data`. kBadInput for ids out of range.
  static Result<BpeModel> Create(TokenizerData& data, WordAlphabet alphabet);

  // Appends the ids of `word` (at most kMaxTextBytes).
  void Encode(std::string_view word, BpeScratch& scratch,
              std::vector<int32_t>& out) const;

  // The id with this published spelling, or kNoToken.
  int32_t Find(std::string_view spelling) const;

  // The vocabulary by id, as published.
  const StringTable& pieces() const { return pieces_; }

 private:
  void IndexBytes();
  void AppendSymbols(std::string_view word, std::vector<int32_t>& ids) const;
  bool AppendByteFallback(std::string_view character,
                          std::vector<int32_t>& ids) const;
  size_t MergeShort(int32_t* ids, size_t count) const;
  void MergeLong(BpeScratch& scratch) const;
  void StartQueue(BpeScratch& scratch) const;
  uint64_t CandidateAt(int32_t position,
                       const std::vector<BpeScratch::Symbol>& symbols) const;

  WordAlphabet alphabet_ = WordAlphabet::kText;
  bool ignore_merges_ = false;
  bool byte_fallback_ = false;
  bool fuse_unk_ = false;
  int32_t unk_id_ = kNoToken;
  StringTable pieces_;
  PieceIndex piece_index_;
  MergeIndex merge_index_;
  // kBytes: the bytes of each piece that is written in the alphabet, else
  // empty.
  StringTable bytes_;
  PieceIndex bytes_index_;
  std::array<int32_t, 256> byte_ids_{};  // kBytes: id of the piece of one byte;
                                         // kText: of one ASCII character
  std::array<int32_t, 256> fallback_ids_{};  // id of <0xAB>
};

}  // namespace hexllm
