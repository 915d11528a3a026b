#include "backend/htp/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string_view>

#include "backend/htp/trace_walker.h"
#include "base/mapped_file.h"
#include "base/quote.h"

namespace hexllm::htp {
namespace {

constexpr std::string_view kMainTrack = "FG:";
constexpr std::string_view kConfiguration = "Hextimate Configuration";

// Sums of the events of one name on one track.
struct Work {
  uint64_t count = 0;
  double cycles = 0;
  double read_bytes = 0;
  double write_bytes = 0;
};

// One event while it is read.
struct Event {
  std::string name;
  std::string phase;
  std::string argument_name;  // of a metadata event
  double track = 0;
  double start = 0;
  double duration = 0;
  double read_bytes = 0;
  double write_bytes = 0;
};

// What a whole trace adds up to.
struct Trace {
  std::map<std::pair<int64_t, std::string>, Work> work;  // track, name
  std::map<int64_t, std::string> tracks;
  std::string soc;
  double end = 0;
  double core_mhz = 0;

  void Add(const Event& event) {
    const auto track = static_cast<int64_t>(event.track);
    if (event.phase == "M" && event.name == "thread_name")
      tracks[track] = event.argument_name;
    if (event.phase != "X") return;
    end = std::max(end, event.start + event.duration);
    Work& sum = work[{track, event.name}];
    ++sum.count;
    sum.cycles += event.duration;
    sum.read_bytes += event.read_bytes;
    sum.write_bytes += event.write_bytes;
  }
};

// Adds up a trace.
class TraceReader final : public TraceWalker {
 public:
  explicit TraceReader(Trace& trace) : trace_(trace) {}

 private:
  void OnNumber(double value) override {
    if (InEvent(0)) {
      if (Key() == "tid") event_.track = value;
      if (Key() == "ts") event_.start = value;
      if (Key() == "dur") event_.duration = value;
    } else if (InEvent(2) && Argument() == "bw_info") {
      if (Key() == "dram_read") event_.read_bytes = value;
      if (Key() == "dram_write") event_.write_bytes = value;
    } else if (InSection(kConfiguration) && Key() == "sim_core_freq") {
      trace_.core_mhz = value;
    }
  }
  void OnText(const std::string& value) override {
    if (InEvent(0) && Key() == "name") event_.name = value;
    if (InEvent(0) && Key() == "ph") event_.phase = value;
    if (InEvent(1) && Key() == "name") event_.argument_name = value;
    if (InSection(kConfiguration) && Key() == "soc_type") trace_.soc = value;
  }
  void OnClose(char) override {
    if (!AtEvent()) return;
    trace_.Add(event_);
    event_ = {};
  }

  Trace& trace_;
  Event event_;
};

std::string UnitOf(std::string_view track) {
  if (track == kMainTrack) return "main";
  // Transfers that HVX threads wait for have tracks of their own.
  return track.find("DMA") != track.npos ? "DMA" : "HVX";
}

// "default_dma (q::ConvLayer.opt.weights_to_vtcm)" is the transfer of that.
std::string OpName(std::string_view name) {
  const size_t open = name.find('(');
  if (open != name.npos && name.starts_with("default_dma ("))
    name = name.substr(open + 1, name.size() - open - 2);
  for (const std::string_view prefix : {"default_", "q::"})
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  return std::string(name);
}

// On the main track transfers are started and waited for: one line each.
std::string NameOnMain(std::string_view name) {
  if (!name.starts_with("default_")) return OpName(name);
  return OpName(name.substr(0, name.find(' ')));
}

GraphEstimate Summarize(const Trace& trace) {
  GraphEstimate estimate{.soc = trace.soc,
                         .cycles = trace.end,
                         .core_mhz = trace.core_mhz,
                         .us = trace.end / trace.core_mhz,
                         .ops = {}};
  std::map<std::pair<std::string, std::string>, Work> sums;
  double read = 0, written = 0, spilled = 0, filled = 0;
  for (const auto& [where, work] : trace.work) {
    const auto track = trace.tracks.find(where.first);
    const std::string unit =
        UnitOf(track == trace.tracks.end() ? "" : track->second);
    const bool on_main = unit == "main";
    Work& sum =
        sums[{unit, on_main ? NameOnMain(where.second) : OpName(where.second)}];
    sum.count += work.count;
    sum.cycles += work.cycles;
    // Whatever moves is started on the main track; the other tracks say it
    // again.
    if (!on_main) continue;
    read += work.read_bytes;
    written += work.write_bytes;
    if (where.second.ends_with("(@Spill)")) spilled += work.write_bytes;
    if (where.second.ends_with("(@Fill)")) filled += work.read_bytes;
  }
  estimate.ddr_read_bytes = static_cast<uint64_t>(read);
  estimate.ddr_write_bytes = static_cast<uint64_t>(written);
  estimate.spill_bytes = static_cast<uint64_t>(spilled);
  estimate.fill_bytes = static_cast<uint64_t>(filled);
  for (const auto& [op, sum] : sums) {
    estimate.ops.push_back({.unit = op.first,
                            .name = op.second,
                            .count = sum.count,
                            .busy_us = sum.cycles / trace.core_mhz});
  }
  std::ranges::stable_sort(estimate.ops, std::greater{}, &EstimatedOp::busy_us);
  return estimate;
}

// What is read as numbers can be counted with.
bool IsSane(const Trace& trace) {
  constexpr double kMost = 1e15;
  const auto fits = [](double x) { return x >= 0 && x < kMost; };
  if (!(trace.core_mhz > 0) || !fits(trace.core_mhz) || !(trace.end > 0))
    return false;
  if (!fits(trace.end)) return false;
  return std::ranges::all_of(trace.work, [&](const auto& entry) {
    const Work& work = entry.second;
    return fits(work.cycles) && fits(work.read_bytes) && fits(work.write_bytes);
  });
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> EstimateKeys(
    const Soc& soc, const std::string& trace_path) {
  if (!soc.has_cost_model) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("the QNN compiler has no cost model of {}; "
                             "estimate for another SoC with an HTP v{}",
                             soc.name, soc.htp)};
  }
  // Corner 7 is turbo, as in a burst; phones' default would be 0.8 GHz.
  return std::vector<std::pair<std::string, std::string>>{
      {"hextimate", "1"},
      {"sim_trace_final", trace_path},
      {"sim_core_voltage_corner", "7"},
      {"sim_bus_voltage_corner", "7"},
  };
}

Result<GraphEstimate> ReadEstimate(const std::string& trace_path) {
  std::error_code code;
  if (!std::filesystem::exists(trace_path, code)) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{}: the QNN compiler wrote no estimate: this "
                             "version does not know the keys that ask for one "
                             "(QAIRT 2.51 does)",
                             Printable(trace_path))};
  }
  HX_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(trace_path));
  const std::string_view text = AsText(file.bytes());
  Trace trace;
  const std::string where =
      fmt::format("{}: no schedule of the QNN compiler", Printable(trace_path));
  Status walked = TraceReader(trace).Walk(text);
  if (!walked.ok()) return std::move(walked).error().With(where);
  if (IsSane(trace)) return Summarize(trace);
  return Error{ErrorCode::kBadInput, where + ": it has no events or no clock"};
}

}  // namespace hexllm::htp
