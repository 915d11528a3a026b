#include "quant/constant_encoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/quote.h"
#include "ir/float_constant.h"
#include "quant/bias_room.h"
#include "quant/weight_encoding.h"

namespace hexllm::quant {

namespace {

bool Has(const ir::Constant& constant, const ir::Encoding& encoding,
         const ChosenCodes& codes) {
  return constant.encoding == encoding &&
         std::ranges::equal(constant.codes, codes.bytes);
}

}  // namespace

ir::ConstantId ConstantEncoder::Place(ir::ConstantId id, ir::Encoding encoding,
                                      const std::string& name,
                                      ChosenCodes codes) {
  if (!plain_.contains(id)) {
    if (Has(constants_[id], encoding, codes)) return id;
    if (!constants_[id].encoding) {
      constants_.SetEncoding(id, std::move(encoding));
      constants_.SetCodes(id, codes.bytes, std::move(codes.owner));
      return id;
    }
  }
  for (const ir::ConstantId copy : copies_[id])
    if (Has(constants_[copy], encoding, codes)) return copy;
  ir::Constant copy = constants_[id];
  copy.name = name;
  copy.encoding = std::move(encoding);
  copy.codes = codes.bytes;
  copy.codes_owner = std::move(codes.owner);
  const ir::ConstantId added = constants_.Add(std::move(copy));
  copies_[id].push_back(added);
  return added;
}

ir::Constant ConstantEncoder::Stored(ir::ConstantId id) const {
  ir::Constant stored = constants_[id];
  stored.codes = {};
  return stored;
}

void ConstantEncoder::WarnOnce(std::string warning) {
  if (std::find(warnings_.begin(), warnings_.end(), warning) == warnings_.end())
    warnings_.push_back(std::move(warning));
}

Status ConstantEncoder::AddBiasRoom(ir::ConstantId id, const std::string& layer,
                                    const BiasOf& bias,
                                    ir::Encoding& encoding) {
  if (!bias.id.valid()) return OkStatus();
  HX_ASSIGN_OR_RETURN(
      const int64_t coarser,
      MakeRoomForBias(constants_[bias.id], bias.x_scale, encoding));
  if (coarser > 0) {
    warnings_.push_back(fmt::format(
        "layer {}: {} of the {} scales of tensor {} are larger than its "
        "weights need, so that the bias fits 32 bits",
        Quoted(layer), coarser, encoding.scales.size(),
        Quoted(constants_[id].name)));
  }
  return OkStatus();
}

Status ConstantEncoder::CheckStored(ir::ConstantId id) {
  if (!checked_.insert(id).second) return OkStatus();
  return CheckFinite(constants_[id]);
}

Result<ir::ConstantId> ConstantEncoder::Weight(ir::ConstantId id,
                                               const std::string& layer,
                                               const LayerSettings& settings,
                                               const BiasOf& bias) {
  const std::pair key(id, layer);
  if (const auto found = given_.find(key); found != given_.end())
    return found->second;
  HX_CHECK(search_ != nullptr || !WantsSearch(settings));
  WeightReport report;
  const ir::Constant stored = Stored(id);
  HX_ASSIGN_OR_RETURN(ir::Encoding encoding,
                      WeightEncoding(stored, settings, &report));
  const WeightSearch::Target target = {stored, layer, settings};
  if (settings.weight_observer == WeightObserverKind::kSeqMse) {
    HX_ASSIGN_OR_RETURN(encoding, search_->Scales(target, std::move(encoding)));
  }
  HX_RETURN_IF_ERROR(AddBiasRoom(id, layer, bias, encoding));
  ChosenCodes codes;
  if (settings.rounding == RoundingKind::kGptq) {
    HX_ASSIGN_OR_RETURN(codes, search_->Codes(target, encoding));
  }
  if (report.zero_channels > 0) {
    warnings_.push_back(
        fmt::format("layer {}: {} of the {} output channels of tensor {} are "
                    "nothing but zeros",
                    Quoted(layer), report.zero_channels, report.channels,
                    Quoted(constants_[id].name)));
  }
  progress_.Update(++weights_done_);
  return given_[key] = Place(id, std::move(encoding), layer + ".weight",
                             std::move(codes));
}

ir::ConstantId ConstantEncoder::Bias(ir::ConstantId id,
                                     const std::string& layer,
                                     std::vector<float> scales) {
  ir::Encoding encoding{.dtype = DType::kI32};
  encoding.axis = scales.size() > 1 ? 0 : -1;
  encoding.scales = std::move(scales);
  return Place(id, std::move(encoding), layer + ".bias");
}

Result<ir::ConstantId> ConstantEncoder::Tensor(ir::ConstantId id,
                                               const std::string& reader,
                                               bool half) {
  const std::pair key(id, reader);
  if (const auto found = given_.find(key); found != given_.end())
    return found->second;
  HX_ASSIGN_OR_RETURN(
      ir::Encoding encoding,
      half ? HalfEncoding(constants_[id]) : TensorEncoding(constants_[id]));
  return given_[key] = Place(id, std::move(encoding), reader + ".weight");
}

ir::ConstantId ConstantEncoder::Sum(ir::ConstantId id, float offset) {
  const auto [sum, added] = sums_.try_emplace({id, offset});
  if (!added) return sum->second;
  const ir::Constant& stored = constants_[id];
  std::vector<float> values = ir::ReadAllRows(stored);
  for (float& value : values) value += offset;
  return sum->second = constants_.Add(
             ir::MakeFloatConstant(stored.name, stored.type.shape, values));
}

}  // namespace hexllm::quant
