#include "eval/certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "eval/compare.h"
#include "eval/score.h"

namespace hexllm {
namespace {

constexpr int64_t kFormat = 1;
constexpr size_t kProbeTokens = 8;  // of each probe, at most
constexpr size_t kProbes = 2;

Result<std::vector<float>> LastLogits(Session& session,
                                      std::span<const int32_t> ids) {
  std::vector<float> last;
  HX_RETURN_IF_ERROR(
      session.Logits(ids, [&](uint32_t, std::span<const float> row) {
        last.assign(row.begin(), row.end());
        return OkStatus();
      }));
  return last;
}

Result<GoldenProbe> MakeProbe(Session& session, std::span<const int32_t> ids) {
  HX_ASSIGN_OR_RETURN(const std::vector<float> logits,
                      LastLogits(session, ids));
  HX_RETURN_IF_ERROR(
      CheckFinite(logits, static_cast<uint32_t>(ids.size() - 1)));
  GoldenProbe probe{
      .ids = {ids.begin(), ids.end()}, .tokens = {}, .logits = {}};
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto kept = std::min(kProbeLogits, order.size());
  std::partial_sort(order.begin(),
                    order.begin() + static_cast<std::ptrdiff_t>(kept),
                    order.end(), [&](int32_t a, int32_t b) {
                      const float x = logits[static_cast<size_t>(a)];
                      const float y = logits[static_cast<size_t>(b)];
                      return x > y || (x == y && a < b);
                    });
  order.resize(kept);
  for (const int32_t id : order)
    probe.logits.push_back(logits[static_cast<size_t>(id)]);
  probe.tokens = std::move(order);
  return probe;
}

Status CheckProbe(Session& session, const GoldenProbe& probe, size_t number) {
  HX_ASSIGN_OR_RETURN(const std::vector<float> logits,
                      LastLogits(session, probe.ids));
  std::vector<float> found;
  for (const int32_t id : probe.tokens)
    found.push_back(logits[static_cast<size_t>(id)]);
  Sqnr sqnr;
  sqnr.Add(probe.logits, found);
  const bool finite = std::all_of(logits.begin(), logits.end(),
                                  [](float x) { return std::isfinite(x); });
  if (finite && sqnr.Decibels() >= kLeastProbeDb) return OkStatus();
  return Error{
      ErrorCode::kEnvironment,
      fmt::format(
          "{}: self-test: expected the logits of golden probe {} within "
          "{:g} dB, found {}; this device or library does not compute "
          "what was compiled (--no-self-test runs it all the same)",
          session.artifact().path(), number, kLeastProbeDb,
          finite ? fmt::format("{:.1f} dB", sqnr.Decibels())
                 : "NaN or infinity")};
}

template <typename T>
Result<std::vector<T>> GetNumbers(const Json& json, std::string_view key) {
  const Json* array = FindMember(json, key);
  std::vector<T> numbers;
  if (array != nullptr && array->is_array()) {
    for (const Json& number : *array) {
      if (!number.is_number()) break;
      const auto value = number.get<double>();
      if (!(std::abs(value) <=
            static_cast<double>(std::numeric_limits<T>::max())))
        break;
      numbers.push_back(static_cast<T>(value));
    }
    if (numbers.size() == array->size()) return numbers;
  }
  return Error{
      ErrorCode::kBadInput,
      fmt::format("{}: expected an array of numbers, found none", key)};
}

Result<GoldenProbe> ProbeFromJson(const Json& json, uint32_t vocab) {
  GoldenProbe probe;
  HX_ASSIGN_OR_RETURN(probe.ids, GetNumbers<int32_t>(json, "ids"));
  HX_ASSIGN_OR_RETURN(probe.tokens, GetNumbers<int32_t>(json, "tokens"));
  HX_ASSIGN_OR_RETURN(probe.logits, GetNumbers<float>(json, "logits"));
  const auto is_id = [&](int32_t id) {
    return id >= 0 && static_cast<uint32_t>(id) < vocab;
  };
  if (!probe.ids.empty() && !probe.tokens.empty() &&
      probe.tokens.size() == probe.logits.size() &&
      std::all_of(probe.ids.begin(), probe.ids.end(), is_id) &&
      std::all_of(probe.tokens.begin(), probe.tokens.end(), is_id))
    return probe;
  return Error{
      ErrorCode::kBadInput,
      fmt::format("probes: expected ids, and as many tokens as logits, "
                  "of a vocabulary of {}, found others",
                  vocab)};
}

Status ReadFigures(const Json& json, Certificate& out) {
  HX_ASSIGN_OR_RETURN(out.stage, GetString(json, "stage"));
  HX_ASSIGN_OR_RETURN(const int64_t tokens, GetInt(json, "text_tokens"));
  HX_ASSIGN_OR_RETURN(out.token_perplexity,
                      GetNumber(json, "token_perplexity"));
  HX_ASSIGN_OR_RETURN(out.float_token_perplexity,
                      GetNumber(json, "float_token_perplexity"));
  HX_ASSIGN_OR_RETURN(out.sqnr_db, GetNumber(json, "sqnr_db"));
  HX_ASSIGN_OR_RETURN(out.mean_kld, GetNumber(json, "mean_kld"));
  HX_ASSIGN_OR_RETURN(const int64_t flips, GetInt(json, "top1_flips"));
  out.text_tokens = static_cast<uint64_t>(std::max<int64_t>(0, tokens));
  out.flips = static_cast<uint64_t>(std::max<int64_t>(0, flips));
  return OkStatus();
}

}  // namespace

std::string_view CertificateText() {
  return "The lighthouse keeper wrote down the weather every morning for forty "
         "years. When the station was closed, her notebooks went to a museum, "
         "where a student found that the fog had moved: in 1950 it came from "
         "the north, and by 1990 it came from the sea.";
}

Result<Certificate> Certify(Session& float_session, Session& session,
                            std::span<const int32_t> ids) {
  HX_CHECK(ids.size() >= 2);
  std::vector<std::vector<float>> rows;
  HX_RETURN_IF_ERROR(float_session.Logits(
      ids, [&](uint32_t position, std::span<const float> row) {
        rows.emplace_back(row.begin(), row.end());
        return CheckFinite(row, position);
      }));
  LogitsComparer comparer;
  double nll = 0, float_nll = 0;
  const auto add = [&](uint32_t position,
                       std::span<const float> row) -> Status {
    HX_RETURN_IF_ERROR(CheckFinite(row, position));
    comparer.Add(rows[position], row);
    if (position + 1 < ids.size()) {
      nll += NegativeLogLikelihood(row, ids[position + 1]);
      float_nll += NegativeLogLikelihood(rows[position], ids[position + 1]);
    }
    return OkStatus();
  };
  HX_RETURN_IF_ERROR(session.Logits(ids, add));
  const StageComparison comparison = std::move(comparer).Finish();
  const auto counted = static_cast<double>(ids.size() - 1);
  Certificate certificate{
      .stage = session.artifact().manifest().stage,
      .text_tokens = ids.size(),
      .token_perplexity = std::exp(nll / counted),
      .float_token_perplexity = std::exp(float_nll / counted),
      .sqnr_db = comparison.sqnr_db,
      .mean_kld = comparison.mean_kld,
      .flips = comparison.flips};
  for (size_t i = 0; i < kProbes && i < ids.size(); ++i) {
    const auto part = ids.subspan(i * ids.size() / kProbes);
    HX_ASSIGN_OR_RETURN(
        GoldenProbe probe,
        MakeProbe(session, part.first(std::min(kProbeTokens, part.size()))));
    certificate.probes.push_back(std::move(probe));
  }
  return certificate;
}

Json CertificateToJson(const Certificate& certificate) {
  Json json = {{"version", kFormat},
               {"stage", certificate.stage},
               {"text_tokens", certificate.text_tokens},
               {"token_perplexity", certificate.token_perplexity},
               {"float_token_perplexity", certificate.float_token_perplexity},
               {"sqnr_db", certificate.sqnr_db},
               {"mean_kld", certificate.mean_kld},
               {"top1_flips", certificate.flips},
               {"probes", Json::array()}};
  for (const GoldenProbe& probe : certificate.probes) {
    json["probes"].push_back({{"ids", probe.ids},
                              {"tokens", probe.tokens},
                              {"logits", probe.logits}});
  }
  return json;
}

Result<Certificate> CertificateFromJson(const Json& json, uint32_t vocab) {
  HX_ASSIGN_OR_RETURN(const int64_t version, GetInt(json, "version"));
  if (version != kFormat) {
    return Error{
        ErrorCode::kBadInput,
        fmt::format("version: expected {}, found {}", kFormat, version)};
  }
  Certificate certificate;
  HX_RETURN_IF_ERROR(ReadFigures(json, certificate));
  const Json* probes = FindMember(json, "probes");
  if (probes == nullptr || !probes->is_array())
    return Error{ErrorCode::kBadInput, "probes: expected an array, found none"};
  for (const Json& probe : *probes) {
    HX_ASSIGN_OR_RETURN(GoldenProbe read, ProbeFromJson(probe, vocab));
    certificate.probes.push_back(std::move(read));
  }
  return certificate;
}

Status SelfTest(Session& session) {
  const auto& artifact = session.artifact();
  const auto segment = artifact.FindSegment(kCertificateSegment);
  if (!segment) return OkStatus();
  const auto context = [&] {
    return fmt::format("{}: {}", artifact.path(), kCertificateSegment);
  };
  auto json = ParseJson(AsText(artifact.Segment(*segment)));
  if (!json.ok()) return std::move(json).error().With(context());
  auto certificate = CertificateFromJson(*json, artifact.manifest().vocab_size);
  if (!certificate.ok()) return std::move(certificate).error().With(context());
  for (size_t i = 0; i < certificate->probes.size(); ++i)
    HX_RETURN_IF_ERROR(CheckProbe(session, certificate->probes[i], i + 1));
  return OkStatus();
}

}  // namespace hexllm
