// What an artifact says about its own numbers (compile --certify), and the
// self-test of whoever loads it: a device that computes garbage is found at
// once. Used by cli/. As a segment: docs/evaluation.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "runtime/session.h"

namespace hexllm {

// The segment that holds the certificate, JSON.
inline constexpr std::string_view kCertificateSegment = "certificate";

// A prompt and what this compiled graph makes of its last token: the greatest
// logits.
struct GoldenProbe {
  std::vector<int32_t> ids;     // at least one
  std::vector<int32_t> tokens;  // of the logits, the likeliest first
  std::vector<float> logits;
};

struct Certificate {
  std::string stage;  // of the artifact
  uint64_t text_tokens = 0;
  // On the built-in text, of the artifact and of the float graph.
  double token_perplexity = 0;
  double float_token_perplexity = 0;
  double sqnr_db = 0;
  double mean_kld = 0;  // nats
  uint64_t flips = 0;
  std::vector<GoldenProbe> probes = {};
};

// Logits that a probe keeps, at most.
inline constexpr size_t kProbeLogits = 256;
// The least SQNR of a probe's logits that passes. Other hardware rounds
// differently; garbage is below 0.
inline constexpr double kLeastProbeDb = 20;

// The text that certificates are about; not part of what calibration reads.
std::string_view CertificateText();

// Runs `ids` (of CertificateText, at least two) on both. Errors of the
// sessions, kBadInput for logits that are not finite.
Result<Certificate> Certify(Session& float_session, Session& session,
                            std::span<const int32_t> ids);

Json CertificateToJson(const Certificate& certificate);
// kBadInput names what is missing, malformed, or out of a vocabulary of
// `vocab`.
Result<Certificate> CertificateFromJson(const Json& json, uint32_t vocab);

// Runs the probes of the session's artifact, if it has some. kEnvironment when
// the logits are not the golden ones; kBadInput for a damaged certificate;
// errors of the session, which is reset.
Status SelfTest(Session& session);

}  // namespace hexllm
