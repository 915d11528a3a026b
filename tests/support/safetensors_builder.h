// Makes safetensors files for tests, sound ones and damaged ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/json.h"

namespace hexllm::testing {

// A file with any header text and any data, sound or not.
inline std::string SafetensorsFromHeader(std::string_view header,
                                         std::string_view data) {
  ByteWriter out;
  out.Write<uint64_t>(header.size());
  out.WriteBytes(AsBytes(header));
  out.WriteBytes(AsBytes(data));
  return std::move(out).Take();
}

// Lays tensors one after the other in the order of the calls:
//   SafetensorsBuilder().Add("w", "F32", {2, 3}, bytes).Build()
class SafetensorsBuilder {
 public:
  // `dtype` and the size of `data` are not checked.
  SafetensorsBuilder& Add(const std::string& name, const std::string& dtype,
                          const Json& shape, std::string_view data) {
    header_[name] = {
        {"dtype", dtype},
        {"shape", shape},
        {"data_offsets", {data_.size(), data_.size() + data.size()}}};
    data_ += data;
    return *this;
  }
  SafetensorsBuilder& Metadata(const std::string& key,
                               const std::string& value) {
    header_["__metadata__"][key] = value;
    return *this;
  }
  // For damage: change what Add wrote, then Build.
  Json& header() { return header_; }
  std::string& data() { return data_; }

  // The header is padded with spaces, so that the data starts at a multiple
  // of 8.
  std::string Build() const {
    std::string header = DumpJson(header_);
    header.append((8 - header.size() % 8) % 8, ' ');
    return SafetensorsFromHeader(header, data_);
  }

 private:
  Json header_ = Json::object();
  std::string data_;
};

}  // namespace hexllm::testing
