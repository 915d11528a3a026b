// Makes PyTorch checkpoints for tests, sound ones and damaged ones: zip
// archives and pickles, byte by byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace hexllm::testing {

// What the headers of a member say; defaults are right.
struct ZipFields {
  uint16_t flags = 0x808;  // as torch.save writes them
  uint16_t method = 0;
  uint64_t packed_bytes = UINT64_MAX;  // UINT64_MAX: as many as there are
  uint64_t bytes = UINT64_MAX;
  uint64_t offset = UINT64_MAX;  // of the local header
};

// Lays members one after the other in the order of the calls.
class ZipBuilder {
 public:
  ZipBuilder& Add(std::string_view name, std::string_view data,
                  ZipFields fields = {}) {
    const auto size = static_cast<uint64_t>(data.size());
    const uint64_t offset = members_.size();
    ByteWriter local;
    local.Write<uint32_t>(0x04034b50);
    local.Write<uint16_t>(20);
    local.Write<uint16_t>(fields.flags);
    local.Write<uint16_t>(fields.method);
    local.WriteBytes(AsBytes(std::string(16, '\0')));
    local.Write<uint16_t>(static_cast<uint16_t>(name.size()));
    local.Write<uint16_t>(0);
    members_ += std::move(local).Take();
    members_ += name;
    members_ += data;
    AddEntry(name, fields,
             {Or(fields.bytes, size), Or(fields.packed_bytes, size),
              Or(fields.offset, offset)});
    return *this;
  }

  // With zip64, every size and offset stands in the long records alone.
  ZipBuilder& Zip64() {
    zip64_ = true;
    return *this;
  }

  std::string Build() const {
    ByteWriter end;
    const uint64_t offset = members_.size();
    if (zip64_) WriteEnd64(end, offset);
    end.Write<uint32_t>(0x06054b50);
    end.Write<uint32_t>(0);  // disks
    end.Write<uint16_t>(zip64_ ? 0xFFFF : entries_);
    end.Write<uint16_t>(zip64_ ? 0xFFFF : entries_);
    end.Write<uint32_t>(zip64_ ? 0xFFFFFFFF
                               : static_cast<uint32_t>(directory_.size()));
    end.Write<uint32_t>(zip64_ ? 0xFFFFFFFF : static_cast<uint32_t>(offset));
    end.Write<uint16_t>(0);
    return members_ + directory_ + std::move(end).Take();
  }

 private:
  struct Place {
    uint64_t bytes;
    uint64_t packed_bytes;
    uint64_t offset;
  };
  static uint64_t Or(uint64_t said, uint64_t fallback) {
    return said == UINT64_MAX ? fallback : said;
  }

  void AddEntry(std::string_view name, const ZipFields& fields,
                const Place& place) {
    ByteWriter entry;
    entry.Write<uint32_t>(0x02014b50);
    entry.Write<uint32_t>(0);  // versions
    entry.Write<uint16_t>(fields.flags);
    entry.Write<uint16_t>(fields.method);
    entry.Write<uint64_t>(0);  // time, checksum
    const auto number = [&](uint64_t value) {
      return zip64_ ? 0xFFFFFFFF : static_cast<uint32_t>(value);
    };
    entry.Write<uint32_t>(number(place.packed_bytes));
    entry.Write<uint32_t>(number(place.bytes));
    entry.Write<uint16_t>(static_cast<uint16_t>(name.size()));
    entry.Write<uint16_t>(zip64_ ? 28 : 0);
    entry.Write<uint16_t>(0);
    entry.Write<uint64_t>(0);  // disk, attributes
    entry.Write<uint32_t>(number(place.offset));
    entry.WriteBytes(AsBytes(name));
    if (zip64_) {
      entry.Write<uint16_t>(1);
      entry.Write<uint16_t>(24);
      entry.Write<uint64_t>(place.bytes);
      entry.Write<uint64_t>(place.packed_bytes);
      entry.Write<uint64_t>(place.offset);
    }
    directory_ += std::move(entry).Take();
    ++entries_;
  }

  void WriteEnd64(ByteWriter& end, uint64_t offset) const {
    end.Write<uint32_t>(0x06064b50);
    end.Write<uint64_t>(44);
    end.Write<uint32_t>(0);  // versions
    end.Write<uint64_t>(0);  // disks
    end.Write<uint64_t>(entries_);
    end.Write<uint64_t>(entries_);
    end.Write<uint64_t>(directory_.size());
    end.Write<uint64_t>(offset);
    end.Write<uint32_t>(0x07064b50);
    end.Write<uint32_t>(0);
    end.Write<uint64_t>(offset + directory_.size());
    end.Write<uint32_t>(1);
  }

  bool zip64_ = false;
  uint16_t entries_ = 0;
  std::string members_;
  std::string directory_;
};

// Pieces of pickles, to be put together with +. Each leaves one value on the
// stack unless it says otherwise.
namespace pickle {

inline const std::string kStart = "\x80\x02";
inline const std::string kStop = ".";
inline const std::string kMark = "(";
inline const std::string kNone = "N";
inline const std::string kEmptyDict = "}";
inline const std::string kEmptyTuple = ")";
inline const std::string kSetItems = "u";  // up to the mark
inline const std::string kReduce = "R";
inline const std::string kBuild = "b";

inline std::string Int(int32_t value) {
  ByteWriter out;
  out.Write<char>('J');
  out.Write<int32_t>(value);
  return std::move(out).Take();
}
inline std::string Text(std::string_view text) {
  ByteWriter out;
  out.Write<char>('X');
  out.Write<uint32_t>(static_cast<uint32_t>(text.size()));
  out.WriteBytes(AsBytes(text));
  return std::move(out).Take();
}
inline std::string Global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
inline std::string Tuple(const std::string& items) {
  return kMark + items + "t";
}
inline std::string Ints(const std::vector<int32_t>& values) {
  std::string items;
  for (const int32_t value : values) items += Int(value);
  return Tuple(items);
}
inline std::string OrderedDict() {
  return Global("collections", "OrderedDict") + kEmptyTuple + kReduce;
}
// A dict of `items`: keys and values in turn.
inline std::string Dict(const std::string& items) {
  return kEmptyDict + kMark + items + kSetItems;
}

struct Tensor {
  std::string type = "FloatStorage";
  std::string key = "0";
  int32_t elements = 0;  // of the storage
  int32_t offset = 0;
  std::vector<int32_t> shape = {};
  std::vector<int32_t> strides = {};
};
inline std::string Storage(const Tensor& tensor) {
  return Tuple(Text("storage") + Global("torch", tensor.type) +
               Text(tensor.key) + Text("cpu") + Int(tensor.elements)) +
         "Q";
}
inline std::string Of(const Tensor& tensor) {
  return Global("torch._utils", "_rebuild_tensor_v2") +
         Tuple(Storage(tensor) + Int(tensor.offset) + Ints(tensor.shape) +
               Ints(tensor.strides) + "\x89" + OrderedDict()) +
         kReduce;
}

}  // namespace pickle

// A checkpoint of the pickle `data` and the storages "0", "1", ...
inline std::string PytorchFrom(const std::string& data,
                               const std::vector<std::string>& storages) {
  ZipBuilder zip;
  zip.Add("archive/data.pkl", data).Add("archive/byteorder", "little");
  for (size_t i = 0; i < storages.size(); ++i)
    zip.Add("archive/data/" + std::to_string(i), storages[i]);
  return zip.Build();
}

// Matrices and vectors of f32 in their own storages:
//   PytorchBuilder().Add("w", {2, 3}, bytes).Build()
class PytorchBuilder {
 public:
  PytorchBuilder& Add(std::string_view name, std::vector<int32_t> shape,
                      std::string data) {
    std::vector<int32_t> strides(shape.size(), 1);
    for (size_t i = shape.size(); i-- > 1;)
      strides[i - 1] = strides[i] * shape[i];
    items_ += pickle::Text(name) +
              pickle::Of({.key = std::to_string(storages_.size()),
                          .elements = static_cast<int32_t>(data.size() / 4),
                          .shape = std::move(shape),
                          .strides = std::move(strides)});
    storages_.push_back(std::move(data));
    return *this;
  }
  std::string Build() const {
    return PytorchFrom(pickle::kStart + pickle::Dict(items_) + pickle::kStop,
                       storages_);
  }

 private:
  std::string items_;
  std::vector<std::string> storages_;
};

}  // namespace hexllm::testing
