#include "text/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "base/check.h"
#include "text/byte_level.h"
#include "text/utf8.h"

namespace hexllm {
namespace {

// Up to here, scanning all pairs for the best beats the queue (measured:
// break-even near 60 symbols).
constexpr size_t kMaxShortWord = 48;

// A table with at least twice as many slots as entries, and always a free one.
size_t SlotsFor(size_t entries) { return std::bit_ceil(entries * 2 + 1); }

uint64_t HashBytes(std::string_view bytes) {
  uint64_t hash = 0x9E3779B97F4A7C15u ^ bytes.size();
  const auto mix = [&](uint64_t word) {
    hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
  };
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    mix(word);
  }
  if (at < bytes.size()) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, bytes.size() - at);
    mix(word);
  }
  return hash;
}

// The half of a hash that does not choose the slot.
uint32_t TagOf(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

// No merge, in the place of a rank and a position.
constexpr uint64_t kNoCandidate = UINT64_MAX;

Status CheckIds(const TokenizerData& data) {
  const auto size = static_cast<int64_t>(data.pieces.size());
  const auto outside = [&](int32_t id) { return id < 0 || id >= size; };
  for (size_t i = 0; i < data.merges.size(); ++i) {
    const Merge& merge = data.merges[i];
    if (!outside(merge.left) && !outside(merge.right) && !outside(merge.result))
      continue;
    return Error{ErrorCode::kBadInput,
                 fmt::format("merge {} ({} {} -> {}): ids must be below the "
                             "vocabulary's size {}",
                             i, merge.left, merge.right, merge.result, size)};
  }
  const bool ranked =
      data.merge_ranks.empty() || data.merge_ranks.size() == data.merges.size();
  const auto none = std::find(data.merge_ranks.begin(), data.merge_ranks.end(),
                              MergeIndex::kNoRank);
  if (!ranked || none != data.merge_ranks.end())
    return Error{ErrorCode::kBadInput,
                 fmt::format("expected a rank for each of {} merges, found {}",
                             data.merges.size(), data.merge_ranks.size())};
  if (data.unk_id != kNoToken && outside(data.unk_id)) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("unknown token id {} is not below the vocabulary's size {}",
                    data.unk_id, size)};
  }
  return OkStatus();
}

}  // namespace

void PieceIndex::Build(const StringTable& pieces) {
  slots_.assign(SlotsFor(pieces.size()), Slot{});
  for (size_t id = 0; id < pieces.size(); ++id) {
    const std::string_view piece = pieces[id];
    if (piece.empty()) continue;
    const uint64_t hash = HashBytes(piece);
    slots_[Place(pieces, piece, hash)] = {TagOf(hash),
                                          static_cast<int32_t>(id)};
  }
}

size_t PieceIndex::Place(const StringTable& pieces, std::string_view piece,
                         uint64_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t place = hash & mask;
  while (slots_[place].id != kNoToken) {
    const Slot& slot = slots_[place];
    if (slot.tag == TagOf(hash) &&
        pieces[static_cast<size_t>(slot.id)] == piece)
      break;
    place = (place + 1) & mask;
  }
  return place;
}

int32_t PieceIndex::Find(const StringTable& pieces,
                         std::string_view piece) const {
  if (slots_.empty()) return kNoToken;
  return slots_[Place(pieces, piece, HashBytes(piece))].id;
}

void MergeIndex::Build(const std::vector<Merge>& merges,
                       const std::vector<uint32_t>& ranks) {
  slots_.assign(SlotsFor(merges.size()), Entry{});
  mask_ = slots_.size() - 1;
  for (size_t i = 0; i < merges.size(); ++i) {
    const Merge& merge = merges[i];
    const uint32_t rank = ranks.empty() ? static_cast<uint32_t>(i) : ranks[i];
    const uint64_t pair = Pair(merge.left, merge.right);
    size_t slot = Hash(pair) & mask_;
    while (slots_[slot].rank != kNoRank && slots_[slot].pair != pair)
      slot = (slot + 1) & mask_;
    slots_[slot] = {pair, rank, merge.result};
  }
}

Result<BpeModel> BpeModel::Create(TokenizerData& data, WordAlphabet alphabet) {
  HX_RETURN_IF_ERROR(CheckIds(data));
  BpeModel model;
  model.alphabet_ = alphabet;
  model.ignore_merges_ = data.ignore_merges;
  model.byte_fallback_ = data.byte_fallback;
  model.fuse_unk_ = data.fuse_unk;
  model.unk_id_ = data.unk_id;
  model.merge_index_.Build(data.merges, data.merge_ranks);
  model.pieces_ = std::move(data.pieces);
  model.piece_index_.Build(model.pieces_);
  model.IndexBytes();
  return model;
}

void BpeModel::IndexBytes() {
  std::string buffer;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    buffer.clear();
    if (alphabet_ == WordAlphabet::kBytes) {
      AppendUtf8(ByteLevelChar(static_cast<uint8_t>(byte)), buffer);
    } else if (byte < 0x80) {
      buffer.push_back(static_cast<char>(byte));
    }
    byte_ids_[byte] = buffer.empty() ? kNoToken : Find(buffer);
    fallback_ids_[byte] = Find(fmt::format("<0x{:02X}>", byte));
  }
  // Whole words are looked up only for ignore_merges.
  if (alphabet_ == WordAlphabet::kText || !ignore_merges_) return;
  bytes_.Reserve(pieces_.size(), pieces_.total_bytes());
  for (size_t id = 0; id < pieces_.size(); ++id) {
    buffer.clear();
    AppendBytesOfByteLevel(pieces_[id], buffer);
    bytes_.Add(buffer);
  }
  bytes_index_.Build(bytes_);
}

int32_t BpeModel::Find(std::string_view spelling) const {
  return piece_index_.Find(pieces_, spelling);
}

void BpeModel::Encode(std::string_view word, BpeScratch& scratch,
                      std::vector<int32_t>& out) const {
  if (ignore_merges_) {
    const int32_t id = alphabet_ == WordAlphabet::kBytes
                           ? bytes_index_.Find(bytes_, word)
                           : Find(word);
    if (id != kNoToken) {
      out.push_back(id);
      return;
    }
  }
  scratch.ids.clear();
  AppendSymbols(word, scratch.ids);
  if (scratch.ids.size() <= kMaxShortWord) {
    scratch.ids.resize(MergeShort(scratch.ids.data(), scratch.ids.size()));
  } else {
    MergeLong(scratch);
  }
  out.insert(out.end(), scratch.ids.begin(), scratch.ids.end());
}

// The ids of the single characters (or bytes). Of unknown ones, a pending unk
// is written when the next known character comes, as in Hugging Face
// tokenizers.
void BpeModel::AppendSymbols(std::string_view word,
                             std::vector<int32_t>& ids) const {
  bool unk_pending = false;
  const auto add = [&](int32_t id, std::string_view character) {
    if (id != kNoToken) {
      if (unk_pending) ids.push_back(unk_id_);
      unk_pending = false;
      ids.push_back(id);
      return;
    }
    if (AppendByteFallback(character, ids) || unk_id_ == kNoToken) return;
    if (unk_pending && !fuse_unk_) ids.push_back(unk_id_);
    unk_pending = true;
  };
  for (size_t at = 0; at < word.size();) {
    const auto byte = static_cast<uint8_t>(word[at]);
    if (alphabet_ == WordAlphabet::kBytes || byte < 0x80) {
      add(byte_ids_[byte], word.substr(at, 1));
      ++at;
      continue;
    }
    const std::string_view character =
        word.substr(at, DecodeUtf8(word, at).bytes);
    add(Find(character), character);
    at += character.size();
  }
  if (unk_pending) ids.push_back(unk_id_);
}

// The <0xAB> pieces of an unknown character, if the vocabulary has all of them.
bool BpeModel::AppendByteFallback(std::string_view character,
                                  std::vector<int32_t>& ids) const {
  if (!byte_fallback_) return false;
  // A byte stands here for a character of the alphabet, whose own UTF-8 bytes
  // would be asked for.
  std::string spelled;
  if (alphabet_ == WordAlphabet::kBytes) {
    AppendByteLevel(character, spelled);
    character = spelled;
  }
  const auto id_of = [&](char c) {
    return fallback_ids_[static_cast<uint8_t>(c)];
  };
  if (std::any_of(character.begin(), character.end(),
                  [&](char c) { return id_of(c) == kNoToken; }))
    return false;
  for (const char c : character) ids.push_back(id_of(c));
  return true;
}

// Merges in place; returns how many ids are left.
size_t BpeModel::MergeShort(int32_t* ids, size_t count) const {
  std::array<const MergeIndex::Entry*, kMaxShortWord>
      merges;  // of ids[i] with ids[i + 1]
  for (size_t i = 0; i + 1 < count; ++i)
    merges[i] = &merge_index_.Find(ids[i], ids[i + 1]);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (merges[i]->rank < merges[best]->rank) best = i;
    }
    if (merges[best]->rank == MergeIndex::kNoRank) break;
    ids[best] = merges[best]->result;
    for (size_t i = best + 1; i + 1 < count; ++i) {
      ids[i] = ids[i + 1];
      merges[i - 1] = merges[i];
    }
    --count;
    if (best > 0)
      merges[best - 1] = &merge_index_.Find(ids[best - 1], ids[best]);
    if (best + 1 < count)
      merges[best] = &merge_index_.Find(ids[best], ids[best + 1]);
  }
  return count;
}

// Merges scratch.ids in place.
void BpeModel::MergeLong(BpeScratch& scratch) const {
  auto& symbols = scratch.symbols;
  auto& queue = scratch.queue;
  StartQueue(scratch);
  const auto push = [&](int32_t position) {
    const uint64_t candidate = CandidateAt(position, symbols);
    if (candidate == kNoCandidate) return;
    queue.push_back(candidate);
    std::push_heap(queue.begin(), queue.end(), std::greater<>());
  };
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const auto position = static_cast<int32_t>(queue.back() & UINT32_MAX);
    const auto rank = static_cast<uint32_t>(queue.back() >> 32);
    queue.pop_back();
    auto& left = symbols[static_cast<size_t>(position)];
    if (left.id == kNoToken || left.next < 0) continue;
    auto& right = symbols[static_cast<size_t>(left.next)];
    const MergeIndex::Entry& merge = merge_index_.Find(left.id, right.id);
    if (merge.rank != rank) continue;  // one of the two was merged meanwhile
    left.id = merge.result;
    right.id = kNoToken;
    left.next = right.next;
    if (left.next >= 0)
      symbols[static_cast<size_t>(left.next)].previous = position;
    push(left.previous);
    push(position);
  }
  scratch.ids.clear();
  for (int32_t i = 0; i >= 0; i = symbols[static_cast<size_t>(i)].next) {
    scratch.ids.push_back(symbols[static_cast<size_t>(i)].id);
  }
}

// Makes scratch.symbols, a list of scratch.ids, and the queue of its merges.
void BpeModel::StartQueue(BpeScratch& scratch) const {
  scratch.symbols.clear();
  scratch.queue.clear();
  const auto count = static_cast<int32_t>(scratch.ids.size());
  for (int32_t i = 0; i < count; ++i) {
    const int32_t id = scratch.ids[static_cast<size_t>(i)];
    scratch.symbols.push_back({id, i - 1, i + 1 < count ? i + 1 : -1});
  }
  for (int32_t i = 0; i < count; ++i) {
    const uint64_t candidate = CandidateAt(i, scratch.symbols);
    if (candidate != kNoCandidate) scratch.queue.push_back(candidate);
  }
  std::make_heap(scratch.queue.begin(), scratch.queue.end(), std::greater<>());
}

// The merge of the symbol at `position` (-1 = none) with the next, as a number
// of the queue.
uint64_t BpeModel::CandidateAt(
    int32_t position, const std::vector<BpeScratch::Symbol>& symbols) const {
  if (position < 0) return kNoCandidate;
  const auto& left = symbols[static_cast<size_t>(position)];
  if (left.next < 0) return kNoCandidate;
  const uint32_t rank =
      merge_index_.Find(left.id, symbols[static_cast<size_t>(left.next)].id)
          .rank;
  if (rank == MergeIndex::kNoRank) return kNoCandidate;
  return (static_cast<uint64_t>(rank) << 32) | static_cast<uint32_t>(position);
}

}  // namespace hexllm
